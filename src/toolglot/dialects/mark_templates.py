"""Templates of marks, and the regular expressions compiled from them.

Strategy. A mark is written as it looks: a space matches any whitespace, a line break one line break with blanks before
it, ``{slot}`` a named piece, ``{{`` a brace. Each template compiles to two regular expressions, one for the mark and
one for every prefix of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from toolglot.core.lenient_json import OPERATOR


class Node(Struct, frozen=True):
    """A piece of a mark: its regex, and the regex of every prefix of it at the end of the text."""

    full: str
    prefix: str


_END = r"\Z"


def character(char: str) -> Node:
    return Node(re.escape(char), _END)


def literal(text: str) -> Node:
    prefix = r"\Z"
    for char in reversed(text):
        prefix = rf"(?:\Z|{re.escape(char)}{prefix})"
    return Node(re.escape(text), prefix)


def chars(charset: str, least: int = 1, most: int | None = None) -> Node:
    top, more = ("", "") if most is None else (str(most), str(most - 1))
    return Node(f"{charset}{{{least},{top}}}", rf"{charset}{{0,{more}}}+\Z")


def sequence(*nodes: Node) -> Node:
    return Node("".join(node.full for node in nodes), prefix_regex([nodes]))


def prefix_regex(marks: Iterable[Sequence[Node]]) -> str:
    """Return the regex of every prefix of the marks that can go on; common prefixes are factored out."""
    following: dict[Node, list[Sequence[Node]]] = {}
    for first, *rest in marks:
        following.setdefault(first, []).extend([rest] if rest else [])
    found: dict[str, None] = {}
    for node, rests in following.items():
        if rests:
            found[node.full + prefix_regex(rests)] = None
        found[node.prefix] = None
    return f"(?:{'|'.join(found)})"


def outline_regex(marks: Sequence[Sequence[Node]], depth: int) -> str:
    """Return the regex of where marks may begin: their first ``depth`` pieces and every prefix of these."""
    if not depth or not all(marks):
        return ""
    following: dict[Node, list[Sequence[Node]]] = {}
    for first, *rest in marks:
        following.setdefault(first, []).append(rest)
    found: dict[str, None] = {}
    for node, rests in following.items():
        found[node.full + outline_regex(rests, depth - (not _may_be_empty(node)))] = None
        found[node.prefix] = None
    return f"(?:{'|'.join(found)})"


@lru_cache(maxsize=256)
def _may_be_empty(node: Node) -> bool:
    return node.prefix != _END and re.fullmatch(node.full, "") is not None


def either(*nodes: Node) -> Node:
    return Node(
        "(?:" + "|".join(node.full for node in nodes) + ")", "(?:" + "|".join(node.prefix for node in nodes) + ")"
    )


def optional(node: Node) -> Node:
    return Node(f"(?:{node.full})?", node.prefix)


def lookahead(*nodes: Node) -> Node:
    """Match what must follow, without consuming it."""
    node = sequence(*nodes)
    return Node(f"(?={node.full})", node.prefix)


def repeat_any(most: int, *nodes: Node) -> Node:
    """Match any of the pieces in any order, at most ``most`` in all."""
    each = either(*nodes)
    return Node(f"{each.full}{{0,{most}}}", f"{each.full}{{0,{most}}}+{each.prefix}")


BLANKS = Node(r"\s*+", r"\s*+\Z")
"""Possessive: where blanks may follow blanks, giving some back would take quadratic time and match nothing more."""
BREAK = sequence(chars(r"[ \t\r]", 0), literal("\n"))

_QUOTED = r'[^"\\\n]{0,256}(?:\\.[^"\\\n]{0,256}){0,64}'

_COMMENT = Node(
    r"(?:(?://|\#)[^\n]{0,200}\n|/\*[^*]{0,200}\*/)\s*+",
    r"(?:/?\Z|(?://|\#)[^\n]{0,200}(?:\Z|\n\s*+\Z)|/\*[^*]{0,200}(?:\*?\Z|\*/\s*+\Z))",
)
_CHANNEL_NAMES = ("analysis", "commentary", "final", "json", "code")
_TURN = Node(r"\s*+(?:<\|start\|>|\Z)", rf"\s*+{literal('<|start|>').prefix}")
"""The end of a message in a channel: another message follows, or nothing."""

_SCRIPTS = (
    "\u0300-\u034e\u0350-\u180d\u180f-\u1fff\u2190-\u257f\u25a0-\u273e\u2740-\u2bff\u3099\u309a\ufe00-\ufe0f"
    "\U0001f000-\U0001faff"
)
"""Script characters that are part of words but no letters, and emoji; without the characters of marks."""
_NAME_CHARACTERS = rf"\w.\-/\\{_SCRIPTS}"


def in_context(*around: tuple[str, str, str], otherwise: Node) -> Node:
    """Match more between certain characters: each entry is the text before, the characters inside, the text after."""
    full = "".join(f"(?<={before}){inside}{{1,128}}(?={behind})|" for before, inside, behind in around)
    prefix = "".join(rf"(?<={before}){inside}{{0,128}}+\Z|" for before, inside, _ in around)
    return Node(f"(?:{full}{otherwise.full})", f"(?:{prefix}{otherwise.prefix})")


_IN_QUOTES = ("[\"']", r"[^\"'<>\n]", "[\"']")
_PLAIN_KEY = chars(rf"[\w.\-$\\{_SCRIPTS}]", 1, 128)

_CALL_WORD = "tool|call|func|action|Tool|Call|Func|TOOL|CALL|FUNC|ACTION"
SLOTS: dict[str, Node] = {
    # names may be dotted, hyphenated, or carry markdown escapes; in quotes they may hold anything
    "name": in_context(_IN_QUOTES, otherwise=chars(f"[{_NAME_CHARACTERS}]", 1, 128)),
    "name_id": chars(f"[{_NAME_CHARACTERS}:!]", 1, 160),
    # the same, with an optional space before it
    "recipient": Node(rf" ?[{_NAME_CHARACTERS}:!]{{1,160}}", rf" ?[{_NAME_CHARACTERS}:!]{{0,160}}+\Z"),
    "name_line": chars(r"[^\n`\"'\[\]{}:<>]", 1, 128),
    # separates the parts of a name; optionally escaped as in Markdown
    "sign": Node(r"\\?[._]", r"\\?\Z"),
    "name_parallel": literal("multi_tool_use.parallel"),
    # after "function_": not the words that make it the name of a wrapper
    "name_own": Node(
        rf"(?!(?:calls?|name|results?|response)>)[{_NAME_CHARACTERS}]{{1,128}}", rf"[{_NAME_CHARACTERS}]{{0,128}}+\Z"
    ),
    "name_group": either(*map(literal, ("parameters", "arguments", "args", "params", "input", "file"))),
    "key": in_context(_IN_QUOTES, ("=", r"[^\"'<>=/\n]", ">"), (">", r"[^<>\n]", "<"), otherwise=_PLAIN_KEY),
    "key_plain": _PLAIN_KEY,
    # without quotes, up to the delimiter
    "key_loose": chars(r"[^\"'<>{}\[\]:,\n]", 1, 128),
    "id": chars(r"[\w.\-/\\:]", 1, 160),
    "snake": sequence(chars("[A-Za-z]", 1, 32), literal("_"), chars("[A-Za-z_]", 1, 64)),
    "command": chars(r"[^\n`]", 1, 400),
    "type": chars(r"[\w]", 1, 32),
    # the type of the items, after that of a list
    "brackets": optional(sequence(literal("["), chars(r"[^\[\]<>\n]", 0, 64), literal("]"))),
    "index": chars(r"\d", 1, 8),
    "number": optional(sequence(chars(" ", 0, 1), chars(r"\d", 1, 8))),
    "q": chars("[\"']", 0, 1),
    "ns": Node(r"(?:[\w\-]{1,32}+:)?", r"(?:[\w\-]{1,32}+:?)?\Z"),
    "suffix": optional(sequence(literal(":"), chars(r"[\w\-]", 1, 32))),
    "bar": chars(r"[|｜‖]", 1, 2),
    "attributes": optional(sequence(chars(r"\s", 1, 1), chars(r"[^<>\n]", 0, 200))),
    "bracket_attributes": optional(sequence(chars(r"[\s:]", 1, 1), chars(r"[^\[\]\n]", 0, 200))),
    # the closing bracket of a tag, and lookalikes
    "gt": chars("[>＞﹥〉]", 1, 1),
    "quoted": Node(_QUOTED, _QUOTED + r"\\?\Z"),
    # a comment in JSON or Python, and the whitespace after it
    "comment": optional(_COMMENT),
    "one_comment": _COMMENT,
    # an operator that makes the preceding string part of an expression
    "operator": Node(
        OPERATOR,
        r"(?:[.=!<>]\s?|or?|a(?:nd?)?|i[fns]?|n(?:ot?)?|f(?:or?)?)?\Z",
    ),
    "quoted_once": chars(r"[^'\n]", 0, 256),
    "words": chars(r"[^<>{}\n]", 0, 60),
    # stray content of a channel header: its own keywords, some punctuation, non-Latin letters; no sentence
    "debris": repeat_any(
        24, *map(literal, _CHANNEL_NAMES), chars(r"[ \t(?!\d–—]", 1, 1), chars(r"[^\W\x00-\x7f]", 1, 1)
    ),
    "constraint": optional(sequence(literal("<|constrain|>"), chars(r"[\w ]", 0, 20))),
    # the beginning of a message in a channel, a second time
    "again": optional(sequence(literal("<|start|>"), chars(" ", 0, 1), literal("assistant"))),
    "tick": chars("[`\"'\\[\\]]", 0, 1),
    # stray characters between two marks
    "stray": chars(r"[^\w\s<]", 1, 2),
    "junk": chars("[\"'=:]", 0, 2),
    "eqkey": optional(sequence(literal("="), chars(r"[\w.\-]", 1, 128))),
    "gap": chars("[▁_ ]", 1, 1),
    "marker": Node(
        rf"[\w\- ]{{0,20}}(?:{_CALL_WORD})[\w\-]{{0,16}}(?: (?:{_CALL_WORD})[\w\-]{{0,16}})? ?", r"[\w\- ]{0,80}+\Z"
    ),
    "own_role": either(*map(literal, ("assistant", "Assistant", "model"))),
    "slash": chars("/", 0, 1),
    "ing": optional(literal("ing")),
    "language": chars(r"[\w\-+]", 0, 20),
    # lookaheads: what must follow, not consumed
    "before_object": Node(r"(?=\s*+\{)", r"\s*+\Z"),
    "before_quoted": Node(r"(?=\s*+\{\s*+[\"'}])", r"\s*+(?:\{\s*+)?\Z"),
    "before_json": Node(r"(?=\s*+[\[{])", r"\s*+\Z"),
    "before_no_json": Node(r"(?=\s*+(?:[^\s\[{]|\Z))", r"\s*+\Z"),
    "before_text": Node(r"(?=\s*+[^\s<])", r"\s*+\Z"),
    "before_mark": Node(r"(?=\s*+[<\[{])", r"\s*+\Z"),
    "before_end": Node(r"(?=[ \t\r]*(?:[\n<]|\Z))", r"[ \t\r]*\Z"),
    "before_break": Node(r"(?=[ \t\r]*(?:\n|\Z))", r"[ \t\r]*\Z"),
    "before_sentence": Node(r"(?=[ \t]*[A-Z](?:[a-z]|['’ ]))", r"[ \t]*[A-Z]?\Z"),
    "before_pair": Node(
        r"(?=\s*+(?:[\[(]\s*+)?[\"'][\w.\-/\\]{1,128}[\"']\s*+,\s*+\{)",
        r"\s*+(?:\Z|(?:[\[(]\s*+)?(?:\Z|[\"'][\w.\-/\\]{0,128}(?:\Z|[\"']\s*+(?:\Z|,\s*+\Z))))",
    ),
    # a bullet or a number before an item of a list
    "item": Node(r"(?:[-*•]|\d{1,3}[.)])[ \t]{1,4}", r"(?:\d{0,3}\Z|(?:[-*•]|\d{1,3}[.)])[ \t]{0,4}\Z)"),
    # a Python call, or a list of some
    "before_python": Node(r"(?=\s{0,8}\[?\s{0,8}[\w.\\]{1,128}\s?\()", r"\s{0,8}+\[?\s{0,8}+[\w.\\]{0,128}+\s?\Z"),
    # the same, with something around it or before it
    "before_sole_python": Node(
        r"(?=(?:[\"']|(?:[-*•]|\d{1,3}[.)])[ \t]{1,4})[\w.\\]{1,128}\s?\()",
        r"(?:\d{0,3}\Z|(?:[\"']|(?:[-*•]|\d{1,3}[.)])[ \t]{0,4})[\w.\\]{0,128}+\s?\Z)",
    ),
    "before_parenthesis": Node(r"(?=\s?\()", r"\s?\Z"),
    "before_arg_key": Node(r"(?=\s*+<arg_key>)", rf"\s*+{literal('<arg_key>').prefix}"),
    # the key of a pair, with or without a suffix, or the end of a call that has none
    "before_pair_key": Node(
        r"(?=\s*+(?:<arg_key[:>]|</tool_call[:>]))",
        rf"\s*+(?:{literal('<arg_key').prefix}|{literal('</tool_call').prefix})",
    ),
    "before_parameter": Node(r"(?=\s*+<parameter=)", rf"\s*+{literal('<parameter=').prefix}"),
    "before_rfl": Node(r"(?=\s*+<rfl:parameter)", rf"\s*+{literal('<rfl:parameter').prefix}"),
    "before_dsml": Node(r"(?=\s*+<\s*+[|｜‖]{1,2}\s*+DSML)", r"\s*+(?:<\s*+(?:[|｜‖]{1,2}\s*+(?:D(?:S(?:M)?)?)?)?)?\Z"),
    "before_turn": lookahead(_TURN),
    "before_stray_end": lookahead(chars(r"[^<>{}\n]", 0, 60), literal("<|end|>"), _TURN),
    # after a mark that begins a turn without a role: another mark, the end of the line, or a sentence
    "before_own_text": Node(
        r"(?=[ \t\r]*(?:[<>\[\]{`\n]|\Z|[A-Z][\w'’]*[ ,]|[^\x00-\x7f]))", r"[ \t\r]*(?:[A-Z][\w'’]*)?\Z"
    ),
    "before_call": Node(r"(?=\s*+(?:[\[{]|<tool_call))", rf"\s*+{literal('<tool_call').prefix}"),
}

TOKEN = re.compile(r"\{\{|\}\}|\{(\w+)\}|[ ]+|\n|[^{} \n]+|.", re.DOTALL)


_NAMED = {
    "name": "name",
    "name_id": "name",
    "name_group": "name",
    "name_parallel": "name",
    "name_own": "name",
    "name_line": "name",
    "recipient": "name",
    "key": "key",
    "key_plain": "key",
    "key_loose": "key",
    "attributes": "attributes",
    "type": "type",
    "quoted": "quoted",
    "quoted_once": "quoted",
}


def template_regex(template: str, overrides: Mapping[str, str] | None = None) -> str:
    """Compile a template to a regex; ``overrides`` replaces the regexes of some slots."""
    slots = {slot: Node(text, text) for slot, text in (overrides or {}).items()}
    return join_nodes(make_nodes(template, False, {**SLOTS, **slots}))


def make_nodes(template: str, named: bool, slots: Mapping[str, Node] = SLOTS) -> list[Node]:
    found: list[Node] = []
    for token in TOKEN.finditer(template):
        slot = token[1]
        if slot:
            node = slots[slot]
            if named and slot in _NAMED:
                node = Node(f"(?P<{_NAMED[slot]}>{node.full})", node.prefix)
            found.append(node)
        elif token[0].isspace():
            found.append(BREAK if token[0] == "\n" else BLANKS)
        else:
            found.extend(map(character, "{" if token[0] == "{{" else "}" if token[0] == "}}" else token[0]))
    return found


def join_nodes(nodes: Iterable[Node]) -> str:
    return "".join(node.full for node in nodes)
