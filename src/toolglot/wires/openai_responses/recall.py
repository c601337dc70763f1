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

import msgspec

from toolglot.fields import dicts_in, encode, parse_body, text_at

PREVIOUS = "previous_response_id"
REFERENCE = "item_reference"
_MENTIONS = (PREVIOUS.encode(), REFERENCE.encode())
_OWN = ("id", "status")
"""What an item has only as long as its server knows it."""

Item: TypeAlias = dict[str, Any]
Find: TypeAlias = Callable[[str], tuple[bytes, bytes] | None]
"""The request and the items of an answer, by its id or by that of an item."""


def expand_request(body: bytes, find: Find) -> bytes:
    """The request with every earlier answer that is known in the place of the reference to it."""
    if not any(mention in body for mention in _MENTIONS):
        return body
    asked = parse_body(body)
    items = _list_items(asked.get("input"))
    said = [one for item in items for one in _resolve(item, find)]
    found = find(text_at(asked, PREVIOUS))
    if found is not None:
        said = [*_recite(*found), *said]
        asked = {key: value for key, value in asked.items() if key != PREVIOUS}
    return body if found is None and said == items else encode({**asked, "input": said})


def _list_items(given: object) -> list[Item]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts_in(given)


def _recite(body: bytes, output: bytes) -> Iterator[Item]:
    """All that was said up to the end of an answer. What its request referred to stood in it already."""
    yield from _list_items(parse_body(body).get("input"))
    yield from map(_strip, msgspec.json.decode(output))


def _resolve(item: Item, find: Find) -> Iterator[Item]:
    """The item that is meant. Thoughts of which nothing was told are nothing that could be sent."""
    found = find(text_at(item, "id")) if item.get("type") == REFERENCE else None
    meant = [one for one in msgspec.json.decode(found[1]) if one.get("id") == item["id"]] if found else []
    if not meant:
        yield item
    elif meant[0].get("type") != "reasoning" or meant[0].get("summary") or meant[0].get("encrypted_content"):
        yield _strip(meant[0])


def _strip(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _OWN}
