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
from toolglot.dialects.codecs.buffered_values import gather, parse_object
from toolglot.dialects.codecs.json_envelope_keys import (
    ANY_LIST_KEYS,
    ARGUMENT_KEYS,
    BODY_KEYS,
    LEADING_KEYS,
    LIST_KEYS,
    LOOSE_NAME_KEYS,
    NAME_KEYS,
    OFFER_KEYS,
    RESULT_KEYS,
    SOLE_NAME_KEYS,
    WORDS,
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
class _Walk:
    """What one object has told so far."""

    start: int
    draft: PartialCall | None = None
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
        return self.depth == 1 and not (self.draft or self.has_arguments or self.aside or self.calls)


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """The codec; the header of the call is the bracket that opens the JSON."""

    members: ObjectMembers = JSON_OBJECT

    def accepts(self, head: str) -> bool:
        return True

    def read(self, frame: CallBlock, call: CallSyntax, found: Match) -> Steps[bool]:
        source = frame.source
        source.pos = found.end() - 1
        return self._list(frame) if source.text[source.pos] == "[" else self._object(frame)

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _list(self, frame: CallBlock, offered: bool = False) -> Steps[bool]:
        source = frame.source
        source.pos += 1
        calls = 0
        while True:
            head = yield from source.skip_blanks()
            if head in _ELEMENTS:
                if not (yield from (self._object(frame, offered) if head == "{" else self._pair(frame))):
                    return calls > 0 and not frame.alone
                calls += 1
            elif head == ",":
                source.pos += 1
            elif head == "]":
                source.pos += 1
                return calls > 0
            else:
                if calls and head and frame.open_call is not None:
                    frame.open_call.repair("missing_bracket")
                return calls > 0

    def _object(self, frame: CallBlock, offered: bool = False) -> Steps[bool]:
        source = frame.source
        walk = _Walk(source.here, offered=offered)
        source.pos += 1
        while True:
            usual = self.members.usual_member.match(source.text, source.pos)
            if usual is not None:
                source.pos, key = usual.end(), usual[2]
            else:
                found = yield from self._find_key(frame, walk)
                if isinstance(found, bool):
                    return found
                key = found
            head = yield from source.skip_blanks()
            draft = walk.draft
            if draft is None:
                taken = yield from self._before_name(frame, walk, key, head)
            else:
                taken = yield from self._behind_name(frame, walk, draft, key, head)
            if not taken:
                return walk.calls > 0 and not frame.alone
            if walk.draft is not None and walk.draft.is_truncated:
                return True

    def _find_key(self, frame: CallBlock, walk: _Walk) -> Steps[str | bool]:
        """The key of the next member; when there is none, whether there was a call."""
        source = frame.source
        while True:
            head = yield from source.skip_blanks()
            if head in _PUNCTUATION:
                source.pos += 1
                walk.depth -= head == "}"
                if not walk.depth:
                    return self._finish(frame, walk)
                continue
            if head == "{" and walk.is_fresh:
                source.pos += 1
                walk.depth, walk.repairs = 2, ("doubled_braces",)
                continue
            if head in frame.closing.starts and (yield from self._is_over(frame, head)):
                return self._end_early(frame, walk, head)
            if head in COMMENT_HEADS and (yield from skip_comment(source)):
                continue
            here = source.here
            key = yield from self.members.key(source)
            if key is not None:
                return key
            if walk.draft is not None or not (yield from self._slipped_name(frame, walk, here)):
                return self._broken(frame, walk, head)

    def _is_over(self, frame: CallBlock, head: str) -> Steps[bool]:
        """Whether the text, or the mark around the call, ends before the object does."""
        return not head or (yield from frame.source.choose(frame.closing)) is not None

    # -- one member --------------------------------------------------------------------------------------------------

    def _before_name(self, frame: CallBlock, walk: _Walk, key: str, head: str) -> Steps[bool]:
        """Take in a member, of which the key is read; False when this is no call."""
        if head == "{" and (key in NAME_KEYS or key in LIST_KEYS):
            return self._step_inside(frame, walk)
        if head in _NAME_QUOTES and (key in NAME_KEYS or key in LIST_KEYS):
            walk.named_by = key
            return self._name(frame, walk)
        if head == "[" and key in ANY_LIST_KEYS:
            return self._calls(frame, walk, key in OFFER_KEYS)
        if key in ARGUMENT_KEYS and not walk.has_arguments:
            return self._arguments(frame, walk, key)
        if head in _ARGUMENT_HEADS and self._is_tool(frame, key):
            return self._tool_as_key(frame, walk, key, head)
        if head in _NAME_QUOTES and key in LOOSE_NAME_KEYS:
            return self._loose_name(frame, walk, key)
        return self._aside(frame, walk, key)

    def _behind_name(self, frame: CallBlock, walk: _Walk, draft: PartialCall, key: str, head: str) -> Steps[bool]:
        """The same when the tool is known."""
        if not walk.has_arguments:
            if key in ARGUMENT_KEYS and not (draft.keys and draft.declares(key)):
                if not (frame.marked or draft.keys or draft.declares(key) or walk.aside.keys() <= LEADING_KEYS):
                    return at_once(False)  # a tool and what is told of it
                if head == "{" and draft.declares(key):
                    return self._namesake(frame, walk, draft, key)
                return self._stream(frame, walk, draft) if head == "{" else self._arguments(frame, walk, key)
            if draft.admits(key) or self._takes_anything(frame, walk, draft, key):
                return self._argument(frame, draft, key)
        return self._aside(frame, walk, key)

    def _takes_anything(self, frame: CallBlock, walk: _Walk, draft: PartialCall, key: str) -> bool:
        """Whether a tool that declares nothing may have this argument; in ordinary text many things have a name."""
        meant = frame.marked or (walk.named_by != "name" and key != "description")
        body = key in BODY_KEYS and not draft.keys
        return draft.is_open_ended and key not in LEADING_KEYS and meant and not body

    def _name(self, frame: CallBlock, walk: _Walk) -> Steps[bool]:
        if (doubled := (yield from frame.source.match(_DOUBLED_SIGN))) is not None:
            return self._mend_name(frame, walk, doubled["name"])
        found = yield from frame.source.match(_NAME)
        name = _read_name(frame, found) if found is not None else None
        walk.draft = frame.begin(name, walk.start) if name is not None else None
        return walk.draft is not None

    def _loose_name(self, frame: CallBlock, walk: _Walk, key: str) -> Steps[bool]:
        """A key that names the tool, or holds an argument."""
        found = yield from frame.source.look(_NAME)
        name = _read_name(frame, found) if found is not None else None
        known = name is not None and frame.tools.find(name) is not None
        if known and key in SOLE_NAME_KEYS and not (frame.marked or frame.require_alone()):
            return False
        return (yield from (self._name(frame, walk) if known else self._aside(frame, walk, key)))

    def _slipped_name(self, frame: CallBlock, walk: _Walk, here: int) -> Steps[bool]:
        """Whether what stood there and was no key is one that ran into its value."""
        source = frame.source
        reached = source.here
        source.rewind(here)
        found = yield from source.match(_SLIPPED_NAME)
        if found is not None and self._mend_name(frame, walk, found["name"]):
            return True
        source.rewind(reached)
        return False

    def _mend_name(self, frame: CallBlock, walk: _Walk, name: str) -> bool:
        """The name of a damaged envelope counts if it is known."""
        walk.draft = frame.begin(name, walk.start) if frame.tools.find(name) is not None else None
        if walk.draft is not None:
            walk.draft.repair("damaged_key")
        return walk.draft is not None

    def _calls(self, frame: CallBlock, walk: _Walk, offered: bool) -> Steps[bool]:
        """A list of calls."""
        if offered and not (frame.marked or frame.require_alone()):
            return False
        taken = yield from self._list(frame, offered)
        walk.calls += taken
        return taken

    def _step_inside(self, frame: CallBlock, walk: _Walk) -> Steps[bool]:
        """The call is wrapped once more."""
        frame.source.pos += 1
        walk.depth += 1
        return at_once(True)

    def _arguments(self, frame: CallBlock, walk: _Walk, key: str) -> Steps[bool]:
        text = yield from self._gather(frame)
        if text is None:
            return self._cut(walk)
        parsed = parse_object(_only_element(text))
        if parsed is not None and isinstance(parsed.value, dict):
            walk.has_arguments, walk.arguments = True, parsed.value
            walk.repairs = (*walk.repairs, *parsed.repairs)
            return True
        return self._odd_arguments(frame, walk, key, text)

    def _stream(self, frame: CallBlock, walk: _Walk, draft: PartialCall) -> Steps[bool]:
        walk.has_arguments = True
        frame.source.pos += 1
        if frame.marked and draft.tool is not None:
            draft.commit()
        return self.members.read(frame, draft)

    def _namesake(self, frame: CallBlock, walk: _Walk, draft: PartialCall, key: str) -> Steps[bool]:
        """An object whose key is that of all arguments, and of one argument too: its first key tells which it is."""
        found = yield from frame.source.look(_FIRST_KEY)
        if found is None or draft.declares(found["quoted"]):
            return (yield from self._stream(frame, walk, draft))
        return (yield from self._argument(frame, draft, key))

    def _odd_arguments(self, frame: CallBlock, walk: _Walk, key: str, text: str) -> bool:
        """Arguments that are no object: none at all, or an argument of that very name."""
        value = _value(text)
        if value is None or value == "":
            walk.has_arguments = text.strip() in ("null", '""', "''")
            return True
        draft = walk.draft
        if draft is None or draft.declares(key):
            walk.aside[key] = value
            return True
        draft.add_defect(Reason.INVALID_VALUE, key, text[:80], "an object with the arguments by name")
        return frame.marked

    def _argument(self, frame: CallBlock, draft: PartialCall, key: str) -> Steps[bool]:
        """An argument that stands beside the name."""
        draft.commit_on(key)
        yield from self.members.value(frame, draft, key)
        return True

    def _is_tool(self, frame: CallBlock, name: str) -> bool:
        """Whether a name that no key introduces is a tool's; in ordinary text the answer must be nothing else."""
        return frame.tools.find(name) is not None and (frame.marked or frame.require_alone())

    def _tool_as_key(self, frame: CallBlock, walk: _Walk, key: str, head: str) -> Steps[bool]:
        """The arguments stand under the name of the tool, and further calls under further names."""
        draft = frame.begin(key, None if walk.calls else walk.start)
        take = self._take_arguments if head == "{" else self._take_encoded
        if draft is None or not (yield from take(frame, draft)):
            return False
        if draft.is_truncated:
            walk.draft = draft
        walk.calls += 1
        return True

    def _take_arguments(self, frame: CallBlock, draft: PartialCall) -> Steps[bool]:
        """Read the arguments of a call whose name stands for itself."""
        yield from frame.source.skip_blanks()
        frame.source.pos += 1
        if frame.marked and draft.tool is not None:
            draft.commit()
        return (yield from self.members.read(frame, draft)) and (frame.marked or draft.is_exact)

    def _take_encoded(self, frame: CallBlock, draft: PartialCall) -> Steps[bool]:
        """The same where the arguments were encoded once more."""
        text = yield from self._gather(frame)
        parsed = parse_object(text) if text is not None else None
        if parsed is None or "double_encoded" not in parsed.repairs:
            return False
        draft.repair("double_encoded")
        draft.add_members(parsed.value)
        return frame.marked or draft.is_exact

    def _pair(self, frame: CallBlock) -> Steps[bool]:
        """A name, and its arguments behind a comma; in a list of its own, or not."""
        source = frame.source
        start = source.here
        found = yield from source.match(_PAIR)
        if found is None or not self._is_tool(frame, found["name"]):
            return False
        draft = frame.begin(found["name"], start)
        if draft is None or not (yield from self._take_arguments(frame, draft)):
            return False
        if found[0][0] != "[" or draft.is_truncated:
            return True
        closer = yield from source.skip_blanks()
        source.pos += closer == "]"
        return closer == "]"

    def _aside(self, frame: CallBlock, walk: _Walk, key: str) -> Steps[bool]:
        """Anything else: set aside, it may turn out to be an argument when the name is known."""
        if not frame.marked and key not in LEADING_KEYS and not self._may_be_beside(walk, key):
            return False
        text = yield from self._gather(frame)
        if text is None:
            return self._cut(walk)
        walk.aside[key] = _value(text)
        if key in WORDS and walk.draft is not None and not walk.has_arguments:
            walk.words.add(key)
        return True

    def _may_be_beside(self, walk: _Walk, key: str) -> bool:
        """Whether a tentative call may have this key beside its name; what tells of a result makes it a record.

        Before the first declared argument it may be one only behind a key that says "tool": many things have a name.
        """
        draft = walk.draft
        if draft is None or not (draft.keys or walk.named_by != "name" or key in BODY_KEYS):
            return False
        if key in RESULT_KEYS:
            draft.add_defect(Reason.MALFORMED, "call", f'the key "{key}"', "the call alone")
        return True

    def _gather(self, frame: CallBlock) -> Steps[str | None]:
        return gather(frame.source, ",}", frame.closing)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _cut(self, walk: _Walk) -> bool:
        if walk.draft is None:
            return False
        if not walk.has_arguments:
            walk.draft.truncate()
        return walk.has_arguments

    def _end_early(self, frame: CallBlock, walk: _Walk, head: str) -> bool:
        """The text ended, or the mark around the call closed, before the object did."""
        draft = walk.draft
        if draft is None:
            if frame.open_call is not None:
                frame.open_call.repair("missing_bracket")
            return walk.calls > 0 and not frame.alone
        if not head and (not walk.has_arguments or frame.source.truncated):
            draft.truncate()
            return True
        draft.repair("missing_bracket")
        return self._finish(frame, walk)

    def _broken(self, frame: CallBlock, walk: _Walk, head: str) -> bool:
        draft = walk.draft
        if is_cut_in_key(frame.source):
            frame.source.pos = len(frame.source.text)
            return self._end_early(frame, walk, "")
        if draft is None or (not draft.live and not frame.marked):
            return False
        if walk.has_arguments:
            return self._finish(frame, walk)
        draft.add_defect(Reason.MALFORMED, "call", f"{head!r} where a key was due", "a JSON object")
        return True

    def _finish(self, frame: CallBlock, walk: _Walk) -> bool:
        draft = walk.draft or self._named_by_type(frame, walk)
        if draft is None:
            return walk.calls > 0
        given = walk.arguments if walk.arguments is not None else self._flat(walk, draft)
        for name in walk.repairs:
            draft.repair(name)
        if not walk.has_arguments and (body := _find_body(draft, given)) is not None:
            draft.repair("unwrapped_arguments")
            draft.add_members(body)
            return frame.marked or (draft.is_exact and frame.require_alone())
        if not frame.marked and self._is_told(walk, draft, given):
            return False
        if given:
            draft.add_members(given)
        return frame.marked or draft.live or draft.is_plausible

    def _is_told(self, walk: _Walk, draft: PartialCall, given: dict[str, Value]) -> bool:
        """Whether an object in ordinary text offers or defines the tool, or tells something of it."""
        offers = walk.offered and not (walk.has_arguments or draft.keys or given)
        if offers or ("properties" in given and not draft.declares("properties")):
            return True
        flat = bool(given) and not walk.has_arguments
        return flat and not any(map(draft.declares, (*draft.keys, *given)))

    def _named_by_type(self, frame: CallBlock, walk: _Walk) -> PartialCall | None:
        """Some envelopes put the tool where the kind of call belongs."""
        kind = walk.aside.pop("type", None)
        if walk.calls or not isinstance(kind, str) or frame.tools.find(kind) is None:
            return None
        return frame.begin(kind, walk.start)

    def _flat(self, walk: _Walk, draft: PartialCall) -> dict[str, Value]:
        """Arguments that stood beside the name. What the tool does not declare may have been meant to hold it back."""
        if walk.has_arguments:
            return {}
        beside = {key: value for key, value in walk.aside.items() if key not in draft.keys}
        around = LEADING_KEYS - walk.words
        return {key: value for key, value in beside.items() if draft.declares(key) or key not in around}


def _find_body(draft: PartialCall, given: dict[str, Value]) -> dict[str, Value] | None:
    """The arguments, where an object of them is all that stands beside the name, under a key of its own."""
    if draft.keys or draft.tool is None or len(given) != 1:
        return None
    ((key, value),) = given.items()
    parsed = parse_object(value) if isinstance(value, str) else None
    body = parsed.value if parsed is not None else value
    if key not in BODY_KEYS or draft.declares(key) or not isinstance(body, dict):
        return None
    exact = all(map(draft.declares, body)) and draft.tool.required.issubset(body)
    return body if exact and (body or key != "properties") else None


def _read_name(frame: CallBlock, found: Match) -> str | None:
    """The name as JSON means it; one that holds what names do not hold must be known."""
    name = found.groupdict().get("name")
    if name is not None and "\\u" not in name:
        return name
    decoded = _value(f'"{name or found["quoted"]}"')
    known = isinstance(decoded, str) and frame.tools.find(decoded) is not None
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


OBJECT = CallSyntax(("{{",), JsonEnvelope(), position=Position.WRAPPED)
LIST = CallSyntax(("[{before_object}", "[{before_pair}"), JsonEnvelope(), position=Position.WRAPPED)
