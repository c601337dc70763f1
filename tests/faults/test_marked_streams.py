"""Many streams at a time, every chunk marked with its stream, some of them faulty: nothing is lost and nothing mixed."""

from __future__ import annotations

import asyncio
import random

from faults.cells import MODES, Cell, describe, run_cells
from faults.scale import MARKED_CHUNKS, SEED
from faults.wire_data import WIRES

CHUNKS = 200
AT_ONCE = 100
FAULTS = ("usual_chunked", "slow_chunks", "until_close", "reset_in_body", "usual_sized", "closed_in_chunks", "packed")


def test_streams_are_neither_lost_nor_mixed() -> None:
    chance = random.Random(SEED)
    cells = [
        Cell(
            chance.choice(FAULTS),
            chance.choice(WIRES),
            chance.choice(WIRES),
            chance.choice(MODES),
            True,
            CHUNKS,
            number,
        )
        for number in range(MARKED_CHUNKS // CHUNKS)
    ]
    wrong = asyncio.run(run_cells(cells, AT_ONCE))
    assert not wrong, describe(wrong)
