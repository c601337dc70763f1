"""Heals the history of a conversation, so that strict upstreams accept it and no text is lost.

Strategy. Strict upstreams want arguments that are JSON objects, unique ids, and exactly one result behind every call.
One walk gives each call its id and valid arguments, and ties each result to its call:

- arguments that mean one object (encoded twice, raw line breaks, single quotes) become it. Of several objects in a row
  the first one stays, and the result of the call tells the model about the rest. Any other text becomes the argument
  ``arguments``, as in all writers of calls;
- an id that was used before gets a number; its results are those behind the later call;
- a result without an id belongs to the first open call of its tool. A result with an unknown id belongs to the only
  open call of the turn before it, if no other result names that call;
- a result that comes late moves behind its call; turns in a row without any result become one turn;
- a result without a call, and a second one of the same call, become a user message that says so. An exact repetition
  is dropped;
- a call without a result gets an error as its result.

Everything depends only on the messages before it, so the same history is healed in the same way in every turn. A
healthy history stays as it is, and a healed one is healthy.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Struct, field

from toolglot.core.conversation import Message, Part, Text, ToolCall, ToolResult
from toolglot.core.json_numbers import decode_tolerant, encode
from toolglot.core.lenient_json import NotJsonError, dump, parse
from toolglot.gateway.recovery.annotations import append_to_result
from toolglot.gateway.recovery.call_ids import ANY_FORM, CallIds
from toolglot.wires.json_fields import read_arguments
from toolglot.wires.translation import UNANSWERED

_ROLES: Final = ("assistant", "tool")
"""Only messages of these roles hold calls or results."""
_MOST_NOTES: Final = 20
_NOTE_CHARACTERS: Final = 200
"""Names and ids in a history can be of any length."""
_MOST_ENCODINGS: Final = 4
"""How often arguments may be encoded as a string."""
_SEPARATORS: Final = " \t\r\n,;"
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""Checks all of an object, and is the fastest way to do so."""
_SCANNER: Final = json.JSONDecoder(parse_int=str, parse_float=str)


class HealedHistory(Struct, frozen=True):
    """The messages, what was healed in them, and what was only completed: ids that some wires leave out."""

    messages: tuple[Message, ...]
    healings: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What was done, for the record."""
        notes = self.healings + self.completions
        more = [f"the history has {len(notes) - _MOST_NOTES} more problems"] if len(notes) > _MOST_NOTES else []
        return [note[:_NOTE_CHARACTERS] for note in notes[:_MOST_NOTES]] + more


def heal_history(messages: Iterable[Message], id_form: str = ANY_FORM) -> HealedHistory:
    """Heal the calls and results of a history.

    Parameters: ``id_form`` is the form of call ids that the upstream insists on, see ``call_ids``.

    Returns: the healed messages. All results carry the id and the name of their call.
    """
    given = tuple(messages)
    if not any(message.role in _ROLES for message in given):
        return HealedHistory(given)
    healer = _Healer(CallIds(id_form), _list_result_ids(given))
    for at, message in enumerate(given):
        healer.add(message, at)
    return HealedHistory(tuple(healer.list_messages()), tuple(healer.healings), tuple(healer.completions))


def _list_result_ids(messages: Iterable[Message]) -> frozenset[str]:
    results = (part for message in messages if message.role == "tool" for part in message.parts)
    return frozenset(part.call_id for part in results if isinstance(part, ToolResult))


# -- matching calls and results ----------------------------------------------------------------------------------------


class _Call(Struct):
    """A call of the history. ``rest`` is what its result tells about its arguments; ``given_id`` is the client's id."""

    call: ToolCall
    given_id: str
    rest: str
    turn: _Turn
    result: ToolResult | None = None


class _Turn(Struct):
    """A message, its calls, and their results with the numbers of the messages that they came in. ``parts`` are those
    of the message, if they have changed."""

    message: Message
    parts: list[Part] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    unanswered: int = 0
    results: list[tuple[int, ToolResult]] = field(default_factory=list)
    result_messages: dict[int, Message] = field(default_factory=dict)


