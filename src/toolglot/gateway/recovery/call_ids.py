"""Call ids: unique in a conversation, and of the form that a model or its server insists on.

    functions.{name}:{index}    tool name, and the number of the call among all calls of the conversation, from 0
    {code9}                     nine letters and digits

An id that has the form and is unique stays as it is. Any other is replaced by one that depends only on the call and on
the calls before it, so that the same history has the same ids in every turn.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import Final

from toolglot.core.conversation import ToolCall

ANY_FORM: Final = ""
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CODE_LENGTH: Final = 9
_SLOTS: Final = {"{index}": r"(?:0|[1-9]\d{0,8})", "{code9}": rf"[0-9A-Za-z]{{{_CODE_LENGTH}}}"}
_SLOT: Final = re.compile(r"(\{[^{}]*\})")


def check_form(form: str) -> str:
    """Return the form. Raises: ValueError if it has an unknown slot, or none that tells two calls apart."""
    slots = set(_SLOT.findall(form))
    if not slots <= {"{name}", *_SLOTS} or not slots & set(_SLOTS):
        raise ValueError(form)
    return form


class CallIds:
    """Gives every call of a conversation, in order, an id that no call before it has."""

    def __init__(self, form: str = ANY_FORM) -> None:
        self.form = form
        self.given: set[str] = set()
        self.numbers: dict[str, int] = {}
        """The next number to try, by the id that a call had or, without one, by its tool."""

    def give(self, call: ToolCall) -> str:
        if call.id and call.id not in self.given and has_form(self.form, call.name, call.id):
            made = call.id
        else:
            made = self._make(call)
        self.given.add(made)
        return made

    def _make(self, call: ToolCall) -> str:
        counted = not call.id or "{index}" in self.form
        key = f":{call.name}" if counted else call.id
        number = max(self.numbers.get(key, 0), len(self.given) if counted else 0)
        while (made := self._write(call, number)) in self.given:
            number += 1
        self.numbers[key] = number + 1
        return made

    def _write(self, call: ToolCall, number: int) -> str:
        if self.form:
            values = {"{name}": call.name, "{index}": str(number), "{code9}": _code(f"{call.id}:{number}")}
            return "".join(values.get(piece, piece) for piece in _SLOT.split(self.form))
        return f"{call.id}_{number + 2}" if call.id else f"call_{_code(f'{call.name}:{number}')}"


def has_form(form: str, name: str, call_id: str) -> bool:
    """Whether the id of a call to the tool ``name`` has the form; every id has the empty form."""
    return not form or _compile(form, name).fullmatch(call_id) is not None


@lru_cache(maxsize=256)
def _compile(form: str, name: str) -> re.Pattern[str]:
    pieces = (_SLOTS.get(piece) or re.escape(name if piece == "{name}" else piece) for piece in _SLOT.split(form))
    return re.compile("".join(pieces), re.ASCII)


def _code(text: str) -> str:
    """Letters and digits that depend only on the text."""
    number = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest())
    digits = []
    for _ in range(_CODE_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)
