"""Write calls as text in any dialect, so that ``read(write_call(...))`` returns the same call.

Strategy. The dialect's codec writes the call in the form of the dialect's sample, then in other forms that can carry
more. Each form is read with the reader itself, and the first one that reads back exactly wins, so no rules are needed
about which value breaks which notation. The fallbacks are a JSON object inside the dialect's wrapper and, last, the
JSON of hermes, where every special character can be escaped.

Arguments are JSON text. Text that is not an object (a defective call of a model or client) is written as one argument
named ``arguments``; empty text means no arguments.
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

_CallKey: TypeAlias = tuple[str, str, str, bytes]
"""All that the text of a call depends on: dialect, name, arguments and the digest of the tool. The tool itself would be
held as long as the text, and descriptions are long."""

FALLBACK_DIALECT = "hermes"
_LONG_ARGUMENTS: Final = 65536
"""Calls are cached because clients resend their history with every turn; longer arguments are cached by digest."""
_COSTLY_ARGUMENTS: Final = 4096
"""Characters of arguments from which on reading a call back in several forms takes long."""
_CALL_CACHE: Final[TextCache[_CallKey]] = TextCache(1 << 22)
"""The text of calls with short arguments."""
_LONG_CALL_CACHE: Final[TextCache[bytes]] = TextCache(1 << 24)
"""The text of calls with longer arguments, by a digest of the key."""
_BATCH_SIZE: Final = 32
"""Calls that are verified with one read."""


@lru_cache(maxsize=256)
def resolve_dialect(dialect: str) -> Dialect:
    """The dialect record, given the name of the dialect or the id of a model that uses it.

    Raises: ``UsageError`` if ``dialect`` is neither.
    """
    name = dialect_index().resolve_hint(dialect)
    if not name:
        raise UsageError(f"{dialect!r} is neither a dialect nor a known model")
    return dialect_index().by_name[name]


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_PYTHON_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_JSON_NAME = re.compile(r"[\w.\-/:]{1,128}\Z")


@cache
def _mark_words() -> frozenset[str]:
    """Every word in a mark of any dialect. Only a tool name among them can be misread as a mark, and this lookup is
    far cheaper than writing and reading a call."""
    marks = [mark for wrap in _collect("wrap") for mark in (*wrap.open, *wrap.close)]
    marks += [mark for region in _collect("regions") for mark in (*region.open, *region.close)]
    marks += [mark for call in _collect("calls") for mark in (*call.header, *call.close)]
    marks += [*_collect("results"), *_collect("noise"), *(spec.sample for spec in dialect_index().dialects)]
    return frozenset(word.lower() for mark in marks for word in re.findall(r"[A-Za-z0-9_]+", mark)) - {"get_weather"}


def _collect(field: str) -> Iterator[Any]:
    return chain.from_iterable(getattr(spec, field) for spec in dialect_index().dialects)


@lru_cache(maxsize=1024)
def can_name(dialect: str, name: str) -> bool:
    """Whether a call to a tool of that name can be written in the dialect: the name is well-formed and reads back."""
    spec = dialect_index().by_name[dialect]
    if isinstance(spec.call.body, JsonEnvelope):
        spelling = _JSON_NAME
    else:
        spelling = _PYTHON_NAME if "{before_parenthesis}" in spec.call.header[0] else _IDENTIFIER
    if spelling.match(name) is None:
        return False
    if _PYTHON_NAME.match(name) and name.lower() not in _mark_words():
        return True
    probe: dict[str, Value] = {"probe": "x"}
    definition = {"name": name, "parameters": {"type": "object", "properties": {"probe": {"type": "string"}}}}
    form = next(iter(_write_forms(spec, name, probe)))
    return _reads_back(form, name, dump(probe), definition)


def write_call(dialect: str, name: str, arguments: str, tools: Sequence[Tool] = ()) -> str:
    """Write one call in a dialect.

    Parameters: ``dialect`` is a dialect name or a model id, ``arguments`` JSON text, ``tools`` the offered tools. A
    call to a tool that is not offered is written without a schema.

    Raises: ``UsageError`` if ``dialect`` is unknown.
    """
    key = resolve_dialect(dialect).name, name, arguments, _find_digest(name, tools)
    if len(arguments) > _LONG_ARGUMENTS:
        return _write_long(key, tools)
    written = _CALL_CACHE.get(key)
    if written is None:
        written = _write(*key[:3], _find_tool(name, tools))
        _CALL_CACHE.add(key, written, len(arguments))
    return written


def _find_tool(name: str, tools: Sequence[Tool]) -> Tool:
    if isinstance(tools, Tools):
        tool = tools.by_name.get(name)
    else:
        tool = next((tool for tool in tools if tool.name == name), None)
    return tool or Tool(name)


def _find_digest(name: str, tools: Sequence[Tool]) -> bytes:
    if not isinstance(tools, Tools):
        return _find_tool(name, tools).digest()
    digest = tools.digests.get(name)
    if digest is None:
        digest = _find_tool(name, tools).digest()
        if name in tools.by_name:
            tools.digests[name] = digest
    return digest


def cache_calls(dialect: str, calls: Sequence[tuple[str, str]], tools: Sequence[Tool]) -> None:
    """Write calls into the cache of ``write_call``. Verifying many calls with one read is faster than one by one."""
    spec = resolve_dialect(dialect)
    keys = ((spec.name, name, arguments, _find_digest(name, tools)) for name, arguments in calls)
    new = [
        key
        for key in dict.fromkeys(keys)
        if len(key[2]) <= _LONG_ARGUMENTS // _BATCH_SIZE and _CALL_CACHE.get(key) is None
    ]
    for at in range(0, len(new), _BATCH_SIZE):
        batch = new[at : at + _BATCH_SIZE]
        if len(batch) == 1:
            return
        texts = [next(_write_forms(spec, name, parse_arguments(arguments))) for _, name, arguments, _ in batch]
        if _all_read_back("\n".join(texts), tuple(key[1:3] for key in batch), tuple(tools)):
            for key, text in zip(batch, texts, strict=True):
                _CALL_CACHE.add(key, text, len(key[2]))


def _write_long(key: _CallKey, tools: Sequence[Tool]) -> str:
    """Write a call whose arguments are too long for a cache key."""
    dialect, name, arguments, tool = key
    context = json.dumps((dialect, name)).encode()
    digest = sha256(b"%b%b%b" % (tool, context, arguments.encode("utf-8", "surrogatepass"))).digest()
    written = _LONG_CALL_CACHE.get(digest)
    if written is None:
        written = _write(dialect, name, arguments, _find_tool(name, tools))
        _LONG_CALL_CACHE.add(digest, written)
    return written


def write_calls(dialect: str, calls: Sequence[tuple[str, str]], tools: Sequence[Tool] = ()) -> str:
    """Write the calls of one message, as (name, arguments): in one wrapper if the dialect has that, else in sequence.

    Parameters and errors are those of ``write_call``.
    """
    spec = resolve_dialect(dialect)
    texts = [write_call(dialect, name, arguments, tools) for name, arguments in calls]
    if len(texts) == 1:
        return texts[0]
    wrapped = _share_wrapper(spec, texts) if spec.between is not None and texts else ""
    if wrapped and _all_read_back(wrapped, tuple(calls), tuple(tools)):
        return wrapped
    for mark in spec.results:
        # the mark that asks for the result comes once, after the last call
        texts[:-1] = [text.removesuffix(mark).rstrip() for text in texts[:-1]]
    return "\n".join(texts)


def _share_wrapper(spec: Dialect, texts: Sequence[str]) -> str:
    """Put the calls into the wrapper of the first one. The caller verifies that the result reads back."""
    head, tail = _find_wrapper(spec.name)
    inner = [text.removeprefix(head).removesuffix(tail) for text in texts]
    calls = [text.strip().removeprefix("[").removesuffix("]").strip() for text in inner]
    start = inner[0].find(calls[0])
    opening, closing = inner[0][:start], inner[0][start + len(calls[0]) :]
    return head + opening + (spec.between or "").join(calls) + closing + tail


@lru_cache(maxsize=64)
def _all_read_back(text: str, calls: tuple[tuple[str, str], ...], tools: tuple[Tool, ...]) -> bool:
    known = {tool.name for tool in tools}
    unknown = dict.fromkeys(name for name, _ in calls if name not in known)
    reading = read(text, tools=compile_tools((*tools, *map(Tool, unknown)), ()))
    wanted = [(name, dump(parse_arguments(arguments))) for name, arguments in calls]
    return wanted == [(call.name, dump(parse_arguments(call.arguments))) for call in reading.calls]


def _write(dialect: str, name: str, arguments: str, tool: Tool) -> str:
    values = parse_arguments(arguments)
    wanted = dump(values)
    any_schema = {"name": name}
    definition = to_definition(tool)
    if len(arguments) > _COSTLY_ARGUMENTS:
        # arguments that do not fit the schema read back in no form; JSON shows that in a fraction of the time
        fits = any(_reads_back(text, name, wanted, definition) for text in _write_plainly(name, values))
        definition = definition if fits else any_schema
    forms: dict[str, None] = {}
    for text in _write_forms(dialect_index().by_name[dialect], name, values):
        # the first form usually reads back; later ones are then never written
        if text not in forms and _reads_back(text, name, wanted, definition):
            return text
        forms[text] = None
    again = () if definition is any_schema else forms
    readable = (text for text in again if _reads_back(text, name, wanted, any_schema))
    return next(readable, next(iter(forms)))


def parse_arguments(arguments: str) -> dict[str, Value]:
    """The arguments of a call by name; never fails (see the module docstring)."""
    if not arguments.strip():
        return {}
    parsed = parse_object(arguments)
    if parsed is not None and isinstance(parsed.value, dict):
        return parsed.value
    try:
        return {"arguments": parse(arguments).value}
    except NotJsonError:
        return {"arguments": arguments}


def parse_tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[Tool, ...]:
    """Parse tool definitions in OpenAI, Anthropic or plain form.

    Raises: ``ToolSchemaError`` for the definitions that the reader refuses.
    """
    CompiledTools(tools)
    inner = [entry.get("function", entry) for entry in tools or ()]
    return tuple(
        Tool(tool["name"], str(tool.get("description") or ""), tool.get("input_schema") or tool.get("parameters") or {})
        for tool in inner
    )


def to_definition(tool: Tool) -> dict[str, Any]:
    """The tool as a definition for the reader."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _write_forms(spec: Dialect, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
    """The call in each form to try, in order of preference."""
    has_own_form = False
    for text in spec.call.body.write(spec.sample, name, arguments):
        yield text
        has_own_form = True
    head, tail = _find_wrapper(spec.name)
    if has_own_form and head:
        for text in (HARD_JSON.write(dict(arguments)), write_encoded(arguments)):
            yield f'{head.replace(TOOL, name)}\n{{"name": "{name}", "arguments": {text}}}\n{tail}'
    yield from _write_plainly(name, arguments)


def _write_plainly(name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
    """The call in the dialect that stands in where another cannot write it."""
    plain = dialect_index().by_name[FALLBACK_DIALECT]
    return plain.call.body.write(plain.sample, name, arguments)


@lru_cache(maxsize=128)
def _find_wrapper(dialect: str) -> tuple[str, str]:
    """The opening and closing mark around the call in the sample; two empty strings if there is no wrapper."""
    spec = dialect_index().by_name[dialect]
    for wrap in spec.wrap:
        found = Mark(*wrap.open).at(spec.sample, 0, True)
        if isinstance(found, re.Match):
            return found[0].rstrip(), _find_closer(spec.sample, wrap.close or spec.noise)
    return "", ""


def _find_closer(sample: str, templates: tuple[str, ...]) -> str:
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
