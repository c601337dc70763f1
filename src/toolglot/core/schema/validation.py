"""Validates calls against the tools on offer, and their arguments against the schema of the tool.

Strategy. A call is refused only for what a tool cannot accept: arguments that are not one JSON object, a missing
required argument, a value of another type or outside an enum, an argument that the schema forbids. ``jsonschema-rs``
finds these errors, and each is reported only if the compiled schema of this project agrees: where the two differ, the
schema is unusual, and a good call must not fail for that. Other keywords (formats, patterns, ranges, conditions) are
removed before. A schema that cannot be used, or refers to another document, has no defects to report; nothing is
ever fetched. Without ``jsonschema-rs`` the compiled schema alone decides, and values that can be converted without loss
pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NoReturn, Protocol

from msgspec.structs import replace

from toolglot.core.conversation import Tool
from toolglot.core.events import Defect, Reason
from toolglot.core.json_numbers import encode
from toolglot.core.lenient_json import MAX_DEPTH, NotJsonError, Value, parse
from toolglot.core.schema.coerce import coerce_value, describe_mismatch, describe_unknown_key, list_missing_defects
from toolglot.core.schema.toolset import CompiledTool, compile_tool
from toolglot.core.schema.types import SchemaType

MAX_DEFECTS: Final = 8
"""Defects that are reported for one call."""
MAX_LISTED: Final = 20
"""How many known tools the defect of an unknown one names."""
_ARGUMENT: Final = "argument"
_EXCERPT: Final = 20
_LARGE: Final = 1 << 16
"""Of longer arguments only the first error is reported: to list thousands of errors takes long."""
_NOT_OBJECTS: Final[Mapping[type, str]] = {str: "a text", list: "a list", bool: "true or false"}
_KEPT: Final = frozenset({"type", "enum", "const", "required", "$ref"})
"""Keywords that are checked, and references."""
_SCHEMAS: Final = frozenset({"additionalProperties", "items"})
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"properties", "$defs", "definitions"})
_DECODER: Final = json.JSONDecoder(strict=False)


class _Error(Protocol):
    """An error of ``jsonschema-rs``: the keyword (``kind``) and the path of the value."""

    @property
    def kind(self) -> Any: ...

    @property
    def instance_path(self) -> Sequence[str | int]: ...


class _Validator(Protocol):
    """A validator of ``jsonschema-rs``."""

    def is_valid(self, instance: object) -> bool: ...

    def validate(self, instance: object) -> None: ...

    def iter_errors(self, instance: object) -> Iterator[_Error]: ...


class CallChecker:
    """Checks complete calls against the tools on offer.

    ``tools`` are those on offer, by the names that the client knows; ``others`` are further names that may be called.
    ``check_rendering`` finds why a call cannot be rendered for the client. ``known`` are all names that may be called.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        others: Collection[str] = (),
        check_rendering: Callable[[str, str], tuple[Defect, ...]] | None = None,
    ) -> None:
        self.tools = tools
        self.known: Collection[str] = {*tools, *others} if others else tools
        self.check_rendering = check_rendering

    def find_defects(self, name: str, arguments: str) -> tuple[Defect, ...]:
        """What is wrong with a complete call; empty if nothing is."""
        tool = self.tools.get(name)
        if tool is not None:
            defects = find_argument_defects(tool, arguments, as_text=self.check_rendering is not None)
            if defects or self.check_rendering is None:
                return defects
            found, declared = self.check_rendering(name, arguments), tool.parameters.get("properties", {})
            return tuple(replace(it, where=f"argument {it.where}") if it.where in declared else it for it in found)
        if name in self.known:
            return ()
        known = ", ".join(islice(self.tools, MAX_LISTED))
        return (Defect(reason=Reason.UNKNOWN_TOOL, where="tool", found=repr(name), expected=f"one of {known}"),)


def find_argument_defects(tool: Tool, arguments: str, *, as_text: bool = False) -> tuple[Defect, ...]:
    """Find what is wrong with the arguments of a complete native call.

    Parameters: ``tool`` is the called tool, ``arguments`` the text of the arguments as the model wrote it. ``as_text``:
    the client takes all values as text, so those that can be converted without loss pass.
    Returns: at most ``MAX_DEFECTS`` defects; none if the arguments are valid, or if that is in doubt. Never raises.
    """
    compiled, validator = _compile_validator(tool)
    try:
        given = _DECODER.decode(arguments.strip() or "{}")
    except json.JSONDecodeError as error:
        return (_describe_syntax(arguments.strip(), error),)
    except (ValueError, RecursionError):  # too many digits or levels
        return ()
    given = {} if given is None else given
    if not isinstance(given, dict):
        return (_malformed(Reason.MALFORMED, _NOT_OBJECTS.get(type(given), "a number")),)
    if compiled is None:
        return ()
    if validator is None or as_text:
        return tuple(islice(_check_compiled(compiled, _parse(arguments)), MAX_DEFECTS))
    try:
        if validator.is_valid(given):
            return ()
        errors = _list_errors(validator, given, len(arguments) > _LARGE)
    except ValueError:  # lone surrogates, or nested too deeply
        return ()
    values = _parse(arguments)
    confirmed = (defect for error in errors for defect in _confirm(error, compiled.parameters, values))
    return tuple(islice(confirmed, MAX_DEFECTS))


