"""Calls while they are being read: what is known so far, and when it may leave.

Strategy. A codec fills a ``Draft`` piece by piece. Until the draft is *sure* its pieces wait; from then on they leave
as they come, and nothing that has left is ever taken back. A draft that turns out wrong after it began to leave is
closed by ``CallRejected`` instead of ``CallEnded``; one that had not begun is reported, or given back as text.
A ``Frame`` is one stretch of text that set out to hold calls; a *held* frame keeps finished drafts until somebody
decides whether they count (calls inside reasoning, bare JSON after prose).

Where call markup stood in the conversation, a draft that may be a quotation of it keeps its events to itself until its
text differs. If it never does, the call is a quotation: it stays text, unless the answer is nothing but this call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

from toolglot.events import (
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Reason,
)
from toolglot.jsontext import Value, dump, escape
from toolglot.options import Options
from toolglot.pattern import Choice
from toolglot.provenance import NO_QUOTATIONS, Quotations
from toolglot.scanner import Source
from toolglot.schema import ANY, Shape, Tool, Toolbox, Typed, conform, plain_name
from toolglot.sink import Sink

RAW_LIMIT = 8192
"""How much of a call's own text is kept once its arguments have left; its span tells the rest."""

REPAIR_COST = 0.01

_NOTHING = (None, "", "null", "None")
"""What models write for an optional argument they do not give."""


@lru_cache(maxsize=4096)
def _spell_key(key: str) -> str:
    return f'"{escape(key)}"'


@dataclass(slots=True)
class Ledger:
    """What one answer has delivered so far."""

    new_id: Callable[[], str]
    started: int = 0
    delivered: int = 0
    closed: int = 0
    """How many calls there were, delivered or not."""
    left: list[tuple[str, Reason]] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """One stretch of text that set out to hold calls."""

    source: Source
    sink: Sink
    toolbox: Toolbox
    options: Options
    ledger: Ledger
    start: int
    closing: Choice
    waits: Callable[[], bool]
    """Whether it counts only as a whole, or only if nothing follows it; asked when a call begins in it."""
    at_line: bool
    quotations: Quotations = NO_QUOTATIONS
    alone: bool = False
    """Whether nothing was said or called before it."""
    held: bool = False
    undecided: bool = False
    """Whether it is held because its call is a quotation unless nothing else is said."""
    dialect: str = ""
    confidence: float = 1.0
    marked: bool = True
    wrap_close: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    drafts: list[Draft] = field(default_factory=list)
    told: int = 0
    """How many of them were given back as text."""
    open: Draft | None = None
    raw: str | None = None
    head: int = 0
    """Where the header of the call begins that is read now."""
    body_end: int = 0
    """Where the last call ended that was read as a whole."""

    def begin(self, written: str, start: int | None = None) -> Draft | None:
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
            first, self.held = self.start, self.waits()
        name = tool.name if tool else plain_name(written)
        draft = Draft(self, tool, name, first, self.dialect, dict.fromkeys(self.repairs))
        if tool is None and not name.strip("0123456789"):
            draft.flaw(Reason.MALFORMED, "tool name", "none", "the name of the tool to call")
        elif tool is None and self.options.unknown_tools != "allow":
            draft.flaw(Reason.UNKNOWN_TOOL, "tool name", f'"{written}"', self._offer(written))
        self.open = draft
        return draft

    def _offer(self, written: str) -> str:
        nearest = self.toolbox.nearest(written)
        names = ", ".join(self.toolbox.names[:20]) or "no tool at all"
        return f'"{nearest}"' if nearest else f"one of {names}"

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
        if self.is_only_call(draft):
            self.held = self.undecided = True
        else:
            draft.close()

    def is_only_call(self, draft: Draft) -> bool:
        """Whether the draft is a quotation, and all of the answer so far."""
        first = self.alone and len(self.drafts) == 1 and not self.ledger.closed
        return first and bool(self.quotations) and draft.is_quoted

    def waits_for_end(self) -> bool:
        """Whether its only call is a quotation unless nothing else is said; asked when it has been read."""
        self.undecided = self.undecided or (self.held and len(self.drafts) == 1 and self.is_only_call(self.drafts[0]))
        return self.undecided

    def decide_as_quotation(self) -> None:
        """Something else is said in the answer: the call that waited is text."""
        self.held = self.undecided = False
        for draft in self.drafts:
            draft.close()

    def abandon(self, before: Draft | None) -> None:
        """What was begun after ``before`` is no call after all."""
        if self.open is not None and self.open is not before and not self.open.live:
            self.open = None

    def text_of(self, draft: Draft) -> str:
        """The source text of one of its calls."""
        if self.raw is None:
            return self.source.since(draft.start, draft.end)
        return self.raw[draft.start - self.start : draft.end - self.start]

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

    def promote(self, note: str = "", alone: bool = False) -> None:
        """Let everything go that was held; ``alone``: the answer is nothing but this."""
        self.held = self.undecided = False
        for draft in self.drafts:
            if note:
                draft.repair(note)
            if alone or not draft.is_quoted:
                draft.sure()
            draft.close(alone)

    @property
    def has_quotation(self) -> bool:
        """Whether one of its calls is a quotation."""
        return bool(self.quotations) and any(draft.is_quoted for draft in self.drafts)


