"""Amazon Nova: the name in the tag, like Qwen3-Coder, with underscores before its words.

<__function=get_weather><__parameter=city>Oslo</__parameter></__function>
"""

from __future__ import annotations

from toolglot.dialects.codecs.tagged_parameters import Markup, Parameter
from toolglot.dialects.shared_marks import THINK
from toolglot.dialects.spec import Call, Dialect

DIALECTS = (
    Dialect(
        "nova",
        Call(
            # <tools> is what a list of definitions begins with as well, so it counts only right before a call
            ("<tools> <__function={q}{name}{q}>", "<__function={q}{name}{q}>"),
            Markup((Parameter("<__parameter={q}{key}{q}>", ("</__parameter>",)),)),
            ("</__function> </tools>", "</__function>"),
        ),
        sample="<__function=get_weather><__parameter=city>Oslo</__parameter></__function>",
        regions=(THINK,),
        models=("nova-*", "*amazon.nova*"),
    ),
)
