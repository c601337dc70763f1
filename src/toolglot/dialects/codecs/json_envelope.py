"""Calls as JSON objects that name their tool: ``{"name": "read", "arguments": {"path": "a.py"}}``.

Strategy. Models agree on the idea and on nothing else: the keys have many names, the arguments may come before the
name, stand beside it, be wrapped once more or be encoded twice. The object is walked key by key; as soon as the name
is known the arguments leave while they come in, and what came before the name is set aside until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolglot.core.events import Reason
from toolglot.core.lenient_json import NotJsonError, Value, dump, parse
from toolglot.dialects.codecs.buffered_values import collect_value, parse_object
from toolglot.dialects.codecs.json_envelope_keys import (
    ANY_LIST_KEYS,
    ARGUMENT_KEYS,
    BODY_KEYS,
    EXPLANATION_KEYS,
    LEADING_KEYS,
    LIST_KEYS,
    LOOSE_NAME_KEYS,
    NAME_KEYS,
    OFFER_KEYS,
    RESULT_KEYS,
    SOLE_NAME_KEYS,
)
from toolglot.dialects.codecs.object_members import COMMENT_HEADS, ObjectMembers, is_cut_in_key, skip_comment
from toolglot.dialects.codecs.object_members import OBJECT as JSON_OBJECT
from toolglot.dialects.codecs.sample_templates import write_by_sample
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, Match
from toolglot.dialects.scanner import Steps, at_once
from toolglot.dialects.spec import CallSyntax, Position

_ELEMENTS = ("{", '"', "'", "[")
_PUNCTUATION = ("}", ",")
_NAME_QUOTES = ('"', "'", "“")
_ARGUMENT_HEADS = ("{", *_NAME_QUOTES)
_NAME = Mark('" {name_id} "', "' {name_id} '", '"{quoted}"', "“{name_id}”")
_SLIPPED_NAME = Mark('"name="{name_id}"', '"name: "{name_id}"')
_PAIR = Mark(
    '"{name_id}" , {before_object}',
    '[ "{name_id}" , {before_object}',
    "'{name_id}' , {before_object}",
    "[ '{name_id}' , {before_object}",
)
_FIRST_KEY = Mark('{{ "{quoted}"')
_DOUBLED_SIGN = Mark('": "{name_id}"')
"""Key and value run into each other, or the sign between them is quoted and comes twice."""


@dataclass(slots=True)
class _EnvelopeState:
    """What one object has told so far."""

    start: int
    call: PartialCall | None = None
    named_by: str = ""
    """The key of the tool's name."""
    depth: int = 1
    has_arguments: bool = False
    arguments: dict[str, Value] | None = None
    repairs: tuple[str, ...] = ()
    aside: dict[str, Value] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    """Keys among them that stand behind the name."""
    calls: int = 0
    offered: bool = False
    """It is an element of a list that may hold tools on offer."""

    @property
    def is_fresh(self) -> bool:
        """Whether only the opening brace of the object was read."""
        return self.depth == 1 and not (self.call or self.has_arguments or self.aside or self.calls)


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """The codec; the header of the call is the bracket that opens the JSON."""

    members: ObjectMembers = JSON_OBJECT

    def accepts(self, head: str) -> bool:
        return True

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        source.pos = found.end() - 1
        return self._list(block) if source.text[source.pos] == "[" else self._object(block)

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _list(self, block: CallBlock, offered: bool = False) -> Steps[bool]:
        source = block.source
        source.pos += 1
        calls = 0
        while True:
            head = yield from source.skip_blanks()
            if head in _ELEMENTS:
                if not (yield from (self._object(block, offered) if head == "{" else self._pair(block))):
                    return calls > 0 and not block.alone
                calls += 1
            elif head == ",":
                source.pos += 1
            elif head == "]":
                source.pos += 1
                return calls > 0
            else:
                if calls and head and block.open is not None:
                    block.open.repair("missing_bracket")
                return calls > 0

    def _object(self, block: CallBlock, offered: bool = False) -> Steps[bool]:
        source = block.source
        walk = _EnvelopeState(source.here, offered=offered)
        source.pos += 1
        while True:
            usual = self.members.usual_member.match(source.text, source.pos)
            if usual is not None:
                source.pos, key = usual.end(), usual[2]
            else:
                found = yield from self._find_key(block, walk)
                if isinstance(found, bool):
                    return found
                key = found
            head = yield from source.skip_blanks()
            call = walk.call
            if call is None:
                taken = yield from self._before_name(block, walk, key, head)
            else:
                taken = yield from self._behind_name(block, walk, call, key, head)
            if not taken:
                return walk.calls > 0 and not block.alone
            if walk.call is not None and walk.call.cut:
                return True

    def _find_key(self, block: CallBlock, walk: _EnvelopeState) -> Steps[str | bool]:
        """The key of the next member; when there is none, whether there was a call."""
        source = block.source
        while True:
            head = yield from source.skip_blanks()
            if head in _PUNCTUATION:
                source.pos += 1
                walk.depth -= head == "}"
                if not walk.depth:
                    return self._finish(block, walk)
                continue
            if head == "{" and walk.is_fresh:
                source.pos += 1
                walk.depth, walk.repairs = 2, ("doubled_braces",)
                continue
            if head in block.closing.starts and (yield from self._is_over(block, head)):
                return self._end_early(block, walk, head)
            if head in COMMENT_HEADS and (yield from skip_comment(source)):
                continue
            here = source.here
            key = yield from self.members.key(source)
            if key is not None:
                return key
            if walk.call is not None or not (yield from self._slipped_name(block, walk, here)):
                return self._broken(block, walk, head)

    def _is_over(self, block: CallBlock, head: str) -> Steps[bool]:
        """Whether the text, or the mark around the call, ends before the object does."""
        return not head or (yield from block.source.choose(block.closing)) is not None

    # -- one member --------------------------------------------------------------------------------------------------

    def _before_name(self, block: CallBlock, walk: _EnvelopeState, key: str, head: str) -> Steps[bool]:
        """Take in a member, of which the key is read; False when this is no call."""
        if head == "{" and (key in NAME_KEYS or key in LIST_KEYS):
            return self._step_inside(block, walk)
        if head in _NAME_QUOTES and (key in NAME_KEYS or key in LIST_KEYS):
            walk.named_by = key
            return self._name(block, walk)
        if head == "[" and key in ANY_LIST_KEYS:
            return self._calls(block, walk, key in OFFER_KEYS)
        if key in ARGUMENT_KEYS and not walk.has_arguments:
            return self._arguments(block, walk, key)
        if head in _ARGUMENT_HEADS and self._is_tool(block, key):
            return self._tool_as_key(block, walk, key, head)
        if head in _NAME_QUOTES and key in LOOSE_NAME_KEYS:
            return self._loose_name(block, walk, key)
        return self._aside(block, walk, key)

    def _behind_name(
        self, block: CallBlock, walk: _EnvelopeState, call: PartialCall, key: str, head: str
    ) -> Steps[bool]:
        """The same when the tool is known."""
        if not walk.has_arguments:
            if key in ARGUMENT_KEYS and not (call.keys and call.declares(key)):
                if not (block.marked or call.keys or call.declares(key) or walk.aside.keys() <= LEADING_KEYS):
                    return at_once(False)  # a tool and what is told of it
                if head == "{" and call.declares(key):
                    return self._namesake(block, walk, call, key)
                return self._stream(block, walk, call) if head == "{" else self._arguments(block, walk, key)
            if call.admits(key) or self._takes_anything(block, walk, call, key):
                return self._argument(block, call, key)
        return self._aside(block, walk, key)

    def _takes_anything(self, block: CallBlock, walk: _EnvelopeState, call: PartialCall, key: str) -> bool:
        """Whether a tool that declares nothing may have this argument; in ordinary text many things have a name."""
        meant = block.marked or (walk.named_by != "name" and key != "description")
        body = key in BODY_KEYS and not call.keys
        return call.is_open_ended and key not in LEADING_KEYS and meant and not body

    def _name(self, block: CallBlock, walk: _EnvelopeState) -> Steps[bool]:
        if (doubled := (yield from block.source.match(_DOUBLED_SIGN))) is not None:
            return self._mend_name(block, walk, doubled["name"])
        found = yield from block.source.match(_NAME)
        name = _read_name(block, found) if found is not None else None
        walk.call = block.begin(name, walk.start) if name is not None else None
        return walk.call is not None

    def _loose_name(self, block: CallBlock, walk: _EnvelopeState, key: str) -> Steps[bool]:
        """A key that names the tool, or holds an argument."""
        found = yield from block.source.look(_NAME)
        name = _read_name(block, found) if found is not None else None
        known = name is not None and block.toolbox.find(name) is not None
        if known and key in SOLE_NAME_KEYS and not (block.marked or block.count_alone()):
            return False
        return (yield from (self._name(block, walk) if known else self._aside(block, walk, key)))

    def _slipped_name(self, block: CallBlock, walk: _EnvelopeState, here: int) -> Steps[bool]:
        """Whether what stood there and was no key is one that ran into its value."""
        source = block.source
        reached = source.here
        source.rewind(here)
        found = yield from source.match(_SLIPPED_NAME)
        if found is not None and self._mend_name(block, walk, found["name"]):
            return True
        source.rewind(reached)
        return False

    def _mend_name(self, block: CallBlock, walk: _EnvelopeState, name: str) -> bool:
        """The name of a damaged envelope counts if it is known."""
        walk.call = block.begin(name, walk.start) if block.toolbox.find(name) is not None else None
        if walk.call is not None:
            walk.call.repair("damaged_key")
        return walk.call is not None

    def _calls(self, block: CallBlock, walk: _EnvelopeState, offered: bool) -> Steps[bool]:
        """A list of calls."""
        if offered and not (block.marked or block.count_alone()):
            return False
        taken = yield from self._list(block, offered)
        walk.calls += taken
        return taken

    def _step_inside(self, block: CallBlock, walk: _EnvelopeState) -> Steps[bool]:
        """The call is wrapped once more."""
        block.source.pos += 1
        walk.depth += 1
        return at_once(True)

    def _arguments(self, block: CallBlock, walk: _EnvelopeState, key: str) -> Steps[bool]:
        text = yield from self._gather(block)
        if text is None:
            return self._cut(walk)
        parsed = parse_object(_only_element(text))
        if parsed is not None and isinstance(parsed.value, dict):
            walk.has_arguments, walk.arguments = True, parsed.value
            walk.repairs = (*walk.repairs, *parsed.repairs)
            return True
        return self._odd_arguments(block, walk, key, text)

    def _stream(self, block: CallBlock, walk: _EnvelopeState, call: PartialCall) -> Steps[bool]:
        walk.has_arguments = True
        block.source.pos += 1
        if block.marked and call.tool is not None:
            call.sure()
        return self.members.read(block, call)

    def _namesake(self, block: CallBlock, walk: _EnvelopeState, call: PartialCall, key: str) -> Steps[bool]:
        """An object whose key is that of all arguments, and of one argument too: its first key tells which it is."""
        found = yield from block.source.look(_FIRST_KEY)
        if found is None or call.declares(found["quoted"]):
            return (yield from self._stream(block, walk, call))
        return (yield from self._argument(block, call, key))

    def _odd_arguments(self, block: CallBlock, walk: _EnvelopeState, key: str, text: str) -> bool:
        """Arguments that are no object: none at all, or an argument of that very name."""
        value = _value(text)
        if value is None or value == "":
            walk.has_arguments = text.strip() in ("null", '""', "''")
            return True
        call = walk.call
        if call is None or call.declares(key):
            walk.aside[key] = value
            return True
        call.flaw(Reason.INVALID_VALUE, key, text[:80], "an object with the arguments by name")
        return block.marked

    def _argument(self, block: CallBlock, call: PartialCall, key: str) -> Steps[bool]:
        """An argument that stands beside the name."""
        call.sure_of(key)
        yield from self.members.value(block, call, key)
        return True

    def _is_tool(self, block: CallBlock, name: str) -> bool:
        """Whether a name that no key introduces is a tool's; in ordinary text the answer must be nothing else."""
        return block.toolbox.find(name) is not None and (block.marked or block.count_alone())

    def _tool_as_key(self, block: CallBlock, walk: _EnvelopeState, key: str, head: str) -> Steps[bool]:
        """The arguments stand under the name of the tool, and further calls under further names."""
        call = block.begin(key, None if walk.calls else walk.start)
        take = self._take_arguments if head == "{" else self._take_encoded
        if call is None or not (yield from take(block, call)):
            return False
        if call.cut:
            walk.call = call
        walk.calls += 1
        return True

    def _take_arguments(self, block: CallBlock, call: PartialCall) -> Steps[bool]:
        """Read the arguments of a call whose name stands for itself."""
        yield from block.source.skip_blanks()
        block.source.pos += 1
        if block.marked and call.tool is not None:
            call.sure()
        return (yield from self.members.read(block, call)) and (block.marked or call.is_exact)

    def _take_encoded(self, block: CallBlock, call: PartialCall) -> Steps[bool]:
        """The same where the arguments were encoded once more."""
        text = yield from self._gather(block)
        parsed = parse_object(text) if text is not None else None
        if parsed is None or "double_encoded" not in parsed.repairs:
            return False
        call.repair("double_encoded")
        call.add_members(parsed.value)
        return block.marked or call.is_exact

    def _pair(self, block: CallBlock) -> Steps[bool]:
        """A name, and its arguments behind a comma; in a list of its own, or not."""
        source = block.source
        start = source.here
        found = yield from source.match(_PAIR)
        if found is None or not self._is_tool(block, found["name"]):
            return False
        call = block.begin(found["name"], start)
        if call is None or not (yield from self._take_arguments(block, call)):
            return False
        if found[0][0] != "[" or call.cut:
            return True
        closer = yield from source.skip_blanks()
        source.pos += closer == "]"
        return closer == "]"

    def _aside(self, block: CallBlock, walk: _EnvelopeState, key: str) -> Steps[bool]:
        """Anything else: set aside, it may turn out to be an argument when the name is known."""
        if not block.marked and key not in LEADING_KEYS and not self._may_be_beside(walk, key):
            return False
        text = yield from self._gather(block)
        if text is None:
            return self._cut(walk)
        walk.aside[key] = _value(text)
        if key in EXPLANATION_KEYS and walk.call is not None and not walk.has_arguments:
            walk.words.add(key)
        return True

    def _may_be_beside(self, walk: _EnvelopeState, key: str) -> bool:
        """Whether a tentative call may have this key beside its name; what tells of a result makes it a record.

        Before the first declared argument it may be one only behind a key that says "tool": many things have a name.
        """
        call = walk.call
        if call is None or not (call.keys or walk.named_by != "name" or key in BODY_KEYS):
            return False
        if key in RESULT_KEYS:
            call.flaw(Reason.MALFORMED, "call", f'the key "{key}"', "the call alone")
        return True

    def _gather(self, block: CallBlock) -> Steps[str | None]:
        return collect_value(block.source, ",}", block.closing)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _cut(self, walk: _EnvelopeState) -> bool:
        if walk.call is None:
            return False
        if not walk.has_arguments:
            walk.call.truncate()
        return walk.has_arguments

    def _end_early(self, block: CallBlock, walk: _EnvelopeState, head: str) -> bool:
        """The text ended, or the mark around the call closed, before the object did."""
        call = walk.call
        if call is None:
            if block.open is not None:
                block.open.repair("missing_bracket")
            return walk.calls > 0 and not block.alone
        if not head and (not walk.has_arguments or block.source.truncated):
            call.truncate()
            return True
        call.repair("missing_bracket")
        return self._finish(block, walk)

    def _broken(self, block: CallBlock, walk: _EnvelopeState, head: str) -> bool:
        call = walk.call
        if is_cut_in_key(block.source):
            block.source.pos = len(block.source.text)
            return self._end_early(block, walk, "")
        if call is None or (not call.live and not block.marked):
            return False
        if walk.has_arguments:
            return self._finish(block, walk)
        call.flaw(Reason.MALFORMED, "call", f"{head!r} where a key was due", "a JSON object")
        return True

    def _finish(self, block: CallBlock, walk: _EnvelopeState) -> bool:
        call = walk.call or self._named_by_type(block, walk)
        if call is None:
            return walk.calls > 0
        given = walk.arguments if walk.arguments is not None else self._flat(walk, call)
        for name in walk.repairs:
            call.repair(name)
        if not walk.has_arguments and (body := _find_body(call, given)) is not None:
            call.repair("unwrapped_arguments")
            call.add_members(body)
            return block.marked or (call.is_exact and block.count_alone())
        if not block.marked and self._is_told(walk, call, given):
            return False
        if given:
            call.add_members(given)
        return block.marked or call.live or call.is_plausible

    def _is_told(self, walk: _EnvelopeState, call: PartialCall, given: dict[str, Value]) -> bool:
        """Whether an object in ordinary text offers or defines the tool, or tells something of it."""
        offers = walk.offered and not (walk.has_arguments or call.keys or given)
        if offers or ("properties" in given and not call.declares("properties")):
            return True
        flat = bool(given) and not walk.has_arguments
        return flat and not any(map(call.declares, (*call.keys, *given)))

    def _named_by_type(self, block: CallBlock, walk: _EnvelopeState) -> PartialCall | None:
        """Some envelopes put the tool where the kind of call belongs."""
        kind = walk.aside.pop("type", None)
        if walk.calls or not isinstance(kind, str) or block.toolbox.find(kind) is None:
            return None
        return block.begin(kind, walk.start)

    def _flat(self, walk: _EnvelopeState, call: PartialCall) -> dict[str, Value]:
        """Arguments that stood beside the name. What the tool does not declare may have been meant to hold it back."""
        if walk.has_arguments:
            return {}
        beside = {key: value for key, value in walk.aside.items() if key not in call.keys}
        around = LEADING_KEYS - walk.words
        return {key: value for key, value in beside.items() if call.declares(key) or key not in around}


