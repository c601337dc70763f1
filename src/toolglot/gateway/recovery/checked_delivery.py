"""Delivers an answer that may need several attempts: defective calls are held back, and the next attempt goes on.

Strategy. From the first defect on, nothing more of an answer is sent: its *tail* waits. At the end of the answer the
model is either asked again, and the tail is kept in case that no attempt succeeds, or the tail is sent. Text of a
further attempt waits as well: it is dropped if a call follows, because the client has the text of the first attempt,
and is the answer if none does.

A streamed call is sent while it arrives, unless the model is known to make defective ones; then it waits in a queue,
together with all that follows it, until it is complete and checked. What was sent of a call cannot be retracted: a
corrected call goes on where it stopped if it begins the same way, else the answer fails. Calls of further attempts are
sent at the end of the attempt; if it breaks off, nothing of it counts. A call that the client has already is not sent
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from toolglot.config.recovery_settings import AS_TEXT
from toolglot.core.conversation import ToolCall
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
)
from toolglot.core.identity import hash_call
from toolglot.core.schema.validation import CallChecker
from toolglot.dialects.event_buffer import MESSAGE_BREAK
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.recovery.attempt_input import AttemptInput, OpenCall, move_blanks, reject_missed, show_rejected
from toolglot.gateway.recovery.attempts import (
    CALL_DEFECTS,
    COPIED,
    DEFECTIVE,
    ENDS,
    FAILURES,
    FINAL_REASONS,
    WORDS_ONLY,
    AnswerDefect,
    DefectKind,
    Recovery,
    add_usage,
    choose_reason,
)
from toolglot.gateway.recovery.extension import extend_arguments
from toolglot.gateway.recovery.fast_path import FastPath, find_fast_path
from toolglot.gateway.recovery.retry_messages import copies_feedback
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.reading.reader import Reader
from toolglot.wires.protocol import NewId

Announces = Callable[[str], bool]


class CheckedDelivery:
    """The delivery of one answer, made of one or more attempts.

    ``announces`` says whether a text without a call announces one. ``new_id`` makes ids of calls. ``over``: the rest of
    the answer is ignored.
    """

    __slots__ = (
        *("announces", "calls", "checker", "cut_end", "delivered", "delivery", "fast_path", "first_defect"),
        *("first_delivery", "first_tail", "has_invalid", "has_later_calls", "has_output", "has_text", "holds", "ids"),
        *("input", "new_id", "nothing_waits", "observer", "over", "partial", "plan", "queue", "recorder"),
        *("recovered", "recovery", "rejected", "started", "tail", "waiting_text", "withheld"),
    )

    def __init__(
        self, delivery: Delivery, recovery: Recovery, checker: CallChecker, announces: Announces, new_id: NewId
    ) -> None:
        self.first_delivery = delivery
        self.recovery = recovery
        self.recorder: RequestRecorder = delivery.recorder
        self.checker = checker
        self.announces = announces
        self.new_id = new_id
        self.holds = not delivery.plan.streamed
        """Whether calls are held until they are complete and checked."""
        self.first_defect: AnswerDefect | None = None
        """The defect of the first attempt; None during that attempt."""
        self.first_tail: list[Event] = []
        """The end of the first attempt, which is sent if no other attempt succeeds."""
        self.started = 0
        """How many calls were sent, whole or in part."""
        self.ids: set[str] = set()
        """The ids of these calls; many servers count them from the start in each answer."""
        self.delivered: list[tuple[str, str]] = []
        """The names and arguments of the complete calls that the client has."""
        self.partial: OpenCall | None = None
        """The call of which only a part was sent."""
        self.cut_end: Finished | None = None
        """The end of an answer that was cut and is continued."""
        self.has_text = False
        self.observer: Callable[[Iterable[Event]], None] | None = None
        self._begin(delivery)

    def _begin(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.plan = delivery.plan
        self.over = self.has_output = self.nothing_waits = False
        self.fast_path: FastPath | None = None
        self.input = AttemptInput(self.recovery)
        self.calls: dict[int, OpenCall] = {}
        self.rejected: list[CallRejected] = []
        self.withheld: list[ToolCall] = []
        """Native calls of which nothing, or only a part, was sent."""
        self.has_invalid = self.has_later_calls = False
        """Whether a complete call was held back, and whether calls followed a defective one."""
        self.queue: list[Event | OpenCall] = []
        """Held calls, and what came after the first of them."""
        self.tail: list[Event] | None = None
        self.waiting_text: list[str] = []
        self.recovered = False

    def begin_attempt(self, reader: Reader | None, plan: DeliveryPlan) -> bool:
        """The model was asked again; its next answer goes on here. Returns False if it goes on with a cut answer."""
        if self.cut_end is not None and self.first_defect is None:
            self.input.go_on()
            self.fast_path = None
            return False
        self.recorder.usage = None  # that of the attempts before is in the sum
        self._begin(Delivery(reader, self.recorder, replace(plan, streamed=False)))
        self.delivery.observer = self.observer
        return True

    @property
    def is_further(self) -> bool:
        """Whether the current attempt is not the first one."""
        return self.delivery is not self.first_delivery

    def set_observer(self, observer: Callable[[Iterable[Event]], None]) -> None:
        self.observer = self.delivery.observer = observer

    def deliver(self, events: Sequence[Event]) -> list[Event]:
        """What the client receives for these events of the upstream (hot path)."""
        if self.input.beginning is not None or (events and type(events[-1]) in ENDS):
            return self.deliver_end([*events])
        for event in events:
            if type(event) is TextDelta:
                self.input.texts.append(event.text)
        delivered = self.delivery.deliver(events)
        piece = delivered[0] if len(delivered) == 1 and self.nothing_waits else None
        if type(piece) is CallArguments and piece is events[0]:  # of a native call in progress
            call = self.calls.get(piece.index)
            if call is not None and call.number == piece.index:
                call.fragments.append(piece.fragment)
                return delivered
        return self.check(delivered) if delivered else delivered

    def deliver_end(self, taken: list[Event]) -> list[Event]:
        """The same for the end of an attempt, and for what continues a cut one."""
        if self.input.beginning is None and type(last := taken[-1]) is Finished:
            self.input.texts += [event.text for event in taken if type(event) is TextDelta]
            self.input.reported = last.reason
        else:
            taken = self.input.take(taken)
        if not taken or self.input.reported != "length" or not self.recovery.settings.continue_cut:
            return self.check(self.delivery.deliver(taken))
        *before, last = taken
        out = self.check(self.delivery.deliver(before))
        return out if self.is_continued(last) else out + self.check(self.delivery.deliver([last]))

    def check(self, delivered: list[Event]) -> list[Event]:
        """What the client receives of these events."""
        self.over, self.has_output, self.fast_path = self.delivery.over, self.delivery.has_output, None
        if self.nothing_waits and list(map(type, delivered)) == [TextDelta]:  # the common case
            self.has_text = True
            return delivered
        out: list[Event] = []
        for event in move_blanks(delivered) if self.delivery.partly_sent else delivered:
            if type(event) is TextDelta and self.tail is None and self.first_defect is None and not self.queue:
                self.has_text = True
                out.append(event)
            elif type(event) is CallArguments and event.index in self.calls:
                call = self.calls[event.index]
                call.fragments.append(event.fragment)
                if call.number == event.index:
                    out.append(event)
                elif not call.held:
                    self.send(event, call, out)
            else:
                self.accept(event, out)
        self.nothing_waits = self.tail is None and self.first_defect is None and not self.queue
        return out

    def open_fast_path(self) -> None:
        """Open the fast path for more of what was sent last, if there is one."""
        if self.nothing_waits and self.input.beginning is None:
            self.fast_path = find_fast_path(self.delivery, self.calls, self.input.texts, self.check)

    def is_continued(self, last: Event) -> bool:
        """Whether the model is asked to go on with a call in its text that its token limit has cut."""
        reader = self.delivery.reader
        inside = bool(self.calls) or (reader is not None and reader.is_inside_call)
        cut = inside and self.first_defect is None and not self.plan.native and isinstance(last, Finished)
        if not cut or not self.recovery.take(AnswerDefect(kind=DefectKind.CUT, text=self.input.text)):
            return False
        assert isinstance(last, Finished)
        self.cut_end = last
        self.recovery.usage = add_usage(self.recovery.usage, last.usage)
        return True

    def accept(self, event: Event, out: list[Event]) -> None:
        if type(event) is CallStarted:
            self.start_call(event, out)
        elif (type(event) is CallEnded or type(event) is CallRejected) and event.index in self.calls:
            call = self.calls.pop(event.index)
            call.end = event
            if call.held and self.first_defect is None:
                self.drain_queue(out, ended=call)
            elif not call.held:
                self.end_call(call, event, out)
        elif type(event) is Finished or type(event) is Failed:
            if self.first_defect is not None and type(event) is Failed and event.kind not in FAILURES:
                self.drop_queue()
            if self.queue:
                self.drain_queue(out, last=True)
            self.end_attempt(event, out)
        elif self.queue:
            self.queue.append(event)
        else:
            self.put(event, out)

    def drain_queue(self, out: list[Event], last: bool = False, ended: OpenCall | None = None) -> None:
        """Send what waits, up to the first call that is not complete, or all of it at the end."""
        at, queue = 0, self.queue
        if ended and isinstance(ended.end, CallRejected) and ended.end.dialect:  # text again, behind the blanks so far
            queue.append(queue.pop(queue.index(ended)))
        for at, item in enumerate(queue, 1):
            if not isinstance(item, OpenCall):
                self.put(item, out)
            elif item.end is not None:
                self.end_call(item, item.end, out)
            elif not last:
                at -= 1
                break
        del queue[:at]

    def drop_queue(self) -> None:
        """A further attempt broke off: its calls are not sent, and what it wrote is no answer."""
        for item in self.queue:
            if isinstance(item, OpenCall) and isinstance(item.end, CallEnded):
                self.withhold(item, item.end)
        self.queue.clear()
        self.waiting_text.clear()

    def put(self, event: Event, out: list[Event]) -> None:
        """Send an event, or let it wait behind a defect."""
        if type(event) is CallRejected:
            self.reject_call(None, event, out)
        elif type(event) is TextDelta and self.first_defect is not None:
            self.waiting_text.append(event.text)
        elif self.tail is not None:
            self.tail.append(event)
        else:
            self.has_text = self.has_text or type(event) is TextDelta
            out.append(event)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def start_call(self, event: CallStarted, out: list[Event]) -> None:
        waits = self.tail is not None or self.first_defect is not None
        held = self.holds or waits or event.name not in self.checker.known
        call = self.calls[event.index] = OpenCall(event, held or bool(self.queue))
        if call.held:
            self.queue.append(call)
        else:
            self.send(event, call, out)

    def send(self, event: CallStarted | CallArguments | CallEnded, call: OpenCall, out: list[Event]) -> None:
        if call.number < 0:
            call.number = self.started
            self.started += 1
            if isinstance(event, CallStarted) and self.first_defect is not None and event.id in self.ids:
                event = replace(event, id=self.new_id())
            self.ids.add(call.event.id)
        out.append(event if event.index == call.number else replace(event, index=call.number))

    def send_whole(self, call: OpenCall, ended: CallEnded, out: list[Event]) -> None:
        self.send(call.event, call, out)
        if call.fragments:
            self.send(CallArguments(call.event.index, call.arguments), call, out)
        self.send(ended, call, out)

    def end_call(self, call: OpenCall, event: CallEnded | CallRejected, out: list[Event]) -> None:
        if isinstance(event, CallRejected):
            self.reject_call(call, event, out)
            return
        if self.first_defect is None and self.tail is not None and call.number < 0:
            self.withhold(call, event)
            self.has_later_calls = True
            self.tail += [call.event, CallArguments(call.event.index, call.arguments), event]
            return
        arguments = "".join(call.fragments)
        defects = self.checker.find_defects(call.event.name, arguments)
        if not defects and self.first_defect is not None and copies_feedback(arguments):
            defects = (COPIED,)
        if defects and call.held:
            self.hold_back(call, event, defects)
        elif self.first_defect is not None:
            self.end_corrected(call, event, out)
        else:
            if defects:
                self.recorder.notes.append(f"a call of {call.event.name} was sent before it was checked: {defects[0]}")
                self.recovery.on_defect()
            self.delivered.append((call.event.name, arguments))
            self.send_whole(call, event, out) if call.held else self.send(event, call, out)

    def withhold(self, call: OpenCall, ended: CallEnded) -> None:
        """A complete call is not sent, or not yet."""
        self.recorder.withdraw_call(call.event.name, ended.dialect)
        if not ended.dialect:
            self.withheld.append(ToolCall(call.event.id, call.event.name, call.arguments))

    def hold_back(self, call: OpenCall, ended: CallEnded, defects: tuple[Defect, ...]) -> None:
        """A complete call is defective: it waits."""
        started, arguments = call.event, call.arguments
        rejected = CallRejected(arguments, defects[0].reason, started.name, defects, ended.dialect, ended.span)
        self.rejected.append(rejected)
        self.has_invalid = True
        self.withhold(call, ended)
        self.recorder.observe(rejected)
        if self.first_defect is not None:
            return
        self.tail = self.tail or []
        if self.recovery.settings.invalid == AS_TEXT and rejected.reason is not Reason.UNKNOWN_TOOL:
            self.tail.append(show_rejected(rejected, MESSAGE_BREAK if self.has_text else ""))
        else:
            self.tail += [started, CallArguments(started.index, arguments), ended]

    def end_corrected(self, call: OpenCall, event: CallEnded, out: list[Event]) -> None:
        """A call of a further attempt is complete and good: it goes on where the defective one stopped, or is new."""
        partial, name, arguments = self.partial, call.event.name, call.arguments
        made = (hash_call(*delivered, exact=True) for delivered in self.delivered)
        known = hash_call(name, arguments, exact=True) in made
        if known or (self.plan.single and self.started and partial is None):
            self.withhold(call, event)
            return
        if partial is None:
            self.send_whole(call, event, out)
        else:
            rest = extend_arguments(partial.arguments, arguments) if partial.event.name == name else None
            if rest is None:
                self.withhold(call, event)
                self.recorder.notes.append("the corrected call does not continue what was sent of the first one")
                return
            out += [CallArguments(partial.number, rest)] if rest else []
            out.append(replace(event, index=partial.number))
            self.partial = None
        self.delivered.append((name, arguments))
        self.recovered = True

    def reject_call(self, call: OpenCall | None, event: CallRejected, out: list[Event]) -> None:
        """A call was rejected. The text that it was follows, unless the receiver decides what becomes of it."""
        if call is not None and not event.dialect:
            event = replace(event, raw=call.arguments, tool=call.event.name)
        if event.reason in DEFECTIVE and not self.input.is_cut_by_limit(event):
            self.note_rejected(call, event)
        if self.plan.reports_rejected and self.first_defect is None:
            shown: Event = call.event if call is not None and not event.dialect else replace(event, index=None)
            out.append(shown) if self.tail is None else self.tail.append(shown)

    def note_rejected(self, call: OpenCall | None, event: CallRejected) -> None:
        """The model can write a better call than this one."""
        self.rejected.append(event)
        if self.tail is None and self.first_defect is None:
            self.tail = []
        if call is not None and call.number >= 0:
            self.partial = call
        if call is not None and not event.dialect:
            self.withheld.append(ToolCall(call.event.id, call.event.name, call.arguments))

    # -- the end of an attempt -----------------------------------------------------------------------------------------

    def end_attempt(self, event: Finished | Failed, out: list[Event]) -> None:
        recovery = self.recovery
        if recovery.usage is not None:
            self.recorder.usage = add_usage(recovery.usage, self.recorder.usage)
        recovery.usage = self.recorder.usage
        if isinstance(event, Finished):
            event = Finished(event.reason, recovery.usage or event.usage)
        if self.first_defect is not None:
            self.end_further_attempt(event, self.first_defect, out)
            return
        kind = self.find_defect(event)
        if kind is None and self.tail is None and self.cut_end is None and not self.calls:  # the common case
            out.append(event)
        else:
            self.end_first_attempt(kind, event, out)

    def end_first_attempt(self, kind: DefectKind | None, event: Finished | Failed, out: list[Event]) -> None:
        """Ask the model again, or send the tail. Held calls without an end are shown to a receiver that says what
        became of them."""
        if kind in CALL_DEFECTS:
            self.recovery.on_defect()
        waiting = self.calls.values() if self.plan.reports_rejected else ()
        tail = [*(self.tail or ()), *(call.event for call in waiting if call.number < 0), event]
        defect = self.describe(kind) if kind is not None else None
        if defect is not None and self.recovery.take(defect):
            self.first_defect, self.first_tail = defect, tail
            self.recorder.tools[:] = [name for name, _ in self.delivered]
        else:
            self.release(tail, out)

    def find_defect(self, event: Finished | Failed) -> DefectKind | None:
        """What is wrong with the answer that ends here. An error of the upstream is no defect of the model."""
        if isinstance(event, Failed) and event.kind not in FAILURES:
            return DefectKind.UNPARSED if self.input.is_unparsed else None
        if self.rejected:
            unknown = self.rejected[0].reason is Reason.UNKNOWN_TOOL
            return DefectKind.UNKNOWN if unknown else DefectKind.INVALID if self.has_invalid else DefectKind.REJECTED
        if isinstance(event, Failed):
            return FAILURES[event.kind]
        if self.started or self.recorder.calls or event.reason in FINAL_REASONS:
            return None
        if self.delivery.near_misses:
            return DefectKind.NEAR_MISS
        announced = self.recovery.settings.narrated_stop and self.announces(self.input.end_of_text)
        return DefectKind.NARRATED if announced else None

    def describe(self, kind: DefectKind) -> AnswerDefect:
        return AnswerDefect(
            kind=kind,
            text=self.input.text,
            rejected=tuple(self.rejected or self.input.unparsed or map(reject_missed, self.delivery.near_misses)),
            calls=tuple(self.withheld),
            accepted=bool(self.delivered),
            interrupted=self.has_later_calls,
        )

    def end_further_attempt(self, event: Finished | Failed, first: AnswerDefect, out: list[Event]) -> None:
        """A further attempt has ended: with a call, with text, or defective again."""
        if self.recovered and self.partial is None:
            self.finish("tool_calls", out)
            return
        kind, text = self.find_defect(event), "".join(self.waiting_text)
        if self.asks_again(kind, first):
            return
        if text.strip() and not self.rejected and self.partial is None and first.kind not in WORDS_ONLY:
            out.append(TextDelta((MESSAGE_BREAK if self.has_text else "") + text))
            self.finish(self.input.reported or "stop", out)
        elif kind is DefectKind.EMPTY is first.kind and self.recovery.behind_result:
            self.recorder.notes.append("the model had nothing to add to the tool result: the turn ends")
            self.finish("stop", out)
        else:
            out += self.settle()

    def asks_again(self, kind: DefectKind | None, first: AnswerDefect) -> bool:
        """Whether the model is asked once more after a further attempt with this defect."""
        repeatable = kind in CALL_DEFECTS or (kind in WORDS_ONLY and first.kind in CALL_DEFECTS)
        if kind is None or not repeatable or not self.recovery.take(self.describe(kind)):
            return False
        self.recorder.tools[:] = [name for name, _ in self.delivered]
        return True

    def finish(self, reason: str, out: list[Event]) -> None:
        """A further attempt has succeeded."""
        self.recovery.end(succeeded=True)
        self.release([Finished(reason, self.recovery.usage)], out)

    def settle(self) -> list[Event]:
        """No attempt has succeeded: the end of the first answer, which stands."""
        self.recovery.end(succeeded=False)
        self.recorder.usage = self.recovery.usage
        self.delivery = self.first_delivery  # what is quoted from now on is its text
        if self.first_defect is None and self.cut_end is not None:
            return self.check(self.delivery.deliver([self.cut_end]))
        return self.release(self.first_tail, [])

    def release(self, tail: list[Event], out: list[Event]) -> list[Event]:
        """Append a tail to ``out`` and return that. Its calls get the numbers that follow those already sent."""
        self.tail = None
        waiting: dict[int, CallStarted] = {}
        numbers: dict[int, int] = {}
        for event in tail:
            match event:
                case CallStarted(index=index):
                    waiting[index] = event
                    numbers[index] = self.started
                    self.started += 1
                case CallEnded(index=index) if index in waiting:
                    self.recorder.restore_call(waiting[index].name, event.dialect)
                case Finished(reason=reason):
                    event = Finished(choose_reason(reason, self.started > 0), self.recovery.usage or event.usage)
                    self.recorder.error, self.recorder.finish = "", event.reason
                case Failed(kind=kind):
                    self.recorder.error = kind
            if isinstance(event, CallStarted | CallArguments | CallEnded):
                event = replace(event, index=numbers[event.index])
            out.append(event)
        return out
