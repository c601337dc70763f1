"""Network faults x client wires x upstream wires x streamed or whole x relay, native or text: every outcome is honest."""

from __future__ import annotations

import asyncio

import pytest
from faults.cells import FAULTS, describe, plan, run_cells
from faults.wire_data import WIRES


@pytest.mark.parametrize("upstream", WIRES)
@pytest.mark.parametrize("client", WIRES)
def test_every_fault_has_the_expected_outcome(client: str, upstream: str) -> None:
    cells = plan(client, upstream)
    assert len(cells) == 6 * len(FAULTS)
    wrong = asyncio.run(run_cells(cells))
    assert not wrong, describe(wrong)
