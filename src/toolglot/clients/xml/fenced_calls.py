"""Unwrap a call in the client's own XML from a code fence.

    ```xml
    <list_files>
    <path>.</path>
    </list_files>
    ```

These clients do not know fences and run what is in them, so models that write fenced calls work with them. The reader
treats fenced text as an example. So this filter removes the fence before the reader sees it, but only if the fence
holds nothing but a call and ends the message: then the call was meant. Such a fence is held until that is known; one
that is followed by text passes unchanged. The client still gets the fence marks in their place.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolglot.clients.xml.client import XmlClient
from toolglot.core.events import Event, TextDelta

_PARTIAL_FENCE = re.compile(r"\n[ \t]*(?P<fence>`{1,3}(?:[xX](?:[mM][lL]?)?)?[ \t]*(?:\n\s*(?:<\w*)?)?)\Z")
_LINE = re.compile(r"\n[ \t]*\Z")
_MAX_OPENING = 200
"""Longest opening of a fence."""
_MAX_SHOWN_FENCES = 100
"""An answer that shows this many fenced calls makes none of them."""


class FencedCalls:
    """Filters the text of one answer before the reader."""

    def __init__(self, client: XmlClient) -> None:
        self.opening = _compile_opening(client)
        self.last = "\n"
        self.held = ""
        self.fence: _Fence | None = None
        self.shown = 0
        self.before = self.inner = self.behind = ""
        """The fence around the call that ends the answer: before, inside and after."""

    def feed(self, text: str) -> str:
        """The text that the reader may see now."""
        if self.fence is None and not self.held and "`" not in text:
            self._pass(text)
            return text
        out: list[str] = []
        while text and self.shown < _MAX_SHOWN_FENCES:
            text = self._look(text, out) if self.fence is None else self._take(self.fence, text, out)
        return "".join([*out, text])

    def close(self, cut: bool) -> str:
        """The held text at the end of the answer, without a fence that ended it. If the answer was ``cut``, the fence
        stays."""
        if self.fence is None:
            return self.held
        whole = "".join(self.fence.pieces)
        self.inner = whole if cut else self.fence.inner(whole)
        self.before, _, self.behind = whole.partition(self.inner)
        return self.inner

    def holds(self, rest: str) -> bool:
        """Whether the rest of the answer was in the removed fence."""
        return bool(self.before) and self.inner.endswith(rest)

    def put_back(self, events: list[Event]) -> list[Event]:
        """Restore the fence around its content, which turned out to be text."""
        for at, event in reversed(list(enumerate(events))):
            if isinstance(event, TextDelta) and self.inner in event.text:
                head, inner, tail = event.text.rpartition(self.inner)
                return [*events[:at], TextDelta(head + self.before + inner + self.behind + tail), *events[at + 1 :]]
        return events

    def _look(self, text: str, out: list[str]) -> str:
        """Pass on what cannot belong to a fenced call; returns the fence if one begins."""
        text, self.held = self.last + self.held + text, ""
        found = self.opening.search(text)
        begun = found or _PARTIAL_FENCE.search(text, max(0, len(text) - _MAX_OPENING))
        at = begun.start("fence") if begun else len(text)
        out.append(text[len(self.last) : at])
        self._pass(out[-1])
        if found:
            self.fence = _Fence(found["tool"])
            return text[at:]
        self.held = text[at:]
        return ""

    def _take(self, fence: _Fence, text: str, out: list[str]) -> str:
        """Add text to the fence; returns the text after it if the fence was only shown."""
        if not fence.is_shown(text):
            return ""
        block, rest = fence.part()
        out.append(block)
        self._pass(block)
        self.fence, self.shown = None, self.shown + 1
        return rest

    def _pass(self, text: str) -> None:
        """Remember the blank start of the current line."""
        line = _LINE.search((self.last + text)[-_MAX_OPENING:])
        self.last = line[0] if line else ""


class _Fence:
    """A fence that begins with a call."""

    def __init__(self, tool: str) -> None:
        self.end = f"</{tool}>"
        self.closer = re.compile(rf"{self.end}\s*```")
        self.pieces: list[str] = []
        self.tail = ""
        self.closed = False

    def is_shown(self, text: str) -> bool:
        """Add text; whether text follows its end, so that the fence was only shown."""
        self.pieces.append(text)
        if not self.closed:
            tail = self.tail + text
            found = self.closer.search(tail)
            self.closed, self.tail = found is not None, tail[-_MAX_OPENING:]
            text = tail[found.end() :] if found else ""
        return bool(text.strip())

    def part(self) -> tuple[str, str]:
        """The fence, and the text after it."""
        whole = "".join(self.pieces)
        found = self.closer.search(whole)
        end = found.end() if found else len(whole)
        return whole[:end], whole[end:]

    def inner(self, whole: str) -> str:
        """Its content if that is a call and the fence is closed; else all of it."""
        inner = whole.rstrip().removesuffix("```").rstrip()
        if not self.closed or not inner.endswith(self.end):
            return whole
        return inner.removeprefix("```").lstrip("xXmMlL \t").lstrip("\n")


@lru_cache(maxsize=64)
def _compile_opening(client: XmlClient) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, client.tags), key=len, reverse=True))
    return re.compile(rf"\n[ \t]*(?P<fence>```(?:[xX][mM][lL])?[ \t]*\n\s*<(?P<tool>{names})>)")
