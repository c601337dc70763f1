"""Calls whose arguments arrive in pieces, as Vertex sends them to clients that ask for ``streamFunctionCallArguments``.

{"functionCall":{"name":"read","willContinue":true}}
{"functionCall":{"partialArgs":[{"jsonPath":"$.path","stringValue":"src/","willContinue":true}],"willContinue":true}}
{"functionCall":{"partialArgs":[{"jsonPath":"$.path","stringValue":"a.py"}],"willContinue":true}}
{"functionCall":{}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolglot.wires.gemini.field_names import pick, pick_text
from toolglot.wires.json_fields import dicts_in, text_at

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


class GivenCall(NamedTuple):
    """A complete call of an upstream. ``arguments`` of any other type than a dictionary cannot be used."""

    id: str
    name: str
    arguments: object


class PartialCalls:
    """Joins the pieces of calls; a call in one piece passes as it is."""

    def __init__(self) -> None:
        self.waiting: GivenCall | None = None

    def take(self, called: Mapping[str, Any]) -> list[GivenCall]:
        """Take one ``functionCall``; return the calls that are complete now."""
        more, pieces = pick(called, "willContinue") is True, dicts_in(pick(called, "partialArgs"))
        name = text_at(called, "name")
        complete = self.close() if name else []
        given = self.waiting or GivenCall(text_at(called, "id"), name, called.get("args") or {})
        for piece in pieces:
            given = given._replace(arguments=_add_piece(given.arguments, piece))
        self.waiting = given if more else None
        return complete if more else [*complete, given]

    def close(self) -> list[GivenCall]:
        """The call that has no end of its own, if there is one."""
        given, self.waiting = self.waiting, None
        return [given] if given else []


def _add_piece(arguments: object, piece: Mapping[str, Any]) -> object:
    """The arguments with another piece; a text, which is no valid value of them, if the piece has no place there."""
    path = pick_text(piece, "jsonPath")
    steps = [found for found in _STEP.finditer(path)]
    if not path.startswith("$") or not steps or "".join(found[0] for found in steps) != path[1:]:
        return f"a piece for {path}"
    keys = [int(found[2]) if found[2] else found[1] or found[3] or found[4] or "" for found in steps]
    return arguments if _set_value(arguments, keys, _read_value(piece)) else f"a piece for {path}"


def _read_value(piece: Mapping[str, Any]) -> object:
    values = (pick(piece, name) for name in ("stringValue", "numberValue", "boolValue"))
    return next((value for value in values if value is not None), None)


def _set_value(holder: Any, keys: list[int | str], value: object) -> bool:
    """Set a value at a path, or continue the text that is there. False if the path does not fit."""
    for key, following in zip(keys, [*keys[1:], None], strict=True):
        if isinstance(key, int):
            if not isinstance(holder, list) or key > len(holder):
                return False
            if key == len(holder):
                holder.append(None)
        elif not isinstance(holder, dict):
            return False
        known = holder[key] if isinstance(key, int) else holder.get(key)
        if following is None:
            holder[key] = known + value if isinstance(known, str) and isinstance(value, str) else value
        elif known is None:
            holder[key] = [] if isinstance(following, int) else {}
        holder = holder[key]
    return True
