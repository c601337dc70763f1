"""Words that announce an example: what follows them is shown, and not meant as a call."""

from __future__ import annotations

import re

TAIL = 240
"""How much of the text before a place can announce an example there."""

_EXAMPLE = re.compile(
    r"(?:for example\b[^\n]*[:,]|(?:would|could) (?:send|look|write)\b[^\n]*:|\be\.g\.:?"
    r"|(?:\A|\n)\W*(?:examples?|usage|beispiel|ejemplo|пример|示例|例如|例)\W*|the syntax\b[^\n]* is:)\W*\Z",
    re.IGNORECASE,
)
"""Words at the end of the text that announce an example, whatever follows."""

_SHOWN = re.compile(
    r"(?:\bexamples?\b|for instance|sample call|looks? like|the format is|placeholder|比如|zum beispiel)"
    r"[^\n]*[:：]\W*\Z",
    re.IGNORECASE,
)
"""Words that make what is ordinary text an example."""


def announces_example(text: str, marked: bool) -> bool:
    """Whether the last line announces an example; what is never ordinary text is meant more often."""
    tail = text[-TAIL:]
    return _EXAMPLE.search(tail) is not None or (not marked and _SHOWN.search(tail) is not None)