class _Healer:
    def __init__(self, ids: CallIds, result_ids: frozenset[str]) -> None:
        self.ids = ids
        self.result_ids = result_ids
        self.turns: list[_Turn] = []
        self.by_id: dict[str, deque[_Call]] = {}
        """Calls without a result, by the client's id; only those of the last turn that used the id."""
        self.answered: dict[str, _Call] = {}
        self.open: deque[_Call] = deque()
        """Calls of the last turn, in order; those with a result are dropped from the front."""
        self.open_by_name: dict[str, deque[_Call]] = {}
        self.healings: list[str] = []
        self.completions: list[str] = []

    def add(self, message: Message, at: int) -> None:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self.add_result(part, message, at)
        elif message.role == "assistant" and any(isinstance(part, ToolCall) for part in message.parts):
            self.add_calls(message, at)
        else:
            self.turns.append(_Turn(message))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def add_calls(self, message: Message, at: int) -> None:
        last = self.turns[-1] if self.turns else None
        goes_on = last is not None and last.unanswered > 0 and not last.results
        if last is not None and goes_on:
            turn = last
            turn.parts = turn.parts or list(turn.message.parts)
            self.healings.append(f"messages[{at}]: calls right behind calls without results were made one turn")
        else:
            turn = _Turn(message)
            self.turns.append(turn)
            self.open, self.open_by_name = deque(), {}
        parts = [self.add_call(part, turn, at) if isinstance(part, ToolCall) else part for part in message.parts]
        if goes_on or tuple(parts) != message.parts:
            turn.parts += parts

    def add_call(self, call: ToolCall, turn: _Turn, at: int) -> ToolCall:
        arguments, problem, rest = heal_arguments(call.arguments)
        call_id = self.ids.give(call)
        if problem:
            self.healings.append(f"messages[{at}]: the arguments of a call to {call.name} {problem}")
        if call_id != call.id:
            was = f"with the id {call.id}" if call.id else "without an id"
            self.healings.append(f"messages[{at}]: a call to {call.name} {was} was given the id {call_id}")
        made = ToolCall(call_id, call.name, arguments)
        one = _Call(made, call.id, rest, turn)
        turn.calls.append(one)
        turn.unanswered += 1
        self.open.append(one)
        self.open_by_name.setdefault(call.name, deque()).append(one)
        same_id = self.by_id.get(call.id)
        if not same_id or same_id[-1].turn is not turn:
            self.by_id[call.id] = same_id = deque()
        same_id.append(one)
        return made

    # -- results -------------------------------------------------------------------------------------------------------

    def add_result(self, result: ToolResult, message: Message, at: int) -> None:
        call = self.find_call(result, at)
        if call is None:
            self.add_unmatched(result, at)
            return
        made = result
        if call.rest:
            made = append_to_result(result, call.rest)
        if (made.call_id, made.name) != (call.call.id, call.call.name):
            made = ToolResult(call.call.id, call.call.name, made.content, made.error)
        turn = call.turn
        call.result = result
        turn.unanswered -= 1
        self.answered[call.given_id] = call
        turn.results.append((at, made))
        turn.result_messages[at] = message
        if turn is not self.turns[-1]:
            self.healings.append(f"messages[{at}]: a late result of {call.call.name} was moved behind its call")

    def find_call(self, result: ToolResult, at: int) -> _Call | None:
        """The open call that the result belongs to, if there is one."""
        if not result.call_id:
            call = self.first_open(self.open_by_name.get(result.name) if result.name else self.open)
            if call is not None:
                self.completions.append(
                    f"messages[{at}]: a tool result without an id was taken for that of {call.call.name}"
                )
            return call
        call = self.first_open(self.by_id.get(result.call_id))
        if call is not None or result.call_id in self.answered:
            return call
        return self.find_only_open(result, at)

    def first_open(self, calls: deque[_Call] | None) -> _Call | None:
        while calls and calls[0].result is not None:
            calls.popleft()
        return calls[0] if calls else None

    def find_only_open(self, result: ToolResult, at: int) -> _Call | None:
        """The only open call of the last turn, for a result with an unknown id."""
        call = self.first_open(self.open)
        fits = call is not None and call.turn is self.turns[-1] and result.name in ("", call.call.name)
        if call is None or not fits or call.turn.unanswered > 1 or call.given_id in self.result_ids:
            return None
        self.healings.append(
            f"messages[{at}]: a result of the unknown call {result.call_id} was taken for that of {call.call.name}"
        )
        return call

    def add_unmatched(self, result: ToolResult, at: int) -> None:
        """Add a result without a call, or a second one, as a user message."""
        answered = self.answered.get(result.call_id) if result.call_id else None
        if answered is not None and answered.result is not None and answered.result.content == result.content:
            self.healings.append(f"messages[{at}]: a repeated result of {answered.call.name} was dropped")
            return
        name = answered.call.name if answered else result.name
        call = f"the call {result.call_id}" if result.call_id else "a call"
        which = f"a second one for {call}" if answered else f"for {call} that is not in this conversation"
        heading = f"Tool {'error' if result.error else 'result'}{f' of {name}' if name else ''}, {which}:"
        parts: tuple[Part, ...] = result.content
        if parts and isinstance(parts[0], Text):
            parts = (Text(f"{heading}\n{parts[0].text}"), *parts[1:])
        else:
            parts = (Text(heading), *parts)
        self.turns.append(_Turn(Message("user", parts)))
        self.healings.append(f"messages[{at}]: a tool result without a call was made a user message")

    # -- the messages --------------------------------------------------------------------------------------------------

    def list_messages(self) -> Iterator[Message]:
        for turn in self.turns:
            yield Message("assistant", tuple(turn.parts)) if turn.parts else turn.message
            for at, pairs in groupby(turn.results, key=lambda pair: pair[0]):
                parts = tuple([result for _, result in pairs])
                given = turn.result_messages[at]
                yield given if given.parts == parts else Message("tool", parts)
            missing = [call for call in turn.calls if call.result is None]
            if missing:
                self.healings += [f"a call to {call.call.name} without a result was given one" for call in missing]
                yield Message("tool", tuple(map(_make_missing_result, missing)))


