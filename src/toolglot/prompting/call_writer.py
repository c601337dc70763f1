"""Calls written as text, in any dialect: ``read(write_call(...))`` gives the call back.

Strategy. The codec of the dialect writes the call in the form of the record's sample, and offers other forms that carry
more. Each is read with the reader itself, and the first that comes back exactly is the one: nothing has to be known
about which value breaks which notation. Behind the dialect's own forms stand a JSON object inside its wrapper, and at
last the JSON of hermes, where every odd character can be escaped.

Arguments are JSON text. Text that is no object (a model or client once got it wrong) is written as one argument called
``arguments``, as it is; the empty text means no arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import chain
from typing import Any, Final, TypeAlias

from toolglot.core.conversation import Tool, Tools
from toolglot.core.errors import ToolSchemaError, UsageError
from toolglot.core.lenient_json import NotJsonError, Value, dump, parse
from toolglot.core.schema.toolset import CompiledTools, compile_tools
from toolglot.core.text_cache import TextCache
from toolglot.dialects.codecs.buffered_values import parse_object
from toolglot.dialects.codecs.json_envelope import JsonEnvelope
from toolglot.dialects.codecs.sample_templates import HARD_JSON, TOOL, write_encoded
from toolglot.dialects.patterns import Mark
from toolglot.dialects.spec import Dialect
from toolglot.reading.reader import dialect_index, read

_Key: TypeAlias = tuple[str, str, str, Tool]
"""All that the text of a call depends on: dialect, name, arguments and tool."""

FALLBACK = "hermes"
_REMEMBERED: Final = 65536
"""Clients send their history again with every turn; arguments up to this length are written once."""
_CALLS: Final[TextCache[_Key]] = TextCache(1 << 22)
"""Such calls, as they were written."""
_LONG_CALLS: Final[TextCache[bytes]] = TextCache(1 << 24)
"""Calls with longer arguments, by a digest of all that they depend on."""
_TOGETHER: Final = 32
"""So many calls are proved at once."""


@lru_cache(maxsize=256)
def record_of(dialect: str) -> Dialect:
    """The record of that name, or of the dialect that a model of that name speaks."""
    name = dialect_index().resolve_hint(dialect)
    if not name:
        raise UsageError(f"{dialect!r} is neither a dialect nor a model that is known to speak one")
    return dialect_index().by_name[name]


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_PYTHON_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_JSON_NAME = re.compile(r"[\w.\-/:]{1,128}\Z")


@cache
def _marking_words() -> frozenset[str]:
    """Every word that stands in a mark of any dialect: only a name that is one of them can be taken for something else,
    and to try out a name costs far more than to look here."""
    marks = [mark for wrap in _all("wrap") for mark in (*wrap.open, *wrap.close)]
    marks += [mark for region in _all("regions") for mark in (*region.open, *region.close)]
    marks += [mark for call in _all("calls") for mark in (*call.header, *call.close)]
    marks += [*_all("results"), *_all("noise"), *(record.sample for record in dialect_index().dialects)]
    return frozenset(word.lower() for mark in marks for word in re.findall(r"[A-Za-z0-9_]+", mark)) - {"get_weather"}


def _all(field: str) -> Iterator[Any]:
    return chain.from_iterable(getattr(record, field) for record in dialect_index().dialects)


@lru_cache(maxsize=1024)
def can_name(dialect: str, name: str) -> bool:
    """Whether the dialect can call a tool of that name: it is written as such names are, and it reads back."""
    record = dialect_index().by_name[dialect]
    if isinstance(record.call.body, JsonEnvelope):
        spelling = _JSON_NAME
    else:
        spelling = _PYTHON_NAME if "{before_parenthesis}" in record.call.header[0] else _IDENTIFIER
    if spelling.match(name) is None:
        return False
    if _PYTHON_NAME.match(name) and name.lower() not in _marking_words():
        return True
    probe: dict[str, Value] = {"probe": "x"}
    definition = {"name": name, "parameters": {"type": "object", "properties": {"probe": {"type": "string"}}}}
    form = next(iter(_forms(record, name, probe)))
    return _reads_back(form, name, dump(probe), definition)


def write_call(dialect: str, name: str, arguments: str, tools: Sequence[Tool] = ()) -> str:
    """The call as the dialect writes it; a tool that was not offered is written as if it were known."""
    key = record_of(dialect).name, name, arguments, _find_tool(name, tools)
    if len(arguments) > _REMEMBERED:
        return _write_long(*key)
    written = _CALLS.get(key)
    if written is None:
        written = _write(*key)
        _CALLS.add(key, written)
    return written


def _find_tool(name: str, tools: Sequence[Tool]) -> Tool:
    if isinstance(tools, Tools):
        tool = tools.by_name.get(name)
    else:
        tool = next((tool for tool in tools if tool.name == name), None)
    return tool or Tool(name)


def write_ahead(dialect: str, calls: Sequence[tuple[str, str]], tools: Sequence[Tool]) -> None:
    """Write calls that ``write_call`` will be asked for. It takes less time to prove many of them at once."""
    record = record_of(dialect)
    keys = ((record.name, name, arguments, _find_tool(name, tools)) for name, arguments in calls)
    new = [key for key in dict.fromkeys(keys) if len(key[2]) <= _REMEMBERED // _TOGETHER and _CALLS.get(key) is None]
    for at in range(0, len(new), _TOGETHER):
        some = new[at : at + _TOGETHER]
        if len(some) == 1:
            return
        texts = [next(_forms(record, name, parse_arguments(arguments))) for _, name, arguments, _ in some]
        if _prove_all("\n".join(texts), tuple(key[1:3] for key in some), tuple(tools)):
            for key, text in zip(some, texts, strict=True):
                _CALLS.add(key, text)


def _write_long(dialect: str, name: str, arguments: str, tool: Tool) -> str:
    """The same for arguments that are too long to be kept as they are."""
    told = json.dumps((dialect, name, tool.name, tool.parameters), default=str)
    key = sha256(b"%d:%b" % (len(told), told.encode()) + arguments.encode("utf-8", "surrogatepass")).digest()
    written = _LONG_CALLS.get(key)
    if written is None:
        written = _write(dialect, name, arguments, tool)
        _LONG_CALLS.add(key, written)
    return written


def write_calls(dialect: str, calls: Sequence[tuple[str, str]], tools: Sequence[Tool] = ()) -> str:
    """Several calls of one message: in one wrapper where the dialect does so, otherwise one behind the other."""
    record = record_of(dialect)
    texts = [write_call(dialect, name, arguments, tools) for name, arguments in calls]
    if len(texts) == 1:
        return texts[0]
    together = _share_wrapper(record, texts) if record.between is not None and texts else ""
    if together and _prove_all(together, tuple(calls), tuple(tools)):
        return together
    for mark in record.results:
        # what asks for the result comes once, behind the last call
        texts[:-1] = [text.removesuffix(mark).rstrip() for text in texts[:-1]]
    return "\n".join(texts)


_LIST = re.compile(r"(\s*\[?\s*)(.*?)(\s*\]?\s*)\Z", re.DOTALL)


def _share_wrapper(record: Dialect, texts: Sequence[str]) -> str:
    """The calls in one wrapper, as the first has it; what does not fit in there will not read back."""
    head, tail = _wrapper(record.name)
    inner = [text.removeprefix(head).removesuffix(tail) for text in texts]
    parts = [found.groups() for found in map(_LIST.match, inner) if found is not None]
    return head + parts[0][0] + (record.between or "").join(call for _, call, _ in parts) + parts[0][2] + tail


@lru_cache(maxsize=64)
def _prove_all(text: str, calls: tuple[tuple[str, str], ...], tools: tuple[Tool, ...]) -> bool:
    known = {tool.name for tool in tools}
    unknown = dict.fromkeys(name for name, _ in calls if name not in known)
    reading = read(text, tools=compile_tools((*tools, *map(Tool, unknown)), ()))
    wanted = [(name, dump(parse_arguments(arguments))) for name, arguments in calls]
    return wanted == [(call.name, dump(parse_arguments(call.arguments))) for call in reading.calls]


def _write(dialect: str, name: str, arguments: str, tool: Tool) -> str:
    values = parse_arguments(arguments)
    wanted = dump(values)
    forms: dict[str, None] = {}
    for text in _forms(dialect_index().by_name[dialect], name, values):
        # the first usually does, and the others need not be written then
        if text not in forms and _reads_back(text, name, wanted, define(tool)):
            return text
        forms[text] = None
    readable = (text for text in forms if _reads_back(text, name, wanted, {"name": name}))
    return next(readable, next(iter(forms)))


def parse_arguments(arguments: str) -> dict[str, Value]:
    """The arguments of a call by name, whatever the text is."""
    if not arguments.strip():
        return {}
    parsed = parse_object(arguments)
    if parsed is not None and isinstance(parsed.value, dict):
        return parsed.value
    try:
        return {"arguments": parse(arguments).value}
    except NotJsonError:
        return {"arguments": arguments}


def take_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[Tool, ...]:
    """Tools from any of the usual ways to declare them; raises ``ToolSchemaError`` where reading would."""
    CompiledTools(tools)
    inner = [entry.get("function", entry) for entry in tools or ()]
    return tuple(
        Tool(tool["name"], str(tool.get("description") or ""), tool.get("input_schema") or tool.get("parameters") or {})
        for tool in inner
    )


def define(tool: Tool) -> dict[str, Any]:
    """The tool as the reader wants it."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _forms(record: Dialect, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
    own = False
    for text in record.call.body.write(record.sample, name, arguments):
        yield text
        own = True
    head, tail = _wrapper(record.name)
    if own and head:
        for text in (HARD_JSON.write(dict(arguments)), write_encoded(arguments)):
            yield f'{head.replace(TOOL, name)}\n{{"name": "{name}", "arguments": {text}}}\n{tail}'
    plain = dialect_index().by_name[FALLBACK]
    yield from plain.call.body.write(plain.sample, name, arguments)


@lru_cache(maxsize=128)
def _wrapper(dialect: str) -> tuple[str, str]:
    """What the sample has around its call; nothing when it stands alone."""
    record = dialect_index().by_name[dialect]
    for wrap in record.wrap:
        found = Mark(*wrap.open).at(record.sample, 0, True)
        if isinstance(found, re.Match):
            return found[0].rstrip(), _closing(record.sample, wrap.close or record.noise)
    return "", ""


def _closing(sample: str, templates: tuple[str, ...]) -> str:
    mark = Mark(*templates)
    for start in range(len(sample)):
        found = mark.at(sample, start, True)
        if isinstance(found, re.Match) and found.end() == len(sample):
            return found[0].lstrip()
    return ""


def _reads_back(text: str, name: str, wanted: str, definition: Mapping[str, Any]) -> bool:
    try:
        reading = read(text, tools=[definition])
    except ToolSchemaError:
        return False
    if len(reading.calls) != 1 or reading.rejected or reading.text.strip():
        return False
    call = reading.calls[0]
    return call.name == name and dump(parse_arguments(call.arguments)) == wanted
