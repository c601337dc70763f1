"""One answer of the simulated model: as it was meant, and as it is put into words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Delta: TypeAlias = dict[str, Any]
"""What one event of a stream adds to the message, as it stands on the wire."""

CUT_FRACTION = 0.6
"""How much of a call is kept when it is cut."""


@dataclass(frozen=True, slots=True)
class SimCall:
    """A call the model makes. Arguments are JSON text, or something that only claims to be."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model means to say: prose, and calls if it acts."""

    text: str = ""
    calls: tuple[SimCall, ...] = ()
    reasoning: str = ""
    finish: str = ""


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """An answer in words: prose, then either calls written as text (``written``) or native ``calls``."""

    text: str = ""
    written: str = ""
    calls: tuple[SimCall, ...] = ()
    reasoning: str = ""
    finish: str = ""

    @property
    def content(self) -> str:
        return self.text + self.written

    @property
    def ending(self) -> str:
        """The reason to finish: what was asked for, or what fits the content."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def cut(self) -> RenderedAnswer:
        """The utterance broken off in the middle of its last call, or of its text if it makes none."""
        if self.calls:
            *whole, last = self.calls
            kept = last.arguments[: int(len(last.arguments) * CUT_FRACTION)]
            return replace(self, calls=(*whole, replace(last, arguments=kept)))
        if self.written:
            return replace(self, written=self.written[: int(len(self.written) * CUT_FRACTION)])
        return replace(self, text=self.text[: int(len(self.text) * CUT_FRACTION)])

    def limit(self, tokens: int) -> RenderedAnswer:
        """The utterance within a limit of tokens of four characters; calls are cut as text is."""
        room = tokens * 4
        if len(self.content) + sum(len(call.arguments) for call in self.calls) <= room:
            return self
        text, written = self.text[:room], self.written[: max(0, room - len(self.text))]
        calls = self.calls[:1] if room > len(self.text) else ()
        cut = tuple(replace(call, arguments=call.arguments[: room - len(self.text)]) for call in calls)
        return replace(self, text=text, written=written, calls=cut, finish="length")
