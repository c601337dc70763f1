"""The tool name inside the tag: Qwen3-Coder, OpenHands, Seed-OSS, Llama.

<tool_call>
<function=get_weather>
<parameter=city>
Oslo
</parameter>
</function>
</tool_call>
"""

from __future__ import annotations

from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.shared_marks import THINK, TOOL_CALL, TOOL_RESPONSE
from toolglot.dialects.spec import CallSyntax, Dialect, Position, Region, ToolListing, ToolPromptStyle, Wrap

FUNCTION = ("<function={q}{name}{q}>",)
CLOSE = ("</ function{eqkey} >", "</function\n", "</{ns}invoke>", "</tool>")
ATTRIBUTED = "<function={q}{name}{q}{attributes}>"
LOST = "dropped_attributes"
DRIFTED = (
    "<function = {q}{name}{q} >",
    ATTRIBUTED,
    "<function name={q}{name}{q}{attributes}>",
    "<function:{name}>",
    "<tool={q}{name}{q}>",
    "<{ns}invoke={q}{name}{q}>",
)

SPACED = TaggedParameters(
    (
        Parameter("<parameter={q}{key}{q}>", ("</parameter{eqkey}>",), Trim.BREAK),
        Parameter("<parameter name={q}{key}{q}>", ("</parameter>",), Trim.BREAK),
        Parameter("<parameter={q}{key}{q}{attributes}>", ("</parameter{eqkey}>",), Trim.BREAK, repair=LOST),
        # known damage: a missing bracket, the value inside the tag, the key as the content of the tag
        Parameter("<parameter={key}\n", ("</parameter>",), Trim.BREAK, repair="damaged_opener"),
        Parameter("<parameter={key}=", ("</parameter>",), Trim.BREAK, repair="damaged_opener"),
        Parameter("<parameter>{key}</parameter>", ("</parameter_value>",), Trim.BREAK, repair="key_outside_tag"),
        Parameter("<{key}>", ("</{key}>",), Trim.BREAK),
    )
)
TIGHT = TaggedParameters((Parameter("<parameter={q}{key}{q}>", ("</parameter>",)),))

DIALECTS = (
    Dialect(
        "qwen3_coder",
        CallSyntax(FUNCTION, SPACED, CLOSE),
        sample="<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        wrap=TOOL_CALL,
        teach=ToolPromptStyle(ToolListing.ELEMENTS),
        returns=TOOL_RESPONSE,
        also=(
            # the tool name written as a parameter, or in an unclosed <name>
            CallSyntax(("<parameter={name}> {before_parameter}",), SPACED, CLOSE, Position.WRAPPED, "damaged_header"),
            CallSyntax(("<name>{name} </parameter>",), SPACED, CLOSE, repair="damaged_header"),
            CallSyntax(DRIFTED, SPACED, CLOSE, repair="damaged_header"),
            CallSyntax(("<tool_call={q}{name}{q}>",), SPACED, ("</tool_call>",), repair="damaged_header"),
            CallSyntax(
                ("<function={name}\n", "<function_{name_own}> {before_parameter}"),
                SPACED,
                CLOSE,
                repair="damaged_header",
            ),
            CallSyntax(("function={name}>",), SPACED, CLOSE, Position.WRAPPED, "damaged_header"),
            CallSyntax(
                (
                    "<name>{name}</name>",
                    "<tool_name>{name}</tool_name>",
                    "<function_name>{name}</function_name>",
                ),
                SPACED,
                position=Position.WRAPPED,
            ),
            # elements for the name and for all arguments
            CallSyntax(
                ("<function> <name> {name} </name>", "<function_call> <name> {name} </name>"),
                SPACED,
                ("</function>", "</function_call>"),
            ),
        ),
        regions=(THINK,),
        models=("qwen3-coder*", "qwen3.5*", "qwen3.6*", "qwen3.8*", "step-3.5*", "nemotron-3*", "mimo-v2*"),
    ),
    Dialect(
        "llama_function_tag",
        CallSyntax(FUNCTION, NamedCall(), CLOSE),
        sample='<function=get_weather>{"city": "Oslo"}</function>',
        also=(
            CallSyntax(
                ("<function={name}={before_object}", "<function={name}{before_object}"),
                NamedCall(),
                ("> </function>", "</function>"),
                repair="damaged_header",
            ),
            CallSyntax((ATTRIBUTED,), NamedCall(), CLOSE, repair="damaged_header"),
        ),
        teach=ToolPromptStyle(open="", close=""),
        models=("functionary-v3.1*", "*functionary-medium-v3.1*"),
    ),
    Dialect(
        "openhands",
        CallSyntax(FUNCTION, SPACED, CLOSE),
        sample="<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>",
        results=("EXECUTION RESULT of [",),
        teach=ToolPromptStyle(ToolListing.NUMBERED, "", ""),
        returns="EXECUTION RESULT of [{name}]:\n{content}",
    ),
    Dialect(
        "seed_oss",
        CallSyntax(FUNCTION, TIGHT, CLOSE),
        sample="<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n"
        "</seed:tool_call>",
        wrap=(Wrap(("<seed:tool_call>",), ("</seed:tool_call>",)),),
        also=(
            CallSyntax((*DRIFTED, "<function={name}\n"), TIGHT, CLOSE, repair="damaged_header"),
            CallSyntax(("function={name}>",), TIGHT, CLOSE, Position.WRAPPED, "damaged_header"),
        ),
        regions=(Region(("<seed:think>",), ("</seed:think>",)),),
        teach=ToolPromptStyle(ToolListing.STUBS, "", ""),
        models=("seed-oss*",),
    ),
)
