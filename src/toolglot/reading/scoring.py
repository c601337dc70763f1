"""Compares the calls of a reading with those that were expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

RIGHT: Final = "right"
MISSED: Final = "missed"
WRONG: Final = "wrong"
INVENTED: Final = "invented"
VERDICTS: Final = (RIGHT, MISSED, WRONG, INVENTED)

ComparedCall = tuple[str, Any]
"""The name of a call and its arguments as a JSON value."""


def judge_calls(expected: Sequence[ComparedCall], delivered: Sequence[ComparedCall]) -> str:
    """How delivered calls compare with those expected, in the same order, types included.

    Returns: ``right``; ``missed`` if all that was delivered is right, but something is not there; ``invented`` if all
    that was expected is there, and something besides; ``wrong`` for another value, name or order.
    """
    wanted = [(name, make_comparable(arguments)) for name, arguments in expected]
    got = [(name, make_comparable(arguments)) for name, arguments in delivered]
    if wanted == got:
        return RIGHT
    absent, surplus = list(wanted), []
    for call in got:
        if call in absent:
            absent.remove(call)
        else:
            surplus.append(call)
    if absent and not surplus:
        return MISSED
    return INVENTED if surplus and not absent else WRONG


def make_comparable(value: Any) -> Any:
    """A JSON value in a form in which ``1`` equals ``1.0`` and not ``True``."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, Mapping):
        return ("object", sorted((key, make_comparable(each)) for key, each in value.items()))
    return ("array", [make_comparable(each) for each in value])