@dataclass(slots=True)
class Draft:
    """One call while it is being read."""

    frame: Frame
    tool: Tool | None
    name: str
    start: int
    dialect: str
    repairs: dict[str, None]
    end: int = 0
    index: int = -1
    live: bool = False
    closed: bool = False
    cut: bool = False
    head: int = 0
    """Where its header begins, behind the marks of a wrapper."""
    doubted: bool = False
    """Whether it may be a quotation, as far as its text has arrived. None of it leaves as long as it may."""
    next_look: int = 0
    """How long its text must be before it is compared again."""
    keys: dict[str, None] = field(default_factory=dict)
    flaws: list[Defect] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    raw: Callable[[str], None] = field(init=False)
    """Takes JSON text of the arguments, as it is: it waits, or leaves once the call is live."""

    def __post_init__(self) -> None:
        frame = self.frame
        self.head = max(self.start, frame.head)
        self.doubted = bool(frame.quotations)
        self.raw = self._wait if self.doubted else self.pending.append

    # -- quotations ------------------------------------------------------------------------------------------------

    def _wait(self, piece: str) -> None:
        """Keep a piece of the arguments as long as the call may be a quotation."""
        self.pending.append(piece)
        source = self.frame.source
        size = source.here - self.head
        if size < self.next_look or self.frame.held:
            return
        self.next_look = size + size // 4
        if not self.frame.quotations.may_hold(source.since(self.head)):
            self._trust()

    def _trust(self) -> None:
        """The call is no quotation: what waited for that may leave."""
        self.doubted = False
        self.raw = self.pending.append
        if self.live:
            self._leave()

    @property
    def is_quoted(self) -> bool:
        """Whether the whole call stood in the conversation before; asked when all of it has arrived."""
        frame = self.frame
        if self.doubted and not frame.quotations.hold(self._own_text):
            self._trust()
        return self.doubted

    @property
    def _own_text(self) -> str:
        """The call without the marks of its wrapper."""
        frame, text = self.frame, self.frame.text_of(self)
        own = text[self.head - self.start :]
        return own[: frame.body_end - self.head] if frame.body_end > self.head else own

    def _stay_text(self) -> None:
        """It was quoted and not meant: all of it is text."""
        frame = self.frame
        if self.live:
            frame.ledger.started -= 1
            self.live = False
        frame.told += 1
        frame.ledger.left.append((self.dialect, Reason.QUOTATION))
        frame.sink.text(frame.text_of(self))

    # -- what the codecs say ---------------------------------------------------------------------------------------

    def repair(self, name: str) -> None:
        self.repairs[name] = None

    def flaw(self, reason: Reason, where: str, found: str, expected: str) -> None:
        self.flaws.append(Defect(reason, where, found, expected))

    def shape(self, key: str) -> Shape:
        return self.tool.parameters.property_shape(key) if self.tool is not None else ANY

    def declares(self, key: str) -> bool:
        return self.tool is not None and key in self.tool.parameters.properties

    @property
    def is_open_ended(self) -> bool:
        """Whether the tool takes arguments that nobody declared."""
        return self.tool is None or not self.tool.parameters.properties

    def sure(self) -> None:
        """The text is a call: from here on its arguments may leave."""
        frame = self.frame
        if self.live or frame.held or self.flaws:
            return
        if frame.ledger.delivered and not frame.options.parallel:
            self.flaw(Reason.EXTRA_CALL, "answer", "a further call", "one call per answer")
            return
        least = frame.options.thresholds.get(self.dialect, frame.options.min_confidence)
        if self.confidence < least:
            self.flaw(Reason.LOW_CONFIDENCE, "answer", f"{self.confidence:.2f}", f"{least:.2f}")
            return
        self.index = frame.ledger.started
        frame.ledger.started += 1
        self.live = True
        if not self.doubted:
            self._leave()

    def _leave(self) -> None:
        """The call begins for the client, with what is known of its arguments."""
        frame = self.frame
        if frame.options.unknown_tools != "text":
            frame.source.limit(self.start + RAW_LIMIT)
        frame.sink.event(CallStarted(self.index, frame.ledger.new_id(), self.name))
        self.raw = partial(frame.sink.arguments, self.index)
        if self.pending:
            self.raw("".join(self.pending))
            self.pending.clear()

    def text(self, piece: str) -> None:
        """More of the string value that is open."""
        self.raw(escape(piece))

    @property
    def passing(self) -> int | None:
        """The index under which arguments may leave without a look, once the call is live."""
        return self.index if self.live and not self.doubted else None

    def _put(self, key: str, value: str) -> None:
        """A key and its value, or the beginning of it."""
        if key in self.keys:
            self.flaw(Reason.DUPLICATE_ARGUMENT, f"argument {key}", "a second value", "one value")
        self.raw(f"{',' if self.keys else '{'}{_spell_key(key)}:{value}")
        self.keys[key] = None

    def open_text(self, key: str) -> None:
        self._put(key, '"')

    def close_text(self) -> None:
        self.raw('"')

    def add(self, key: str, typed: Typed) -> None:
        """One whole argument."""
        if typed.defects and typed.value in _NOTHING and self.tool is not None and key not in self.tool.required:
            self.repair("omitted_null")
            return
        self._put(key, dump(typed.value))
        self.flaws.extend(typed.defects)
        for name in typed.repairs:
            self.repair(name)

    def add_members(self, value: Value) -> None:
        """The members of an object as arguments."""
        for key, item in value.items() if isinstance(value, dict) else ():
            self.add_value(key, item)

    def add_value(self, key: str, value: Value) -> None:
        self.add(key, conform(value, self.shape(key), f"argument {key}"))

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
        if self.doubted and self.is_quoted:
            if not alone:
                self._stay_text()
                return
            self._trust()
        if self.cut:
            self.flaws.insert(0, Defect(Reason.TRUNCATED, "call", "the text ended inside it", "the whole call"))
        elif self.tool is not None and not self.tool.required.issubset(self.keys):
            self.flaws.extend(self.tool.missing(self.keys))
        if not self.cut and not self.flaws:
            self.sure()
        if self.flaws or not self.live:
            self._refuse()
            return
        self.raw("}" if self.keys else "{}")
        frame.ledger.delivered += 1
        frame.sink.called = True
        span = (self.start, self.end)
        frame.sink.event(CallEnded(self.index, self.dialect, self.confidence, tuple(self.repairs), span))

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
            frame.told += 1
            frame.ledger.left.append((self.dialect, defects[0].reason))
            frame.sink.text(raw)
            return
        if self._was_only_mentioned:
            frame.sink.text(raw)
            raw = ""
        tool = self.tool.name if self.tool else frame.toolbox.nearest(self.name)
        index = self.index if self.live else None
        span = (self.start, self.end) if raw else None
        if defects[0].reason is not Reason.EXTRA_CALL:
            frame.sink.settle()
        kept = raw[:RAW_LIMIT] if self.live else raw
        frame.sink.event(CallRejected(kept, defects[0].reason, tool, defects, self.dialect, span, index))
