"""The name in the tag: Qwen3-Coder and its relatives.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

from toolglot.codecs.markup import Markup, Parameter
from toolglot.codecs.named import Named
from toolglot.codecs.trim import Trim
from toolglot.dialect import Call, Dialect, Place, Region, Wrap
from toolglot.marks import THINK, TOOL_CALL

FUNCTION = ("<function={q}{name}{q} >", "<function={name}\n")
CLOSE = ("</function>", "</function\n")

SPACED = Markup(
    (
        Parameter("<parameter={q}{key}{q}>", ("</parameter>",), Trim.BREAK),
        Parameter("<parameter name={q}{key}{q}>", ("</parameter>",), Trim.BREAK),
        Parameter("<{key}>", ("</{key}>",), Trim.BREAK),
    )
)
TIGHT = Markup((Parameter("<parameter={q}{key}{q}>", ("</parameter>",)),))

DIALECTS = (
    Dialect(
        "qwen3_coder",
        Call(FUNCTION, SPACED, CLOSE),
        sample="<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        wrap=(TOOL_CALL,),
        also=(
            # the tool's name opened as a parameter, or as a lone <name>
            Call(("<parameter={name}> {before_parameter}",), SPACED, CLOSE, Place.WRAPPED),
            Call(("<name>{name} </parameter>", "<name>{name}</name>"), SPACED, CLOSE),
        ),
        regions=(THINK,),
        models=("qwen3-coder*", "qwen3.5*", "qwen3.6*", "qwen3.8*", "step-3.5*", "nemotron-3*", "mimo-v2*"),
    ),
    Dialect(
        "openhands",
        Call(FUNCTION, SPACED, CLOSE),
        sample="<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>",
        results=("EXECUTION RESULT of [",),
    ),
    Dialect(
        "seed_oss",
        Call(FUNCTION, TIGHT, CLOSE),
        sample="<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n"
        "</seed:tool_call>",
        wrap=(Wrap(("<seed:tool_call>",), ("</seed:tool_call>",)),),
        regions=(Region(("<seed:think>",), ("</seed:think>",)),),
        models=("seed-oss*",),
    ),
    Dialect(
        "llama_function_tag",
        Call(FUNCTION, Named(), CLOSE),
        sample='<function=get_weather>{"city": "Oslo"}</function>',
        models=("functionary-v3.1*", "*functionary-medium-v3.1*"),
    ),
)
