"""Frames that wait: calls that count only if nothing follows them.

Three kinds wait. A call inside reasoning: if the answer ends there it was the action, put in the wrong channel; if the
reasoning goes on, or an answer or another call follows, it was a rehearsal. And bare JSON after prose: as the last
thing of an answer it is a call, in the middle of the text it is something that is being shown. And a call that stood
in the conversation before: it is a quotation, unless the answer is nothing but this call. A quotation inside reasoning
is never the action.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolglot.draft import Frame
from toolglot.sink import Sink

PROMOTED = "promoted_from_reasoning"


@dataclass(slots=True)
class Held:
    sink: Sink
    frames: list[Frame] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    reasoning: bool = False
    closed: bool = False
    undecided: bool = False
    """Whether a call waits that is a quotation unless nothing else is said."""

    def __bool__(self) -> bool:
        return bool(self.frames)

    def add(self, frame: Frame, reasoning: bool) -> None:
        self.frames.append(frame)
        self.raw.append(frame.raw or "")
        self.reasoning = reasoning
        self.undecided = frame.undecided

    def is_over(self, thinking: bool) -> bool:
        """Whether a frame that begins now is something else, behind which what waits is no call."""
        return self.undecided or (self.reasoning and not thinking and bool(self.frames))

    def pass_by(self, raw: str) -> None:
        """Blanks or stray marks: they neither count as an answer nor get lost."""
        self.raw.append(raw)

    def drop(self) -> None:
        """Something followed: what waited was no call."""
        if self.undecided:
            self._leave_as_quotation()
            return
        text = "".join(self.raw)
        if self.reasoning:
            self.sink.reasoning(text)
        else:
            self.sink.text(text)
        self._reset()

    def _leave_as_quotation(self) -> None:
        """The call that waited is text, and so is what passed behind it."""
        [frame], behind = self.frames, "".join(self.raw[1:])
        self._reset()
        frame.decide_as_quotation()
        if behind:
            self.sink.text(behind)

    def promote(self, alone: bool = False) -> None:
        frames, note = self.frames, PROMOTED if self.reasoning else ""
        self._reset()
        for frame in frames:
            frame.promote(note, alone)

    def end(self, truncated: bool) -> None:
        """The answer is over: what waited counts if it is complete. Reasoning that was cut might have gone on."""
        if not self.frames:
            return
        if self.undecided and not truncated:
            self.promote(alone=True)
        elif self.undecided or (self.reasoning and not self._is_action(truncated)):
            self.drop()
        else:
            self.promote()

    def _is_action(self, truncated: bool) -> bool:
        """Whether reasoning that ends the answer ends with its action. A quotation is none."""
        if truncated or any(frame.has_quotation for frame in self.frames):
            return False
        complete = all(draft.complete for frame in self.frames for draft in frame.drafts)
        return complete and (not self.closed or all(frame.marked for frame in self.frames))

    def _reset(self) -> None:
        self.frames, self.raw = [], []
        self.reasoning = self.closed = self.undecided = False
