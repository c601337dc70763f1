"""Calls as JSON objects that name their tool: ``{"name": "read", "arguments": {"path": "a.py"}}``.

Strategy. Models agree only on the idea: the keys have many names, the arguments may come before the name, next to it,
be wrapped again or be encoded twice. The object is read key by key; as soon as the name is known, arguments are
streamed, and members before the name are kept until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value
from toolglot.dialects.codecs.buffered_values import (
    BRACKETS,
    QUOTES,
    collect_value,
    only_element,
    parse_object,
    try_value,
)
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
from toolglot.dialects.codecs.member_keys import is_cut_in_key
from toolglot.dialects.codecs.object_members import COMMENT_HEADS, ObjectMembers, skip_comment
from toolglot.dialects.codecs.object_members import OBJECT as JSON_OBJECT
from toolglot.dialects.codecs.sample_templates import write_by_sample
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, Match
from toolglot.dialects.scanner import Source, Steps, at_once
from toolglot.dialects.spec import CallSyntax, Position

_ELEMENTS = ("{", '"', "'", "[", "(")
_MAX_REJECTED = 16
"""Elements of a list that are reported as rejected calls; the list ends before the next one."""
_PUNCTUATION = ("}", ",")
_ONE_WORD = re.compile(r"\S*+\s*")
_NAME_QUOTES = ('"', "'", "“")
_NO_ARGUMENTS = ("", "null", "None", '""', "''")
_ARGUMENT_HEADS = ("{", *_NAME_QUOTES)
_NAME = Mark('" {name_id} "', "' {name_id} '", '"{quoted}"', "“{name_id}”")
_SLIPPED_NAME = Mark('"name="{name_id}"', '"name: "{name_id}"')
_PAIR = Mark(
    *(f"{opener}{quote}{{name_id}}{quote} , {{before_object}}" for opener in ("", "[ ", "( ") for quote in QUOTES)
)
_FIRST_KEY = Mark('{{ "{quoted}"')
_DOUBLED_SIGN = Mark('": "{name_id}"')
"""Key and value are merged, or the colon between them is quoted and doubled."""


class _EnvelopeState(Struct, eq=False):
    """What is known of one object so far."""

    start: int
    call: PartialCall | None = None
    named_by: str = ""
    """The key of the tool's name."""
    depth: int = 1
    has_arguments: bool = False
    arguments: dict[str, Value] | None = None
    repairs: tuple[str, ...] = ()
    kept: dict[str, Value] = {}
    explanations: set[str] = set()
    """Explanation keys among them that follow the name."""
    calls: int = 0
    offered: bool = False
    """Whether it is an element of a list that may hold tool definitions."""

    @property
    def is_filled(self) -> bool:
        """Whether both the tool and its arguments are known."""
        return self.call is not None and self.has_arguments

    @property
    def is_fresh(self) -> bool:
        """Whether only the opening brace of the object was read."""
        return self.depth == 1 and not (self.call or self.has_arguments or self.kept or self.calls)


def _ends_in_word(source: Source) -> bool:
    """Whether no more than a word follows, if the text has ended."""
    return _ONE_WORD.fullmatch(source.text, source.pos) is not None


