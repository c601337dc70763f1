"""From what an upstream says to what a client is told.

Strategy. Text of the upstream goes through the reader, everything else passes. What comes out is put right for the
client: names as the client knows them, neutralised marks as they were, calls numbered in one row whoever made them.
What was not clearly a call goes on as text; what a client must not see (a call that it forbade, a second one where one
was agreed, a result that the model made up) is dropped and told to the record. If nothing else was said, the answer has
failed. The last event says truly how the answer ended.

A call that was refused or cut ends in one of two ways. If nothing of it was sent, it is text, and the end of the answer
tells why it was not made. If a part of it was sent as a call, the answer fails: many clients read half of a JSON object
as well as they can, and would run it. Only where the upstream says that its limit of tokens cut the call, the client is
told just that, in the words of its own wire.

An upstream that knows tools makes its calls natively; a call in its text counts only if it made none. So from the first
call that is read from its text on, everything waits for the end of the answer. With the first native call, what waits
goes out as the text that it was, and all text behind it is text; the calls in it are only counted.

Reasoning that the upstream tells apart passes at once, and is kept as long as nothing else was said. If the answer ends
with it, a complete call at its end was the action, put in the wrong channel, and is delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.conversation import ToolChoice
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
)
from toolglot.dialects.event_buffer import MESSAGE_BREAK
from toolglot.gateway.outcomes import (
    CUT_CALL,
    EMPTY,
    UNSPOKEN,
    WORDS,
    describe_refusal,
    is_answer,
    redact_failure,
    says_more,
)
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.reading.reader import Reader
from toolglot.wires.protocol import SUCCESSES

DROPPED = (Reason.EXTRA_CALL, Reason.FABRICATED_RESULT)
READ, NATIVE = "read", "native"
THINKING = "<think>\n"
SHELL_FENCE = "shell_fence"


ANY_CALL = ToolChoice()


class Bounds(Struct, frozen=True):
    """What of the calls that an upstream makes by itself the client wants: those of its choice, and at most one if
    ``single``. Upstreams do not always keep to it."""

    choice: ToolChoice = ANY_CALL
    single: bool = False

    @property
    def required(self) -> bool:
        return self.choice.mode == "required"


NO_BOUNDS = Bounds()


class Delivery:
    """One answer on its way to the client."""

    def __init__(
        self,
        reader: Reader | None,
        watch: RequestRecorder,
        names: Mapping[str, str] | None = None,
        joiner: str = "",
        bounds: Bounds = NO_BOUNDS,
        streamed: bool = True,
        secrets: tuple[str, ...] = (),
        native: bool = False,
        doubt: Callable[[Failed, bool], None] | None = None,
        successes: tuple[str, ...] = SUCCESSES,
        most: int = 0,
    ) -> None:
        self.reader = reader
        self.watch = watch
        self.names = names or {}
        self.joiner = joiner
        self.bounds = bounds
        self.forbidden: list[str] = []
        self.streamed = streamed
        self.secrets = secrets
        self.doubt = doubt
        self.successes = successes
        self.most = most
        """How many bytes of arguments a call may have; 0: any number."""
        self.sizes: dict[int, int] = {}
        self.over = False  # given up
        self.beside: Callable[[Iterable[Event]], None] | None = None
        self.source: list[str] = []
        self.thoughts: list[str] | None = [] if reader is not None else None
        self.said = False
        self.answered = False
        """Whether more than white space, reasoning and calls was told."""
        self.broken: list[str] = []
        """Native calls whose arguments are no JSON, by name."""
        self.short: list[str] = []
        """Native calls that the upstream ended in the middle of their arguments, by name."""
        self.unended: list[str] = []  # those that it did not end
        self.refused: list[CallRejected] = []
        """Calls read from text that were refused or cut, and are text."""
        self.halves: list[CallRejected] = []
        """Those of which a part was sent as a call."""
        self.truncated = False
        self.only_last = False
        """Whether a call in the text counts only if nothing is said behind it."""
        self.tells_rejected = False
        """Whether somebody behind us decides what becomes of a rejected call."""
        self.open: dict[tuple[str, int], int] = {}
        self.started = self.natives = 0
        self.audited = reader is not None and reader.audited
        self.prefers_native = native and reader is not None
        self.waiting: list[tuple[Event, str]] | None = None
        """What came from the first call in the text on, and from where, while a native call may follow."""
        self.overheard: list[str] | None = None
        """The dialects of calls in the text beside native ones, as soon as there is a native one."""
        self.quotes = self.audited or not streamed or self.prefers_native
        # the common case: nothing to put right, deltas pass as they are
        self.plain: tuple[type, ...] = () if joiner else WORDS if native else (*WORDS, CallArguments)
        self.native = native

    def deliver(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events of the upstream."""
        out: list[Event] = []
        if self.over:
            return out
        reader, plain = self.reader, self.plain
        if self.beside is not None:
            self.beside(events)
        for event in events:
            if type(event) is TextDelta and reader is not None:
                if self.overheard is not None:
                    self.overhear(reader.feed(event.text))
                    out.append(event)
                    continue
                self.keep(event.text)
                for read in reader.feed(event.text):
                    if type(read) in plain:
                        out.append(read)
                    else:
                        self.tell(read, READ, out)
                        plain = self.plain
            elif type(event) is Finished:
                self.finish(event, out)
            elif type(event) is Failed:
                self.fail(event, out)
            elif type(event) is not Started:
                self.tell(event, NATIVE, out)
        return self.take_stock(out) if out else out

    def take_stock(self, told: list[Event]) -> list[Event]:
        """Note what the client is told, and stop where a call is too large."""
        if self.started and self.most:
            told = self.measure(told)
        self.said = True
        self.answered = self.answered or any(map(is_answer, told))
        return told

    def measure(self, told: list[Event]) -> list[Event]:
        """The events, up to one that makes the arguments of a call larger than allowed; there the answer fails."""
        for at, event in enumerate(told):
            if type(event) is not CallArguments:
                continue
            fragment = event.fragment
            size = len(fragment) if fragment.isascii() else len(fragment.encode("utf-8", "surrogatepass"))
            size = self.sizes[event.index] = self.sizes.get(event.index, 0) + size
            if size > self.most:
                name, self.over = self.watch.open.get(event.index) or "a tool", True
                why = (
                    f"The arguments of the model's call of {name} are larger than {self.most} bytes,"
                    " which is the limit here (tool_calling.max_parameter_bytes)."
                )
                failed = told[:at]
                self.end_badly(Failed("parameter_too_large", why), failed)
                return failed
        return told

    def keep(self, text: str) -> None:
        """Text came: reasoning was not all, and the text may have to be quoted."""
        if self.thoughts is not None and not text.isspace():
            self.thoughts = None
        if self.quotes:
            self.source.append(text)

    def tell(self, event: Event, origin: str, out: list[Event]) -> None:
        """Pass an event on, or let it wait until it is known whether the upstream makes native calls."""
        if self.prefers_native and type(event) is CallStarted:
            if origin is NATIVE:
                self.give_back(out)
            elif self.waiting is None:
                self.waiting, self.plain = [], ()
        if self.waiting is None:
            kind = type(event)
            if origin is NATIVE and (kind is CallStarted or (kind is ReasoningDelta and self.thoughts is None)):
                self.let_go(out)
            self.pass_on(event, origin, out)
        else:
            self.waiting.append((event, origin))

    def let_go(self, out: list[Event]) -> None:
        """Text that waits goes out before a call or a thought that comes behind it."""
        if self.reader is not None and self.overheard is None:
            for read in self.reader.tell_waiting():
                self.pass_on(read, READ, out)

    def give_back(self, out: list[Event]) -> None:
        """The upstream makes a native call: all that was not told yet is text, whatever was read in it."""
        if self.overheard is not None or self.reader is None:
            return
        self.overheard = []
        waiting, self.waiting = self.waiting or [], None
        self.overhear(event for event, origin in waiting if origin is READ)
        out += self.reader.tell_as_text("".join(self.source))
        self.source.clear()
        self.quotes = False
        for event, origin in waiting:
            if origin is NATIVE:
                self.pass_on(event, origin, out)

    def overhear(self, events: Iterable[Event]) -> None:
        """Take note of calls that stay text."""
        if self.overheard is not None:
            self.overheard += [event.dialect for event in events if isinstance(event, CallEnded)]

    def pass_on(self, event: Event, origin: str, out: list[Event]) -> None:
        match event:
            case TextDelta() if self.truncated and origin is READ:
                pass  # the rest of a call that was cut
            case TextDelta() | ReasoningDelta():
                if self.thoughts is not None and origin is NATIVE:
                    self.thoughts.append(event.text)
                text = self.restore(event.text)
                if text:
                    out.append(event if text is event.text else type(event)(text))
            case CallArguments(index=index):
                if (origin, index) in self.open:
                    number, fragment = self.open[origin, index], self.restore(event.fragment)
                    same = number == index and fragment is event.fragment
                    out.append(event if same else CallArguments(number, fragment))
            case CallStarted(index=index):
                self.start(event, origin, out)
            case CallEnded(index=index):
                self.end(event, origin, out)
            case CallRejected():
                self.reject(event, origin, out)
            case _:
                out.append(event)

    def restore(self, text: str) -> str:
        return text.replace(self.joiner, "") if self.joiner else text

    def start(self, event: CallStarted, origin: str, out: list[Event]) -> None:
        name = self.names.get(event.name, event.name)
        if origin is NATIVE:
            self.plain, self.thoughts = self.plain and WORDS, None
        if self.forbid(name, origin):
            return
        self.natives += origin is NATIVE
        index = self.open[origin, event.index] = self.started
        self.started += 1
        started = CallStarted(index, event.id, name)
        self.watch.observe(started)
        out.append(started)

    def forbid(self, name: str, origin: str) -> bool:
        """Whether the client asked for no such call. It is not delivered, for the client would execute it. The reader
        keeps to the same bounds, but knows only of its own calls."""
        if origin is NATIVE and not self.bounds.choice.allows(name):
            reason, problem = Reason.FORBIDDEN, "tool_choice does not allow it"
        elif self.bounds.single and (self.started if origin is NATIVE else self.natives):
            reason, problem = Reason.EXTRA_CALL, "one call at most was asked for"
        else:
            return False
        self.forbidden.append(name)
        self.watch.observe(CallRejected("", reason, name))
        self.watch.notes.append(f"a call of {name} was not delivered: {problem}")
        return True

    def end(self, event: CallEnded, origin: str, out: list[Event]) -> None:
        index = self.open.pop((origin, event.index), None)
        if index is None:
            return
        ended = event if index == event.index else replace(event, index=index)
        self.watch.observe(ended)
        out.append(ended)
        if self.audited and event.dialect == SHELL_FENCE and event.span:
            self.watch.notes.append(f"a shell fence became a call: {self.quote(event.span)}")

    def reject(self, event: CallRejected, origin: str, out: list[Event]) -> None:
        """Text that set out to be a call. Where a part of it has left as a call, the end of the answer tells; in an
        answer that is given whole, or to a client that takes calls only whole, nothing has left yet."""
        if origin is NATIVE:
            self.reject_native(event, out)
            return
        live = event.index is not None
        if live and (READ, event.index) not in self.open:  # it was not delivered at all
            self.truncated = self.truncated or event.reason is Reason.TRUNCATED
            return
        self.watch.observe(event)
        if live and self.streamed:
            self.truncated = self.truncated or event.reason is Reason.TRUNCATED
            self.halves.append(event)
            return
        raw = event.raw
        if not self.streamed:
            raw = self.quote(event.span) if event.span else raw
            index = None if event.index is None else self.open.pop((READ, event.index), None)
            if self.tells_rejected:
                out.append(replace(event, raw=self.restore(raw), index=index))
                return
        if event.reason not in DROPPED and raw:
            self.refused.append(event)
            out.append(TextDelta(self.restore(raw)))

    def reject_native(self, event: CallRejected, out: list[Event]) -> None:
        """The arguments of a native call cannot be read. The client has them as they came; the answer's end tells."""
        number, cut = self.open.get((NATIVE, event.index or 0)), event.reason is Reason.TRUNCATED
        if number is None:  # it was not delivered at all
            return
        self.watch.observe(event)
        if not self.tells_rejected:
            (self.short if cut else self.broken).append(self.watch.open.pop(number, ""))
        elif not cut:  # who writes the call refuses it, in words
            out.append(CallEnded(number))

    def quote(self, span: tuple[int, int | None]) -> str:
        """What the upstream wrote there; kept where nothing leaves before it is sure."""
        self.source = ["".join(self.source)]
        return self.source[0][slice(*span)]

    def finish(self, event: Finished, out: list[Event]) -> None:
        self.close(event.reason == "length", out)
        self.watch.observe(event)
        failure = self.find_failure(event.reason, out)
        if failure is not None:
            self.end_badly(failure, out)
            return
        if self.bounds.required and not self.watch.calls:
            self.watch.notes.append("a call was required and none was made")
        self.explain(out)
        self.watch.finish = self.reason(event.reason)
        out.append(Finished(self.watch.finish, event.usage))

    def find_failure(self, reason: str, out: list[Event]) -> Failed | None:
        """Why an answer that has ended is none: native arguments that cannot be read, or nothing that was said."""
        self.note_cut_calls()
        if self.broken:
            names = ", ".join(dict.fromkeys(self.broken))
            return Failed("malformed_call", f"The arguments of the model's call of {names} are not a JSON object.")
        answered = self.answered or self.watch.calls or any(map(is_answer, out))
        halves = [event for event in self.halves if reason != "length" or event.reason is not Reason.TRUNCATED]
        if halves:
            return Failed("refused_call", " ".join(map(describe_refusal, halves)))
        if self.short and (self.streamed or not answered):
            names = ", ".join(dict.fromkeys(self.short))
            return Failed("truncated_call", f"The arguments of the model's call of {names} end in the middle.")
        if answered or reason not in self.successes:
            return None
        return self.describe_nothing(reason, out)

    def explain(self, out: list[Event]) -> None:
        """Tell which calls were not made, and why, behind everything that was said."""
        cut = () if self.streamed else dict.fromkeys((*self.short, *self.unended))
        notes = [*map(describe_refusal, self.refused), *(CUT_CALL.format(tool=name) for name in cut)]
        if notes:
            gap = MESSAGE_BREAK if self.answered or any(map(is_answer, out)) else ""
            out.append(TextDelta(f"{gap}({' '.join(notes)})"))

    def note_cut_calls(self) -> None:
        """Tell the record of native calls that have no end at all."""
        for (origin, _), number in self.open.items():
            if origin is NATIVE and number in self.watch.open:
                self.unended.append(self.watch.open.pop(number))
                self.watch.observe(CallRejected("", Reason.TRUNCATED, self.unended[-1]))

    def describe_nothing(self, reason: str, out: list[Event]) -> Failed:
        if reason == "content_filter":
            return Failed(reason, "The model's answer was held back by a content filter.")
        if self.forbidden:
            names = ", ".join(dict.fromkeys(self.forbidden))
            return Failed(
                "forbidden_call", f"The model's answer was a call of {names}, which tool_choice does not allow."
            )
        return Failed("empty_answer", UNSPOKEN if self.said or out else EMPTY)

    def reason(self, told: str) -> str:
        """Why the answer ended: a call that was cut never looks complete, a complete one never looks cut."""
        if self.open:
            return told if told in ("length", "content_filter") else "length" if self.truncated else "tool_calls"
        if self.watch.calls:
            return "tool_calls"
        return "stop" if told == "tool_calls" else told

    def fail(self, event: Failed, out: list[Event]) -> None:
        if self.doubt is not None:
            self.doubt(event, self.said or bool(out))
        self.close(True, out)
        self.end_badly(event, out)

    def end_badly(self, event: Failed, out: list[Event]) -> None:
        """Tell the failure, but not the key, which upstreams like to repeat."""
        failure = redact_failure(event, self.secrets)
        self.watch.observe(failure)
        out.append(failure)

    def close(self, truncated: bool, out: list[Event]) -> None:
        if self.reader is None:
            return
        reader, self.reader = self.reader, None
        if self.overheard is not None:
            self.overhear(reader.close(truncated))
            self.note_overheard(self.overheard)
        elif not self.thoughts:
            for event in reader.close(truncated):
                self.tell(event, READ, out)
        elif not truncated:
            self.rescue(reader, out)
        for dialect, reason in reader.left:
            self.watch.note_left_as_text(dialect, reason)
        for dialect in reader.missed:
            self.watch.note_near_miss(dialect)
        if self.only_last and says_more(self.waiting or ()):
            self.reader = reader
            self.give_back(out)
            self.reader = None
            self.note_overheard(self.overheard or [])
            return
        waiting, self.waiting = self.waiting or [], None
        for event, origin in self.withdraw_unfinished(waiting):
            self.pass_on(event, origin, out)

    def withdraw_unfinished(self, waiting: list[tuple[Event, str]]) -> Iterator[tuple[Event, str]]:
        """What has waited, with calls in the text that were refused as text: nothing of them was sent."""
        ended = {event.index for event, origin in waiting if origin is READ and isinstance(event, CallEnded)}
        for event, origin in waiting:
            if origin is READ and isinstance(event, CallStarted | CallArguments) and event.index not in ended:
                continue
            if origin is READ and isinstance(event, CallRejected) and event.index is not None:
                event = replace(event, raw=self.quote(event.span) if event.span else event.raw, index=None)
            yield event, origin

    def note_overheard(self, dialects: list[str]) -> None:
        for dialect in dialects:
            self.watch.note_left_as_text(dialect, Reason.EXTRA_CALL)
        if dialects:
            told, where = ", ".join(dict.fromkeys(dialects)), "beside native ones" if self.natives else "before its end"
            self.watch.notes.append(f"{len(dialects)} calls in the text {where} stay text: {told}")

    def rescue(self, reader: Reader, out: list[Event]) -> None:
        """The answer was nothing but reasoning, which the client has: the calls that it ends with are told too."""
        self.source = [THINKING + "".join(self.thoughts or ())]
        read = [*reader.feed(self.source[0]), *reader.close()]
        ended = [at for at, event in enumerate(read) if isinstance(event, CallEnded)]
        if not ended or any(isinstance(event, TextDelta) and event.text.strip() for event in read[ended[-1] :]):
            return
        whole = {event.index for event in read if isinstance(event, CallEnded)}
        for event in read:
            if isinstance(event, CallStarted | CallArguments | CallEnded) and event.index in whole:
                self.tell(event, READ, out)
