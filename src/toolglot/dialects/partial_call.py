"""Calls while they are being read: what is known so far, and when it may leave.

Strategy. A codec fills a ``PartialCall`` piece by piece. Until the draft is *sure* its pieces wait; from then on they
leave as they come, and nothing that has left is ever taken back. A draft that turns out wrong after it began to leave
is closed by ``CallRejected`` instead of ``CallEnded``; one that had not begun is reported, or given back as text. A
``CallBlock`` is one stretch of text that set out to hold calls; a *held* frame keeps finished drafts until somebody
decides whether they count (calls inside reasoning, bare JSON after prose).

Where call markup stood in the conversation, a draft that may be a quotation of it keeps its events to itself until its
text differs. If it never does, the call is a quotation: it stays text, unless the answer is nothing but this call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from toolglot.core.events import (
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Reason,
)
from toolglot.core.options import Options
from toolglot.core.provenance import NO_QUOTATIONS, Comparison, Quotations
from toolglot.core.schema.aliases import RENAMED, choose_aliases
from toolglot.core.schema.toolset import CompiledTool, CompiledTools, plain_name
from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.patterns import MarkChoice
from toolglot.dialects.scanner import Source
from toolglot.dialects.streamed_arguments import StreamedArguments, spell_key

RAW_LIMIT = 8192
"""How much of a call's own text is kept once its arguments have left; its span tells the rest."""

COMPARED = 4096
"""Up to this size a call is compared with quotations wherever it may end."""

REPAIR_COST = 0.01


