"""Keys of members: what one looks like, what may follow a comma, and keys that are damaged or cut."""

from __future__ import annotations

import re
from functools import lru_cache

from toolglot.dialects.patterns import MORE, Mark
from toolglot.dialects.scanner import Source, Steps

_QUOTED_KEYS = ('"{quoted}"', "'{quoted_once}'", "“{key_plain}”", '<|"|>{key}<|"|>', "<escape>{key}<escape>")
KEY = Mark(*_QUOTED_KEYS, "{key_plain}")
LOOSE_KEY = Mark(*_QUOTED_KEYS, "{key_loose}")
"""Keys where quotes are optional and spaces are allowed."""
MAX_MEMBER = 80
"""How much of the text shows whether a damaged key is here."""
_DAMAGED_MEMBER = re.compile(r"\s*(?:[^\w\s]{0,2}[\"'“]{1,2}\s*(?P<key>[\w.-]+)|(?P<bare>[\w.-]+)[\"'”]{0,2}\s*:)")


@lru_cache(maxsize=64)
def next_key(assign: tuple[str, ...], closer: str, quotes: tuple[str, ...], bare: str) -> Mark:
    """What may follow a comma: the next key, or the closer (a trailing comma)."""
    closing = "}}" if closer == "}" else closer
    keys = [bare, *(f"{quote}{{key_plain}}{quote}" for quote in quotes), '"{quoted}"', "“{key_plain}”"]
    return Mark(*(f" {{comment}}{key} {sign}" for sign in assign for key in keys), f" {{comment}}{closing}")


def is_cut_in_key(source: Source) -> Steps[bool]:
    """Whether the text ends inside a key, or right after it."""
    while KEY.at(source.text, source.pos, False) is MORE:
        if source.final:
            return True
        yield
    return source.at_end


def find_damaged_member(text: str, at: int) -> str:
    """The key of what may be a member behind a comma, with a damaged key; "" if there is none here."""
    found = _DAMAGED_MEMBER.match(text, at)
    return (found["key"] or found["bare"]) if found is not None else ""
