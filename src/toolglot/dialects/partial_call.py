"""Calls while they are being read: what is known so far, and when it may be emitted.

Strategy. A codec fills a ``PartialCall`` piece by piece. Its pieces are buffered until the call is *committed*; from
then on they are emitted as they come, and nothing emitted is ever taken back. A call that turns out wrong after its
start was emitted is closed by ``CallRejected`` instead of ``CallEnded``; otherwise it is reported or returned as text.
A ``CallBlock`` is a stretch of text that may contain calls; a *held* block keeps finished calls until it is decided
whether they count (calls inside reasoning, bare JSON after prose).

If the prompt is this project's own, a call that holds a value of its examples is rejected. What may be the beginning of
such a value is not emitted before more of it was read, and after it nothing of the call is emitted.

If the conversation contains call markup, a call that may be a quotation of it emits nothing until its text differs. If
it never does, it is a quotation: it stays text, unless the answer is nothing but this call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from toolglot.core.events import CallEnded, CallRejected, CallStarted, Defect, NearMiss, Reason
from toolglot.core.made_up_values import LOOKS_MADE_UP, find_made_up, find_open_end
from toolglot.core.options import Options
from toolglot.core.provenance import NO_QUOTATIONS, QuotationCheck, Quotations
from toolglot.core.schema.aliases import RENAMED, choose_aliases
from toolglot.core.schema.toolset import CompiledTool, CompiledTools, plain_name
from toolglot.dialects.damaged_marks import find_similar
from toolglot.dialects.event_buffer import EventBuffer
from toolglot.dialects.patterns import MarkChoice
from toolglot.dialects.scanner import Source
from toolglot.dialects.streamed_arguments import StreamedArguments, spell_key

RAW_LIMIT = 8192
"""How much of a call's source text is kept once its arguments are emitted; its span gives the rest."""

MAX_COMPARED = 4096
"""Calls up to this size are compared with quotations at every possible end."""

REPAIR_COST = 0.01

ON_PURPOSE: Final = frozenset(
    (Reason.LOW_CONFIDENCE, Reason.SWITCHED_OFF, Reason.UNKNOWN_TOOL, Reason.QUOTATION, Reason.EXTRA_CALL)
)
"""Reasons for which a call that can be parsed stays text on purpose; any other one makes it a near miss."""


class AnswerState(Struct, eq=False):
    """State of one answer: what it may quote, and the calls delivered so far."""

    new_id: Callable[[], str]
    quotations: Quotations = NO_QUOTATIONS
    started: int = 0
    delivered: int = 0
    closed: int = 0
    """Number of finished calls, delivered or not."""
    first_call: tuple[str, int] | None = None
    """The whitespace before the first emitted call, and the offset of that call."""
    lookahead_characters: int = 0
    """Number of characters read in lookaheads."""
    lookahead_reach: int = 0
    """The last position that a lookahead has reached."""
    left_as_text: list[tuple[str, Reason]] = []
    """Dialects of calls that stay text on purpose, and why."""
    near_misses: list[NearMiss] = []
    """Text that was meant as a call but cannot be parsed, or does not match the schema."""
    is_stuck: bool = False
    """Whether the reader stopped looking for calls because it made no progress."""


