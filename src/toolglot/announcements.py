"""Words that announce an example: what follows them is shown, and not meant as a call.

Strategy. What counts stands at the end, before signs and blanks. They are taken off first, in one step, so that no
pattern has to try every place where they might begin: a text of many lines and calls asks this at each of them.
"""

from __future__ import annotations

import re

TAIL = 240
"""How much of the text before a place can announce an example there."""

_PARTS = re.compile(r"(.*\w)?(\W*)", re.DOTALL)
"""The text up to its last word, and the signs after it."""

_HEADING = re.compile(r"(?<!\w)(?:examples?|usage|beispiel|ejemplo|пример|示例|例如|例)\Z", re.IGNORECASE)
"""A line of its own that announces an example."""
_LONGEST_HEADING = 9
"""The longest word of those, and the character before it."""

_SIGNS = re.compile(r"[:,：]|\A\.")
"""Signs that may follow an announcement."""

_EXAMPLE = (
    (re.compile(r"for example\b", re.IGNORECASE), (":", ",")),
    (re.compile(r"(?:would|could) (?:send|look|write)\b", re.IGNORECASE), (":",)),
)
"""Words that announce an example, whatever follows, if one of these signs ends their line."""

_SPELLED = (
    (re.compile(r"\be\.g\Z", re.IGNORECASE), "."),
    (re.compile(r"the syntax\b.* is\Z", re.IGNORECASE), ":"),
)
"""The same, at the end and with this sign at once."""

_SHOWN = (
    re.compile(
        r"\bexamples?\b|for instance|sample call|looks? like|the format is|placeholder|比如|zum beispiel"
        r"|\b(?:wrote|said|replied|printed)\b|\btranscripts?\b",
        re.IGNORECASE,
    ),
    (":", "："),
)
"""Words that make what is ordinary text an example, or a quotation."""


def announces_example(text: str, marked: bool) -> bool:
    """Whether the last line announces an example; what is never ordinary text is meant more often."""
    said, rest = _split(text[-TAIL:])
    if _is_heading(said):
        return True
    line, signs = said.rpartition("\n")[2], rest.partition("\n")[0]
    if _SIGNS.search(signs) is None:
        return False
    ending = _EXAMPLE if marked else (*_EXAMPLE, _SHOWN)
    return any(any(sign in signs for sign in those) and words.search(line) for words, those in ending) or any(
        signs.startswith(sign) and words.search(line) for words, sign in _SPELLED
    )


def _split(text: str) -> tuple[str, str]:
    found = _PARTS.match(text)
    said = (found and found[1]) or ""
    return said, text[len(said) :]


def _is_heading(said: str) -> bool:
    found = _HEADING.search(said, max(0, len(said) - _LONGEST_HEADING))
    if found is None:
        return False
    before, signs = _split(said[: found.start()])
    return not before or "\n" in signs


_LONGEST_INTRODUCTION = 200
_ENDS_IN_COLON = re.compile(r"[:：][*_\s]*\Z")
_ACTS = re.compile(
    r"\W*(?:(?:sure|okay|ok|certainly|of course|great|now|first|yes|alright|got it)\b[^.!?\n]{0,40}[,.!]\s*)?"
    r"(?:(?:sure|okay|ok|certainly|of course|great|alright)\W*\Z"
    r"|(?:i|let me|let's|let’s)\b)",
    re.IGNORECASE,
)
"""A sentence in which the model says what it does now."""
_TEACHES = re.compile(
    r"\A(?:for|while|if|elif|else|def|class|with|try|except|finally|async|match|case|return)\b.*:"
    r"|\b(?i:would|could|syntax|signature|usage|documentation|definition|how to|like this|looks like|equivalent|snippet"
    r"|script|python code)\b"
)
"""A line of code that opens a block, or words about calls in general."""


def introduces_call(text: str) -> bool:
    """Tell whether a text says no more than that a call follows.

    Parameters: ``text`` is all that was said before a call.
    Returns: True if it is empty, or one short line that ends in a colon or says what the model does now.
    """
    said = text.strip()
    if not said:
        return True
    if len(said) > _LONGEST_INTRODUCTION or "\n" in said or _TEACHES.search(said) is not None:
        return False
    return _ENDS_IN_COLON.search(said) is not None or _ACTS.match(said) is not None
