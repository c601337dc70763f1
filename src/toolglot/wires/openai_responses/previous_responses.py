"""Earlier answers, put where a request refers to them.

    {"previous_response_id": "resp_1", "input": [{"type": "function_call_output", ...}]}
    {"input": [{"role": "user", ...}, {"type": "item_reference", "id": "fc_1_0"}, {"type": "function_call_output"}]}

Clients of this wire rely on a server that keeps its answers, unless they say otherwise. Those that were given here are
kept for a while, and those that only passed if their server does not say that it keeps them. A reference that leads
nowhere is left as it is: the upstream may know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from toolglot.core.errors import RequestSizeError
from toolglot.core.json_numbers import decode, encode
from toolglot.wires.json_fields import dicts_in, parse_body, text_at

PREVIOUS = "previous_response_id"
REFERENCE = "item_reference"
_MENTIONS = (PREVIOUS.encode(), REFERENCE.encode())
_OWN = ("id", "status")
"""What an item has only as long as its server knows it."""

Item: TypeAlias = dict[str, Any]
Find: TypeAlias = Callable[[str], tuple[bytes, bytes] | None]
"""The request and the items of an answer, by its id or by that of an item."""


def expand_request(body: bytes, find: Find, limit: int) -> bytes:
    """The request with every earlier answer that is known in the place of the reference to it. A few bytes can refer to
    many, so what comes out is held to the limit of what came in."""
    if not any(mention in body for mention in _MENTIONS):
        return body
    asked = parse_body(body)
    items = _list_items(asked.get("input"))
    said = _PreviousResponse(find, limit).resolve(items)
    found = find(text_at(asked, PREVIOUS))
    if found is not None:
        said = [*_recite(*found), *said]
        asked = {key: value for key, value in asked.items() if key != PREVIOUS}
    if found is None and said == items:
        return body
    expanded = encode({**asked, "input": said})
    if len(expanded) > limit:
        raise _refuse(limit)
    return expanded


def _list_items(given: object) -> list[Item]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts_in(given)


def _recite(body: bytes, output: bytes) -> Iterator[Item]:
    """All that was said up to the end of an answer. What its request referred to stood in it already."""
    yield from _list_items(parse_body(body).get("input"))
    yield from map(_strip, decode(output))


class _PreviousResponse:
    """The items that one request refers to. Each answer is read once, however often it is meant."""

    def __init__(self, find: Find, limit: int) -> None:
        self.find = find
        self.limit = limit
        self.answers: dict[bytes, dict[str, Item]] = {}
        self.sizes: dict[str, int] = {}

    def resolve(self, items: list[Item]) -> list[Item]:
        """The items that are meant. Thoughts of which nothing was told are nothing that could be sent."""
        said: list[Item] = []
        size = 0
        for item in items:
            item_id = text_at(item, "id") if item.get("type") == REFERENCE else ""
            meant = self.look_up(item_id) if item_id else None
            if meant is None:
                said.append(item)
            elif meant.get("type") != "reasoning" or meant.get("summary") or meant.get("encrypted_content"):
                said.append(meant)
                size += self.sizes.get(item_id) or self.sizes.setdefault(item_id, len(encode(meant)))
                if size > self.limit:
                    raise _refuse(self.limit)
        return said

    def look_up(self, item_id: str) -> Item | None:
        found = self.find(item_id)
        if found is None:
            return None
        output = found[1]
        if output not in self.answers:
            told = reversed(decode(output))  # of items with one id the first counts
            self.answers[output] = {text_at(one, "id"): _strip(one) for one in told}
        return self.answers[output].get(item_id)


def _refuse(limit: int) -> RequestSizeError:
    return RequestSizeError(f"With the answers that it refers to, the request has more than {limit} bytes.")


def _strip(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _OWN}
