"""Frames that wait: calls that count only if nothing follows them.

Two kinds wait. A call inside reasoning: if the answer ends there it was the action, put in the wrong channel; if the
reasoning goes on, or an answer or another call follows, it was a rehearsal. And bare JSON after prose: as the last
thing of an answer it is a call, in the middle of the text it is something that is being shown.
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

    def __bool__(self) -> bool:
        return bool(self.frames)

    def add(self, frame: Frame, reasoning: bool) -> None:
        self.frames.append(frame)
        self.raw.append(frame.raw or "")
        self.reasoning = reasoning

    def pass_by(self, raw: str) -> None:
        """Blanks or stray marks: they neither count as an answer nor get lost."""
        self.raw.append(raw)

    def drop(self) -> None:
        """Something followed: what waited was no call."""
        text = "".join(self.raw)
        if self.reasoning:
            self.sink.reasoning(text)
        else:
            self.sink.text(text)
        self._reset()

    def promote(self) -> None:
        frames, note = self.frames, PROMOTED if self.reasoning else ""
        self._reset()
        for frame in frames:
            frame.promote(note)

    def end(self, truncated: bool) -> None:
        """The answer is over: what waited counts if it is complete. Reasoning that was cut might have gone on."""
        if not self.frames:
            return
        complete = not truncated and all(draft.complete for frame in self.frames for draft in frame.drafts)
        marked = all(frame.marked for frame in self.frames)
        unfit = not complete and any(frame.alone for frame in self.frames)
        if unfit or (self.reasoning and not (complete and (marked or not self.closed))):
            self.drop()
        else:
            self.promote()

    def _reset(self) -> None:
        self.frames, self.raw = [], []
        self.reasoning = self.closed = False
