"""Amazon Nova: the tool name inside the tag, like Qwen3-Coder, with underscores before the tag names.

<__function=get_weather><__parameter=city>Oslo</__parameter></__function>
"""

from __future__ import annotations

from toolglot.dialects.codecs.tagged_parameters import Parameter, TaggedParameters
from toolglot.dialects.shared_marks import THINK
from toolglot.dialects.spec import CallSyntax, Dialect

DIALECTS = (
    Dialect(
        "nova",
        CallSyntax(
            # <tools> also opens a list of definitions, so it counts only right before a call
            ("<tools> <__function={q}{name}{q}>", "<__function={q}{name}{q}>"),
            TaggedParameters((Parameter("<__parameter={q}{key}{q}>", ("</__parameter>",)),)),
            ("</__function> </tools>", "</__function>"),
        ),
        sample="<__function=get_weather><__parameter=city>Oslo</__parameter></__function>",
        regions=(THINK,),
        models=("nova-*", "*amazon.nova*"),
    ),
)