class CallBlock(Struct, eq=False):
    """A stretch of text that may contain calls."""

    source: Source
    buffer: EventBuffer
    tools: CompiledTools
    options: Options
    answer: AnswerState
    start: int
    closing: MarkChoice
    must_wait: Callable[[], bool]
    """Whether it counts only as a whole, or only if nothing follows; evaluated when a call begins."""
    at_line: bool
    is_introduced: Callable[[], bool]
    """Whether only an introduction precedes it."""
    is_first: bool = False
    """Whether neither text nor a call precedes it."""
    alone: bool = False
    """It counts only if the answer contains nothing else."""
    is_handed_over: bool = False
    """Text may follow it although it is ``alone``."""
    is_doubtful: bool = False
    """It counts only if nothing follows: what precedes it may show a call."""
    in_sentence: bool = False
    """It stands in the middle of a sentence: if that is a question, it is text."""
    opens_with_mark: bool = False
    """Whether it begins with a mark that is never ordinary text."""
    held: bool = False
    undecided: bool = False
    """Held because its call is a quotation unless the answer contains nothing else."""
    dialect: str = ""
    confidence: float = 1.0
    marked: bool = True
    wrap_open: tuple[str, ...] = ()
    wrap_close: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    calls: list[PartialCall] = []
    returned: int = 0
    """How many of the calls were returned as text."""
    open_call: PartialCall | None = None
    raw: str | None = None
    last_call: PartialCall | None = None
    """The call that was begun last, whatever its outcome."""
    header_start: int = 0
    """Offset of the header of the current call."""
    incomplete_element: tuple[int, tuple[str, ...]] | None = None
    """The end of a call in which the client finds an argument missing, and the arguments it finds."""
    body_end: int = 0
    """End of the last call that was read as a whole."""
    list_start: int | None = None
    """How many calls precede the list that is being read, in ordinary text; its calls count only together."""
    held_by_list: bool = False

    def begin(self, written: str, start: int | None = None) -> PartialCall | None:
        """Begin a call to the tool named in the text; None if that cannot be a call here."""
        tool = self.tools.by_name.get(written) or self.tools.find(written)
        if tool is None and (not self.marked or not self.at_line or written == "json"):
            # in the middle of a sentence, an unknown tool is only being discussed
            return None
        if self.open_call is not None:
            self.close_call(start)
        if self.undecided:
            self.return_quotation()
        if self.calls:
            first = self.calls[-1].end
        else:
            first, self.held = self.start, self.must_wait() or self.alone
        if self.list_start is not None and not self.held:
            self.held = self.held_by_list = True
        name = tool.name if tool else plain_name(written)
        self.open_call = self.last_call = call = PartialCall(
            self, name, first, self.dialect, tool=tool, repairs=dict.fromkeys(self.repairs)
        )
        self._check_tool(call, written)
        return call

    def _check_tool(self, call: PartialCall, written: str) -> None:
        tool, name = call.tool, call.name
        if tool is None and not name.strip("0123456789"):
            call.add_defect(Reason.MALFORMED, "tool name", "none", "the name of the tool to call")
        elif tool is None and (self.options.unknown_tools != "allow" or self._is_damaged(name)):
            call.defects.append(self.tools.describe_unknown(written))

    def _is_damaged(self, name: str) -> bool:
        """Whether the name of an unknown tool may be that of a known one, with a slip or followed by an escape."""
        return bool(find_similar(name, self.tools.names)) or name.partition("\\")[0] in self.tools.by_name

    def require_alone(self) -> bool:
        """Make the block count only as the whole answer; False if other text precedes it."""
        self.alone = self.alone or self.is_introduced()
        self.held = self.held or (self.alone and not self.has_started)
        return self.alone

    def begin_list(self) -> None:
        """Begin a list of calls; in ordinary text, nothing of it is emitted before all of it is read."""
        if not self.marked and self.list_start is None and not self.has_started:
            self.list_start = len(self.calls) + (self.open_call is not None)

    def end_list(self, taken: bool) -> bool:
        """End the list, if there is one: whether it was read and all its calls are complete; otherwise none counts."""
        start, self.list_start = self.list_start, None
        if start is None:
            return taken
        taken = taken and self.is_complete
        if not taken and len(self.calls) >= start:
            del self.calls[start:]
            self.open_call = None
        if self.held_by_list:
            self.held_by_list, self.held = False, self.alone
        if taken and not self.held:
            self.accept()
        return taken

    @property
    def known_tool(self) -> CompiledTool | None:
        """The tool of the call that was begun last, if it is on offer."""
        return self.last_call.tool if self.last_call is not None else None

    def close_call(self, end: int | None = None) -> None:
        """Close the open call: everything up to ``end`` belongs to it."""
        call = self.open_call
        if call is None:
            return
        self.open_call = None
        call.reject_suspects()
        self.source.limit(None)
        call.end = self.source.here if end is None else end
        self.calls.append(call)
        if self.held:
            return
        if self.is_only_call():
            self.held = self.undecided = True
        else:
            call.close()

    def is_only_call(self) -> bool:
        """Whether its call is a quotation and the whole answer so far."""
        only = self.is_first and len(self.calls) == 1 and not self.answer.closed
        return only and self.calls[0].is_quoted

    def return_quotation(self) -> None:
        """Return the held quotation as text: the answer contains something else."""
        self.held = self.undecided = False
        for call in self.calls:
            call.close()

    def discard_after(self, before: PartialCall | None) -> None:
        """Discard a call that was begun after ``before`` and is no call after all."""
        if self.open_call is not None and self.open_call is not before and not self.open_call.live:
            self.open_call = None

    def clear(self) -> None:
        """Discard all calls: the text is no call after all."""
        self.calls.clear()
        self.open_call = None

    def release(self) -> None:
        """Drop the calls, which refer back to their block: without that cycle both are freed at once."""
        self.clear()
        self.last_call = None

    @property
    def is_python(self) -> bool:
        """Whether its calls are in Python syntax."""
        return "{name}{before_parenthesis}" in self.headers

    @property
    def is_complete(self) -> bool:
        """Whether all its calls are complete, as far as they were read."""
        calls = self.calls if self.open_call is None else (*self.calls, self.open_call)
        return all(call.is_sound and call.has_required for call in calls)

    def add_near_miss(self, call: PartialCall | None, raw: str) -> None:
        """Add a near miss with this text. Only a call of a known tool has defects."""
        tool = call.tool if call is not None else None
        name, defects = "", dict[Defect, None]()
        if call is not None and tool is not None:
            name = tool.name
            defects = dict.fromkeys((*call.defects, *tool.missing(call.keys), *tool.undeclared(call.keys)))
        self.answer.near_misses.append(NearMiss(self.dialect, name or None, tuple(defects), raw[:RAW_LIMIT]))

    def text_of(self, call: PartialCall) -> str:
        """The source text of one of its calls."""
        return self._text_between(call.start, call.end)

    def own_text(self, call: PartialCall, start: int) -> str:
        """The text of a call from its header on, without the marks of a wrapper. In an object of calls keyed by name,
        the name precedes the call, so the text of the preceding calls is included."""
        own = self._text_between(start, self.body_end if self.body_end > start else call.end)
        return own if call.name in own else self._text_between(self.header_start, call.end)

    def _text_between(self, start: int, end: int) -> str:
        return self.source.since(start, end) if self.raw is None else self.raw[start - self.start : end - self.start]

    @property
    def has_started(self) -> bool:
        """Whether part of it was emitted, so that it can no longer be returned as text."""
        return any(call.live or call.closed for call in self.calls) or (
            self.open_call is not None and self.open_call.live
        )

    def truncate_if_cut(self, truncated: bool) -> None:
        """Truncate all calls if one is: a list of calls is complete only with all its elements."""
        for call in self.calls:
            truncated = truncated or call.is_truncated
        if truncated:
            for call in self.calls:
                call.truncate()

    @property
    def is_text(self) -> bool:
        """Whether all of it was returned as text."""
        return self.returned == len(self.calls)

    @property
    def ends_line(self) -> bool:
        """Whether a line begins after it: always after a call; after text, if that ends with a line break."""
        return not self.is_text or not self.calls or self.calls[-1].is_line

    def accept(self, note: str = "", alone: bool = False) -> None:
        """Emit all held calls that are closed; ``alone``: the answer contains nothing else."""
        self.held = self.undecided = False
        for call in self.calls:
            if note:
                call.repair(note)
            if alone or not call.is_quoted:
                call.commit()
            call.close(alone)


