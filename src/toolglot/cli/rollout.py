"""``toolglot rollout``: show and change the rollout of all gateways that share a store."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Final

from toolglot.cli.common_options import load_settings
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.store_options import add_store_options, format_table, run_with_store
from toolglot.config.rollout import TRANSFORMATIONS, read_plan
from toolglot.config.shared_rollout import ALL, SharedRollout, change_rollout, decode_rollout, set_plan
from toolglot.core.errors import UsageError

if TYPE_CHECKING:
    from toolglot.store.interface import Store

NAMES: Final = (ALL, *TRANSFORMATIONS)
EXAMPLES: Final = """\
examples:
  toolglot rollout show
  toolglot rollout set reading canary-25      on all gateways with this store, within a second
  toolglot rollout set stage full             for all transformations without a stage of their own

The newest change wins: this command, or a changed [rollout] in the settings file of a running gateway.
"""


def add(add_parser: AddParser) -> None:
    rollout = add_parser(
        description="Show or change the rollout of all gateways that share a store.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = rollout.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="show the stage of each transformation")
    show.set_defaults(run=run_show)
    change = actions.add_parser("set", help="change the stage of a transformation")
    change.add_argument("name", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    change.add_argument("plan", metavar="PLAN", help="off, shadow, canary, canary-N, full, or a percentage")
    change.set_defaults(run=run_set)
    for parser in (show, change):
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        add_store_options(parser)


def run_show(arguments: argparse.Namespace) -> int:
    stored = run_with_store(arguments, load_stored)
    own = load_settings(arguments, needs_secrets=False).rollout.as_rollout()
    rollout = own if stored is None else stored.rollout
    plans = {name: str(rollout.plan_of(name)) for name in TRANSFORMATIONS}
    if arguments.json:
        print(json.dumps({"source": "settings" if stored is None else "store", "plans": plans}, indent=2))
        return OK
    print("The store has no rollout; this is that of the settings." if stored is None else "From the store:")
    print(format_table(("name", "plan"), list(plans.items())))
    return OK


def run_set(arguments: argparse.Namespace) -> int:
    try:
        plan = read_plan(arguments.plan)
    except ValueError:
        raise UsageError(f"{arguments.plan!r} is no plan: write off, shadow, canary-25, full or a percentage") from None
    own = load_settings(arguments, needs_secrets=False).rollout.as_rollout()

    async def change(store: Store) -> list[str]:
        stored = await load_stored(store)
        before = own if stored is None else stored.rollout
        after = set_plan(before, arguments.name, plan)
        await store.save_rollout(change_rollout(stored, after, own, before).encode())
        return before.compare(after)

    changes = run_with_store(arguments, change)
    print(json.dumps({"changes": changes}, indent=2) if arguments.json else "\n".join(changes or ["nothing changes"]))
    return OK


async def load_stored(store: Store) -> SharedRollout | None:
    found = await store.load_rollout()
    return decode_rollout(found[1]) if found is not None else None
