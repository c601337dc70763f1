"""A call in the client's own XML that stands in a code fence.

    ```xml
    <list_files>
    <path>.</path>
    </list_files>
    ```

These clients know no fences and run what is in them, so models that write their calls so get along with them. What is
shown in a fence is no call to the reader, for good reasons. So the marks of a fence are taken away before it reads, but
only of one that holds a call and nothing else, and ends the message: then it was meant. Such a fence is held until that
is known; one that is followed by words passes as it is. The client is told the marks all the same, in their place.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolglot.clients.xml.client import XmlClient
from toolglot.core.events import Event, TextDelta

_PARTIAL_FENCE = re.compile(r"\n[ \t]*(?P<fence>`{1,3}(?:[xX](?:[mM][lL]?)?)?[ \t]*(?:\n\s*(?:<\w*)?)?)\Z")
_LINE = re.compile(r"\n[ \t]*\Z")
_MAX_OPENING = 200
"""How long the beginning of a fence may be; a longer one is none."""
_MAX_SHOWN_FENCES = 100
"""An answer that shows so many calls makes none in a fence."""


class FencedCalls:
    """The text of one answer on its way to the reader."""

    def __init__(self, client: XmlClient) -> None:
        self.opening = _compile_opening(client)
        self.last = "\n"
        self.held = ""
        self.fence: _Fence | None = None
        self.shown = 0
        self.before = self.inner = self.behind = ""
        """What was taken away around the call that ends the answer."""

    def feed(self, text: str) -> str:
        """What can be read now."""
        if self.fence is None and not self.held and "`" not in text:
            self._pass(text)
            return text
        out: list[str] = []
        while text and self.shown < _MAX_SHOWN_FENCES:
            text = self._look(text, out) if self.fence is None else self._take(self.fence, text, out)
        return "".join([*out, text])

    def close(self, cut: bool) -> str:
        """What was held back, at the end of the answer: a fence that ended it is gone. If it was cut nobody knows."""
        if self.fence is None:
            return self.held
        whole = "".join(self.fence.pieces)
        self.inner = whole if cut else self.fence.inner(whole)
        self.before, _, self.behind = whole.partition(self.inner)
        return self.inner

    def holds(self, rest: str) -> bool:
        """Whether the rest of the answer stood in the fence that was taken off."""
        return bool(self.before) and self.inner.endswith(rest)

    def put_back(self, events: list[Event]) -> list[Event]:
        """The events, with the fence around what it held, which is text after all."""
        for at, event in reversed(list(enumerate(events))):
            if isinstance(event, TextDelta) and self.inner in event.text:
                head, inner, tail = event.text.rpartition(self.inner)
                return [*events[:at], TextDelta(head + self.before + inner + self.behind + tail), *events[at + 1 :]]
        return events

    def _look(self, text: str, out: list[str]) -> str:
        """Let pass what cannot belong to a fence with a call; the fence, if one begins."""
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
        """More of a fence; what stands behind it, if it was only shown."""
        if not fence.is_shown(text):
            return ""
        block, rest = fence.part()
        out.append(block)
        self._pass(block)
        self.fence, self.shown = None, self.shown + 1
        return rest

    def _pass(self, text: str) -> None:
        """Keep how the line begins that the text ends in, as long as it is blank."""
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
        """Take more of it: whether there are words behind its end, so that it was only shown."""
        self.pieces.append(text)
        if not self.closed:
            tail = self.tail + text
            found = self.closer.search(tail)
            self.closed, self.tail = found is not None, tail[-_MAX_OPENING:]
            text = tail[found.end() :] if found else ""
        return bool(text.strip())

    def part(self) -> tuple[str, str]:
        """The fence, and what stands behind it."""
        whole = "".join(self.pieces)
        found = self.closer.search(whole)
        end = found.end() if found else len(whole)
        return whole[:end], whole[end:]

    def inner(self, whole: str) -> str:
        """What it holds, if that is a call and it was closed; else all of it."""
        inner = whole.rstrip().removesuffix("```").rstrip()
        if not self.closed or not inner.endswith(self.end):
            return whole
        return inner.removeprefix("```").lstrip("xXmMlL \t").lstrip("\n")


@lru_cache(maxsize=64)
def _compile_opening(client: XmlClient) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, client.tags), key=len, reverse=True))
    return re.compile(rf"\n[ \t]*(?P<fence>```(?:[xX][mM][lL])?[ \t]*\n\s*<(?P<tool>{names})>)")
