"""Arguments as a list of members: a JSON object, Python keyword arguments, a bare ``key:value`` object.

    {"path": "a.py", "limit": 5}        (path="a.py", limit=5)        {path:<|"|>a.py<|"|>,limit:5}

Strategy. The three differ only in brackets, in the sign between key and value and in the quoting of strings, so one
reader handles them all. A string whose parameter takes any text is streamed; every other value is buffered up to the
comma or bracket that ends it, parsed once, and typed by the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial

from msgspec.structs import replace

from toolglot.core.events import Reason
from toolglot.core.lenient_json import JSON, PYTHON, Literals, NotJsonError, parse
from toolglot.core.schema.toolset import SchemaType, coerce_value
from toolglot.dialects.codecs.bare_values import add_set, add_unquoted, decode_key, parse_bare
from toolglot.dialects.codecs.buffered_values import QUOTES, collect_value, decode_string, find_quote
from toolglot.dialects.codecs.member_keys import (
    KEY,
    LOOSE_KEY,
    MAX_MEMBER,
    find_damaged_member,
    is_cut_in_key,
    next_key,
)
from toolglot.dialects.codecs.streamed_strings import Collector, Confirm, EnclosingMarks, Receiver, read_string
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import MORE, Mark, Match, mark
from toolglot.dialects.scanner import Source, Steps

ENVELOPES = ("arguments", "parameters", "args", "params", "input")
"""Keys of an argument that wraps all the others."""

_DEFINITION = ("type", "properties", "$schema")
"""First keys of a tool definition, in place of arguments."""

_CLOSING_BRACKETS = ("}", "]", ")")
_BEHIND_CALLS = ("<", "`", ",", ";")
_POSITIONAL = Mark(' "', " '", " *", named=False)
_JOINING = Mark(' + "', " + '", named=False)
_OPERATORS = Mark(" {operator}", named=False)
_MORE_QUOTES = ("", '"')
_ALL_QUOTES = ('"', "'")
_MAX_TEXT = 4096
"""How far behind a call a quote is searched that may end its last value."""
_DOUBLED = "doubled_braces"
_NAME = "name"
_NAME_AGAIN = Mark('"{name}" ,')
_WORDS = re.compile(r"[^\w.\-$\\]")
_AROUND = (*ENVELOPES, _NAME)
_RAW_PREFIXES = ("r", "R")
_RAW = replace(PYTHON, unescape=str)
"""Python strings in which a backslash is only that."""
_COMMENT = Mark("{one_comment}", named=False)
COMMENT_HEADS = ("/", "#")


def skip_comment(source: Source) -> Steps[bool]:
    """Skip a comment here; False if there is none."""
    return (yield from source.match(_COMMENT)) is not None


@lru_cache(maxsize=64)
def _headers(openers: tuple[str, ...], headers: tuple[str, ...]) -> Mark:
    """The beginning of a call, wrapper and header."""
    return Mark(*(f"{opener} {header}" for opener in openers for header in headers), named=False)


@dataclass(frozen=True, slots=True)
class ObjectMembers:
    """The codec of one such notation; the sign between key and value is one character, or none."""

    opener: str = "{"
    closer: str = "}"
    assign: tuple[str, ...] = (":",)
    literals: Literals = JSON
    separator: str = ","
    is_loose: bool = field(init=False)
    """Whether unquoted keys are usual."""
    is_spaced: bool = field(init=False)
    """Whether such keys may contain spaces, up to the colon."""
    usual_key: re.Pattern[str] = field(init=False)
    """A quoted key without escapes, and the sign after it."""
    usual_member: re.Pattern[str] = field(init=False)
    """Such a key with an optional separator before it; matches nothing where a string may be an argument."""
    usual_end: re.Pattern[str] = field(init=False)
    """What follows most values: the next such key, or the closer and no text."""

    def __post_init__(self) -> None:
        sign = f"[{re.escape(''.join(self.assign))}]" if any(self.assign) else "(?!)"
        key = rf'\s{{0,8}}+"([^"\\\n]{{0,256}}+)"\s{{0,8}}+{sign}\s{{0,8}}+'
        comma, closer = rf"\s{{0,8}}+{re.escape(self.separator)}", rf"\s{{0,8}}+{re.escape(self.closer)}(?=[\s\]}})<,])"
        object.__setattr__(self, "is_loose", "unquoted_key" in self.literals.native)
        object.__setattr__(self, "is_spaced", self.is_loose and "=" not in self.assign)
        object.__setattr__(self, "usual_key", re.compile(key))
        object.__setattr__(self, "usual_member", re.compile(f"({comma})?{key}" if self.closer == "}" else "(?!)"))
        object.__setattr__(self, "usual_end", re.compile(f"{comma}{key}|{closer}"))

    def read(self, block: CallBlock, call: PartialCall) -> Steps[bool]:
        """Read the members up to the closer (the opener is consumed); False if this is no such list."""
        source = block.source
        while True:
            usual = self.usual_member.match(source.text, source.pos)
            if usual is not None and (call.keys or not usual[1]):
                source.pos, key = usual.end(), usual[2]
            else:
                found = yield from self._find_key(block, call)
                if isinstance(found, bool):
                    return found
                key = found
            if key in _AROUND and (yield from self._is_wrapped(source, call, key)):
                goes_on = yield from self._unwrap(block, call, key)
            elif not self._admit(block, call, key):
                return False
            else:
                goes_on = yield from self.value(block, call, key)
            if not goes_on:
                return True

    def _find_key(self, block: CallBlock, call: PartialCall) -> Steps[str | bool]:
        """The key of the next member; if there is none, whether this is such a list."""
        source = block.source
        while True:
            head = yield from self._skip_layout(source, call)
            if head == self.separator and call.keys:
                head = yield from self._pass_separator(source, call)
            if head == self.closer:
                source.pos += 1
                return True
            if head in block.closing.starts and (yield from self._is_over(block, call, head)):
                return True
            if head == self.opener == "{" and not call.keys and _DOUBLED not in call.repairs:
                call.repair(_DOUBLED)
                source.pos += 1
                if not (yield from self.read(block, call)) or call.is_truncated:
                    return call.is_truncated
            elif call.keys or not (yield from self._unkeyed(block, call, head)):
                key = yield from self.key(source)
                return (yield from self._broken(call, head)) if key is None else key

    def _pass_separator(self, source: Source, call: PartialCall) -> Steps[str]:
        source.pos += 1
        head = yield from self._skip_layout(source, call)
        if head == self.closer:
            call.repair("trailing_comma")
        return head

    def _skip_layout(self, source: Source, call: PartialCall) -> Steps[str]:
        """Skip whitespace and comments; return the character after them."""
        head = source.text[source.pos : source.pos + 1]
        if head and not head.isspace() and head not in COMMENT_HEADS:
            return head
        while (head := (yield from source.skip_blanks())) in COMMENT_HEADS and (yield from skip_comment(source)):
            call.repair("comment")
        return head

    def _is_over(self, block: CallBlock, call: PartialCall, head: str) -> Steps[bool]:
        """Whether the text ends here, or the mark that closes the whole call is here and only our closer is missing."""
        if not head:
            call.truncate()
            return True
        if (yield from block.source.choose(block.closing)) is None:
            return False
        call.repair("missing_bracket")
        return True

    def _unkeyed(self, block: CallBlock, call: PartialCall, head: str) -> Steps[bool]:
        """Read arguments of a function call without a key: an object of all of them, or the tool's only text."""
        if self.closer != ")":
            return False
        source = block.source
        if head == "*" and (yield from source.peek(3)) == "**{":
            source.pos, head = source.pos + 2, "{"
        if head == "{":
            source.pos += 1
            return (yield from OBJECT.read(block, call))
        sole = call.tool.sole_text_parameter if call.tool is not None else None
        return head in QUOTES and sole is not None and (yield from self._positional(block, call, sole))

    def _positional(self, block: CallBlock, call: PartialCall, key: str) -> Steps[bool]:
        """Read the tool's only text without its key; further arguments must have theirs."""
        source = block.source
        text = yield from collect_value(source, self.separator + self.closer, block.closing, self.literals.quotes)
        if text is None:
            call.truncate()
            return True
        try:
            parsed = parse(text, self.literals)
        except NotJsonError:
            return False
        if "unescaped_quote" in parsed.repairs:
            return False  # several texts that an operator joins
        gap = (yield from source.find_nonblank()) + 1
        if source.text[source.pos + gap - 1 : source.pos + gap] == self.separator:
            named = next_key(self.assign, self.closer, (), "{key_plain}")
            if (yield from source.look(named, gap)) is None:
                return False
        call.repair("positional_argument")
        call.commit()
        call.add(key, coerce_value(parsed.value, call.parameter_type(key), f"argument {key}"))
        return True

    def _is_wrapped(self, source: Source, call: PartialCall, key: str) -> Steps[bool]:
        """Whether the arguments are wrapped again under an undeclared key, or the whole call is, with its name.

        The wrapping is consumed.
        """
        if call.keys or call.is_open_ended or call.declares(key):
            return False
        head = yield from source.skip_blanks()
        if key != _NAME:
            source.pos += head == self.opener
            return head == self.opener
        found = yield from source.look(_NAME_AGAIN)
        if found is None or call.block.tools.find(found["name"]) is not call.tool:
            return False
        source.pos = found.end()
        return True

    def _unwrap(self, block: CallBlock, call: PartialCall, key: str) -> Steps[bool]:
        call.repair("unwrapped_arguments")
        return key == _NAME or ((yield from self.read(block, call)) and not call.is_truncated)

    def _broken(self, call: PartialCall, head: str) -> Steps[bool]:
        source = call.block.source
        if (yield from is_cut_in_key(source)):
            source.pos = len(source.text)
            call.truncate()
            return True
        if not call.live and (not call.block.marked or call.tool is None):
            return False
        call.add_defect(Reason.MALFORMED, "arguments", f"{head!r} where a key was due", f"a key or {self.closer!r}")
        return True

    def _admit(self, block: CallBlock, call: PartialCall, key: str) -> bool:
        """Whether the call may continue with this key; the first declared one confirms a tentative call."""
        if not block.marked and not call.keys and key in _DEFINITION and not call.declares(key):
            return False
        if block.marked or call.declares(key) or call.is_open_ended:
            call.commit()
        return True

    # -- keys --------------------------------------------------------------------------------------------------------

    def key(self, source: Source) -> Steps[str | None]:
        """Consume the key here and the sign after it."""
        while (usual := self.usual_key.match(source.text, source.pos)) is None:
            found = (LOOSE_KEY if self.is_spaced else KEY).at(source.text, source.pos, source.final)
            if found is not MORE:
                return None if found is None else (yield from self._odd_key(source, found))
            yield
        source.pos = usual.end()
        return usual[1]

    def _odd_key(self, source: Source, found: Match) -> Steps[str | None]:
        source.pos = found.end()
        key = decode_key(found[1]).strip() if self.is_loose else decode_key(found[1])
        sign = yield from source.skip_blanks()
        if sign and sign in self.assign:
            source.pos += 1
            return key
        return key.lstrip("-") if "" in self.assign else None

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, block: CallBlock, call: PartialCall, key: str) -> Steps[bool]:
        """Read the value of one member into the call; False if the text ends inside it."""
        source, shape = block.source, call.parameter_type(key)
        quote, literals = self.literals.quotes[0], self.literals
        if not source.text.startswith(quote, source.pos):
            quote, literals = yield from self._find_quote(source)
        if not quote:
            return (yield from self._bare_value(block, call, key, shape))
        source.pos += len(quote)
        if quote == '"' and source.text[source.pos : source.pos + 1] in _MORE_QUOTES:
            quote = yield from self._tripled(source, call)
        if quote == "'" and "single_quotes" not in self.literals.native:
            call.repair("single_quotes")
        confirm = partial(self._ends_value, block, call, len(quote) > 1 and self.is_loose)
        around = self._around(block, call) if len(quote) > 1 else None
        if shape.streams or shape.nullable_text or not shape.kinds:
            call.open_text(key)
            if not (yield from self._strings(source, quote, literals, call, confirm, around)):
                call.truncate()
                return False
            call.close_text()
            _reject_damaged(call, key, around)
            return True
        out = Collector()
        if not (yield from self._strings(source, quote, literals, out, confirm, around)):
            call.truncate()
            return False
        for name in out.repairs:
            call.repair(name)
        call.add(key, coerce_value(decode_string(out), shape, f"argument {key}"))
        _reject_damaged(call, key, around)
        return True

    def _find_quote(self, source: Source) -> Steps[tuple[str, Literals]]:
        """The quote that opens a string here, or "", and the syntax of the string; a prefix is consumed."""
        literals = self.literals
        head = yield from source.skip_blanks()
        if head in _RAW_PREFIXES and literals is PYTHON and (yield from source.peek(2))[1:] in QUOTES:
            source.pos, literals = source.pos + 1, _RAW
        return (yield from find_quote(source, literals.quotes)), literals

    def _strings(
        self,
        source: Source,
        quote: str,
        literals: Literals,
        out: Receiver,
        confirm: Confirm,
        around: EnclosingMarks | None,
    ) -> Steps[bool]:
        """Read a string, and in Python the adjacent ones joined to it; False if the text ends first."""
        whole = yield from read_string(source, quote, literals, out, confirm, around)
        while whole and self.literals is PYTHON and "unescaped_quote" not in out.repairs:
            gap = yield from source.find_nonblank()
            if source.text[source.pos + gap : source.pos + gap + 1] not in QUOTES:
                break
            source.pos += gap
            quote = yield from find_quote(source, self.literals.quotes)
            source.pos += len(quote)
            whole = yield from read_string(source, quote, self.literals, out, confirm, around)
        return whole

    def _tripled(self, source: Source, call: PartialCall) -> Steps[str]:
        """The opening quote, of which one character is consumed: Python's triple quotes are no part of the text."""
        if (yield from source.peek(2)) != '""':
            return '"'
        source.pos += 2
        call.repair("triple_quotes")
        return '"""'

    def _around(self, block: CallBlock, call: PartialCall) -> EnclosingMarks:
        """The marks of calls around a string; if its quotes are marks too, it may contain an unescaped quoted call."""
        quotable = self.is_loose and block.wrap_open
        header = _headers(block.wrap_open, block.headers) if quotable else None
        return EnclosingMarks(block.closing, header, call.declares)

    def _ends_value(
        self, block: CallBlock, call: PartialCall, marked: bool, ahead: int, uncertain: bool
    ) -> Steps[bool]:
        """Whether a quote that ends ``ahead`` characters from here ends its value.

        Once a quote turned out to be part of the value, the next one must be followed by a declared key, or by the
        brackets that close the call. After a quote that is a mark, any key will do.
        """
        source = block.source
        if not uncertain and self.usual_end.match(source.text, source.pos + ahead) is not None:
            return True
        gap = yield from source.find_nonblank(ahead)
        head = source.text[source.pos + gap : source.pos + gap + 1]
        if not head:
            return not uncertain
        if head == self.closer:
            return (yield from self._end_follows(block, call, gap + 1, uncertain))
        if not (uncertain or self.is_loose) and (yield from self._is_operand(source, ahead, gap, head)):
            return True  # what follows is no member, and breaks the call
        if head == self.separator:
            return (yield from self._member_follows(source, call, gap + 1, uncertain and not marked))
        if head in QUOTES:
            return (yield from self._string_follows(source, call, ahead, gap, uncertain))
        if head in COMMENT_HEADS:
            return not uncertain and (yield from self._comment_follows(source, call, gap))
        if head not in block.closing.starts:
            return False
        ending = yield from source.choose(block.closing, gap)
        # between marks, the marks of another call are text
        return ending == 0 if self.is_loose else ending is not None

    def _member_follows(self, source: Source, call: PartialCall, ahead: int, declared: bool) -> Steps[bool]:
        """Whether a member follows a comma; one with a damaged key may be part of the value, or lost in it."""
        follows = yield from self._key_follows(source, call, ahead, declared)
        if not follows and self.literals is JSON:
            call.suspect("arguments", find_damaged_member((yield from source.peek(ahead + MAX_MEMBER)), ahead))
        return follows

    def _string_follows(self, source: Source, call: PartialCall, ahead: int, gap: int, uncertain: bool) -> Steps[bool]:
        """Whether the next string is joined to the one before it, or is a key with a missing comma.

        Such a key is separated by whitespace, best by a line break.
        """
        if self.literals is PYTHON:
            return True
        apart = "\n" in source.text[source.pos + ahead : source.pos + gap]
        apart = apart or (gap > ahead and not uncertain and not call.is_open_ended)
        return apart and (yield from self._key_follows(source, call, gap, True))

    def _is_operand(self, source: Source, ahead: int, gap: int, head: str) -> Steps[bool]:
        """Whether the string is part of an expression, or a positional Python argument follows."""
        if head != self.separator:
            operators = _OPERATORS if self.literals is PYTHON else _JOINING
            return (yield from source.look(operators, ahead)) is not None
        return self.literals is PYTHON and (yield from source.look(_POSITIONAL, gap + 1)) is not None

    def _comment_follows(self, source: Source, call: PartialCall, ahead: int) -> Steps[bool]:
        """Whether a comment is there, followed by a key or the end."""
        comment = yield from source.look(_COMMENT, ahead)
        if comment is None:
            return False
        behind = comment.end() - source.pos + source.text.startswith(",", comment.end())
        return (yield from self._key_follows(source, call, behind, True))

    def _key_follows(self, source: Source, call: PartialCall, ahead: int, declared: bool) -> Steps[bool]:
        while declared or self.usual_key.match(source.text, source.pos + ahead) is None:
            bare = "{key_loose}" if self.is_spaced else "{key_plain}"
            following = next_key(self.assign, self.closer, self.literals.quotes, bare)
            found = following.at(source.text, source.pos + ahead, source.final)
            if found is not MORE:
                return found is not None and self._is_due(call, found, declared)
            yield
        return True

    def _is_due(self, call: PartialCall, found: Match, declared: bool) -> bool:
        """Whether the key may follow; unquoted words are a key only if the tool declares it, or if the quotes of values
        are marks that text does not contain."""
        key = found.groupdict().get("key")
        if key is None:
            return True
        odd = "“" in found[0] or _WORDS.search(key.strip())
        if odd and (declared or len(self.literals.quotes[0]) == 1):
            return call.declares(key.strip())
        return not declared or call.declares(key) or call.is_open_ended

    def _end_follows(self, block: CallBlock, call: PartialCall, ahead: int, uncertain: bool) -> Steps[bool]:
        """Whether the call ends after the closer; with a quote after it, only if the call is a quotation."""
        source = block.source
        if uncertain:
            return (yield from self._all_closes(source, ahead))
        while len(source.text) <= source.pos + ahead and not source.final:
            yield
        behind = source.text[source.pos + ahead : source.pos + ahead + 1]
        if behind in QUOTES and call.is_quoted_up_to(source.here + ahead):
            return True
        if behind.isalnum():
            return (yield from self._call_follows(block, ahead)) or (yield from self._text_follows(block, ahead))
        return behind not in ('"', "'", "\\", "$")

    def _call_follows(self, block: CallBlock, ahead: int) -> Steps[bool]:
        """Whether the next call, of a known tool, begins right after the closer."""
        headers = tuple(header for header in block.headers if header != "{name}")
        found = (yield from block.source.look(mark(headers), ahead)) if headers else None
        return found is not None and block.tools.find(found["name"]) is not None

    def _text_follows(self, block: CallBlock, ahead: int) -> Steps[bool]:
        """Whether a word right after the closer begins text behind the call: nothing else can end the value then.

        That is so if no quote follows up to the end of the text, or up to a mark that closes the call.
        """
        source, quotes = block.source, _ALL_QUOTES if self.literals is PYTHON else _MORE_QUOTES
        while ahead < _MAX_TEXT:
            head = source.text[source.pos + ahead : source.pos + ahead + 1]
            if not head:
                if source.final:
                    return True
                yield
                continue
            if head in quotes:
                return False
            if head in block.closing.starts and (yield from source.choose(block.closing, ahead)) is not None:
                return True
            ahead += 1
        return False

    def _all_closes(self, source: Source, ahead: int) -> Steps[bool]:
        """Whether only closing brackets follow, up to what comes after calls."""
        brackets = 1
        while True:
            ahead = yield from source.find_nonblank(ahead)
            head = source.text[source.pos + ahead : source.pos + ahead + 1]
            if head not in _CLOSING_BRACKETS:
                return head in _BEHIND_CALLS or (not head and brackets > 1)
            ahead, brackets = ahead + 1, brackets + 1

    def _bare_value(self, block: CallBlock, call: PartialCall, key: str, shape: SchemaType) -> Steps[bool]:
        text = yield from collect_value(block.source, self.separator + self.closer, block.closing, self.literals.quotes)
        if text is None:
            call.truncate()
            return False
        where = f"argument {key}"
        quotes_call = self.is_loose and any(opener in text for opener in block.wrap_open)
        if quotes_call:  # its marks end the value early
            call.add_defect(Reason.MALFORMED, where, "a quoted call", "text without the marks of calls")
        try:
            parsed = parse_bare(text, self.literals)
        except NotJsonError:
            if self.literals is not PYTHON or not add_set(call, key, text.strip(), shape):
                add_unquoted(call, key, text.strip(), shape, self.literals)
            return True
        for name in parsed.repairs:
            call.repair(name)
        if self.literals.quotes[0][0] not in QUOTES and "unescaped_quote" in parsed.repairs:
            call.add_defect(Reason.MALFORMED, where, "a mark of strings in a value", "the mark that closes the value")
        call.add(key, coerce_value(parsed.value, shape, where))
        return True


def _reject_damaged(call: PartialCall, key: str, around: EnclosingMarks | None) -> None:
    if around is not None and around.is_damaged:
        call.add_defect(Reason.MALFORMED, f"argument {key}", "text after the value", "the mark that closes the value")


OBJECT = ObjectMembers()
KEYWORDS = ObjectMembers("(", ")", ("=", ":"), PYTHON)
