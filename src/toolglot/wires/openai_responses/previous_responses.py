"""Replace references to earlier responses by their items.

    {"previous_response_id": "resp_1", "input": [{"type": "function_call_output", ...}]}
    {"input": [{"role": "user", ...}, {"type": "item_reference", "id": "fc_1_0"}, {"type": "function_call_output"}]}

Clients of this wire expect the server to store responses unless they disable it. The gateway stores the responses that
it encodes, and those that pass through if their upstream does not store them. An unknown reference is left unchanged:
the upstream may know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from toolglot.core.errors import RequestSizeError
from toolglot.core.json_numbers import decode, encode
from toolglot.wires.id_references import ReferenceFields
from toolglot.wires.json_fields import dicts_in, parse_body, text_at

PREVIOUS = "previous_response_id"
REFERENCE = "item_reference"
_CALLED = ("function_call", "computer_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")
REFERENCES = ReferenceFields(
    whole_items={
        **{"message": "content", "reasoning": "encrypted_content", "compaction": "encrypted_content"},
        **{"function_call": "arguments", "custom_tool_call": "input", "tool_search_call": "arguments"},
        **dict.fromkeys(("computer_call", "local_shell_call", "shell_call"), "action"),
        **dict.fromkeys(("mcp_list_tools", "tool_search_output", "additional_tools"), "tools"),
        **{"apply_patch_call": "operation", "mcp_call": "output", "mcp_approval_response": "approve"},
        **{f"{kind}_output": "output" for kind in _CALLED},
    }
)
"""Without its content an item is looked up by its id; so are all of tools that run at the upstream."""
_MENTIONS = (PREVIOUS.encode(), REFERENCE.encode())
_OWN = ("id", "status")
"""Fields of an item that are valid only on the server that stores it."""

Item: TypeAlias = dict[str, Any]
Find: TypeAlias = Callable[[str], tuple[bytes, bytes] | None]
"""Find the request and the items of a response by its id or by the id of an item."""


def list_ids(items: list[Item]) -> list[str]:
    """The ids that a client needs to send back items of an answer. What MCP servers wrote has none."""
    own = [{**item, "tools": None} if item.get("type") == "mcp_list_tools" else item for item in items]
    return [one.id for one in REFERENCES.find({"input": own})]


def expand_request(body: bytes, find: Find, limit: int) -> bytes:
    """Replace every known reference. A few bytes can refer to many, so the result is held to the size limit of a
    request (``RequestSizeError``)."""
    if not any(mention in body for mention in _MENTIONS):
        return body
    fields = parse_body(body)
    items = _list_items(fields.get("input"))
    message = _PreviousResponse(find, limit).resolve(items)
    found = find(text_at(fields, PREVIOUS))
    if found is not None:
        message = [*_list_history(*found), *message]
        fields = {key: value for key, value in fields.items() if key != PREVIOUS}
    if found is None and message == items:
        return body
    expanded = encode({**fields, "input": message})
    if len(expanded) > limit:
        raise _refuse(limit)
    return expanded


def _list_items(given: object) -> list[Item]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts_in(given)


def _list_history(body: bytes, output: bytes) -> Iterator[Item]:
    """All items up to the end of a response. References of its request were replaced before it was stored."""
    yield from _list_items(parse_body(body).get("input"))
    yield from map(_strip, decode(output))


class _PreviousResponse:
    """Resolves the references of one request. Each response is decoded once."""

    def __init__(self, find: Find, limit: int) -> None:
        self.find = find
        self.limit = limit
        self.answers: dict[bytes, dict[str, Item]] = {}
        self.sizes: dict[str, int] = {}

    def resolve(self, items: list[Item]) -> list[Item]:
        """Replace item references. Reasoning without text or signature is dropped, as it cannot be sent."""
        message: list[Item] = []
        size = 0
        for item in items:
            item_id = text_at(item, "id") if item.get("type") == REFERENCE else ""
            meant = self.look_up(item_id) if item_id else None
            if meant is None:
                message.append(item)
            elif meant.get("type") != "reasoning" or meant.get("summary") or meant.get("encrypted_content"):
                message.append(meant)
                size += self.sizes.get(item_id) or self.sizes.setdefault(item_id, len(encode(meant)))
                if size > self.limit:
                    raise _refuse(self.limit)
        return message

    def look_up(self, item_id: str) -> Item | None:
        found = self.find(item_id)
        if found is None:
            return None
        output = found[1]
        if output not in self.answers:
            payload = reversed(decode(output))  # of items with the same id the first counts
            self.answers[output] = {text_at(one, "id"): _strip(one) for one in payload}
        return self.answers[output].get(item_id)


def _refuse(limit: int) -> RequestSizeError:
    return RequestSizeError(f"With the answers that it refers to, the request has more than {limit} bytes.")


def _strip(item: Item) -> Item:
    return {key: value for key, value in item.items() if key not in _OWN}
