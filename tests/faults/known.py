"""Cells whose outcome is known to be wrong today. A row leaves this table when what it names is put right."""

from __future__ import annotations

from typing import Final

from faults.cells import Cell

RELAYED_AS_IT_CAME: Final = frozenset(
    {
        "a_list", "a_number", "blank_body", "closed_in_an_event", "closed_in_open_body", "content_without_end",
        "empty_body", "empty_object", "ended_in_an_event", "ended_too_soon", "garbage_in_body", "length_too_short",
        "chunk_too_long", "closed_in_a_chunk", "length_too_long", "nested_too_deep", "no_last_chunk", "not_utf8", "null",
        "packed_and_cut", "status_204", "web_page",
    }
)  # fmt: skip
"""An answer that is relayed is not read, so one that ends too soon, or is none, goes out as it came."""


def is_known(cell: Cell) -> bool:
    return cell.mode == "relay" and cell.client == cell.upstream and cell.fault in RELAYED_AS_IT_CAME