def _make_missing_result(call: _Call) -> ToolResult:
    result = ToolResult(call.call.id, call.call.name, (Text(UNANSWERED),), True)
    return append_to_result(result, call.rest) if call.rest else result


# -- arguments ---------------------------------------------------------------------------------------------------------


def heal_arguments(arguments: str) -> tuple[str, str, str]:
    """Make the arguments of a past call a JSON object.

    Returns: the arguments, what was done ("": nothing), and what the model should learn about text that is no longer
    among them.
    """
    if _is_object(arguments):
        return arguments, "", ""
    arguments, encoded = _unwrap_text(_repair_surrogates(arguments))
    if _is_object(arguments):
        return arguments, "were encoded twice" if encoded else "contained half a character", ""
    if arguments.strip() in ("", "null", "[]"):
        return "{}", "were empty", ""
    glued = _split_glued(arguments)
    if glued is not None:
        first, rest = glued
        return first, "were several objects: the first one was kept", _describe_rest(rest)
    try:
        value = parse(arguments).value
        if isinstance(value, dict):
            return dump(value), "were not valid JSON", ""
    except (NotJsonError, RecursionError):
        pass
    return _wrap(arguments), "were not an object", ""


def _is_object(arguments: str) -> bool:
    """Whether the text is a JSON object without lone surrogates, by the rules of the strictest parsers."""
    try:
        _OBJECT.decode(arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _repair_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, written as characters or as escapes; strict parsers refuse them."""
    if "\\u" in text:
        text = _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _unwrap_text(arguments: str) -> tuple[str, bool]:
    """The text in a JSON string, and whether there was one. The string may contain raw line breaks."""
    encoded = False
    for _ in range(_MOST_ENCODINGS):
        if arguments.lstrip()[:1] != '"':
            break
        try:
            value = decode_tolerant(arguments)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, str) or (value.lstrip()[:1] not in ("{", '"') and value.strip()):
            break
        arguments, encoded = _repair_surrogates(value), True
    return arguments, encoded


def _describe_rest(rest: str) -> str:
    return f"The arguments of this call were followed by more text, which was not used: {rest}" if rest else ""


def _split_glued(arguments: str) -> tuple[str, str] | None:
    """The first of several objects in a row, and the others; "" if they repeat it. None if there is only one."""
    start = arguments.find("{")
    end = _end_of_object(arguments, start) if start >= 0 and not arguments[:start].strip() else -1
    if end < 0:
        return None
    first, rest = arguments[start:end], arguments[end:].strip(_SEPARATORS)
    if not rest.startswith("{") or not _is_object(first):
        return None
    return first, "" if rest == first else rest


def _end_of_object(text: str, start: int) -> int:
    """Where the object that begins here ends; -1 if it does not."""
    try:
        return int(_SCANNER.raw_decode(text, start)[1])
    except (ValueError, RecursionError):
        return -1


def _wrap(arguments: str) -> str:
    """The text, or the value that it encodes, as the argument ``arguments``."""
    try:
        return encode(read_arguments(arguments)).decode()
    except RecursionError:
        return encode({"arguments": arguments}).decode()
