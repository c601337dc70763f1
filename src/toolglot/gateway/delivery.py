"""Turns the events of an upstream's response into the events that the client receives.

Strategy. Text of the upstream goes through the reader; all other events pass. The result is adapted to the client: tool
names as the client knows them, escaped marks restored, calls numbered in one sequence whether they are native or read
from text. What is not clearly a call passes as text. What a client must not see (a call that it forbade, a second one
where it takes one, a result that the model fabricated) is dropped and recorded. If nothing else is left, the response
fails. The last event states truthfully how the response ended.

A call that was rejected or cut ends in one of two ways. If no part of it was sent, it becomes text, and a note at the
end of the answer explains why it was not made. If a part of it was sent as a call, the response fails: many clients
parse half of a JSON object as well as they can, and would run it. Only if the upstream reports that its token limit cut
the call, the client gets just that finish reason, in its own wire.

An upstream that supports tools makes its calls natively; a call in its text counts only if there is no native one. So
everything from the first call in the text on is deferred until the end of the response. With the first native call, the
deferred part is sent as the text that it was, and all text behind it is text; calls in it are only counted.

Reasoning that the upstream sends as such passes at once, and is kept as long as nothing else was sent. If the response
ends with it, a complete call at its end was the action, put into the wrong channel, and is delivered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    NearMiss,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
)
from toolglot.dialects.event_buffer import MESSAGE_BREAK
from toolglot.gateway.delivery_plan import DEFAULT_PLAN, DeliveryPlan
from toolglot.gateway.outcomes import (
    CUT_CALL,
    DELTAS,
    NO_ANSWER,
    TOO_LARGE,
    describe_empty,
    describe_rejection,
    explain_to_client,
    has_text_after_call,
    is_answer,
)
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.reading.reader import Reader

DROPPED = (Reason.EXTRA_CALL, Reason.FABRICATED_RESULT)
READ, NATIVE = "read", "native"
THINKING = "<think>\n"
SHELL_FENCE = "shell_fence"


class Delivery:
    """The delivery of one response."""

    __slots__ = (
        *("argument_bytes", "argument_limit", "audited", "break_character", "calls_in_text", "checks_output", "cut"),
        *("deferred", "forbidden", "has_answer", "has_output", "keeps_text", "malformed", "natives", "near_misses"),
        *("notes_text", "observer", "open_calls", "over", "partly_sent", "passing", "plan", "prefers_native"),
        *("raw_text", "reader", "reasoning", "recorder", "rejected", "started", "truncated", "unchanged", "unended"),
    )

    def __init__(self, reader: Reader | None, recorder: RequestRecorder, plan: DeliveryPlan = DEFAULT_PLAN) -> None:
        self.reader = reader
        self.recorder = recorder
        self.plan = plan
        self.over = self.truncated = False
        self.checks_output = self.notes_text = True
        self.observer: Callable[[Iterable[Event]], None] | None = None
        self.break_character = plan.break_character
        self.argument_bytes: dict[int, int] = {}
        self.argument_limit = plan.max_argument_bytes or sys.maxsize
        self.raw_text: list[str] = []
        """The upstream's text, where it may have to be quoted."""
        self.reasoning: list[str] | None = [] if reader is not None else None
        """The upstream's reasoning, as long as nothing else has come."""
        self.has_output = False
        """Whether any event was delivered."""
        self.has_answer = False
        """Whether more than white space, reasoning and calls was delivered."""
        self.near_misses: list[NearMiss] = []
        """Text that was meant as a call and could not be read as one."""
        self.forbidden: list[str] = []
        """Names of native calls that the client does not take."""
        self.malformed: list[str] = []
        """Names of native calls whose arguments are not JSON."""
        self.cut: list[str] = []
        """Names of native calls that the upstream ended in the middle of their arguments."""
        self.unended: list[str] = []
        """Names of native calls that the upstream did not end."""
        self.rejected: list[CallRejected] = []
        """Calls read from text that were rejected or cut, and became text."""
        self.partly_sent: list[CallRejected] = []
        """Rejected calls of which a part was sent as a call."""
        self.open_calls: dict[tuple[str, int], int] = {}
        self.passing: set[int] = set()
        """Native calls in progress whose arguments pass without a change."""
        self.started = self.natives = 0
        self.audited = reader is not None and reader.audited
        self.prefers_native = plan.native and reader is not None
        self.deferred: list[tuple[Event, str]] | None = None
        """Events from the first call in the text on, with their origin, while a native call may follow."""
        self.calls_in_text: list[str] | None = None
        """The dialects of calls in the text beside native ones; None until there is a native one."""
        self.keeps_text = self.audited or not plan.streamed or self.prefers_native
        passing = DELTAS if plan.native else (*DELTAS, CallArguments)  # the common case: these are not changed
        self.unchanged: tuple[type, ...] = () if plan.break_character else passing

    def set_observer(self, observer: Callable[[Iterable[Event]], None]) -> None:
        """Show the upstream's events to a dry run as well."""
        self.observer = observer

    def deliver(self, events: Sequence[Event]) -> list[Event]:
        """What the client receives for these events of the upstream (hot path)."""
        if self.over:
            return []
        if self.observer is not None:
            self.observer(events)
        reader, only = self.reader, events[0] if len(events) == 1 else None
        if type(only) is TextDelta and reader is not None and not self.notes_text:  # the common case
            return self.deliver_read(reader.feed(only.text))
        return self.check_output(self.deliver_each(events))

    def deliver_read(self, read: list[Event]) -> list[Event]:
        """What the client receives for what the reader has read in a piece of text."""
        unchanged = len(read) == 1 and type(read[0]) in self.unchanged
        return self.check_output(read if unchanged else self.accept_read(read, []))

    def deliver_each(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is TextDelta and self.reader is not None:
                read = self.reader.feed(event.text)
                if self.calls_in_text is not None:
                    self.note_calls(read)
                    out.append(event)
                    continue
                if self.notes_text:
                    self.note_text(event.text)
                if len(read) == 1 and type(read[0]) in self.unchanged:
                    out += read
                else:
                    self.accept_read(read, out)
            elif type(event) is CallArguments and event.index in self.passing:
                out.append(event)
            elif type(event) is Finished:
                self.finish(event, out)
            elif type(event) is Failed:
                self.fail(event, out)
            elif type(event) is not Started:
                self.accept(event, NATIVE, out)
        return out

    def accept_read(self, events: Iterable[Event], out: list[Event]) -> list[Event]:
        """Append to ``out`` what the client receives for what was read in the text, and return it."""
        for event in events:
            if type(event) in self.unchanged:
                out.append(event)
            else:
                self.accept(event, READ, out)
        return out

    def check_output(self, out: list[Event]) -> list[Event]:
        """The events, up to one that makes the arguments of a call larger than allowed; there the response fails."""
        if out:
            self.has_output = True
        if not self.checks_output:
            return out
        sizes = self.argument_bytes
        for event in out:
            if type(event) is CallArguments:
                fragment, index = event.fragment, event.index
                size = len(fragment) if fragment.isascii() else len(fragment.encode("utf-8", "surrogatepass"))
                size = sizes[index] = sizes.get(index, 0) + size
                if size > self.argument_limit:
                    return self.refuse_arguments(index, out[: [one is event for one in out].index(True)])
            elif not self.has_answer:
                self.has_answer = type(event) not in NO_ANSWER and self.is_answer(event)
                self.checks_output = not self.has_answer or self.started > 0
        return out

    def is_answer(self, event: Event) -> bool:
        """Whether this event is part of an answer. A rejected call is one for a receiver that renders calls only."""
        return is_answer(event) and (type(event) is not CallRejected or self.plan.reports_rejected)

    def refuse_arguments(self, index: int, sent: list[Event]) -> list[Event]:
        """The end of a response in which a call is too large, after these events."""
        self.over = True
        why = TOO_LARGE.format(tool=self.recorder.open.get(index) or "a tool", limit=self.plan.max_argument_bytes)
        self.emit_failure(Failed("parameter_too_large", why), sent)
        return sent

    def note_text(self, text: str) -> None:
        """Text came: the response is not only reasoning, and the text may have to be quoted."""
        if self.reasoning is not None and not text.isspace():
            self.reasoning = None
        if self.keeps_text:
            self.raw_text.append(text)
        self.notes_text = self.keeps_text or self.reasoning is not None

    def accept(self, event: Event, origin: str, out: list[Event]) -> None:
        """Emit an event, or defer it until it is known whether the upstream makes native calls."""
        if self.prefers_native and type(event) is CallStarted:
            if origin is NATIVE:
                self.revert_to_text(out)
            elif self.deferred is None:
                self.deferred, self.unchanged = [], ()
        if self.deferred is None:
            kind = type(event)
            if origin is NATIVE and (kind is CallStarted or (kind is ReasoningDelta and self.reasoning is None)):
                self.flush_text(out)
            self.emit(event, origin, out)
        else:
            self.deferred.append((event, origin))

    def flush_text(self, out: list[Event]) -> None:
        """Emit text that the reader holds before a call or reasoning that follows it."""
        if self.reader is not None and self.calls_in_text is None:
            for read in self.reader.flush_text():
                self.emit(read, READ, out)

    def revert_to_text(self, out: list[Event]) -> None:
        """The upstream makes a native call: everything not sent yet is text, even if calls were read in it."""
        if self.calls_in_text is not None or self.reader is None:
            return
        self.calls_in_text, self.notes_text = [], True
        deferred, self.deferred = self.deferred or [], None
        self.note_calls(event for event, origin in deferred if origin is READ)
        out += self.reader.emit_all_as_text("".join(self.raw_text))
        self.raw_text.clear()
        self.keeps_text = False
        for event, origin in deferred:
            if origin is NATIVE:
                self.emit(event, origin, out)

    def note_calls(self, events: Iterable[Event]) -> None:
        """Count calls that stay text."""
        if self.calls_in_text is not None:
            self.calls_in_text += [event.dialect for event in events if isinstance(event, CallEnded)]

    def emit(self, event: Event, origin: str, out: list[Event]) -> None:
        if type(event) is CallStarted:
            self.start_call(event, origin, out)
        elif type(event) is CallEnded:
            self.end_call(event, origin, out)
        elif type(event) is CallArguments:
            number, fragment = self.open_calls.get((origin, event.index)), self.remove_breaks(event.fragment)
            if number is not None:
                same = number == event.index and fragment is event.fragment
                out.append(event if same else CallArguments(number, fragment))
        elif type(event) is TextDelta or type(event) is ReasoningDelta:
            self.emit_delta(event, origin, out)
        elif type(event) is CallRejected:
            self.reject_call(event, origin, out)
        else:
            out.append(event)

    def emit_delta(self, event: TextDelta | ReasoningDelta, origin: str, out: list[Event]) -> None:
        if self.truncated and origin is READ and type(event) is TextDelta:
            return  # the rest of a call that was cut
        if self.reasoning is not None and origin is NATIVE:
            self.reasoning.append(event.text)
        if text := self.remove_breaks(event.text):
            out.append(event if text is event.text else type(event)(text))

    def remove_breaks(self, text: str) -> str:
        return text.replace(self.break_character, "") if self.break_character else text

    def start_call(self, event: CallStarted, origin: str, out: list[Event]) -> None:
        name = self.plan.names.get(event.name, event.name)
        if origin is NATIVE:
            self.unchanged, self.reasoning = self.unchanged and DELTAS, None
        if self.forbid(name, origin):
            return
        self.natives += origin is NATIVE
        index = self.open_calls[origin, event.index] = self.started
        if origin is NATIVE and index == event.index and not self.break_character:
            self.passing.add(index)
        elif origin is NATIVE:  # an upstream may use a number twice
            self.passing.discard(event.index)
        self.started, self.checks_output = self.started + 1, True
        started = CallStarted(index, event.id, name)
        self.recorder.observe(started)
        out.append(started)

    def forbid(self, name: str, origin: str) -> bool:
        """Whether the client does not take such a call. It is not delivered, because the client would run it. The
        reader enforces the same limits, but only knows the calls that it read."""
        if origin is NATIVE and not self.plan.choice.allows(name):
            reason, problem = Reason.FORBIDDEN, "tool_choice does not allow it"
        elif self.plan.single and (self.started if origin is NATIVE else self.natives):
            reason, problem = Reason.EXTRA_CALL, "one call at most was asked for"
        else:
            return False
        self.forbidden.append(name)
        self.recorder.observe(CallRejected("", reason, name))
        self.recorder.notes.append(f"a call of {name} was not delivered: {problem}")
        return True

    def end_call(self, event: CallEnded, origin: str, out: list[Event]) -> None:
        index = self.open_calls.pop((origin, event.index), None)
        if index is None:
            return
        self.passing.discard(index)
        ended = event if index == event.index else replace(event, index=index)
        self.recorder.observe(ended)
        out.append(ended)
        if self.audited and event.dialect == SHELL_FENCE and event.span:
            self.recorder.notes.append(f"a shell fence became a call: {self.quote(event.span)}")

    def reject_call(self, event: CallRejected, origin: str, out: list[Event]) -> None:
        """Text that began as a call. If a part of it was sent as a call, the end of the response fails; in a response
        that is sent whole, or to a client that takes calls only whole, nothing was sent yet."""
        if origin is NATIVE:
            self.reject_native(event, out)
            return
        live, streamed = event.index is not None, self.plan.streamed
        if live and (READ, event.index) not in self.open_calls:  # it was not delivered at all
            self.truncated = self.truncated or event.reason is Reason.TRUNCATED
            return
        self.recorder.observe(event)
        if live and streamed:
            self.truncated = self.truncated or event.reason is Reason.TRUNCATED
            self.partly_sent.append(event)
            self.mark_rejected(event, self.open_calls[READ, event.index or 0], out)
            return
        raw, index = event.raw, None
        if not streamed:
            raw = self.quote(event.span) if event.span else raw
            index = None if event.index is None else self.open_calls.pop((READ, event.index), None)
            if self.plan.reports_rejected:
                out.append(replace(event, raw=self.remove_breaks(raw), index=index))
                return
        if event.reason not in DROPPED and raw:
            self.rejected.append(event)
            self.mark_rejected(replace(event, raw=self.remove_breaks(raw)), index, out)
            out.append(TextDelta(self.remove_breaks(raw)))

    def mark_rejected(self, event: CallRejected, index: int | None, out: list[Event]) -> None:
        if self.plan.marks_rejected:
            out.append(replace(event, index=index))

    def reject_native(self, event: CallRejected, out: list[Event]) -> None:
        """The arguments of a native call are not JSON. The client has them as they came; the response's end fails."""
        number, cut = self.open_calls.get((NATIVE, event.index or 0)), event.reason is Reason.TRUNCATED
        if number is None:  # it was not delivered at all
            return
        self.recorder.observe(event)
        if cut or not self.plan.reports_rejected:
            self.mark_rejected(replace(event, tool=event.tool or self.recorder.open.get(number)), number, out)
        if not self.plan.reports_rejected:
            (self.cut if cut else self.malformed).append(self.recorder.open.pop(number, ""))
        elif not cut:  # the receiver, which renders the call, rejects it
            out.append(CallEnded(number))

    def quote(self, span: tuple[int, int | None]) -> str:
        """The upstream's text at this position; kept only where nothing is sent before it is certain."""
        self.raw_text = ["".join(self.raw_text)]
        return self.raw_text[0][slice(*span)]

    # -- the end of the response ---------------------------------------------------------------------------------------

    def finish(self, event: Finished, out: list[Event]) -> None:
        self.close_reader(event.reason == "length", out)
        self.recorder.observe(event)
        failure = self.find_failure(event.reason, out)
        if failure is not None:
            self.emit_failure(failure, out)
            return
        if self.plan.choice.mode == "required" and not self.recorder.calls:
            self.recorder.notes.append("a call was required and none was made")
        if self.rejected or self.cut or self.unended:
            self.explain_rejected(out)
        self.recorder.finish = self.find_reason(event.reason)
        out.append(Finished(self.recorder.finish, event.usage))

    def find_failure(self, reason: str, out: list[Event]) -> Failed | None:
        """Why a finished response is no answer: native arguments that are not JSON, a call that was sent in part, or no
        content."""
        self.record_unended()
        if self.malformed:
            names = ", ".join(dict.fromkeys(self.malformed))
            return Failed("malformed_call", f"The arguments of the model's call of {names} are not a JSON object.")
        answered = self.has_answer or self.recorder.calls or any(map(self.is_answer, out))
        partly = [event for event in self.partly_sent if reason != "length" or event.reason is not Reason.TRUNCATED]
        if partly:
            return Failed("refused_call", self.explain(partly))
        if self.cut and (self.plan.streamed or not answered):
            names = ", ".join(dict.fromkeys(self.cut))
            return Failed("truncated_call", f"The arguments of the model's call of {names} end in the middle.")
        if answered or reason not in self.plan.successes:
            return None
        return describe_empty(reason, self.forbidden, has_output=self.has_output or bool(out))

    def explain_rejected(self, out: list[Event]) -> None:
        """Append a note on which calls were not made, and why; a receiver that renders calls notes the cut ones."""
        cut = () if self.plan.streamed or self.plan.reports_rejected else dict.fromkeys((*self.cut, *self.unended))
        rejected = [self.explain(self.rejected)] if self.rejected else []
        notes = [*rejected, *(CUT_CALL.format(tool=name) for name in cut)]
        if notes:
            gap = MESSAGE_BREAK if self.has_answer or any(map(self.is_answer, out)) else ""
            out.append(TextDelta(f"{gap}({' '.join(notes)})"))

    def explain(self, rejected: list[CallRejected]) -> str:
        """Why calls were not made."""
        explain = self.plan.explain
        return explain(rejected) if explain else " ".join(map(describe_rejection, rejected))

    def record_unended(self) -> None:
        """Record native calls that have no end at all."""
        for (origin, _), number in self.open_calls.items():
            if origin is NATIVE and number in self.recorder.open:
                self.unended.append(self.recorder.open.pop(number))
                self.recorder.observe(CallRejected("", Reason.TRUNCATED, self.unended[-1]))

    def find_reason(self, reported: str) -> str:
        """The finish reason: a call that was cut never looks complete, a complete one never looks cut."""
        if self.open_calls:
            known = reported in ("length", "content_filter")
            return reported if known else "length" if self.truncated else "tool_calls"
        if self.recorder.calls:
            return "tool_calls"
        return "stop" if reported == "tool_calls" else reported

    def fail(self, event: Failed, out: list[Event]) -> None:
        if self.plan.on_failure is not None:
            self.plan.on_failure(event, self.has_output or bool(out))
        self.close_reader(True, out)
        self.emit_failure(event, out)

    def emit_failure(self, event: Failed, out: list[Event]) -> None:
        """Emit and record the failure as the client gets it."""
        failure = explain_to_client(event, self.plan.place, self.plan.secrets)
        self.recorder.observe(failure)
        out.append(failure)

    def close_reader(self, truncated: bool, out: list[Event]) -> None:
        """Emit what the reader still holds, and the deferred events."""
        if self.reader is None:
            return
        reader, self.reader = self.reader, None
        if self.calls_in_text is not None:
            self.note_calls(reader.close(truncated))
            self.record_calls_in_text(self.calls_in_text)
        elif not self.reasoning:
            for event in reader.close(truncated):
                self.accept(event, READ, out)
        elif not truncated:
            self.read_reasoning(reader, out)
        for dialect, reason in reader.left:
            self.recorder.note_left_as_text(dialect, reason)
        for miss in reader.missed:
            self.recorder.note_near_miss(miss)
        self.near_misses = reader.missed
        if reader.is_stuck:
            self.recorder.notes.append("the reader made no progress: the rest of the answer is text; please report it")
        self.release_deferred(reader, out)

    def release_deferred(self, reader: Reader, out: list[Event]) -> None:
        """The response is complete: emit the deferred calls, or as text what does not count."""
        if self.plan.only_last and has_text_after_call(self.deferred or ()):
            self.reader = reader
            self.revert_to_text(out)
            self.reader = None
            self.record_calls_in_text(self.calls_in_text or [])
        elif self.plan.rejects_leaks and self.deferred:
            self.reject_leaks(reader, self.deferred, out)
        deferred, self.deferred = self.deferred, None
        for event, origin in self.withdraw_unfinished(deferred) if deferred else ():
            self.emit(event, origin, out)

    def withdraw_unfinished(self, deferred: list[tuple[Event, str]]) -> Iterator[tuple[Event, str]]:
        """The deferred events, with rejected calls in the text as text: nothing of them was sent."""
        ended = {event.index for event, origin in deferred if origin is READ and isinstance(event, CallEnded)}
        for event, origin in deferred:
            if origin is READ and isinstance(event, CallStarted | CallArguments) and event.index not in ended:
                continue
            if origin is READ and isinstance(event, CallRejected) and event.index is not None:
                event = replace(event, raw=self.quote(event.span) if event.span else event.raw, index=None)
            yield event, origin

    def reject_leaks(self, reader: Reader, deferred: list[tuple[Event, str]], out: list[Event]) -> None:
        """The calls in the text are not made; all of it is text."""
        names = {event.index: event.name for event, origin in deferred if origin is READ and type(event) is CallStarted}
        for event, origin in deferred:
            if origin is not READ or not isinstance(event, CallEnded | CallRejected):
                continue
            raw = self.quote(event.span) if event.span else ""
            if isinstance(event, CallRejected):
                rejected = replace(event, raw=raw or event.raw)
            else:
                rejected = CallRejected(raw, Reason.LEAKED, names[event.index], (), event.dialect, event.span)
            self.recorder.observe(rejected)
            if rejected.reason not in DROPPED:
                self.rejected.append(rejected)
                self.mark_rejected(rejected, None, out)
        if not self.reasoning:  # which the client has
            self.reader = reader
            self.revert_to_text(out)
        self.reader = self.deferred = None

    def record_calls_in_text(self, dialects: list[str]) -> None:
        for dialect in dialects:
            self.recorder.note_left_as_text(dialect, Reason.EXTRA_CALL)
        if dialects:
            where = "beside native ones" if self.natives else "before its end"
            names = ", ".join(dict.fromkeys(dialects))
            self.recorder.notes.append(f"{len(dialects)} calls in the text {where} stay text: {names}")

    def read_reasoning(self, reader: Reader, out: list[Event]) -> None:
        """The response was nothing but reasoning, which the client has: deliver the calls at its end as well."""
        self.raw_text = [THINKING + "".join(self.reasoning or ())]
        read = [*reader.feed(self.raw_text[0]), *reader.close()]
        ended = [at for at, event in enumerate(read) if isinstance(event, CallEnded)]
        if not ended or any(isinstance(event, TextDelta) and event.text.strip() for event in read[ended[-1] :]):
            return
        whole = {event.index for event in read if isinstance(event, CallEnded)}
        for event in read:
            if isinstance(event, CallStarted | CallArguments | CallEnded) and event.index in whole:
                self.accept(event, READ, out)
