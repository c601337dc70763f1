"""A few seconds of the fuzz target, always with the same seeds."""

from __future__ import annotations

import pytest
from support.fragments import SCALE
from support.fuzz_reader import fuzz_one, loop
from support.rows import in_one_test


@in_one_test("seed", range(8))
def test_seeded_rounds(seed: int) -> None:
    loop(rounds=250 * SCALE, seed=seed)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff\xfe\xfd", b"\x01<tool_call>\xf0\x9f", bytes(range(256))], ids=repr
)
def test_raw_bytes(data: bytes) -> None:
    fuzz_one(data)
