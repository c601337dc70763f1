"""Tells a model that it repeats itself: the same calls, arguments and results several times in a row.

Strategy. The history shows it all, so nothing is kept between requests. A run is a sequence of turns with equal calls
and equal results; messages of the user do not end it, because clients add reminders and details to every turn, but an
answer without calls does. When a run has reached the limit, a note is appended to its last result, and again after
twice, four times, eight times as many. Nothing is blocked: a model may have a reason to wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.core.conversation import Message, ToolCall
from toolglot.core.identity import hash_call
from toolglot.gateway.recovery.annotations import Annotation, Step, list_steps

CALL_CHARACTERS: Final = 300
OTHER_CHARACTERS: Final = 120
MOST_OTHERS: Final = 4
"""How many other calls before the run are listed."""


def find_loops(messages: Sequence[Message], limit: int) -> Iterator[Annotation]:
    """The notes on repeated calls in a healed history. ``limit`` is the length of a run that is noted; 0: none."""
    if limit <= 0:
        return
    length, before = 0, Step()
    tried: list[str] = []
    for step in list_steps(messages):
        if step is None:
            length, before = 0, Step()
            tried.clear()
            continue
        if length and _are_equal(before, step):
            length += 1
        else:
            length = 1
            tried = list(dict.fromkeys([*tried, *(_show(call, OTHER_CHARACTERS) for call in before.calls)]))
            tried = tried[-MOST_OTHERS:]
        before = step
        if _is_noted(length, limit) and step.calls[-1].id in step.places:
            at, part = step.places[step.calls[-1].id]
            yield Annotation(at=at, part=part, text=_write_note(step, length, tried), note=_describe(step, length))


def _is_noted(length: int, limit: int) -> bool:
    """Whether the length is the limit, or the limit times a power of two."""
    times, rest = divmod(length, limit)
    return length > 1 and not rest and times & (times - 1) == 0


def _are_equal(one: Step, other: Step) -> bool:
    """Whether two turns make the same calls and got the same results."""
    if len(one.calls) != len(other.calls):
        return False
    for first, second in zip(one.calls, other.calls, strict=True):
        results = one.results.get(first.id), other.results.get(second.id)
        if results[0] is None or results[1] is None:
            return False
        if (results[0].content, results[0].error) != (results[1].content, results[1].error):
            return False
        hashes = (hash_call(call.name, call.arguments, exact=True) for call in (first, second))
        if len(set(hashes)) > 1:
            return False
    return True


def _show(call: ToolCall, characters: int) -> str:
    arguments = call.arguments
    shown = arguments if len(arguments) <= characters else f"{arguments[:characters]}..."
    return f"{call.name} {shown}"


def _write_note(step: Step, length: int, tried: Sequence[str]) -> str:
    lines = [f"- {_show(call, CALL_CHARACTERS)}" for call in step.calls[:MOST_OTHERS]]
    what = "this call" if len(step.calls) == 1 else "these calls"
    note = [
        f"Note: you have made {what} {length} times in a row, with the same arguments and the same result:",
        *lines,
        *(["Before that you tried:", *(f"- {one}" for one in tried)] if tried else []),
        "The same again will most likely give the same result. Try something else, or say what is missing.",
    ]
    return "\n".join(note)


def _describe(step: Step, length: int) -> str:
    names = ", ".join(dict.fromkeys(call.name for call in step.calls))
    return f"a note says that {names} was called {length} times in a row with the same result"
