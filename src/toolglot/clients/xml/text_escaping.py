"""Escape tags in text so that a client does not parse them as calls.

The opening tag of a tool starts a call anywhere: in a sentence, in quotes, in a code fence. In text it gets an
invisible break character after ``<``. A tag that already has such characters gets one more, so that removing one from
each restores the text exactly.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolglot.clients.xml.client import XmlClient

BREAK = "\u200b"
_MAX_HELD = 80


class TextEscaper:
    """Escapes the text of one message; holds back an ending that may become a tag."""

    def __init__(self, client: XmlClient) -> None:
        self.client = client
        self.beginnings = _tag_prefixes(client)
        self.held = ""

    def feed(self, text: str) -> str:
        if self.held:
            text, self.held = self.held + text, ""
        at = text.rfind("<")
        if at >= 0:
            if text[at + 1 :].lstrip(BREAK) in self.beginnings and len(text) - at <= _MAX_HELD:
                text, self.held = text[:at], text[at:]
            text = escape_text(self.client, text)
        return text

    def close(self) -> str:
        """Release the held text: the message ends, or a call follows that begins with its own tag."""
        text, self.held = self.held, ""
        return text


def escape_text(client: XmlClient, text: str) -> str:
    """The text, with the tags broken that the client would parse as a call."""
    return _compile_tags(client).sub(lambda found: f"<{BREAK}{found[0][1:]}", text)


def unescape_text(client: XmlClient, text: str) -> str:
    """Undo ``escape_text``."""
    return _compile_tags(client).sub(lambda found: "<" + found[0][1:].removeprefix(BREAK), text)


def _escaped_tags(client: XmlClient) -> frozenset[str]:
    return client.tags | client.leading_tags


@lru_cache(maxsize=16)
def _compile_tags(client: XmlClient) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _escaped_tags(client)), key=len, reverse=True))
    return re.compile(f"<{BREAK}*(?:{names})>")


@lru_cache(maxsize=16)
def _tag_prefixes(client: XmlClient) -> frozenset[str]:
    return frozenset(name[:length] for name in _escaped_tags(client) for length in range(len(name) + 1))
