"""Calls while they are being read: what is known so far, and when it may leave.

Strategy. A codec fills a ``Draft`` piece by piece. Until the draft is *sure* its pieces wait; from then on they leave
as they come, and nothing that has left is ever taken back. A draft that turns out wrong after it began to leave is
closed by ``CallRejected`` instead of ``CallEnded``; one that had not begun is reported, or given back as text.
A ``Frame`` is one stretch of text that set out to hold calls; a *held* frame keeps finished drafts until somebody
decides whether they count (calls inside reasoning, bare JSON after prose).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from toolglot.aliases import RENAMED, Alias, choose_aliases
from toolglot.events import (
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Reason,
)
from toolglot.jsontext import Value, dump, escape, parse
from toolglot.options import Options
from toolglot.pattern import Choice
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


def _discard(piece: str) -> None:
    """Receive the text of an argument that is left out."""


@dataclass(slots=True)
class Ledger:
    """What one answer has delivered so far."""

    new_id: Callable[[], str]
    started: int = 0
    delivered: int = 0
    first: tuple[str, int] | None = None
    """The blanks before the first call that began to leave, and where it began."""
    tried: int = 0
    """How many characters were read on trial."""
    left: list[tuple[str, Reason]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """The dialects of near misses: text that was meant as a call and cannot be read as one."""


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
    introduced: Callable[[], bool]
    """Whether nothing of substance was said before it."""
    alone: bool = False
    """It counts only if the answer says nothing else."""
    held: bool = False
    dialect: str = ""
    confidence: float = 1.0
    marked: bool = True
    wrap_open: tuple[str, ...] = ()
    wrap_close: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    drafts: list[Draft] = field(default_factory=list)
    told: int = 0
    """How many of them were given back as text."""
    open: Draft | None = None
    raw: str | None = None
    last: Draft | None = None
    """The draft that was begun last, whatever became of it."""

    def begin(self, written: str, start: int | None = None) -> Draft | None:
        """A draft for a call to the tool that was written, or None when that cannot be a call here."""
        tool = self.toolbox.find(written)
        if tool is None and (not self.marked or not self.at_line or written == "json"):
            # in the middle of a sentence, a tool that nobody offered is being talked about
            return None
        if self.open is not None:
            self.settle(start)
        if self.drafts:
            first = self.drafts[-1].end
        else:
            first, self.held = self.start, self.waits() or self.alone
        name = tool.name if tool else plain_name(written)
        draft = Draft(self, tool, name, first, self.dialect, dict.fromkeys(self.repairs))
        if tool is None and not name.strip("0123456789"):
            draft.flaw(Reason.MALFORMED, "tool name", "none", "the name of the tool to call")
        elif tool is None and self.options.unknown_tools != "allow":
            draft.flaw(Reason.UNKNOWN_TOOL, "tool name", f'"{written}"', self._offer(written))
        self.open = self.last = draft
        return draft

    def count_alone(self) -> bool:
        """Let the frame count only as the whole answer; False when more was said before it."""
        self.alone = self.alone or self.introduced()
        return self.alone

    def _offer(self, written: str) -> str:
        nearest = self.toolbox.nearest(written)
        names = ", ".join(self.toolbox.names[:20]) or "no tool at all"
        return f'"{nearest}"' if nearest else f"one of {names}"

    @property
    def known(self) -> Tool | None:
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
        if not self.held:
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

    def promote(self, note: str = "") -> None:
        """Let everything go that was held."""
        self.held = False
        for draft in self.drafts:
            if note:
                draft.repair(note)
            draft.sure()
            draft.close()


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
    keys: dict[str, bool] = field(default_factory=dict)
    """The arguments that were read, and whether each is part of the call: some nulls and undeclared ones are not."""
    written: bool = False
    """At least one argument is part of the call."""
    dropping: bool = False
    """The string value that is open belongs to an argument that is left out."""
    flaws: list[Defect] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    """Other keys for arguments of the tool; what they mean is known at the end."""
    raw: Callable[[str], None] = field(init=False)
    """Takes JSON text of the arguments, as it is: it waits, or leaves once the call is live."""

    def __post_init__(self) -> None:
        self.raw = self.pending.append

    # -- what the codecs say ---------------------------------------------------------------------------------------

    def repair(self, name: str) -> None:
        self.repairs[name] = None

    def flaw(self, reason: Reason, where: str, found: str, expected: str) -> None:
        self.flaws.append(Defect(reason, where, found, expected))

    def shape(self, key: str) -> Shape:
        return self.tool.parameters.property_shape(key) if self.tool is not None else ANY

    def declares(self, key: str) -> bool:
        return self.tool is not None and key in self.tool.parameters.properties

    def admits(self, key: str) -> bool:
        """Whether the tool declares this argument, or the key may mean one that was not given yet."""
        return self.declares(key) or bool(self._may_mean(key))

    def _may_mean(self, key: str) -> str:
        """The argument that the key is an alias of, if that was not given yet."""
        name = self.tool.aliases.get(key, "") if self.tool is not None else ""
        return "" if name in self.keys else name

    @property
    def is_open_ended(self) -> bool:
        """Whether the tool takes arguments that nobody declared."""
        return self.tool is None or not self.tool.parameters.properties

    @property
    def has_required(self) -> bool:
        """Whether all required arguments were read."""
        return self.tool is None or self.tool.required.issubset(self.keys)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is missing, wrong, undeclared or without the quotes it needs."""
        declared = all(map(self.declares, self.keys))
        return declared and self.has_required and not self.flaws and "unquoted_value" not in self.repairs

    @property
    def is_plausible(self) -> bool:
        """Whether the arguments may be meant for the tool: not all of them are forbidden by its schema."""
        return not self.keys or any(kept or self.declares(key) for key, kept in self.keys.items())

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
        if frame.options.unknown_tools != "text":
            frame.source.limit(self.start + RAW_LIMIT)
        frame.sink.event(CallStarted(self.index, frame.ledger.new_id(), self.name))
        if self.pending:
            frame.sink.arguments(self.index, "".join(self.pending))
            self.pending.clear()
        if not self.dropping:
            self._choose_receiver()

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

    def _choose_receiver(self) -> None:
        self.raw = self.pending.append
        if self.live and not self.aliases:
            self.raw = partial(self.frame.sink.arguments, self.index)

    def sure_of(self, key: str) -> None:
        """The text is a call because it has this argument; an alias does not prove that yet."""
        if not self._may_mean(key):
            self.sure()

    def text(self, piece: str) -> None:
        """More of the string value that is open."""
        self.raw(escape(piece))

    @property
    def passing(self) -> int | None:
        """The index under which arguments may leave without a look, once the call is live."""
        return self.index if self.live and not (self.dropping or self.aliases) else None

    def _put(self, key: str, value: str) -> None:
        """A key and its value, or the beginning of it."""
        if self.keys.get(key):
            self.flaw(Reason.DUPLICATE_ARGUMENT, f"argument {key}", "a second value", "one value")
        if name := self._may_mean(key):
            self._hold(Alias(key, name, len(self.pending) + 1), value)
        else:
            self.raw(f"{',' if self.written else '{'}{_spell_key(key)}:{value}")
        self.keys[key] = self.written = True

    def _drops(self, key: str) -> bool:
        """Whether the tool's schema forbids this argument, so that the call does without it."""
        if not self._forbids(key) or self._may_mean(key):
            return False
        self._omit(key, "dropped_undeclared_argument")
        return True

    def _omit(self, key: str, repair: str) -> None:
        self.keys.setdefault(key, False)
        self.repair(repair)

    def _hold(self, alias: Alias, value: str) -> None:
        """Let the arguments wait from an alias on, its key in a piece of its own."""
        self.raw = self.pending.append
        self.pending += "," if self.written else "{", _spell_key(alias.key), f":{value}"
        self.aliases.append(alias)

    def _settle_aliases(self) -> None:
        """Say what the aliases mean, and let the arguments go on their way."""
        renamed = {alias.key: alias for alias in choose_aliases(self.aliases, self.keys, self.pending)}
        for alias in renamed.values():
            self.pending[alias.at] = _spell_key(alias.name)
            self.repair(RENAMED)
        forbidden = [alias.key for alias in self.aliases if alias.key not in renamed and self._forbids(alias.key)]
        self.keys = {renamed[key].name if key in renamed else key: kept for key, kept in self.keys.items()}
        self.aliases.clear()
        if forbidden:
            self._leave_out(forbidden)
        if self.live:
            self._choose_receiver()
            self.raw("".join(self.pending))
            self.pending.clear()

    def _forbids(self, key: str) -> bool:
        return self.tool is not None and self.tool.parameters.forbids(key)

    def _leave_out(self, keys: list[str]) -> None:
        """Take arguments out of those that wait."""
        text = "".join(self.pending)
        waiting = parse(f"{{{text[1:]}}}").value
        assert isinstance(waiting, dict)
        for key in keys:
            waiting.pop(key, None)
            self.keys[key] = False
            self.repair("dropped_undeclared_argument")
        self.written = text[0] == "," or bool(waiting)
        self.pending[:] = [text[0] + dump(waiting)[1:-1]] if waiting else []

    def open_text(self, key: str) -> None:
        if self._drops(key):
            self.dropping, self.raw = True, _discard
        else:
            self._put(key, '"')

    def close_text(self) -> None:
        if self.dropping:
            self.dropping = False
            self._choose_receiver()
        else:
            self.raw('"')

    def add(self, key: str, typed: Typed) -> None:
        """One whole argument."""
        if self._drops(key):
            return
        if typed.defects and typed.value in _NOTHING and self.tool is not None and key not in self.tool.required:
            self._omit(key, "omitted_null")
            return
        self._put(key, dump(typed.value))
        self.flaws.extend(typed.defects)
        for name in typed.repairs:
            self.repair(name)

    def add_members(self, value: Value) -> None:
        """The members of an object as arguments."""
        for key, item in value.items() if isinstance(value, dict) else ():
            self.add_value(key, item)

    def adopt(self, values: Mapping[str, str]) -> None:
        """The arguments as the client itself reads them, which no schema corrects."""
        self.tool = None
        for key, value in values.items():
            self._put(key, dump(value))

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

    def close(self) -> None:
        """Say how it ended: delivered, reported, or given back as text."""
        if self.closed:
            return
        self.closed = True
        frame = self.frame
        if self.aliases and not self.cut:
            self._settle_aliases()
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
