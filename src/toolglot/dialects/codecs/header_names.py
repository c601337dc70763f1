"""Tool names in headers, together with the words behind them that belong to the name.

``<function=search files>`` calls no tool ``search``, and neither does ``to=functions.search files<|message|>``.
"""

from __future__ import annotations

import re

from toolglot.dialects.patterns import Match

_WORDS = re.compile(r"(?:\s+[^\s=<>\"']++(?!\s*=))+")
"""Words behind a name without quotes that are no attributes."""

_BEHIND_RECIPIENT = re.compile(r"[^<{]*")
_NO_NAME = re.compile(
    r"(?:[\s\d(?!–—]|[^\W\x00-\x7f]|analysis|commentary|final|json|code|text|plain|raw"
    r"|python|bash|sh|shell|sql|xml|html|yaml|patch|diff|markdown|javascript|typescript)*"
)
"""What may stand behind a recipient: channels, content types, stray characters."""


def read_name(header: Match) -> str:
    """The name in a tag with attributes; a name in quotes ends with them."""
    name: str = header["name"]
    if header.groupdict().get("attributes") is None or header.end("name") != header.start("attributes"):
        return name
    words = _WORDS.match(header["attributes"])
    return name if words is None else f"{name}{words[0]}".rstrip("/ ")


def read_recipient(header: Match) -> str:
    """The name in the header of a message; ``to=search files`` names another tool than ``to=search json``."""
    name: str = header["name"]
    behind = _BEHIND_RECIPIENT.match(header[0], header.end("name") - header.start())
    return name if behind is None or _NO_NAME.fullmatch(behind[0]) else f"{name}{behind[0].rstrip()}"
