"""How many modules one streamed request enters, and how often it goes back and forth between two of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

BENCH = Path(__file__).resolve().parents[2] / "bench"
MODULES: Final = 44
BOUNCES: Final = 33


def count_trace() -> list[int]:
    """Calls, modules, switches and bounces of a request in text mode with the default settings."""
    done = subprocess.run([sys.executable, BENCH / "trace.py"], capture_output=True, text=True, check=True, timeout=120)
    return [int(number) for number in done.stdout.splitlines()[-1].strip("| ").split("|")]


def test_a_streamed_request_has_a_short_way() -> None:
    """``make bench-trace ARGS=--list`` names modules and bounces. The counts do not depend on timing."""
    _, modules, _, bounces = count_trace()
    assert modules <= MODULES
    assert bounces <= BOUNCES