class PartialCall(StreamedArguments, eq=False):
    """One call while it is being read."""

    block: CallBlock
    name: str
    start: int
    dialect: str
    end: int = 0
    index: int = -1
    live: bool = False
    closed: bool = False
    is_truncated: bool = False
    start_emitted: bool = False
    """``CallStarted`` was emitted."""
    is_line: bool = False
    """It was returned as text that ends with a line break."""
    held_back: str = ""
    """The end of the arguments so far, if it may be the beginning of a made-up value."""
    made_up: str = ""
    """The made-up value that was found."""
    quotation_check: QuotationCheck | None = None
    """Set while the call may be a quotation; nothing is emitted until that is ruled out."""

    def __post_init__(self) -> None:
        if (quotations := self.block.answer.quotations) is not NO_QUOTATIONS:
            self.quotation_check = QuotationCheck(quotations, max(self.start, self.block.header_start))
        self.choose_receiver()

    def _hold_piece(self, piece: str) -> None:
        """Buffer a piece of the arguments while the call may be a quotation."""
        self.pending.append(piece)
        source = self.block.source
        if (
            self.quotation_check is not None
            and not self.block.held
            and self.quotation_check.is_ruled_out(source.here, source.since)
        ):
            self._rule_out_quotation()

    def _rule_out_quotation(self) -> None:
        """The call is no quotation: emit what was buffered."""
        self.quotation_check = None
        self.choose_receiver()
        if self.live and not self.aliases:
            self._emit_start()

    @property
    def is_quoted(self) -> bool:
        """Whether the call quotes the conversation; evaluated when all of it was received."""
        check = self.quotation_check
        if check is not None and not check.is_quotation(
            self.block.own_text(self, check.start), "".join(self.pending) + "}"
        ):
            self._rule_out_quotation()
        return self.quotation_check is not None

    def is_quoted_up_to(self, end: int) -> bool:
        """Whether the call, if it ends there, quotes the conversation; long calls are not compared."""
        quotation_check, source = self.quotation_check, self.block.source
        return (
            quotation_check is not None
            and end - quotation_check.start <= MAX_COMPARED
            and quotation_check.is_quotation(source.since(quotation_check.start, end))
        )

    def commit(self) -> None:
        """Commit to the call: from here on its arguments may be emitted."""
        block = self.block
        if self.live or block.held or self.defects or self.aliases:
            return
        if block.answer.delivered and not block.options.parallel:
            self.add_defect(Reason.EXTRA_CALL, "answer", "a further call", "one call per answer")
            return
        if not self._passes_options(block.options):
            return
        if not block.answer.started:
            block.answer.first_call = "".join(block.buffer.whitespace), self.start
        self.index = block.answer.started
        block.answer.started += 1
        self.live = True
        if self.quotation_check is None:
            self._emit_start()

    def _emit_start(self) -> None:
        """Emit the start of the call and its buffered arguments."""
        block = self.block
        if block.options.unknown_tools != "text":
            block.source.limit(self.start + RAW_LIMIT)
        block.buffer.add_event(CallStarted(self.index, block.answer.new_id(), self.name))
        self.start_emitted = True
        if self.pending:
            self._choose_emitter()("".join(self.pending))
            self.pending.clear()
        if not self.dropping:
            self.choose_receiver()

    def _passes_options(self, options: Options) -> bool:
        """Whether its pattern is on and its confidence sufficient; otherwise add a defect."""
        if not self.block.marked and self.dialect in options.patterns.off:
            self.add_defect(Reason.SWITCHED_OFF, "pattern", self.dialect, "a pattern that is switched on")
            return False
        least = options.thresholds.get(self.dialect, options.min_confidence)
        if self.confidence < least:
            self.add_defect(Reason.LOW_CONFIDENCE, "answer", f"{self.confidence:.2f}", f"{least:.2f}")
            return False
        return True

    def choose_receiver(self) -> None:
        self.write = self.pending.append
        if self.quotation_check is not None and not self.aliases:
            self.write = self._hold_piece
        elif self.live and not self.aliases:
            self.write = self._choose_emitter()

    def _choose_emitter(self) -> Callable[[str], None]:
        """What emits a piece of the arguments."""
        if self.block.source.refuses_examples:
            return self._emit_piece
        return partial(self.block.buffer.add_arguments, self.index)

    def _emit_piece(self, piece: str) -> None:
        """Emit a piece of the arguments, up to what is or may become a made-up value."""
        if self.held_back or self.made_up or LOOKS_MADE_UP(piece) is not None:
            piece = self._split_made_up(self.held_back + piece)
        if piece:
            self.block.buffer.add_arguments(self.index, piece)

    def _split_made_up(self, piece: str) -> str:
        """The part of a piece that can be emitted now; the rest is held back, or discarded behind a made-up value."""
        if self.made_up:
            return ""
        found, end = find_made_up(piece, self.block.answer.quotations.made_up), find_open_end(piece)
        if found is not None and found.start < end:  # else more digits may follow, and make it another number
            self.made_up, end = found.value, found.start
        self.held_back = "" if self.made_up else piece[end:]
        return piece[:end]

    def _check_made_up(self) -> None:
        """Add a defect if the arguments, which are complete, hold a made-up value."""
        waiting = "".join((self.held_back, *self.pending, "}"))
        if not self.made_up and LOOKS_MADE_UP(waiting) is not None:
            found = find_made_up(waiting, self.block.answer.quotations.made_up)
            self.made_up = found.value if found is not None else ""
        if self.made_up:
            self.add_defect(Reason.COPIED_EXAMPLE, "arguments", self.made_up, "the values of the task")

    def may_be_misspelt(self, key: str) -> str:
        """What was sent of a misspelt argument could not be corrected, so it waits while a required one is missing."""
        tool = self.tool
        if tool is None or not self.block.marked or self.has_required or self.is_open_ended:
            return ""
        return "" if "additionalProperties" in tool.parameters.links else key

    def commit_on(self, key: str) -> None:
        """Commit because of this argument; an alias is not sufficient."""
        if not self.may_mean(key):
            self.commit()

    @property
    def passthrough_index(self) -> int | None:
        """The index under which arguments may bypass parsing, once the call is live; else None."""
        withheld = self.dropping or self.aliases or self.held_back or self.made_up
        return self.index if self.start_emitted and not withheld else None

    def _resolve_aliases(self) -> None:
        """Resolve the aliases and emit the buffered arguments."""
        renamed = {alias.key: alias for alias in choose_aliases(self.aliases, self.keys, self.pending)}
        for alias in renamed.values():
            self.pending[alias.at] = spell_key(alias.name)
            self.repair(RENAMED)
        forbidden = [alias.key for alias in self.aliases if alias.key not in renamed and self.forbids(alias.key)]
        self.keys = {renamed[key].name if key in renamed else key: kept for key, kept in self.keys.items()}
        self.aliases.clear()
        if forbidden:
            self.drop_arguments(forbidden)
        self.choose_receiver()
        if not self.has_required:  # the call is rejected
            return
        if self.start_emitted:
            self.write("".join(self.pending))
            self.pending.clear()
        elif self.live and self.quotation_check is None:
            self._emit_start()

    # -- end of a call -------------------------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        known = self.block.confidence
        return round(known - REPAIR_COST * len(self.repairs), 4) if self.repairs else known

    def truncate(self) -> None:
        self.is_truncated = True

    @property
    def is_sound(self) -> bool:
        return not (self.is_truncated or self.defects or self.suspects.keys() - self.keys)

    def close(self, alone: bool = False) -> None:
        """Finish the call: deliver it, report it, or return it as text. ``alone``: the answer contains nothing else."""
        if self.closed:
            return
        self.closed = True
        block = self.block
        block.answer.closed += 1
        if self.aliases and not self.is_truncated:
            self._resolve_aliases()
        if self.is_quoted:
            if not alone:
                self._withdraw()
                return
            self._rule_out_quotation()
        if self.is_truncated:
            found, expected = "the text ended inside it", "the whole call"
            self.defects.insert(0, Defect(reason=Reason.TRUNCATED, where="call", found=found, expected=expected))
        elif self.tool is not None and not self.has_required:
            self.defects.extend(self.tool.missing(self.keys))
        elif self.block.source.refuses_examples:
            self._check_made_up()
        if not self.is_truncated and not self.defects:
            self.commit()
        if self.defects or not self.live:
            self._refuse()
        else:
            self._deliver()
        self.write = self.pending.append  # a method of this call would be a reference cycle, which keeps the answer

    def _deliver(self) -> None:
        block = self.block
        self.write("}" if self.written else "{}")
        block.answer.delivered += 1
        block.buffer.call_emitted = True
        span = (self.start, self.end)
        block.buffer.add_event(CallEnded(self.index, self.dialect, self.confidence, tuple(self.repairs), span))

    def _withdraw(self) -> None:
        """Return a quotation as text, as if it had never been a call."""
        if self.live:
            self.live = False
            self.block.answer.started -= 1
            self.block.answer.first_call = self.block.answer.first_call if self.block.answer.started else None
        self._return_as_text(Reason.QUOTATION)

    def _return_as_text(self, reason: Reason) -> None:
        block = self.block
        block.returned += 1
        text = block.text_of(self)
        if block.raw is not None and self is block.calls[-1]:
            text += block.raw[self.end - block.start :]
        if reason in ON_PURPOSE:
            block.answer.left_as_text.append((self.dialect, reason))
        else:
            block.add_near_miss(self, text)
        self.is_line = text.rstrip(" \t")[-1:] == "\n"
        block.buffer.add_text(text)

    def _is_text_after_all(self, reason: Reason) -> bool:
        """Whether text that merely looked like a call is returned as text, without a report."""
        block = self.block
        reported = self.live or block.marked or reason in (Reason.EXTRA_CALL, Reason.COPIED_EXAMPLE)
        return not reported or block.options.unknown_tools == "text" or reason is Reason.LOW_CONFIDENCE

    @property
    def _was_only_mentioned(self) -> bool:
        """Whether it is an unclosed mark in the middle of a sentence: the sentence stays text."""
        block = self.block
        return self.is_truncated and not block.at_line and not block.source.truncated

    def _refuse(self) -> None:
        block = self.block
        raw = block.text_of(self)
        defects = tuple(self.defects)
        if self._is_text_after_all(defects[0].reason):
            self._return_as_text(defects[0].reason)
            return
        if self._was_only_mentioned:
            block.buffer.add_text(raw)
            raw = ""
        tool = self.tool.name if self.tool else block.tools.suggest_name(self.name)
        index = self.index if self.live else None
        if self.live and not self.written:
            self.write("{")  # many clients treat missing arguments as an empty object
        span = (self.start, self.end) if raw else None
        if defects[0].reason is not Reason.EXTRA_CALL:
            block.buffer.release_whitespace()
        kept = raw[:RAW_LIMIT] if self.live else raw
        block.buffer.add_event(
            CallRejected(kept, defects[0].reason, tool, defects, self.dialect, span=span, index=index)
        )