class JsonEnvelope(Struct, frozen=True):
    """The codec; the header of the call is the bracket that opens the JSON."""

    members: ObjectMembers = JSON_OBJECT

    def accepts(self, head: str) -> bool:
        return True

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        source.pos = found.end() - 1
        taken = yield from (self._list(block) if source.text[source.pos] == "[" else self._object(block))
        return block.end_list(taken)

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _list(self, block: CallBlock, offered: bool = False) -> Steps[bool]:
        source, calls, rejected = block.source, 0, 0
        block.begin_list()
        source.pos += 1
        end = source.here
        while True:
            head = yield from source.skip_blanks()
            if head in _ELEMENTS:
                here, before = source.here, block.open_call
                if not (yield from (self._object(block, offered) if head == "{" else self._pair(block))):
                    if not calls or not block.marked:
                        return False
                    block.discard_after(before)
                    rejected += 1
                    if rejected > _MAX_REJECTED or not (yield from self._reject_element(block, here)):
                        source.rewind(end)
                        return True
                calls += 1
                end = source.here
            elif head in _PUNCTUATION:
                source.pos += 1
            elif head == "]":
                source.pos += 1
                return calls > 0
            elif not (head in COMMENT_HEADS and (yield from skip_comment(source))):
                return calls > 0 and (yield from self._end_list(block, head, end))

    def _end_list(self, block: CallBlock, head: str, end: int) -> Steps[bool]:
        """End a list without its bracket behind the last call; in ordinary text nothing else may follow."""
        over = block.marked or (yield from self._is_over(block, head))
        if head and block.open_call is not None:
            block.source.rewind(end)
            block.open_call.repair("missing_bracket")
        return over

    def _reject_element(self, block: CallBlock, here: int) -> Steps[bool]:
        """Reject an element that begins ``here`` and is not a call; whether the list goes on after it.

        The list ends if the text does, or if a mark that closes it stands where the element begins.
        """
        block.source.rewind(here)
        text = yield from collect_value(block.source, ",]", block.closing)
        return bool(text) and block.begin("", here) is not None

    def _object(self, block: CallBlock, offered: bool = False) -> Steps[bool]:
        source = block.source
        state = _EnvelopeState(source.offset + source.pos, offered=offered)
        source.pos += 1
        while True:
            usual = self.members.usual_member.match(source.text, source.pos)
            if usual is not None:
                source.pos, key = usual.end(), usual[2]
            else:
                found = yield from self._find_key(block, state)
                if isinstance(found, bool):
                    return found
                key = found
            head = yield from source.skip_blanks()
            call = state.call
            if call is None:
                taken = yield from self._before_name(block, state, key, head)
            else:
                taken = yield from self._after_name(block, state, call, key, head)
            if not taken:
                return state.calls > 0 and block.marked
            if state.call is not None and state.call.is_truncated:
                return True

    def _find_key(self, block: CallBlock, state: _EnvelopeState) -> Steps[str | bool]:
        """The key of the next member; if there is none, whether there was a call."""
        source = block.source
        while True:
            head = source.text[source.pos : source.pos + 1]
            if not head or head.isspace():
                head = yield from source.skip_blanks()
            if head in _PUNCTUATION:
                source.pos += 1
                state.depth -= head == "}"
                if not state.depth:
                    return self._finish(block, state)
                continue
            if head == "{" and state.is_fresh:
                source.pos += 1
                state.depth, state.repairs = 2, ("doubled_braces",)
                continue
            if head in block.closing.starts and (yield from self._is_over(block, head)):
                return self._end_early(block, state, head)
            if head in COMMENT_HEADS and (yield from skip_comment(source)):
                continue
            here = source.offset + source.pos
            key = yield from self.members.key(source)
            if key is not None:
                return key
            if state.call is not None or not (yield from self._merged_name(block, state, here)):
                return (yield from self._broken(block, state, head, here))

    def _is_over(self, block: CallBlock, head: str) -> Steps[bool]:
        """Whether the text, or the mark around the call, ends before the object does."""
        return not head or (yield from block.source.choose(block.closing)) is not None

    # -- one member --------------------------------------------------------------------------------------------------

    def _before_name(self, block: CallBlock, state: _EnvelopeState, key: str, head: str) -> Steps[bool]:
        """Read a member whose key is consumed, before the tool is known; False if this is no call."""
        if head == "{" and (key in NAME_KEYS or key in LIST_KEYS):
            return self._step_inside(block, state)
        if head in _NAME_QUOTES and (key in NAME_KEYS or key in LIST_KEYS):
            state.named_by = key
            return self._name(block, state)
        if head == "[" and key in ANY_LIST_KEYS:
            return self._calls(block, state, key in OFFER_KEYS)
        if key in ARGUMENT_KEYS and not state.has_arguments:
            return self._arguments(block, state, key)
        if head in _ARGUMENT_HEADS and self._is_tool(block, key):
            return self._tool_as_key(block, state, key, head)
        if head in _NAME_QUOTES and key in LOOSE_NAME_KEYS:
            return self._loose_name(block, state, key)
        return self._keep_member(block, state, key)

    def _after_name(
        self, block: CallBlock, state: _EnvelopeState, call: PartialCall, key: str, head: str
    ) -> Steps[bool]:
        """Read a member whose key is consumed, after the tool is known; False if this is no call."""
        if not state.has_arguments:
            if key in ARGUMENT_KEYS and not (call.keys and call.declares(key)):
                if not (block.marked or call.keys or call.declares(key) or state.kept.keys() <= LEADING_KEYS):
                    return at_once(False)  # a description of a tool
                if head == "{" and call.declares(key):
                    return self._ambiguous_arguments(block, state, call, key)
                return self._stream(block, state, call) if head == "{" else self._arguments(block, state, key)
            if call.admits(key) or self._takes_anything(block, state, call, key):
                return self._argument(block, call, key)
        return self._keep_member(block, state, key)

    def _takes_anything(self, block: CallBlock, state: _EnvelopeState, call: PartialCall, key: str) -> bool:
        """Whether a tool that declares nothing may have this argument; in ordinary text many things have a name."""
        meant = block.marked or (state.named_by != "name" and key != "description")
        body = key in BODY_KEYS and not call.keys
        return call.is_open_ended and key not in LEADING_KEYS and meant and not body

    def _name(self, block: CallBlock, state: _EnvelopeState) -> Steps[bool]:
        if (doubled := (yield from block.source.match(_DOUBLED_SIGN))) is not None:
            return self._repair_name(block, state, doubled["name"])
        found = yield from block.source.match(_NAME)
        name = _read_name(block, found) if found is not None else None
        state.call = block.begin(name, state.start) if name is not None else None
        return state.call is not None

    def _loose_name(self, block: CallBlock, state: _EnvelopeState, key: str) -> Steps[bool]:
        """A key that names the tool, or holds an argument."""
        found = yield from block.source.look(_NAME)
        name = _read_name(block, found) if found is not None else None
        known = name is not None and block.tools.find(name) is not None
        if known and key in SOLE_NAME_KEYS and not (block.marked or block.require_alone()):
            return False
        return (yield from (self._name(block, state) if known else self._keep_member(block, state, key)))

    def _merged_name(self, block: CallBlock, state: _EnvelopeState, here: int) -> Steps[bool]:
        """Whether the text at ``here``, which is no key, is a key merged with its value."""
        source = block.source
        reached = source.here
        source.rewind(here)
        found = yield from source.match(_SLIPPED_NAME)
        if found is not None and self._repair_name(block, state, found["name"]):
            return True
        source.rewind(reached)
        return False

    def _repair_name(self, block: CallBlock, state: _EnvelopeState, name: str) -> bool:
        """Accept the name of a damaged envelope if the tool is known."""
        state.call = block.begin(name, state.start) if block.tools.find(name) is not None else None
        if state.call is not None:
            state.call.repair("damaged_key")
        return state.call is not None

    def _calls(self, block: CallBlock, state: _EnvelopeState, offered: bool) -> Steps[bool]:
        """A list of calls."""
        if offered and not (block.marked or block.require_alone()):
            return False
        taken = yield from self._list(block, offered)
        state.calls += taken
        return taken

    def _step_inside(self, block: CallBlock, state: _EnvelopeState) -> Steps[bool]:
        """Enter an object that wraps the call once more."""
        block.source.pos += 1
        state.depth += 1
        return at_once(True)

    def _arguments(self, block: CallBlock, state: _EnvelopeState, key: str) -> Steps[bool]:
        text = yield from collect_value(block.source, ",}", block.closing)
        if text is None:
            return self._cut(state)
        parsed = parse_object(only_element(text))
        if parsed is not None and isinstance(parsed.value, dict):
            state.has_arguments, state.arguments = True, parsed.value
            state.repairs = (*state.repairs, *parsed.repairs)
            return True
        return self._handle_non_object(block, state, key, text)

    def _stream(self, block: CallBlock, state: _EnvelopeState, call: PartialCall) -> Steps[bool]:
        state.has_arguments = True
        block.source.pos += 1
        if block.marked and call.tool is not None:
            call.commit()
        return self.members.read(block, call)

    def _ambiguous_arguments(self, block: CallBlock, state: _EnvelopeState, call: PartialCall, key: str) -> Steps[bool]:
        """Read an object whose key means all arguments, or one argument: its first key decides."""
        found = yield from block.source.look(_FIRST_KEY)
        if found is None or call.declares(found["quoted"]):
            return (yield from self._stream(block, state, call))
        return (yield from self._argument(block, call, key))

    def _handle_non_object(self, block: CallBlock, state: _EnvelopeState, key: str, text: str) -> bool:
        """Handle arguments that are no object: none at all, or one argument of that name."""
        value, call = try_value(text), state.call
        if text.strip() in _NO_ARGUMENTS:
            state.has_arguments = bool(text.strip())
        elif value is not None and (call is None or call.declares(key)):
            state.kept[key] = value
        elif call is not None:
            call.add_defect(Reason.INVALID_VALUE, key, text[:80], "an object with the arguments by name")
            return block.marked
        return call is not None or value is not None or text.strip() in _NO_ARGUMENTS

    def _argument(self, block: CallBlock, call: PartialCall, key: str) -> Steps[bool]:
        """Read an argument next to the name."""
        call.commit_on(key)
        yield from self.members.value(block, call, key)
        return True

    def _is_tool(self, block: CallBlock, name: str) -> bool:
        """Whether a name without a key is a tool's; in ordinary text the answer must be nothing else."""
        return block.tools.find(name) is not None and (block.marked or block.require_alone())

    def _tool_as_key(self, block: CallBlock, state: _EnvelopeState, key: str, head: str) -> Steps[bool]:
        """Read arguments whose key is the tool name; further calls follow under further names."""
        call = block.begin(key, None if state.calls else state.start)
        take = self._take_arguments if head == "{" else self._take_encoded
        if call is None or not (yield from take(block, call)):
            return False
        if call.is_truncated:
            state.call = call
        state.calls += 1
        return True

    def _take_arguments(self, block: CallBlock, call: PartialCall) -> Steps[bool]:
        """Read the arguments object of a call whose name has no key."""
        yield from block.source.skip_blanks()
        block.source.pos += 1
        if block.marked and call.tool is not None:
            call.commit()
        return (yield from self.members.read(block, call)) and (block.marked or call.is_exact)

    def _take_encoded(self, block: CallBlock, call: PartialCall) -> Steps[bool]:
        """Read such arguments encoded as a string."""
        text = yield from collect_value(block.source, ",}", block.closing)
        parsed = parse_object(text) if text is not None else None
        if parsed is None or "double_encoded" not in parsed.repairs:
            return False
        call.repair("double_encoded")
        call.add_members(parsed.value)
        return block.marked or call.is_exact

    def _pair(self, block: CallBlock) -> Steps[bool]:
        """Read a name and, after a comma, its arguments; in a list of their own, or not."""
        source = block.source
        start = source.here
        found = yield from source.match(_PAIR)
        if found is None or not self._is_tool(block, found["name"]):
            return False
        call = block.begin(found["name"], start)
        if call is None or not (yield from self._take_arguments(block, call)):
            return False
        closer = BRACKETS.get(found[0][0])
        if closer is None or call.is_truncated:
            return True
        head = yield from source.skip_blanks()
        source.pos += head == closer
        return head == closer

    def _keep_member(self, block: CallBlock, state: _EnvelopeState, key: str) -> Steps[bool]:
        """Keep any other member: it may be an argument when the name is known."""
        beside_calls = state.calls and not block.alone and key not in RESULT_KEYS
        if not (block.marked or key in LEADING_KEYS or beside_calls or self._may_be_next_to_name(state, key)):
            return False
        source = block.source
        here = source.begin_lookahead()
        text = yield from collect_value(source, ",}", block.closing)
        if text is None:
            source.end_lookahead(here)
            return self._end_in_member(block, state)
        source.end_lookahead(source.here)
        state.kept[key] = try_value(text)
        if key in EXPLANATION_KEYS and state.call is not None and not state.has_arguments:
            state.explanations.add(key)
        return True

    def _may_be_next_to_name(self, state: _EnvelopeState, key: str) -> bool:
        """Whether a tentative call may have this key next to its name; a key of a result makes it a log entry.

        Before the first declared argument this requires a name key other than "name": many things have a name.
        """
        call = state.call
        if call is None or not (call.keys or state.named_by != "name" or key in BODY_KEYS):
            return False
        if key in RESULT_KEYS:
            call.add_defect(Reason.MALFORMED, "call", f'the key "{key}"', "the call alone")
        return True

    # -- the end -----------------------------------------------------------------------------------------------------

    def _end_in_member(self, block: CallBlock, state: _EnvelopeState) -> bool:
        """End an object whose member after the arguments does not end; if it holds several words, they are text."""
        source = block.source
        if state.is_filled and not (source.truncated or _ends_in_word(source)):
            return True
        source.pos = len(source.text)
        return self._cut(state)

    def _cut(self, state: _EnvelopeState) -> bool:
        if state.call is not None and not state.has_arguments:
            state.call.truncate()
        return state.call is not None and state.has_arguments

    def _end_early(self, block: CallBlock, state: _EnvelopeState, head: str) -> bool:
        """End an object that is unfinished at the end of the text or of the wrapper."""
        call = state.call
        if call is None:
            if block.open_call is not None:
                block.open_call.repair("missing_bracket")
            return state.calls > 0 and not block.alone
        if not head and (not state.has_arguments or block.source.truncated):
            call.truncate()
            return True
        call.repair("missing_bracket")
        return self._finish(block, state)

    def _broken(self, block: CallBlock, state: _EnvelopeState, head: str, here: int) -> Steps[bool]:
        """End an object that goes on with no key; what begins ``here`` follows the call if that has its arguments."""
        call = state.call
        cut = yield from is_cut_in_key(block.source)
        if state.is_filled:
            block.source.rewind(here)
            cut = cut and _ends_in_word(block.source)
        if cut:
            block.source.pos = len(block.source.text)
            return self._end_early(block, state, "")
        if call is None or (not call.live and not block.marked):
            return False
        if state.has_arguments:
            return self._finish(block, state)
        call.add_defect(Reason.MALFORMED, "call", f"{head!r} where a key was due", "a JSON object")
        return True

    def _finish(self, block: CallBlock, state: _EnvelopeState) -> bool:
        call = state.call or self._named_by_type(block, state)
        if call is None:
            return state.calls > 0
        given = state.arguments if state.arguments is not None else self._flat(state, call)
        for name in state.repairs:
            call.repair(name)
        if not state.has_arguments and (body := _find_body(call, given)) is not None:
            call.repair("unwrapped_arguments")
            call.add_members(body)
            return block.marked or (call.is_exact and block.require_alone())
        if not block.marked and self._describes_tool(state, call, given):
            return False
        if given:
            call.add_members(given)
        return block.marked or call.live or call.is_plausible

    def _describes_tool(self, state: _EnvelopeState, call: PartialCall, given: dict[str, Value]) -> bool:
        """Whether an object in ordinary text lists, defines or describes the tool."""
        offers = state.offered and not (state.has_arguments or call.keys or given)
        if offers or ("properties" in given and not call.declares("properties")):
            return True
        flat = bool(given) and not state.has_arguments
        return flat and not any(map(call.declares, (*call.keys, *given)))

    def _named_by_type(self, block: CallBlock, state: _EnvelopeState) -> PartialCall | None:
        """Begin the call if the tool name is in the "type" member."""
        kind = state.kept.pop("type", None)
        if state.calls or not isinstance(kind, str) or block.tools.find(kind) is None:
            return None
        return block.begin(kind, state.start)

    def _flat(self, state: _EnvelopeState, call: PartialCall) -> dict[str, Value]:
        """The arguments next to the name. Undeclared ones count too: they may be meant to restrict the call."""
        if state.has_arguments:
            return {}
        beside = {key: value for key, value in state.kept.items() if key not in call.keys}
        around = LEADING_KEYS - state.explanations
        return {key: value for key, value in beside.items() if call.declares(key) or key not in around}


def _find_body(call: PartialCall, given: dict[str, Value]) -> dict[str, Value] | None:
    """The arguments, if an object of them under a body key is the only member next to the name."""
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
    """Decode the name as JSON; a name with unusual characters must be a known tool."""
    name = found.groupdict().get("name")
    if name is not None and "\\u" not in name:
        return name
    decoded = try_value(f'"{name or found["quoted"]}"')
    known = isinstance(decoded, str) and block.tools.find(decoded) is not None
    return decoded if known and isinstance(decoded, str) else name


OBJECT = CallSyntax(("{{",), JsonEnvelope(), position=Position.WRAPPED)
LIST = CallSyntax(("[{before_object}", "[{before_pair}"), JsonEnvelope(), position=Position.WRAPPED)
