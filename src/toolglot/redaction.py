"""What may be told: texts that others chose, without keys, short and printable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MASK: Final = "***"
NAME_LENGTH: Final = 200

NAMED: Final = re.compile(
    r"""(?ix) (?P<kept> (?:authorization|(?:x-)?api[-_]?key|(?:access|auth|refresh)[-_]?token|password|secret)
    (?:\\*["'])? \s*[:=]\s* (?:\\*["'])? (?:(?:bearer|basic)\s+)? ) [^\s"'\\,;}\]&]+"""
)
BORNE: Final = re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
SHAPED: Final = re.compile(
    r"""(?x) (?P<kept> (?<![A-Za-z0-9]) ) (?:
    (?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}
    | AIza[\w-]{20,} | AKIA[A-Z0-9]{12,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )"""
)
CREDENTIALS: Final = re.compile(r"(?P<kept>://)[^/\s:@\"]+:[^/\s@\"]+@")

SECRETS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = (
    (("api", "auth", "access", "refresh", "password", "secret"), NAMED),
    (("bearer", "basic"), BORNE),
    ((), SHAPED),
    (("://",), CREDENTIALS),
)
"""What looks like a secret, and the words one of which must be there before it is worth a look; none: how it begins."""

_MAYBE_SHAPED = re.compile(r"(?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_]|AIza|AKIA|eyJ")
"""How a key begins that is known by its shape: far quicker to look for than the whole of it."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with everything that is, or looks like, a key blackened."""
    for secret in known:
        if secret:
            text = text.replace(secret, MASK)
    small = text.lower()
    for words, pattern in SECRETS:
        if any(word in small for word in words) if words else _MAYBE_SHAPED.search(text):
            text = pattern.sub(rf"\g<kept>{MASK}", text)
    return text


def clean(text: str) -> str:
    """A text that others chose, fit for a line of log: short and printable."""
    short = text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"
    return short if short.isprintable() else "".join(char if char.isprintable() else "?" for char in short)


@lru_cache(maxsize=4096)
def tidy(text: str) -> str:
    """The same without keys. Names of models and tools, and most notes, come again with every request."""
    return clean(redact(text))
