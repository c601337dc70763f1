"""The tool name, then pairs of key and value elements: GLM 4.5 and later, LongCat, Hunyuan 3.

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Oslo</arg_value>
</tool_call>
"""

from __future__ import annotations

from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.shared_marks import TOOL_CALL, TOOL_RESPONSE
from toolglot.dialects.spec import CallSyntax, Dialect, Position, Region, Wrap

VALUE_END = ("</arg_value>",)
PAIRS = TaggedParameters(
    (
        Parameter(
            "<arg_key{suffix}>{key}</arg_key{suffix}> <arg_value{suffix}>",
            ("</arg_value{suffix}>",),
        ),
        Parameter(
            "<longcat_arg_key>{key}</longcat_arg_key> <longcat_arg_value>",
            ("</longcat_arg_value>",),
        ),
        # known damage: doubled marks, a missing mark, <tool_call> instead of <arg_key>
        Parameter("<arg_key><arg_key>{key}</arg_key> <arg_value>", VALUE_END, repair="doubled_mark"),
        Parameter("<arg_key>{key}</arg_key></arg_key> <arg_value>", VALUE_END, repair="doubled_mark"),
        Parameter("<tool_call>{key}</arg_key> <arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key} <arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key}</arg_key>{before_text}", VALUE_END, repair="missing_value_opener"),
        # a key without a value
        Parameter("<arg_key{suffix}>{key}</arg_key{suffix}>", ()),
        Parameter("<longcat_arg_key>{key}</longcat_arg_key>", ()),
    )
)

DIALECTS = (
    Dialect(
        "glm45",
        CallSyntax(("{name}",), PAIRS, position=Position.WRAPPED),
        sample="<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        wrap=TOOL_CALL,
        also=(CallSyntax(("{name}{before_arg_key}",), PAIRS, ("</tool_call>",), Position.LINE, "missing_opener"),),
        returns=TOOL_RESPONSE,
        models=("glm-4.5*", "glm-4.6*", "laguna-xs*"),
    ),
    Dialect(
        "glm47",
        CallSyntax(("{name}",), PAIRS, position=Position.WRAPPED),
        sample="<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>",
        wrap=TOOL_CALL,
        returns=TOOL_RESPONSE,
        models=("glm-4.7*", "glm-5*", "ling-3*", "laguna-s*"),
    ),
    Dialect(
        "longcat_argkey",
        CallSyntax(("{name}",), PAIRS, position=Position.WRAPPED),
        sample="<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n"
        "<longcat_arg_value>Oslo</longcat_arg_value>\n</longcat_tool_call>",
        wrap=(Wrap(("<longcat_tool_call>",), ("</longcat_tool_call>",)),),
        returns=TOOL_RESPONSE,
    ),
    Dialect(
        "hy3",
        CallSyntax(("{name}<tool_sep{suffix}>",), PAIRS, ("</tool_call{suffix}>",), Position.WRAPPED),
        sample="<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n"
        "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Oslo</arg_value:opensource>\n"
        "</tool_call:opensource>\n</tool_calls:opensource>",
        wrap=(
            Wrap(("<tool_calls:{type}>",), ("</tool_calls:{type}>",)),
            Wrap(("<tool_call:{type}>",), ("</tool_call:{type}>",)),
        ),
        also=(
            CallSyntax(
                ("<tool_call{suffix}>{name}<tool_sep{suffix}>",), PAIRS, ("</tool_call{suffix}>",), Position.WRAPPED
            ),
        ),
        regions=(Region(("<think:{type}>",), ("</think:{type}>",)),),
        between="\n",
        returns="<tool_response:opensource>\n{content}\n</tool_response:opensource>",
        models=("hy3*",),
    ),
)
