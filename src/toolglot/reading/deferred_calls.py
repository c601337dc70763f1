"""Deferred calls: call blocks that count only if nothing follows them.

Strategy. Four kinds are deferred. A call inside reasoning: if the answer ends there, it is the action, in the wrong
channel; if the reasoning goes on, or an answer or another call follows, it was only considered. Bare JSON after prose:
at the end of an answer it is a call, in the middle of the text it is an example. A call that occurs earlier in the
conversation: it is a quotation, unless the answer is nothing but this call. A quotation inside reasoning is never the
action. A doubtful call (``example_detection``): a model that means it stops after it. A Python call is deferred too,
but a sentence may follow it if nothing precedes it, or a line that hands it over. A marked call in the middle of a
sentence waits for the end of the sentence: it is text if that is a question.

Several calls in bare JSON with a few words between them are delivered all or not at all: these words are held until the
next call begins or they are too many. All calls are delivered if the last one ends the answer and each is complete;
otherwise all are text, and near misses.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from toolglot.core.events import Defect, Reason
from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.partial_call import CallBlock
from toolglot.reading.example_detection import ends_as_question

PROMOTED = "promoted_from_reasoning"
MAX_BETWEEN = 200
"""Number of characters between two calls in bare JSON, or after a call in a sentence, that are held."""
_NOT_LAST = Defect(
    reason=Reason.MALFORMED,
    where="answer",
    found="text or a wrong call after the call",
    expected="nothing but complete calls at the end of the answer",
)
"""Why a complete call in bare JSON stays text."""


class HeldText(str):
    """Text after a deferred call, held because another call may follow it."""


class DeferredCalls(Struct, eq=False):
    """``keep`` takes the blocks that become text."""

    buffer: EventBuffer
    keep: Callable[[str], None]
    blocks: list[CallBlock] = []
    items: list[CallBlock | str] = []
    """The blocks, and the text after each of them."""
    reasoning: bool = False
    reasoning_as_text: bool = False
    """Whether the reasoning around the calls stays in the text."""
    closed: bool = False
    undecided: bool = False
    """Whether a deferred call is a quotation unless the answer holds nothing else."""
    between: int = 0
    """Number of held characters after the last block."""
    holds_text: bool = False
    in_sentence: bool = False
    """Whether the calls wait for the end of a sentence."""
    missed_one: bool = False
    """Whether bare JSON stayed text because the answer went on: further bare JSON is not delivered alone."""

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def defer(self, block: CallBlock, reasoning: bool, last: bool) -> bool:
        """Defer a block that counts only at the end (``last``, a quotation) or is inside reasoning.

        Returns whether it is deferred. A block that is held for another reason counts at once, unless it follows one
        that counts only if the answer holds nothing else.
        """
        block.is_doubtful = block.is_doubtful and not _is_quotation(block)
        goes_on = block.in_sentence and not _write_raw(block).endswith("\n")
        last = last or block.is_doubtful or goes_on or any(other.alone for other in self.blocks)
        if block.held:
            block.undecided = not reasoning and block.is_only_call()
            self.add(block, reasoning)
        return reasoning or (block.held and (last or block.undecided))

    def add(self, block: CallBlock, reasoning: bool) -> None:
        self.blocks.append(block)
        self.items.append(block)
        self.between = 0
        self.reasoning, self.reasoning_as_text = reasoning, self.buffer.reasoning_as_text
        self.undecided, self.in_sentence = block.undecided, block.in_sentence

    def _is_asked(self, following: str) -> bool | None:
        """Whether the sentence around the calls is a question; None if that is open after this text."""
        behind = "".join(item for item in self.items if isinstance(item, str)) + following
        asked = ends_as_question(behind[:MAX_BETWEEN])
        return False if asked is None and len(behind) >= MAX_BETWEEN else asked

    def is_superseded(self, thinking: bool, last: bool) -> bool:
        """Whether a block that begins now turns the deferred calls into text. ``last``: it may be like them."""
        return (
            self.undecided
            or (self.reasoning and not thinking)
            or (self.holds_text and not last and not self.in_sentence)
        )

    def hold(self, text: str) -> bool:
        """Hold text after calls in bare JSON, whose next one it may introduce, or in a sentence; False if it is too
        long or ends the sentence."""
        fit = not (self.reasoning or self.undecided) and all(map(_is_bare, self.blocks))
        self.between += len(text)
        goes_on = self._is_asked(text) is None if self.in_sentence else fit and self.between <= MAX_BETWEEN
        if not goes_on:
            return False
        self.items.append(HeldText(text))
        self.holds_text = True
        return True

    def append(self, raw: str) -> None:
        """Keep whitespace or stray marks after a deferred block; they are not an answer."""
        self.items.append(raw)

    def end_sentence(self, text: str = "\n") -> None:
        """Decide about calls in a sentence, if any, which ends in this text: they are text if it is a question."""
        if self.in_sentence and self._is_asked(text):
            self._leave_as_text()
        elif self.in_sentence:
            self.accept()

    def close(self, mark: str) -> None:
        """End the reasoning. If it is text, its closing mark stays after the deferred calls in it."""
        if self.buffer.reasoning_as_text and self.blocks:
            self.append(mark)
        else:
            self.buffer.skip_mark(mark)
        self.buffer.reasoning_as_text = False
        self.closed = bool(self.blocks)

    def end_before(self, text: str) -> None:
        """Decide because text follows: calls count if they were handed over and are no part of its paragraph."""
        self.end_sentence(text)
        if not self.blocks:
            return
        first, behind = self.blocks[0], ""
        for item in self.items:
            behind = behind + item if isinstance(item, str) else ""
        apart = "<" not in behind and behind.count("\n") > (first.is_first and not first.wrap_open)
        apart = apart and text[0].isalpha() and not text[0].islower()
        if apart and all(block.is_handed_over and block.is_complete for block in self.blocks):
            self.accept()
        else:
            self.discard()

    def discard(self) -> None:
        """Emit the deferred blocks as text, because something follows them."""
        if self.undecided:
            self._leave_as_quotation()
            return
        if not self.reasoning and any(map(_is_certain, self.blocks)):
            self._deliver_certain()
        else:
            self._leave_as_text()

    def _leave_as_text(self) -> None:
        text = "".join(map(_write_raw, self.items))
        if self.reasoning and not self.reasoning_as_text:
            self.buffer.add_reasoning(text)
        else:
            self.buffer.add_text(text)
            self.keep("".join(map(_write_raw, self.blocks)) if self.holds_text else text)
            self._report_misses()
        self._reset()

    def _deliver_certain(self) -> None:
        """Deliver the calls in marks, which only followed calls that must stand alone; the others become text."""
        items = self.items
        self._reset()
        for item in items:
            if not isinstance(item, str) and _is_certain(item):
                item.accept("", alone=False)
            else:
                self.buffer.add_text(raw := _write_raw(item))
                self.keep(raw)

    def _report_misses(self) -> None:
        """Report calls in bare JSON that become text."""
        for block in self.blocks:
            if _is_bare(block) and not _is_quotation(block):
                self.missed_one = True
                for call in block.calls:
                    if block.is_complete:
                        call.defects.append(_NOT_LAST)
                    block.add_near_miss(call, block.raw or "")

    @property
    def has_quotation(self) -> bool:
        """Whether one of the deferred calls is a quotation."""
        return self.undecided or any(call.is_quoted for block in self.blocks for call in block.calls)

    def _leave_as_quotation(self) -> None:
        """Emit the deferred calls, and the text after them, as quotations."""
        items = self.items
        self._reset()
        for item in items:
            if isinstance(item, str):
                self.buffer.add_text(item)
            else:
                item.return_quotation()

    def accept(self, alone: bool = False) -> None:
        """Deliver the deferred calls; ``alone``: the answer is nothing else."""
        if not alone and not self.reasoning and all(map(_is_quotation, self.blocks)):
            self._leave_as_quotation()
            return
        items = self.items if self.holds_text or self.in_sentence else self.blocks
        note = PROMOTED if self.reasoning else ""
        self._reset()
        for item in items:
            if isinstance(item, HeldText):
                self.buffer.add_text(item)
            elif isinstance(item, str):
                self.buffer.hold_whitespace(item)
            else:
                item.accept(note, alone)

    def end(self, truncated: bool) -> None:
        """End the answer: the deferred calls, of which there are some, count if they are complete. Reasoning that was
        cut might have gone on."""
        self.end_sentence()
        if self._is_unfit(truncated) or (self.undecided and truncated):
            self.discard()
        else:
            self.accept(alone=self.undecided)

    def _is_unfit(self, truncated: bool) -> bool:
        """Whether the deferred calls are not delivered at the end either. A quotation in reasoning never is."""
        if not self.reasoning:
            return self._is_unfit_text(not truncated and all(block.is_complete for block in self.blocks), truncated)
        complete = not truncated and all(call.is_sound for block in self.blocks for call in block.calls)
        marked = all(block.marked for block in self.blocks)
        fit = complete and (marked or not self.closed)
        return not fit or self.has_quotation

    def _is_unfit_text(self, complete: bool, truncated: bool) -> bool:
        """Whether calls outside of reasoning are text, although the answer ends after them."""
        if self.holds_text:
            return not complete or self.between > 0
        if self.missed_one and any(map(_is_bare, self.blocks)):
            return True
        cut = truncated or any(call.is_truncated for block in self.blocks for call in block.calls)
        return not complete and any(
            block.alone or (block.is_doubtful and (cut or not block.marked)) for block in self.blocks
        )

    def _reset(self) -> None:
        self.blocks, self.items = [], []
        self.reasoning = self.reasoning_as_text = self.closed = self.undecided = self.holds_text = self.in_sentence = (
            False
        )
        self.between = 0


def _is_bare(block: CallBlock) -> bool:
    """Whether a block is bare JSON that is delivered unless text follows it."""
    return not (block.marked or block.alone or block.is_doubtful)


def _write_raw(item: CallBlock | str) -> str:
    """The text of a block, or of what follows one."""
    return item if isinstance(item, str) else item.raw or ""


def _is_certain(block: CallBlock) -> bool:
    """Whether a block waits only because one before it counts only if the answer holds nothing else."""
    return block.opens_with_mark and not (block.alone or block.is_doubtful or _is_quotation(block))


def _is_quotation(block: CallBlock) -> bool:
    return bool(block.calls) and all(call.is_quoted for call in block.calls)
