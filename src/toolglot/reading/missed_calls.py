"""Finds a call that no dialect could read, at the end of an answer without calls.

Strategy. Marks that have lost a character, entities in place of marks and envelopes of the model's own open no block of
calls. Such text is a near miss if it stands alone at the end: the answer ends like a call, the name of a tool stands
where a call has it, on a line that begins with a mark, and behind it is a parameter of this tool with the sign before
its value. Definitions of tools, text in code fences other than JSON, and what an example phrase introduces are none,
unless that is a call which would be read without the phrase.
Most answers end with a word and are dismissed by their last characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from html import unescape
from itertools import islice

from toolglot.core.events import NearMiss
from toolglot.core.lenient_json import NotJsonError, parse
from toolglot.core.schema.toolset import CompiledTool, CompiledTools
from toolglot.core.uncached_regex import compile_uncached
from toolglot.dialects.event_buffer import TAIL_SIZE
from toolglot.reading.example_detection import announces_example, is_shown
from toolglot.reading.near_misses import holds_elements
from toolglot.reading.open_elements import is_like_tool

MAX_TEXT = 1 << 15
"""How much of the end of an answer is searched."""
_MAX_NAMES = 64
_MAX_MISSPELT = 4
_MAX_HEADER = 400
"""How far behind the name the first parameter may be."""
_MAX_LINES = 8

_ENDS_CALL = re.compile(r"(?:[}\]]|[</|｜}\]][\w:|｜▁ ]{0,40}>|&gt;)(?:\s*```)*\s*\Z")
_ENDS_EXAMPLE = re.compile(r"[}\])>`]\s*\Z")
_INTRODUCTION = re.compile(r"[:：][*_]{0,3}[ \t]*\n\s*")
_CALL_LINE = re.compile(
    r"[ \t]{0,3}(?:[<{\[]|[|｜]\w|/?[\w:.-]{1,60}[>{\[]|(?:function|parameter|tool|to)=|(?:invoke|parameter)\s+name=)"
)
"""The beginning of a line of a call."""
_FENCE = re.compile(r"^[ \t]{0,3}```", re.MULTILINE)
_JSON_FENCE = re.compile(r"[ \t]{0,3}```[ \t]*+(?:json\w*+|tool\w*+)?[ \t]*+\n", re.IGNORECASE)
_NAME_KEY = r'"(?:name|tool|tool_?name|function|function_?name|action|recipient_name{})"\s*:\s*"'
_FENCED_HEADER = re.compile(_NAME_KEY.format("") + r'[^"\n]{0,80}\Z', re.IGNORECASE)
_HEADER = re.compile(
    _NAME_KEY.format("|type")
    + r"""[^"\n]{0,80}\Z|\bname\s*=\s*["']?[^"'\n]{0,80}\Z|\{\s*"\Z|[<>|｜=:.\]\[] ?\Z|\A[ \t]*\Z|<tool_call\Z""",
    re.IGNORECASE,
)
"""What stands before the name of a tool in a call, on its line."""
_DEFINITION = re.compile(r'["<](description|properties|input_?schema|required|\$schema)[">]', re.IGNORECASE)
_SIGN = r"""["']?(?:\s*[:=>]|</?arg|/arg|\s+\w+=)\s*\S"""
"""What stands between the name of a parameter and its value."""
_CLOSER = re.compile(r"</([A-Za-z][\w.-]{0,63})>\Z")
_USUAL_TOOLS = re.compile(
    r"apply_patch|bash|cmd|edit|exec|execute|glob|grep|ls|multiedit|patch|powershell|python|read|run|shell|task|terminal"
    r"|todowrite|webfetch|websearch|write",
    re.IGNORECASE,
)
"""Names of tools that agents have; other elements are read as calls only if they hold elements."""
_JSON_CALL = re.compile(
    r'^[ \t]{0,3}(?:\[\s*)?\{\s*"(?:name|tool|tool_?name|function|action)"\s*:\s*"(?P<name>[A-Za-z_][\w.-]{0,63})"\s*,'
    r'\s*"(?:arguments|args|parameters|input)"\s*:\s*\{',
    re.MULTILINE,
)
_MAX_KEYS = 3
_WRITTEN = re.compile(
    r"^[ \t]{0,3}(?:<?tool_call>\s*)?\[?<?([A-Za-z_][\w.-]{2,63})(?=[>(\n])"
    r'|"(?:name|tool|function)"\s*:\s*"([\w.-]{3,64})"|function=([\w.-]+)',
    re.MULTILINE,
)
"""Names as calls have them."""


def find_missed_call(text: str, tools: CompiledTools, dialect: str) -> NearMiss | None:
    """Find the call that an answer without calls ends with, although no dialect could read it.

    Args:
        text: the end of the answer.
        dialect: the dialect that the answer was expected to be in.
    """
    if _ENDS_CALL.search(text[-120:]) is None:
        return None
    text = text[-MAX_TEXT:].rstrip()
    plain = unescape(text) if "&lt;" in text else text
    for tool, start, end in _list_names(plain, tools):
        if _is_call(plain, start, end, tool):
            written = plain[start:end]
            wrong = () if tools.find(written) is tool else (tools.describe_unknown(written),)
            return NearMiss(dialect, tool.name, wrong, plain[plain.rfind("\n", 0, start) + 1 :])
    return _find_unknown(text, tools)


