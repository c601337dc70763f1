"""Calls between arrows, as a dialect that a package of its own brings.

==> get_weather {"city": "Oslo"} <==
"""

from __future__ import annotations

from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import CallSyntax, Dialect

DIALECTS = (
    Dialect(
        "arrow_call",
        CallSyntax(("==> {name} {before_object}",), NamedCall(), ("<==",)),
        sample='==> get_weather {"city": "Oslo"} <==',
        models=("arrow-*",),
    ),
)
