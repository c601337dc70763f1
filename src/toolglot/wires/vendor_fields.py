"""Fields of an answer that no neutral event holds, put back for a client of the same wire.

Strategy. ``Wire.known_fields`` names what the encoder of a wire writes itself, level by level. Everything else in the
upstream's payload is a field of the vendor: it is added to the encoded payload at the same place. Objects in lists are
matched by their ids or, without them, by kind and order; a text that was encoded in one piece is split where the
upstream had several. Fields of a call, or of a text, that is not delivered are dropped with it; what describes the
whole answer stays, so log probabilities also describe the marks of a call that the model wrote as text.

In a stream the fields of an event are added to the next event of the same type that is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import dicts_in, parse_object
from toolglot.wires.sse import BLANK, NO_FRAME, TRIES, EventStream, find_frame

if TYPE_CHECKING:
    from toolglot.wires.chunk_pattern import ChunkPattern
    from toolglot.wires.protocol import HeadedEncoder

Level: TypeAlias = Mapping[str, "Known"]
"""The fields of an object that an encoder writes."""
Known: TypeAlias = Level | str | Callable[[str], str] | None
"""What is known of a field: the fields inside, the name under which the encoder writes it, what a word of the vendor
means, or only that the encoder writes it."""
CALLS: Final = frozenset(("function", "function_call", "custom_tool_call", "tool_use"))
"""Types of objects that only their ids identify."""
FUNCTIONS: Final = frozenset(("function", "input_schema", "functionDeclarations", "function_declarations"))
DECLARED: Final = ("function", "custom", "namespace")
"""The fields, and the types, of tools that the client runs."""
SCHEMAS: Final = frozenset(("input_schema", "parameters", "parametersJsonSchema"))
"""The fields of the parameters of a tool on offer."""
MESSAGES: Final = ("messages", "contents", "input")
INFERRED: Final = range(3, 12)
"""The chunks with unknown fields of which a pattern is inferred: in the first ones nothing is known to be constant."""
ROLES: Final = {"developer": "system", "function": "user"}
"""Roles that encoders write in another way."""
PARTS: Final = ("delta", "content_block", "item", "part")
"""What an event of a stream is about; its type is part of the type of the event."""


class _Listed(Struct):
    """The objects of a list as the upstream sent them, each with its unknown fields."""

    entries: Sequence[tuple[Mapping[str, Any], dict[str, Any]]]


def find_unknown(payload: Mapping[str, Any], known: Level, with_null: bool = True) -> dict[str, Any]:
    """Return the fields of a payload that an encoder does not write."""
    found: dict[str, Any] = {}
    for key, value in payload.items():
        if value is None and not with_null:
            continue
        if key not in known:
            found[key] = value
        elif (level := known[key]) is not None and (rest := _find_inside(value, level, payload, with_null)) is not None:
            found[key] = rest
    return found


def _find_inside(value: Any, known: Known, payload: Mapping[str, Any], with_null: bool) -> object:
    """What an encoder does not write of a field that it knows; None if it writes all of it."""
    if isinstance(known, Mapping):
        if isinstance(value, dict):
            return find_unknown(value, known, with_null) or None
        listed = value if isinstance(value, list) else ()
        entries = [(each, find_unknown(each, known, with_null)) for each in listed if isinstance(each, dict)]
        return _Listed(entries) if any(fields for _, fields in entries) else None
    if isinstance(known, str):
        return None if payload.get(known) else value or None
    return value if callable(known) and isinstance(value, str) and known(value) != value else None


def put_back(encoded: dict[str, Any], fields: Mapping[str, Any], known: Level) -> dict[str, Any]:
    """Add unknown fields to an encoded object, in place. Returns those of objects that it does not have."""
    left: dict[str, Any] = {}
    for key, value in fields.items():
        inner, level = encoded.get(key), known.get(key)
        if level and isinstance(level, Mapping):
            if isinstance(inner, str) and isinstance(value, _Listed):
                inner = encoded[key] = [{"type": value.entries[0][0].get("type", "text"), "text": inner}]
            rest = _put_back_inside(inner, value, level)
            left |= {key: rest} if rest else {}
        elif callable(level):
            if isinstance(inner, str) and level(inner) == level(value):
                encoded[key] = value
        else:
            encoded[key] = inner is True or value  # a tool may have been made strict
            if isinstance(level, str) and encoded.get(level) == value:
                encoded[level] = None
    return left


def _put_back_inside(encoded: object, fields: Any, level: Level) -> object:
    """Add unknown fields to an object or to those of a list. Returns what is left of them."""
    if isinstance(fields, _Listed):
        return _put_back_listed(encoded, fields, level) if isinstance(encoded, list) else fields
    return put_back(encoded, fields, level) if isinstance(encoded, dict) else fields


def _put_back_listed(encoded: list[Any], listed: _Listed, level: Level) -> _Listed | None:
    matcher, left = _Matcher(encoded), []
    for given, fields in listed.entries:
        if given.get("index") and _kind_of(given)[0] is None:
            continue  # of another answer (n > 1): clients get the first one
        found = matcher.find(given)
        rest = fields if found is None else put_back(found, fields, level)
        left += [(given, rest)] if rest else []
    matcher.split_texts()
    return _Listed(left) if left else None


class _Matcher:
    """Finds what the objects of an upstream's list have become, in their order and in linear time."""

    def __init__(self, encoded: list[Any]) -> None:
        self.encoded = encoded
        self.named: dict[object, dict[str, Any]] = {}
        self.queues: dict[object, deque[dict[str, Any]]] = {}
        self.beginnings: dict[int, list[dict[str, Any]]] = {}
        """The texts that an object begins with, by its identity."""
        self.taken: dict[int, int] = {}
        """How many characters these texts have."""
        for one in encoded:
            if isinstance(one, dict):
                kind = _kind_of(one)
                self.named[kind, _name_of(one)] = one
                self.queues.setdefault(kind, deque()).append(one)

    def find(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        kind, name = _kind_of(given), _name_of(given)
        exact = self.named.get((kind, name)) if name is not None else None
        queue = self.queues.get(kind)
        if exact is not None or not queue or (name is not None and (kind[0] in CALLS or SCHEMAS & given.keys())):
            return exact
        one, text = queue[0], given.get("text")
        if isinstance(text, str) and isinstance(whole := one.get("text"), str):
            begun = self.taken.get(id(one), 0)
            if text and len(whole) - begun > len(text) and whole.startswith(text, begun):
                self.taken[id(one)] = begun + len(text)
                self.beginnings.setdefault(id(one), []).append(one | {"text": text})
                return self.beginnings[id(one)][-1]
        if len(queue) > 1:  # the last one takes whatever else there is
            queue.popleft()
        return one

    def split_texts(self) -> None:
        """Put the texts that were found before the objects that begin with them."""
        if self.taken:
            before = self.beginnings
            self.encoded[:] = [each for one in self.encoded for each in (*before.get(id(one), ()), self.cut(one))]

    def cut(self, one: Any) -> Any:
        begun = self.taken.get(id(one), 0)
        return one | {"text": one["text"][begun:]} if begun else one


def _kind_of(entry: Mapping[str, Any]) -> tuple[object, ...]:
    called = "functionCall" in entry or "function" in entry
    kind = "function" if called else entry.get("type")
    return None if kind == "custom" else kind, "text" in entry, entry.get("thought") is True


def _name_of(entry: Mapping[str, Any]) -> object:
    called = entry.get("functionCall")
    entry = called if isinstance(called, dict) else entry
    names = (entry.get(name) for name in ("call_id", "id", "tool_use_id", "tool_call_id", "index"))
    return next(filter(None, names), None) or _name_of_tool(entry)


def _name_of_tool(entry: Mapping[str, Any]) -> object:
    """The name of a tool on offer; calls of one tool may be several."""
    function = entry.get("function")
    tool = function if isinstance(function, dict) and "arguments" not in function else entry
    return tool.get("name") if tool is function or SCHEMAS & tool.keys() else None


def restore_fields(encoded: bytes, body: bytes, known: Level) -> bytes:
    """Return an encoded answer with the fields that the upstream's body has besides."""
    payload = parse_object(body)
    fields = find_unknown(payload, known) if payload is not None else {}
    if not fields or (written := parse_object(encoded)) is None:
        return encoded
    put_back(written, fields, known)
    return encode(written)


def restore_request(encoded: bytes, body: bytes, known: Level) -> bytes:
    """Return a request with the fields that the client's body has inside the fields of ``known``: those of tools, tools
    that the encoder does not know, and the fields of messages unless messages have been put between them."""
    payload, written = parse_object(body), parse_object(encoded)
    if payload is None or written is None:
        return encoded
    for name, inner in known.items():
        given = payload.get(name)
        if name == "tools":
            _add_tools(written.get(name), given)
        if name in MESSAGES and isinstance(inner, Mapping):
            for one, message in _align(dicts_in(given), dicts_in(written.get(name))):
                put_back(message, find_unknown(one, inner), inner)
        elif given is not None:
            put_back(written, find_unknown({name: given}, known), known)
    return encode(written)


def _add_tools(written: object, given: object) -> None:
    """Add the tools that the provider runs to a request that has tools, in their places."""
    if isinstance(written, list):
        for at, tool in enumerate(dicts_in(given)):
            if _is_run_by_provider(tool):
                written.insert(at, tool)


def _is_run_by_provider(tool: Mapping[str, Any]) -> bool:
    return not FUNCTIONS & tool.keys() and tool.get("type") not in DECLARED


def _align(
    given: list[dict[str, Any]], written: list[dict[str, Any]]
) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
    """The messages of a client's request, each with what became of it: others may follow, and one may have been added
    or removed before the first one."""
    whose, now = [*map(_role_of, given)], [*map(_role_of, written)]
    for added, removed in ((0, 0), (1, 0), (0, 1)):
        if now[added : added + len(whose) - removed] == whose[removed:]:
            return zip(given[removed:], written[added:], strict=False)
    return ()


def _role_of(message: Mapping[str, Any]) -> object:
    role = message.get("role")
    return message.get("type", "message"), ROLES.get(role, role) if isinstance(role, str) else None


class StreamFields:
    """The unknown fields of one stream. ``waiting`` are those that no event was written for, by type of event.
    ``pattern``: the next chunks probably match it. ``is_plain``: the last event that was parsed has no such fields.

    Parameters: ``encoder``, if set, adds fields to all further events; it gets those of the answer itself that two
    events in a row have, because many chunks are not decoded.
    """

    def __init__(self, known: Level, lines: bool, encoder: HeadedEncoder | None) -> None:
        self.known = known
        self.waiting: dict[object, dict[str, Any]] = {}
        self._stream = EventStream()
        self._delimiter = b"\n" if lines else BLANK
        self._rest = b""
        self._encoder = encoder
        self.pattern: ChunkPattern | None = None
        self.is_plain = True
        self._chunks = 0
        self._frame, self._tries, self._plain = NO_FRAME, TRIES, b""
        self._last: dict[str, Any] = {}
        self._constant: dict[str, Any] = {}

    def read(self, chunk: bytes) -> None:
        """Note the unknown fields of the upstream's bytes. Most chunks differ in one string from one without any."""
        (before, after), partial = self._frame, self._rest or self._stream.waiting
        framed = chunk.startswith(before) and chunk.endswith(after) and not partial
        if framed and chunk.find(b'"', len(before), -len(after)) < 0:
            self.is_plain = True
            return
        if self._delimiter == BLANK:
            events = self._stream.feed(chunk)
        else:
            *events, self._rest = (self._rest + chunk).split(self._delimiter)
        for event in events:
            payload = parse_object(event) if event[:1] == b"{" else None
            fields = {} if payload is None else self._note(payload)
            if payload is None or len(events) > 1 or partial:
                continue
            if fields:
                self._infer_pattern(chunk, payload, fields)
            elif self._tries:
                self._frame, self._tries = find_frame(self._plain, chunk), self._tries - bool(self._plain)
                self._plain = chunk

    def _infer_pattern(self, chunk: bytes, payload: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self._chunks += 1
        if self._encoder is not None and self._chunks in INFERRED:
            self.pattern = self._encoder.infer_pattern(chunk, payload, fields) or self.pattern

    def read_text(self, chunk: bytes) -> str:
        """The text of a chunk that matches the pattern; empty if it does not (hot path)."""
        pattern = self.pattern
        return "" if pattern is None or self.waiting or self._stream.waiting else pattern.read(chunk)

    def add_values(self, written: bytes) -> bytes:
        """Add the fields of the chunk that the pattern has read to what was written for its text (hot path)."""
        encoder, pattern = self._encoder, self.pattern
        return written if encoder is None or pattern is None else encoder.add_values(written, pattern.values)

    def _note(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Note the unknown fields of an event, and return them; null means nothing in a stream."""
        fields = find_unknown(payload, self.known, with_null=False)
        if self._encoder is not None and (fields or self._last):
            fields = self._keep_constant(self._encoder, fields)
        self.is_plain = not fields
        if fields:
            kind = _type_of(payload)
            self.waiting[kind] = _combine(self.waiting.get(kind, {}), fields)
        return fields

    def _keep_constant(self, encoder: HeadedEncoder, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Hand over the fields of the answer itself that the event before had, too. Returns the others."""
        answer = {name: value for name, value in fields.items() if name not in self.known}
        constant = {name: value for name, value in answer.items() if name in self._last and self._last[name] == value}
        self._last = answer
        if constant != self._constant:
            self._constant, self.pattern = constant, None
            encoder.keep_constant(constant)
        return {name: value for name, value in fields.items() if name not in constant}

    def write(self, written: bytes) -> bytes:
        """Return encoded events with the fields that wait for events of their types."""
        if not self.waiting or not written:
            return written
        return self._delimiter.join([self._add(event) for event in written.split(self._delimiter)])

    def _add(self, event: bytes) -> bytes:
        start = event.find(b"{")
        payload = parse_object(event[start:]) if start >= 0 and self.waiting else None
        kind = None if payload is None else _type_of(payload)
        if payload is None or kind not in self.waiting:
            return event
        if left := put_back(payload, self.waiting.pop(kind), self.known):
            self.waiting[kind] = left
        return event[:start] + encode(payload)


def _type_of(payload: Mapping[str, Any]) -> tuple[object, ...]:
    parts = (payload.get(name) for name in PARTS)
    return payload.get("type"), *(part.get("type") for part in parts if isinstance(part, dict))


def _combine(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of two events as those of one: lists are joined, anything else is the later one's.

    Lists of the first one are extended: copying them for each chunk of a long call would take quadratic time.
    """
    both = {**one, **other}
    for key in one.keys() & other.keys():
        before, after = one[key], other[key]
        if isinstance(before, dict) and isinstance(after, dict):
            both[key] = _combine(before, after)
        elif isinstance(before, list) and isinstance(after, list):
            before += after
            both[key] = before
        elif isinstance(before, _Listed) and isinstance(after, _Listed):
            both[key] = _join(before, after)
    return both


def _join(one: _Listed, other: _Listed) -> _Listed:
    """The objects of both lists; those of one kind and name are one."""
    entries: list[tuple[Mapping[str, Any], dict[str, Any]]] = [*one.entries]
    for given, fields in other.entries:
        key = _kind_of(given), _name_of(given)
        same = next((at for at, (each, _) in enumerate(entries) if (_kind_of(each), _name_of(each)) == key), None)
        if same is None:
            entries.append((given, fields))
        else:
            entries[same] = given, _combine(entries[same][1], fields)
    return _Listed(entries)


def level(*names: str, **inner: Known) -> dict[str, Known]:
    """The fields of an object: names, and those with fields inside or with another name."""
    return {**dict.fromkeys(names), **inner}