def find_examples(text: str) -> list[str]:
    """What follows the lines of a text that introduce an example, if it may end with a call."""
    if _ENDS_EXAMPLE.search(text[-120:]) is None:
        return []
    text = text[-MAX_TEXT:]
    ends = [found.end() for found in _INTRODUCTION.finditer(text)][-_MAX_MISSPELT:]
    return [text[end:] for end in ends if announces_example(text[:end]) and not is_shown(text[:end])]


def _find_unknown(text: str, tools: CompiledTools) -> NearMiss | None:
    """Find a bare call of a tool that is not offered at the end of a text: an element, or JSON."""
    found = _find_element(text) or _find_json(text)
    if found is None or tools.find(found[0]) is not None:
        return None
    name, start = found
    before = text[:start]
    if len(_FENCE.findall(before[: _find_first_line(text, start)])) % 2 or _is_introduced_as_shown(before):
        return None
    dialect = "roo_xml" if text[start:].lstrip().startswith("<") else "bare_json"
    return NearMiss(dialect, None, (tools.describe_unknown(name),), text[start:])


def _find_element(text: str) -> tuple[str, int] | None:
    """Find the element that ends a text and has the name of a tool: that name, and where the element begins."""
    closer = _CLOSER.search(text, max(0, len(text) - 120))
    if closer is None:
        return None
    name = closer[1]
    start = text.rfind(f"<{name}>", 0, closer.start())
    body = text[start + len(name) + 2 : closer.start()]
    if start < 0 or not body.strip() or text[text.rfind("\n", 0, start) + 1 : start].strip():
        return None
    return (name, start) if _USUAL_TOOLS.fullmatch(name) or (is_like_tool(name) and holds_elements(body)) else None


def _find_json(text: str) -> tuple[str, int] | None:
    """Find the JSON that ends a text and has the form of a call, or of a list of calls: the name of the first tool, and
    where the JSON begins."""
    for header in list(islice(_JSON_CALL.finditer(text), _MAX_NAMES))[-_MAX_MISSPELT:]:
        start = header.start()
        try:
            parsed = parse(text[start:].rstrip("`~ \t\n"))
        except NotJsonError:
            continue
        call = parsed.value[0] if isinstance(parsed.value, list) else parsed.value
        fit = isinstance(call, dict) and len(call) <= _MAX_KEYS and not parsed.repairs
        return (header["name"], start) if fit and _DEFINITION.search(text, start) is None else None
    return None


def _list_names(text: str, tools: CompiledTools) -> Iterator[tuple[CompiledTool, int, int]]:
    """The tools that are named in a text, and where; misspelt names only if they stand where calls have names."""
    for found in islice(_compile_names(tools.names).finditer(text), _MAX_NAMES):
        tool = tools.find(found["name"])
        if tool is not None:
            yield tool, found.start(), found.end()
    for found in islice(_WRITTEN.finditer(text), _MAX_MISSPELT):
        group = found.lastindex or 1
        name = found[group]
        if tools.find(name) is None and (tool := _find_similar(name, tools)) is not None:
            yield tool, found.start(group), found.end(group)


@lru_cache(maxsize=64)
def _compile_names(names: tuple[str, ...]) -> re.Pattern[str]:
    """The names of tools, perhaps with a version behind them."""
    any_name = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)"
    before, behind = r"(?:(?<![\w-])|(?<=<tool_call))", r"(?:[_-]?v?\d{1,2})?(?![\w-])"
    return compile_uncached(rf"{before}(?P<name>{any_name}){behind}", re.IGNORECASE)


def _find_similar(name: str, tools: CompiledTools) -> CompiledTool | None:
    near = {known.lower(): known for known in tools.names if abs(len(known) - len(name)) <= 3}
    close = get_close_matches(name.lower(), near, n=1, cutoff=0.85)
    return tools.by_name[near[close[0]]] if close else None


def _is_call(text: str, start: int, end: int, tool: CompiledTool) -> bool:
    """Whether the name of a tool between these positions is that of a call up to the end of the text."""
    line = text.rfind("\n", 0, start) + 1
    if _CALL_LINE.match(text, line) is None or _HEADER.search(text[max(line, start - 160) : start]) is None:
        return False
    declared = tool.parameters.properties
    parameter = _compile_keys(tuple(declared)).search(text, end, end + _MAX_HEADER)
    if parameter is None:
        return False
    between = text[end : parameter.start()]
    if "\n\n" in between or any(found[1] not in declared for found in _DEFINITION.finditer(between)):
        return False
    first = _find_first_line(text, line)
    if _JSON_FENCE.match(text, first) is not None:
        if _FENCED_HEADER.search(text[max(line, start - 160) : start]) is None:
            return False
    elif len(_FENCE.findall(text, 0, line)) % 2:
        return False
    return not _is_introduced_as_shown(text[max(0, first - TAIL_SIZE) : first])


def _is_introduced_as_shown(before: str) -> bool:
    return announces_example(before) or is_shown(before)


def _find_first_line(text: str, line: int) -> int:
    """The first of the lines of a call, or of the fences around it, that end with this one."""
    for _ in range(_MAX_LINES):
        before = text.rfind("\n", 0, max(0, line - 1)) + 1
        if before >= line or not (_CALL_LINE.match(text, before) or _JSON_FENCE.match(text, before)):
            break
        line = before
    return line


@lru_cache(maxsize=256)
def _compile_keys(keys: Iterable[str]) -> re.Pattern[str]:
    any_key = "|".join(map(re.escape, keys)) or r"(?!)"
    return compile_uncached(rf"(?<!\w)(?:{any_key}){_SIGN}")