def _find_body(call: PartialCall, given: dict[str, Value]) -> dict[str, Value] | None:
    """The arguments, where an object of them is all that stands beside the name, under a key of its own."""
    if call.keys or call.tool is None or len(given) != 1:
        return None
    ((key, value),) = given.items()
    parsed = parse_object(value) if isinstance(value, str) else None
    body = parsed.value if parsed is not None else value
    if key not in BODY_KEYS or call.declares(key) or not isinstance(body, dict):
        return None
    exact = all(map(call.declares, body)) and call.tool.required.issubset(body)
    return body if exact and (body or key != "properties") else None


def _read_name(block: CallBlock, found: Match) -> str | None:
    """The name as JSON means it; one that holds what names do not hold must be known."""
    name = found.groupdict().get("name")
    if name is not None and "\\u" not in name:
        return name
    decoded = _value(f'"{name or found["quoted"]}"')
    known = isinstance(decoded, str) and block.toolbox.find(decoded) is not None
    return decoded if known and isinstance(decoded, str) else name


def _only_element(text: str) -> str:
    """The object in a list of one; any other text as it is."""
    value = _value(text) if text.startswith("[") else None
    return dump(value[0]) if isinstance(value, list) and len(value) == 1 else text


def _value(text: str | None) -> Value:
    if text is None:
        return None
    try:
        return parse(text).value
    except NotJsonError:
        return None


OBJECT = CallSyntax(("{{",), JsonEnvelope(), place=Position.WRAPPED)
LIST = CallSyntax(("[{before_object}", "[{before_pair}"), JsonEnvelope(), place=Position.WRAPPED)