def _parse(arguments: str) -> dict[str, Value]:
    """The arguments with their numbers as written."""
    try:
        value = parse(arguments).value
    except (NotJsonError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# -- text that is no JSON object ---------------------------------------------------------------------------------------


def _malformed(reason: Reason, found: str) -> Defect:
    return Defect(reason=reason, where="arguments", found=found, expected="one JSON object for each call")


def _describe_syntax(text: str, error: json.JSONDecodeError) -> Defect:
    """Say why a text is not JSON."""
    if error.msg == "Extra data":
        glued = text[error.pos] == "{"
        found = "two JSON objects, one after the other" if glued else f"{_excerpt(text, error.pos)} after the object"
        return _malformed(Reason.MALFORMED, found)
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        return _malformed(Reason.TRUNCATED, "an end in the middle")
    return _malformed(Reason.MALFORMED, f"{_excerpt(text, error.pos)} at character {error.pos + 1}")


def _excerpt(text: str, at: int) -> str:
    return json.dumps(text[at : at + _EXCERPT], ensure_ascii=False)


# -- the compiled schema of this project -------------------------------------------------------------------------------


def _check_compiled(tool: CompiledTool, values: Mapping[str, Value]) -> Iterator[Defect]:
    for key, value in values.items():
        if tool.parameters.forbids(key):
            yield describe_unknown_key(tool.parameters, f"{_ARGUMENT} {key}")
        yield from coerce_value(value, tool.type_of(key), f"{_ARGUMENT} {key}").defects
    yield from tool.missing(values)


# -- the errors of jsonschema-rs ---------------------------------------------------------------------------------------


def _confirm(error: _Error, shape: SchemaType, value: Value) -> Iterator[Defect]:
    """Report an error if the compiled schema agrees."""
    where = _ARGUMENT
    for step in error.instance_path:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            shape, value, where = shape.items, value[step], f"{where}[{step}]"
        elif isinstance(value, dict) and step in value:
            shape, value, where = shape.property_type(str(step)), value[str(step)], _extend(where, str(step))
        else:
            return
    match error.kind.name:
        case "required":
            missing = error.kind.property
            prefix = _extend(where, "")
            yield from (it for it in list_missing_defects(shape, _keys(value), prefix) if it.where == prefix + missing)
        case "additionalProperties":
            for key in filter(shape.forbids, error.kind.unexpected):
                yield describe_unknown_key(shape, _extend(where, key))
        case "type" | "anyOf" | "oneOf" if not shape.admits(value):
            yield describe_mismatch(value, shape, where)
        case "enum" | "const" if not shape.lists(value):
            yield describe_mismatch(value, shape, where)
        case "anyOf" | "oneOf":
            yield from coerce_value(value, shape, where).defects


def _keys(value: Value) -> Collection[str]:
    return value if isinstance(value, dict) else ()


def _extend(where: str, key: str) -> str:
    return f"{where} {key}" if where == _ARGUMENT else f"{where}.{key}"


@lru_cache(maxsize=512)
def _compile_validator(tool: Tool) -> tuple[CompiledTool | None, _Validator | None]:
    """The compiled tool, None if its schema cannot be used; and its validator, None if ``jsonschema-rs`` is not
    installed."""
    try:
        return compile_tool(tool), _make_validator(tool)
    except (ValueError, TypeError, RecursionError):
        return None, None


def _make_validator(tool: Tool) -> _Validator | None:
    try:
        from jsonschema_rs import validator_for
    except ImportError:
        return None
    return validator_for(json.loads(encode(_reduce(tool.parameters, 0))), retriever=_refuse_to_fetch)


def _list_errors(validator: _Validator, arguments: object, only_first: bool) -> Sequence[_Error]:
    from jsonschema_rs import ValidationError

    if not only_first:
        return list(validator.iter_errors(arguments))
    try:
        validator.validate(arguments)
    except ValidationError as error:
        return (error,)
    return ()


def _refuse_to_fetch(address: str) -> NoReturn:
    raise ValueError(f"{address} is not part of the schema")


def _reduce(schema: object, depth: int) -> object:
    """The schema with only the keywords whose errors are reported, and those that lead to them."""
    if not isinstance(schema, Mapping):
        return schema
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    reduced: dict[str, object] = {}
    for word, part in schema.items():
        if word in _SCHEMA_MAPS and isinstance(part, Mapping):
            reduced[word] = {key: _reduce(inner, depth + 1) for key, inner in part.items()}
        elif word in _SCHEMA_LISTS and isinstance(part, (list, tuple)):
            reduced[word] = [_reduce(inner, depth + 1) for inner in part]
        elif word in _SCHEMAS and isinstance(part, (Mapping, bool)):
            reduced[word] = _reduce(part, depth + 1)
        elif word in _KEPT:
            reduced[word] = part
    if reduced.get("additionalProperties") is False:
        reduced.setdefault("properties", {})  # otherwise the error does not name the property
    return reduced
