"""Sizes of the fault tests; environment variables of the same names change them."""

from __future__ import annotations

import os
from typing import Final


def _number(name: str, usual: int) -> int:
    return int(os.environ.get(f"TOOLGLOT_FAULTS_{name}", usual))


SOAK_SECONDS: Final = _number("SOAK_SECONDS", 30)
BURSTS: Final = _number("BURSTS", 20)
CONNECTIONS: Final = _number("CONNECTIONS", 500)
MARKED_CHUNKS: Final = _number("MARKED_CHUNKS", 60_000)
MUTATIONS: Final = _number("MUTATIONS", 150)
"""For each endpoint."""
SEED: Final = _number("SEED", 1)
CUT_STEP: Final = _number("CUT_STEP", 1)
"""Bytes between two cuts of a stream."""
