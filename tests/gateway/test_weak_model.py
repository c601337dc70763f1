"""Turns of a weak model through the gateway: no client runs what was not meant, and nothing comes twice.

``make bench-recovery`` does the same with thousands of turns and a gateway in a process of its own.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from support.weak_turns import Turn, ask_all, attach, configure, describe, judge, plan_turns, sum_up

from toolglot.config import load
from toolglot.server.lifecycle import listening
from toolglot.sim import REQUEST_LOG, SimOptions, make_app, running
from toolglot.sim.defects import DEFECTS, VAGUE

TURNS: Final = 150
SEED: Final = 7
LEAST_SUCCESS: Final = 0.93
"""The share of turns that must end as the model meant them."""
MOST_EXTRA: Final = 1.1
"""Further requests for each defect, at most."""


async def run(path: Path, count: int) -> list[Turn]:
    classes = tuple(name for name in DEFECTS if name not in VAGUE)
    app = make_app(SimOptions(defects=0.3, seed=SEED, classes=classes, keep=10 * count, chunk_bytes=400))
    turns = plan_turns(count, SEED)
    async with running(app) as base_url:
        path.write_text(configure(base_url), encoding="utf-8")
        async with listening(load({"port": 0, "state_dir": "none"}, {}, path)) as address:
            await ask_all(turns, int(address.rpartition(":")[2]))
    assert attach(turns, app[REQUEST_LOG].requests) == 0
    return turns


def test_turns_of_a_weak_model(tmp_path: Path) -> None:
    turns = asyncio.run(run(tmp_path / "toolglot.toml", TURNS))
    figures = sum_up(turns)
    verdicts = [(turn, judge(turn)) for turn in turns]
    bad = [describe(turn, one) for turn, one in verdicts if one.wrong or one.half or one.duplicated or one.foreign]
    bad += [describe(turn, one) for turn, one in verdicts if not turn.defect and (turn.extra or not one.success)]
    assert not bad, "\n".join(bad)
    failed = [describe(turn, one) for turn, one in verdicts if not one.success]
    assert figures.success >= LEAST_SUCCESS, "\n".join(failed)
    assert figures.extra_per_defect <= MOST_EXTRA
    assert figures.defects > TURNS / 5
