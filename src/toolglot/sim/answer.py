"""One answer of the simulated model, before and after rendering."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Delta: TypeAlias = dict[str, Any]
"""The ``delta`` object of one stream event."""

NATIVE = "native"
"""The way of making calls that is not a dialect."""

CUT_FRACTION = 0.6
"""How much of a call remains when it is cut."""


@dataclass(frozen=True, slots=True)
class SimCall:
    """A call of the simulated model. Arguments are JSON text, possibly malformed."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of an answer: text, and calls if any."""

    text: str = ""
    calls: tuple[SimCall, ...] = ()
    reasoning: str = ""
    finish: str = ""


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """An answer as it is sent: text, then either calls written as text (``written``) or native ``calls``. ``error`` is
    the JSON of an error that ends a stream behind them."""

    text: str = ""
    written: str = ""
    calls: tuple[SimCall, ...] = ()
    reasoning: str = ""
    finish: str = ""
    error: str = ""

    @property
    def content(self) -> str:
        return self.text + self.written

    @property
    def finish_reason(self) -> str:
        """The finish reason that was set, or the one that fits the content."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def cut(self) -> RenderedAnswer:
        """Cut the answer off in the middle of its last call, or of its text if it has none."""
        if self.calls:
            *whole, last = self.calls
            kept = last.arguments[: int(len(last.arguments) * CUT_FRACTION)]
            return replace(self, calls=(*whole, replace(last, arguments=kept)))
        if self.written:
            return replace(self, written=self.written[: int(len(self.written) * CUT_FRACTION)])
        return replace(self, text=self.text[: int(len(self.text) * CUT_FRACTION)])

    def limit(self, tokens: int) -> RenderedAnswer:
        """Cut the answer, calls included, to a number of tokens; a token is four characters."""
        size = tokens * 4
        if len(self.content) + sum(len(call.arguments) for call in self.calls) <= size:
            return self
        text, written = self.text[:size], self.written[: max(0, size - len(self.text))]
        calls = self.calls[:1] if size > len(self.text) else ()
        cut = tuple(replace(call, arguments=call.arguments[: size - len(self.text)]) for call in calls)
        return replace(self, text=text, written=written, calls=cut, finish="length")
