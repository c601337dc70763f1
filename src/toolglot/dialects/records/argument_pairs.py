"""The tool name, then pairs of key and value elements: GLM 4.5 and later, LongCat, Hunyuan, K2 Horizon, Solar Open 2.

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Oslo</arg_value>
</tool_call>
"""

from __future__ import annotations

from toolglot.dialects.codecs.json_envelope import OBJECT
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.shared_marks import TOOL_CALL, TOOL_CALLS, TOOL_RESPONSE
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
        Parameter(
            "<ifm|arg_key>{key}</ifm|arg_key> <ifm|arg_type> {type}{brackets} </ifm|arg_type> <ifm|arg_value>",
            ("</ifm|arg_value>",),
        ),
        Parameter("<ifm|arg_key>{key}</ifm|arg_key> <ifm|arg_value>", ("</ifm|arg_value>",)),
        Parameter("<param_key>{key}</param_key> <param_value>", ("</param_value>",)),
        Parameter("<|tool_arg:start|>{key}<|tool_arg:value|>", ("<|tool_arg:end|>",)),
        # known damage: doubled marks, a missing mark, <tool_call> instead of <arg_key>, key=value
        Parameter("<arg_key><arg_key>{key}</arg_key> <arg_value>", VALUE_END, repair="doubled_mark"),
        Parameter("<arg_key>{key}</arg_key></arg_key> <arg_value>", VALUE_END, repair="doubled_mark"),
        Parameter("<tool_call>{key}</arg_key> <arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key} <arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key}</arg_key> {stray} <arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key}</arg_key> arg_value>", VALUE_END, repair="damaged_opener"),
        Parameter("<arg_key>{key}</arg_key> {before_text}", VALUE_END, repair="missing_value_opener"),
        Parameter("<arg_key>{key_plain}=", VALUE_END, repair="damaged_opener"),
        # a key without a value
        Parameter("<arg_key{suffix}>{key}</arg_key{suffix}>", ()),
        Parameter("<longcat_arg_key>{key}</longcat_arg_key>", ()),
        Parameter("<ifm|arg_key>{key}</ifm|arg_key>", ()),
        Parameter("<param_key>{key}</param_key>", ()),
    )
)
HY_END = ("</tool_call{suffix}>", "<end_of_tool_call{suffix}>")

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
        # the closing bracket of a tag behind the name, and the arguments as JSON
        also=(CallSyntax(("{name}>{before_object}",), NamedCall(), position=Position.WRAPPED),),
        returns=TOOL_RESPONSE,
        models=("glm-4.7*", "glm-5*", "ling-3*", "laguna-s*", "spark-2.5*", "spark-3*", "hyperclovax-seed-think*"),
    ),
    Dialect(
        "telechat4",
        CallSyntax(("{name}",), PAIRS, position=Position.WRAPPED),
        sample="<tool_call>get_weather<param_key>city</param_key><param_value>Oslo</param_value></tool_call>",
        wrap=TOOL_CALL,
        returns=TOOL_RESPONSE,
        models=("telechat4*", "telechat-4*", "xing4*", "xing-4*"),
    ),
    Dialect(
        "iquest",
        CallSyntax(("{name}",), PAIRS, position=Position.WRAPPED),
        sample="<iquest_tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></iquest_tool_call>",
        wrap=(
            Wrap(("<iquest_tool_call>",), ("</iquest_tool_call>",)),
            Wrap(("<iquestcoder_tool_call>",), ("</iquestcoder_tool_call>",)),
        ),
        returns=TOOL_RESPONSE,
        models=("iquest-q1*", "iquest-coder-v2*"),
    ),
    Dialect(
        "k2_horizon",
        CallSyntax(("<ifm|tool_call> {name}",), PAIRS, ("</ifm|tool_call>",)),
        sample="<ifm|tool_calls>\n<ifm|tool_call>get_weather\n<ifm|arg_key>city</ifm|arg_key>\n"
        "<ifm|arg_value>Oslo</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
        wrap=(
            # the arguments as JSON
            Wrap(
                ("<ifm|tool_calls> <ifm|tool_call>{before_json}", "<ifm|tool_call>{before_json}"), ("</ifm|tool_call>",)
            ),
            Wrap(("<ifm|tool_calls>",), ("</ifm|tool_calls>",)),
        ),
        also=(OBJECT,),
        regions=(
            Region(
                ("<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"),
                ("</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"),
            ),
        ),
        between="\n",
        models=("k2-horizon*", "k2-v3*"),
    ),
    Dialect(
        "solar_open2",
        CallSyntax(("<|tool_call:start|> {name}",), PAIRS, ("<|tool_call:end|>",)),
        sample="<|tool_call:start|>get_weather\n<|tool_arg:start|>city<|tool_arg:value|>Oslo<|tool_arg:end|>\n"
        "<|tool_call:end|>",
        models=("solar-open2*", "solar-open-2*"),
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
        CallSyntax(("{name}<tool_sep{suffix}>",), PAIRS, HY_END, Position.WRAPPED),
        sample="<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n"
        "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Oslo</arg_value:opensource>\n"
        "</tool_call:opensource>\n</tool_calls:opensource>",
        wrap=(
            Wrap(("<tool_calls:{type}>",), ("</tool_calls:{type}>",)),
            Wrap(("<tool_call:{type}>",), HY_END),
            TOOL_CALLS,
        ),
        also=(CallSyntax(("<tool_call{suffix}>{name}<tool_sep{suffix}>",), PAIRS, HY_END, Position.WRAPPED),),
        regions=(Region(("<think:{type}>",), ("</think:{type}>",)),),
        between="\n",
        returns="<tool_response:opensource>\n{content}\n</tool_response:opensource>",
        models=("hy3*",),
    ),
    Dialect(
        "hy4",
        CallSyntax(
            ("<tool_call{suffix}> {name}{before_pair_key}",), PAIRS, ("</tool_call{suffix}>",), Position.WRAPPED
        ),
        sample="<tool_calls:opensource>\n<tool_call:opensource>get_weather"
        "<arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Oslo</arg_value:opensource>"
        "</tool_call:opensource>\n</tool_calls:opensource>",
        wrap=(Wrap(("<tool_calls:{type}>",), ("</tool_calls:{type}>",)), TOOL_CALLS),
        between="\n",
        returns="<tool_response:opensource>\n{content}\n</tool_response:opensource>",
        models=("hy4*", "hy-v4*"),
    ),
)
