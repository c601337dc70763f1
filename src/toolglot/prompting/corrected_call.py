"""The arguments of a corrected call: what was right in a rejected call, and placeholders for the rest.

Strategy. A good argument is kept unchanged. The value of a misspelt key goes to the argument that it clearly means.
Anything else that the tool requires gets a placeholder: where any text is valid, a text in ``[... ...]`` that
``holds_placeholder`` finds again if a model copies it; otherwise an example value of the right type. Long values are
replaced by a placeholder too, because the model has written them once and must only keep them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field

from toolglot.core.conversation import Tool
from toolglot.core.json_numbers import encode
from toolglot.core.lenient_json import Number, Value, dump, parse
from toolglot.core.made_up_values import KEEP, WRITE, make_number
from toolglot.core.schema.aliases import ALIASES
from toolglot.core.schema.toolset import CompiledTool, coerce_value
from toolglot.core.schema.types import SchemaType
from toolglot.prompting.argument_salvage import Salvage
from toolglot.prompting.example_arguments import ExampleArguments

_PLACEHOLDER: Final = re.compile(r"\[\.\.\. (?:keep|write) your value of [^\[\]\n]{0,80} here \.\.\.\]")
_DEEPEST: Final = 8
_MAX_COMPARED: Final = 32
"""How many keys, listed values and items of a list are examined, so that the work stays small."""
_LONGEST_KEY: Final = 64


def holds_placeholder(arguments: str) -> bool:
    """Whether the arguments of a call hold a placeholder of a feedback: the model copied it and wrote no value."""
    return _PLACEHOLDER.search(arguments) is not None


def keep_value(key: str) -> str:
    """The placeholder for a value that the model has written and that is not shown."""
    return KEEP.format(_spell(key))


def _is_placeholder(value: Value) -> bool:
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


class CorrectedCall(Struct):
    """The arguments of the call as it should be, and what the model must know about them."""

    arguments: dict[str, Value] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    """Misspelt keys and the arguments that they mean."""
    unknown: list[str] = field(default_factory=list)
    """Keys that the tool does not have."""
    made_up: list[str] = field(default_factory=list)
    """Arguments with an example value, which the model must replace."""
    missing: list[str] = field(default_factory=list)
    """Required arguments that the model did not give."""


def correct_arguments(
    tool: Tool, compiled: CompiledTool, salvage: Salvage, needed: Sequence[str] = ()
) -> CorrectedCall:
    """Keep the good arguments, move those with a misspelt key, and fill in what is required. ``needed`` are parameters
    that a client requires although the schema does not."""
    shape = compiled.parameters
    made = CorrectedCall()
    takes_any = "additionalProperties" in shape.links or not (shape.properties or shape.closed)
    given = salvage.arguments
    for key, value in given.items():
        if shape.declares(key) or takes_any or key in shape.required:
            _keep(made, key, value, shape.property_type(key))
        elif len(made.unknown) < _MAX_COMPARED:
            made.unknown.append(key)
    made.missing = shape.list_missing(given)
    _place_unknown(made, given, shape)
    examples = ExampleArguments(tool, only_required=False).make()
    cut = [salvage.cut] if shape.declares(salvage.cut) else []
    for key in (*made.missing, *filter(shape.declares, needed), *cut):
        if key not in made.arguments:
            _fill(made, key, shape.property_type(key), examples.get(key))
    order = dict.fromkeys([*(made.renamed.get(key, key) for key in given), *made.arguments])
    made.arguments = {key: made.arguments[key] for key in order if key in made.arguments}
    return made


def _keep(made: CorrectedCall, key: str, value: Value, shape: SchemaType) -> None:
    """Keep a value that fits, and of any other value what fits. Of a long list one item will be shown."""
    value = value[: 8 * _MAX_COMPARED] if isinstance(value, list) else value
    typed = coerce_value(value, shape, key)
    if not typed.defects:
        made.arguments[key] = typed.value
        return
    invented: list[Value] = []
    made.arguments[key] = _correct(value, shape, key, 0, invented)
    if not all(map(_is_placeholder, invented)):
        made.made_up.append(key)


def _correct(value: Value, shape: SchemaType, key: str, depth: int, invented: list[Value]) -> Value:
    """The nearest value that fits: a listed one, the sole item, the same object with its missing members.

    What the model did not write is added to ``invented``.
    """
    typed = coerce_value(value, shape, key)
    if not typed.defects:
        return typed.value
    if isinstance(value, list) and len(value) == 1 and not coerce_value(value[0], shape, key).defects:
        return coerce_value(value[0], shape, key).value
    if isinstance(value, dict) and "object" in shape.kinds and depth < _DEEPEST:
        return _correct_members(value, shape, depth + 1, invented)
    if isinstance(value, list) and "array" in shape.kinds and depth < _DEEPEST:
        corrected = [_correct(part, shape.items, key, depth + 1, invented) for part in value[:_MAX_COMPARED]]
        return corrected + value[_MAX_COMPARED:]
    if shape.enum and isinstance(value, str) and (member := _find_member(value, shape.enum)) is not None:
        return member
    invented.append(_placeholder(key, shape, depth))
    return invented[-1]


def _correct_members(value: dict[str, Value], shape: SchemaType, depth: int, invented: list[Value]) -> dict[str, Value]:
    kept = {name: _correct(part, shape.property_type(name), name, depth, invented) for name, part in value.items()}
    lacking = {name: _placeholder(name, shape.property_type(name), depth) for name in shape.list_missing(kept)}
    invented += lacking.values()
    return {**kept, **lacking}


def _find_member(value: str, members: Iterable[Value]) -> Value:
    """The listed text that is spelt like the value; None if there is none."""
    texts = {member[:_LONGEST_KEY].lower(): member for member in members if isinstance(member, str)}
    close = difflib.get_close_matches(value[:_LONGEST_KEY].lower(), list(texts)[: 8 * _MAX_COMPARED], n=1)
    return texts[close[0]] if close else None


# -- misspelt keys -----------------------------------------------------------------------------------------------------


def _place_unknown(made: CorrectedCall, given: dict[str, Value], shape: SchemaType) -> None:
    """Give the values of unknown keys to the arguments that they clearly mean."""
    free = [key for key in islice(shape.properties, 8 * _MAX_COMPARED) if key not in given]
    for key in made.unknown:
        meant = _find_meant(key, given[key], free, shape)
        if meant:
            made.renamed[key] = meant
            made.arguments[meant] = coerce_value(given[key], shape.property_type(meant), meant).value
            free.remove(meant)
    left = {key: given[key] for key in made.unknown if key not in made.renamed}
    lacking = [key for key in made.missing if key not in made.arguments]
    if left and len(lacking) == 1:
        _place_alone(made, left, lacking[0], shape.property_type(lacking[0]))


def _find_meant(key: str, value: Value, free: list[str], shape: SchemaType) -> str:
    """The argument that a misspelt key means, if its value fits there; "" if that is not clear."""
    fitting = [name for name in free if not coerce_value(value, shape.property_type(name), name).defects]
    for name in fitting:
        if _flatten(key) in map(_flatten, (name, *ALIASES.get(name, ()))):
            return name
    close = difflib.get_close_matches(_flatten(key), map(_flatten, fitting), n=1, cutoff=0.7)
    found = [name for name in fitting if close and _flatten(name) == close[0]]
    return found[0] if len(found) == 1 else ""


def _flatten(key: str) -> str:
    return key[:_LONGEST_KEY].replace("_", "").replace("-", "").lower()


def _place_alone(made: CorrectedCall, left: dict[str, Value], name: str, shape: SchemaType) -> None:
    """Use what is left for the only required argument that is still missing, as its value or as its members."""
    if len(left) == 1:
        ((key, value),) = left.items()
        typed = coerce_value(value, shape, name)
        if not typed.defects and not shape.untyped:
            made.renamed[key] = name
            made.arguments[name] = typed.value
            return
    inner = shape.items if "array" in shape.kinds else shape
    members = {key: value for key, value in left.items() if inner.declares(key)}
    value = [members] if "array" in shape.kinds else members
    typed = coerce_value(value, shape, name)
    if members and not typed.defects:
        made.renamed |= dict.fromkeys(members, name)
        made.arguments[name] = typed.value


# -- placeholders ------------------------------------------------------------------------------------------------------


def _fill(made: CorrectedCall, key: str, shape: SchemaType, example: Any) -> None:
    """Add a required argument: a placeholder where any text is valid, else the example, if it fits."""
    made.arguments[key] = _placeholder(key, shape, 0)
    if shape.streams or shape.untyped or shape.nullable_text:
        return
    made.made_up.append(key)
    if "array" in shape.kinds or "object" in shape.kinds:
        return
    try:
        value = parse(encode(example).decode()).value
    except (TypeError, ValueError, RecursionError):
        return
    if example is not None and not coerce_value(value, shape, key).defects:
        made.arguments[key] = value


def _placeholder(key: str, shape: SchemaType, depth: int) -> Value:
    """A value of the type: text that says what to write, or an example."""
    if shape.enum:
        return shape.enum[0]
    leaf = next((leaf for leaf in shape.leaves if leaf.order != ("null",)), shape)
    kind = next((kind for kind in leaf.order if kind != "null"), "string")
    match kind:
        case "integer" | "number":
            return Number(str(make_number(key)))
        case "boolean":
            return True
        case "array":
            return [_placeholder(key, leaf.items, depth + 1)] if depth < _DEEPEST else []
        case "object":
            names = leaf.list_missing(()) if depth < _DEEPEST else []
            return {name: _placeholder(name, leaf.property_type(name), depth + 1) for name in names}
    return leaf.enum[0] if leaf.enum else WRITE.format(_spell(key))


def _spell(key: str) -> str:
    return re.sub(r"[^\w.-]", "_", key[:_LONGEST_KEY])


def shorten_values(arguments: dict[str, Value], parameters: SchemaType, longest: int) -> dict[str, Value]:
    """Replace long values by placeholders."""
    return {
        key: value if len(dump(value)) <= longest else _shorten(value, parameters.property_type(key), key, 0)
        for key, value in arguments.items()
    }


def _shorten(value: Value, shape: SchemaType, key: str, depth: int) -> Value:
    """All text becomes placeholders. Of a list one item is kept, if possible one with something to write."""
    if isinstance(value, str):
        return value if isinstance(value, Number) or _is_placeholder(value) else _shorten_text(value, shape, key)
    if depth >= _DEEPEST or not value:
        return value
    if isinstance(value, list):
        kept = next((part for part in value if holds_placeholder(dump(part))), value[0])
        return [_shorten(kept, shape.items, key, depth + 1)]
    if isinstance(value, dict):
        return {name: _shorten(part, shape.property_type(name), name, depth + 1) for name, part in value.items()}
    return value


def _shorten_text(text: str, shape: SchemaType, key: str) -> str:
    """A placeholder, where any text is valid."""
    return keep_value(key) if shape.streams or shape.untyped or shape.nullable_text else text