@dataclass(slots=True)
class AnswerState:
    """What one answer may quote, and what it has delivered so far."""

    new_id: Callable[[], str]
    quotations: Quotations = NO_QUOTATIONS
    started: int = 0
    delivered: int = 0
    closed: int = 0
    """How many calls there were, delivered or not."""
    first: tuple[str, int] | None = None
    """The blanks before the first call that began to leave, and where it began."""
    tried: int = 0
    """How many characters were read on trial."""
    left: list[tuple[str, Reason]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """The dialects of near misses: text that was meant as a call and cannot be read as one."""


@dataclass(slots=True)
class CallBlock:
    """One stretch of text that set out to hold calls."""

    source: Source
    sink: EventBuffer
    toolbox: CompiledTools
    options: Options
    ledger: AnswerState
    start: int
    closing: MarkChoice
    waits: Callable[[], bool]
    """Whether it counts only as a whole, or only if nothing follows it; asked when a call begins in it."""
    at_line: bool
    introduced: Callable[[], bool]
    """Whether nothing of substance was said before it."""
    first: bool = False
    """Whether nothing was said or called before it."""
    alone: bool = False
    """It counts only if the answer says nothing else."""
    held: bool = False
    undecided: bool = False
    """Whether it is held because its call is a quotation unless nothing else is said."""
    dialect: str = ""
    confidence: float = 1.0
    marked: bool = True
    wrap_open: tuple[str, ...] = ()
    wrap_close: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    drafts: list[PartialCall] = field(default_factory=list)
    told: int = 0
    """How many of them were given back as text."""
    open: PartialCall | None = None
    raw: str | None = None
    last: PartialCall | None = None
    """The draft that was begun last, whatever became of it."""
    head: int = 0
    """Where the header of the call begins that is read now."""
    lacking: tuple[int, tuple[str, ...]] | None = None
    """Where a call ends in which the client misses something, and the arguments that it finds."""
    body_end: int = 0
    """Where the last call ended that was read as a whole."""

    def begin(self, written: str, start: int | None = None) -> PartialCall | None:
        """A draft for a call to the tool that was written, or None when that cannot be a call here."""
        tool = self.toolbox.find(written)
        if tool is None and (not self.marked or not self.at_line or written == "json"):
            # in the middle of a sentence, a tool that nobody offered is being talked about
            return None
        if self.open is not None:
            self.settle(start)
        if self.undecided:
            self.decide_as_quotation()
        if self.drafts:
            first = self.drafts[-1].end
        else:
            first, self.held = self.start, self.waits() or self.alone
        name = tool.name if tool else plain_name(written)
        self.open = self.last = draft = PartialCall(
            self, name, first, self.dialect, tool=tool, repairs=dict.fromkeys(self.repairs)
        )
        self._check_tool(draft, written)
        return draft

    def _check_tool(self, draft: PartialCall, written: str) -> None:
        tool, name = draft.tool, draft.name
        if tool is None and not name.strip("0123456789"):
            draft.flaw(Reason.MALFORMED, "tool name", "none", "the name of the tool to call")
        elif tool is None and self.options.unknown_tools != "allow":
            draft.flaw(Reason.UNKNOWN_TOOL, "tool name", f'"{written}"', self._offer(written))

    def count_alone(self) -> bool:
        """Let the frame count only as the whole answer; False when more was said before it."""
        self.alone = self.alone or self.introduced()
        self.held = self.held or (self.alone and not self.started)
        return self.alone

    def _offer(self, written: str) -> str:
        nearest = self.toolbox.nearest(written)
        names = ", ".join(self.toolbox.names[:20]) or "no tool at all"
        return f'"{nearest}"' if nearest else f"one of {names}"

    @property
    def known(self) -> CompiledTool | None:
        """The tool on offer to which a call was begun last."""
        return self.last.tool if self.last is not None else None

    def settle(self, end: int | None = None) -> None:
        """Close the draft that is open: everything up to ``end`` belongs to it."""
        draft = self.open
        if draft is None:
            return
        self.open = None
        self.source.limit(None)
        draft.end = self.source.here if end is None else end
        self.drafts.append(draft)
        if self.held:
            return
        if self.is_only_call():
            self.held = self.undecided = True
        else:
            draft.close()

    def is_only_call(self) -> bool:
        """Whether its call is a quotation, and all of the answer so far."""
        only = self.first and len(self.drafts) == 1 and not self.ledger.closed
        return only and self.drafts[0].is_quoted

    def decide_as_quotation(self) -> None:
        """Something else is said in the answer: the call that waited is text."""
        self.held = self.undecided = False
        for draft in self.drafts:
            draft.close()

    def abandon(self, before: PartialCall | None) -> None:
        """What was begun after ``before`` is no call after all."""
        if self.open is not None and self.open is not before and not self.open.live:
            self.open = None

    def clear(self) -> None:
        """Forget what was read: it is no call after all."""
        self.drafts.clear()
        self.open = None

    @property
    def is_sound(self) -> bool:
        """Whether no call of it lacks anything, as far as they were read."""
        drafts = self.drafts if self.open is None else (*self.drafts, self.open)
        return all(draft.complete and draft.has_required for draft in drafts)

    def text_of(self, draft: PartialCall) -> str:
        """The source text of one of its calls."""
        return self._text_between(draft.start, draft.end)

    def own_text(self, draft: PartialCall, start: int) -> str:
        """The text of a call from its header on, without the marks of a wrapper. In an object of calls by their names
        the name stands before it, and the text of the calls before belongs to it."""
        own = self._text_between(start, self.body_end if self.body_end > start else draft.end)
        return own if draft.name in own else self._text_between(self.head, draft.end)

    def _text_between(self, start: int, end: int) -> str:
        return self.source.since(start, end) if self.raw is None else self.raw[start - self.start : end - self.start]

    @property
    def started(self) -> bool:
        """Whether giving the text back is no longer possible."""
        return any(draft.live or draft.closed for draft in self.drafts) or (self.open is not None and self.open.live)

    def give_up_if_cut(self, truncated: bool) -> None:
        """A list of calls is complete only with all its elements."""
        for draft in self.drafts:
            truncated = truncated or draft.cut
        if truncated:
            for draft in self.drafts:
                draft.truncate()

    @property
    def is_text(self) -> bool:
        """Whether all of it was given back as text."""
        return self.told == len(self.drafts)

    @property
    def ends_line(self) -> bool:
        """Whether a line begins behind it: calls stand apart from what follows, text may end with a line break."""
        return not self.is_text or not self.drafts or self.drafts[-1].is_line

    def promote(self, note: str = "", alone: bool = False) -> None:
        """Let everything go that was held; ``alone``: the answer is nothing but this."""
        self.held = self.undecided = False
        for draft in self.drafts:
            if note:
                draft.repair(note)
            if alone or not draft.is_quoted:
                draft.sure()
            draft.close(alone)


@dataclass(slots=True)
class PartialCall(StreamedArguments):
    """One call while it is being read."""

    frame: CallBlock
    name: str
    start: int
    dialect: str
    end: int = 0
    index: int = -1
    live: bool = False
    closed: bool = False
    cut: bool = False
    told: bool = False
    """Its beginning has left."""
    is_line: bool = False
    """It was given back as text that ends with a line break."""
    doubt: Comparison | None = None
    """It may be a quotation, as far as its text has arrived. None of it leaves as long as it may."""

    def __post_init__(self) -> None:
        if quotations := self.frame.ledger.quotations:
            self.doubt = Comparison(quotations, max(self.start, self.frame.head))
        self.choose_receiver()

    def _wait(self, piece: str) -> None:
        """Keep a piece of the arguments as long as the call may be a quotation."""
        self.pending.append(piece)
        source = self.frame.source
        if self.doubt is not None and not self.frame.held and self.doubt.fails(source.here, source.since):
            self._trust()

    def _trust(self) -> None:
        """The call is no quotation: what waited for that may leave."""
        self.doubt = None
        self.choose_receiver()
        if self.live and not self.aliases:
            self._leave()

    @property
    def is_quoted(self) -> bool:
        """Whether the whole call stood in the conversation before; asked when all of it has arrived."""
        if self.doubt is not None and not self.doubt.holds(self.frame.own_text(self, self.doubt.start)):
            self._trust()
        return self.doubt is not None

    def stood(self, end: int) -> bool:
        """Whether the call, if it ends there, stood in the conversation before; a long one is not looked at."""
        doubt, source = self.doubt, self.frame.source
        return doubt is not None and end - doubt.start <= COMPARED and doubt.holds(source.since(doubt.start, end))

    def sure(self) -> None:
        """The text is a call: from here on its arguments may leave."""
        frame = self.frame
        if self.live or frame.held or self.flaws or self.aliases:
            return
        if frame.ledger.delivered and not frame.options.parallel:
            self.flaw(Reason.EXTRA_CALL, "answer", "a further call", "one call per answer")
            return
        if not self._is_wanted(frame.options):
            return
        if not frame.ledger.started:
            frame.ledger.first = frame.sink.blanks, self.start
        self.index = frame.ledger.started
        frame.ledger.started += 1
        self.live = True
        if self.doubt is None:
            self._leave()

    def _leave(self) -> None:
        """The call begins for the client, with what is known of its arguments."""
        frame = self.frame
        if frame.options.unknown_tools != "text":
            frame.source.limit(self.start + RAW_LIMIT)
        frame.sink.event(CallStarted(self.index, frame.ledger.new_id(), self.name))
        self.told = True
        if self.pending:
            frame.sink.arguments(self.index, "".join(self.pending))
            self.pending.clear()
        if not self.dropping:
            self.choose_receiver()

    def _is_wanted(self, options: Options) -> bool:
        """Whether its pattern is switched on and it is sure enough; a flaw says what is not."""
        if not self.frame.marked and self.dialect in options.patterns.off:
            self.flaw(Reason.SWITCHED_OFF, "pattern", self.dialect, "a pattern that is switched on")
            return False
        least = options.thresholds.get(self.dialect, options.min_confidence)
        if self.confidence < least:
            self.flaw(Reason.LOW_CONFIDENCE, "answer", f"{self.confidence:.2f}", f"{least:.2f}")
            return False
        return True

    def choose_receiver(self) -> None:
        self.raw = self.pending.append
        if self.doubt is not None and not self.aliases:
            self.raw = self._wait
        elif self.live and not self.aliases:
            self.raw = partial(self.frame.sink.arguments, self.index)

    def sure_of(self, key: str) -> None:
        """The text is a call because it has this argument; an alias does not prove that yet."""
        if not self._may_mean(key):
            self.sure()

    @property
    def passing(self) -> int | None:
        """The index under which arguments may leave without a look, once the call is live."""
        return self.index if self.told and not (self.dropping or self.aliases) else None

    def _settle_aliases(self) -> None:
        """Say what the aliases mean, and let the arguments go on their way."""
        renamed = {alias.key: alias for alias in choose_aliases(self.aliases, self.keys, self.pending)}
        for alias in renamed.values():
            self.pending[alias.at] = spell_key(alias.name)
            self.repair(RENAMED)
        forbidden = [alias.key for alias in self.aliases if alias.key not in renamed and self.forbids(alias.key)]
        self.keys = {renamed[key].name if key in renamed else key: kept for key, kept in self.keys.items()}
        self.aliases.clear()
        if forbidden:
            self.leave_out(forbidden)
        self.choose_receiver()
        if self.told:
            self.raw("".join(self.pending))
            self.pending.clear()
        elif self.live and self.doubt is None:
            self._leave()

    # -- the end ---------------------------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        known = self.frame.confidence
        return round(known - REPAIR_COST * len(self.repairs), 4) if self.repairs else known

    def truncate(self) -> None:
        self.cut = True

    @property
    def complete(self) -> bool:
        return not self.cut and not self.flaws

    def close(self, alone: bool = False) -> None:
        """Say how it ended: delivered, reported, or given back as text. ``alone``: the answer is nothing else."""
        if self.closed:
            return
        self.closed = True
        frame = self.frame
        frame.ledger.closed += 1
        if self.aliases and not self.cut:
            self._settle_aliases()
        if self.is_quoted:
            if not alone:
                self._withdraw()
                return
            self._trust()
        if self.cut:
            self.flaws.insert(0, Defect(Reason.TRUNCATED, "call", "the text ended inside it", "the whole call"))
        elif self.tool is not None and not self.has_required:
            self.flaws.extend(self.tool.missing(self.keys))
        if not self.cut and not self.flaws:
            self.sure()
        if self.flaws or not self.live:
            self._refuse()
            return
        self.raw("}" if self.written else "{}")
        frame.ledger.delivered += 1
        frame.sink.called = True
        span = (self.start, self.end)
        frame.sink.event(CallEnded(self.index, self.dialect, self.confidence, tuple(self.repairs), span))

    def _withdraw(self) -> None:
        """Leave a quotation in the text, as if it had never been a call."""
        if self.live:
            self.live = False
            self.frame.ledger.started -= 1
            self.frame.ledger.first = self.frame.ledger.first if self.frame.ledger.started else None
        self._give_back(Reason.QUOTATION)

    def _give_back(self, reason: Reason) -> None:
        frame = self.frame
        frame.told += 1
        frame.ledger.left.append((self.dialect, reason))
        text = frame.text_of(self)
        self.is_line = text.rstrip(" \t")[-1:] == "\n"
        frame.sink.text(text)

    def _is_text_after_all(self, reason: Reason) -> bool:
        """Ordinary text that merely looked like a call goes back to the text without a word."""
        frame = self.frame
        ordinary = not self.live and not frame.marked and reason is not Reason.EXTRA_CALL
        return ordinary or frame.options.unknown_tools == "text" or reason is Reason.LOW_CONFIDENCE

    @property
    def _was_only_mentioned(self) -> bool:
        """A mark in the middle of a sentence that nothing ever closed: the sentence stays text."""
        frame = self.frame
        return self.cut and not frame.at_line and not frame.source.truncated

    def _refuse(self) -> None:
        frame = self.frame
        raw = frame.text_of(self)
        defects = tuple(self.flaws)
        if self._is_text_after_all(defects[0].reason):
            self._give_back(defects[0].reason)
            return
        if self._was_only_mentioned:
            frame.sink.text(raw)
            raw = ""
        tool = self.tool.name if self.tool else frame.toolbox.nearest(self.name)
        index = self.index if self.live else None
        if self.live and not self.written:
            self.raw("{")  # many clients take no arguments at all for an empty object
        span = (self.start, self.end) if raw else None
        if defects[0].reason is not Reason.EXTRA_CALL:
            frame.sink.settle()
        kept = raw[:RAW_LIMIT] if self.live else raw
        frame.sink.event(CallRejected(kept, defects[0].reason, tool, defects, self.dialect, span, index))
