"""Frames that wait: calls that count only if nothing follows them.

Three kinds wait. A call inside reasoning: if the answer ends there it was the action, put in the wrong channel; if the
reasoning goes on, or an answer or another call follows, it was a rehearsal. And bare JSON after prose: as the last
thing of an answer it is a call, in the middle of the text it is something that is being shown. And a call that stood
in the conversation before: it is a quotation, unless the answer is nothing but this call. A quotation inside reasoning
is never the action.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.partial_call import CallBlock

PROMOTED = "promoted_from_reasoning"


@dataclass(slots=True)
class DeferredCalls:
    sink: EventBuffer
    frames: list[CallBlock] = field(default_factory=list)
    items: list[CallBlock | str] = field(default_factory=list)
    """The frames, and what passed behind them."""
    reasoning: bool = False
    aside: bool = False
    """Whether that reasoning stays in the text."""
    closed: bool = False
    undecided: bool = False
    """Whether a call waits that is a quotation unless nothing else is said."""

    def __bool__(self) -> bool:
        return bool(self.frames)

    def take(self, frame: CallBlock, reasoning: bool, last: bool) -> bool:
        """Hold a frame that counts only at the end (``last``, a quotation) or was put into reasoning.

        Returns: whether it waits there. A frame that is held for another reason counts at once, unless it follows one
        that counts only if nothing else is said.
        """
        last = last or any(other.alone for other in self.frames)
        if frame.held:
            frame.undecided = not reasoning and frame.is_only_call()
            self.add(frame, reasoning)
        return reasoning or (frame.held and (last or frame.undecided))

    def add(self, frame: CallBlock, reasoning: bool) -> None:
        self.frames.append(frame)
        self.items.append(frame)
        self.reasoning, self.aside = reasoning, self.sink.reasoning_as_text
        self.undecided = frame.undecided

    def is_over(self, thinking: bool) -> bool:
        """Whether a frame that begins now is something else, behind which what waits is no call."""
        return self.undecided or (self.reasoning and not thinking and bool(self.frames))

    def pass_by(self, raw: str) -> None:
        """Blanks or stray marks: they neither count as an answer nor get lost."""
        self.items.append(raw)

    def close(self, mark: str) -> None:
        """The reasoning is over. Its mark stays behind the calls in it that wait, if it is text."""
        if self.sink.reasoning_as_text and self.frames:
            self.pass_by(mark)
        else:
            self.sink.skip_mark(mark)
        self.sink.reasoning_as_text = False
        self.closed = bool(self.frames)

    def drop(self) -> None:
        """Something followed: what waited was no call."""
        if self.undecided:
            self._leave_as_quotation()
            return
        text = "".join([item if isinstance(item, str) else item.raw or "" for item in self.items])
        if self.reasoning and not self.aside:
            self.sink.add_reasoning(text)
        else:
            self.sink.add_text(text)
        self._reset()

    @property
    def has_quotation(self) -> bool:
        """Whether one of the calls that wait is a quotation."""
        return self.undecided or any(draft.is_quoted for frame in self.frames for draft in frame.calls)

    def _leave_as_quotation(self) -> None:
        """The calls that waited are text, and so is what passed behind them."""
        items = self.items
        self._reset()
        for item in items:
            if isinstance(item, str):
                self.sink.add_text(item)
            else:
                item.return_quotation()

    def promote(self, alone: bool = False) -> None:
        """What waits are calls; ``alone``: the answer is nothing else."""
        if not alone and not self.reasoning and all(map(_is_quotation, self.frames)):
            self._leave_as_quotation()
            return
        frames, note = self.frames, PROMOTED if self.reasoning else ""
        self._reset()
        for frame in frames:
            frame.accept(note, alone)

    def end(self, truncated: bool) -> None:
        """The answer is over: what waited counts if it is complete. Reasoning that was cut might have gone on."""
        if not self.frames:
            return
        if self._is_unfit(truncated) or (self.undecided and truncated):
            self.drop()
        else:
            self.promote(alone=self.undecided)

    def _is_unfit(self, truncated: bool) -> bool:
        """Whether what waited does not count at the end either. A quotation in reasoning never does."""
        if not self.reasoning:
            sound = not truncated and all(frame.is_complete for frame in self.frames)
            return not sound and any(frame.alone for frame in self.frames)
        complete = not truncated and all(draft.is_sound for frame in self.frames for draft in frame.calls)
        marked = all(frame.marked for frame in self.frames)
        fit = complete and (marked or not self.closed)
        return not fit or self.has_quotation

    def _reset(self) -> None:
        self.frames, self.items = [], []
        self.reasoning = self.aside = self.closed = self.undecided = False


def _is_quotation(frame: CallBlock) -> bool:
    return bool(frame.calls) and all(draft.is_quoted for draft in frame.calls)
