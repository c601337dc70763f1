"""``toolglot replay``: send a recorded request through a running gateway again, and compare the answers."""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from toolglot.cli.common_options import load_settings
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.gateway_contact import GatewayContact, find_address, find_key
from toolglot.cli.store_options import format_table
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import MODES
from toolglot.core.errors import UsageError

EXAMPLES = """\
examples:
  toolglot replay rec_0123 --dialect qwen3_coder         the same request, tools in another dialect
  toolglot replay rec_0123 --mode native --retries 0     with native tools and without recovery
  toolglot replay rec_0123 --model other-model --json    with another model, for programs

The gateway must run, keep its records, and have recorded the request: store.bodies = "all". With client keys the key
needs the admin scope ('toolglot key create --name me --admin').
"""
COMPARED: Final = ("outcome", "status", "mode", "dialect", "model", "finish", "tools", "repairs", "rejected", "error")
"""Fields of a record that are compared."""


def add(add_parser: AddParser) -> None:
    replay = add_parser(
        description="Send a recorded request through a running gateway again, with another model, mode, dialect or"
        " number of retries, and compare the answers. No client gets the answer.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument(
        "record", metavar="RECORD", help="the id of a record or of its request ('toolglot records list')"
    )
    replay.add_argument("--model", metavar="NAME", default="", help="another model")
    replay.add_argument("--mode", choices=MODES, default="", help="how tools are passed to the model")
    replay.add_argument("--dialect", metavar="D", default="", help="dialect for tools as text")
    replay.add_argument("--retries", type=int, metavar="N", help="further requests that recovery may make")
    replay.add_argument(
        "--url", metavar="URL", help="address of the gateway (default: that of the settings, port 8484)"
    )
    replay.add_argument("--config", metavar="FILE", help="settings file that the address is taken from")
    replay.add_argument("--key", metavar="KEY", help=f"admin key; visible in the process list, unlike {KEY_VARIABLE}")
    replay.add_argument("--json", action="store_true", help="print one JSON document")
    replay.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    settings = load_settings(argparse.Namespace(config=arguments.config), needs_secrets=False)
    key = find_key(arguments.key)
    contact = GatewayContact(find_address(arguments.url, settings), key)
    if not contact.is_running():
        raise UsageError(f"no gateway answers at {contact.address}: start it with 'toolglot serve', or give --url")
    choice: dict[str, Any] = {name: getattr(arguments, name) for name in ("model", "mode", "dialect")}
    if arguments.retries is not None:
        choice["recovery"] = {"retries": arguments.retries}
    turn = f"/console/api/turns/{quote(arguments.record, safe='')}"
    made = contact.exchange_json(f"{turn}/replay", choice)
    before = contact.exchange_json(turn)
    after = contact.exchange_json(f"/console/api/turns/{quote(made['id'], safe='')}")
    if arguments.json:
        print(json.dumps({"before": describe(before), "after": describe(after)}, ensure_ascii=False, indent=2))
    else:
        print("\n".join(format_comparison(before, after)))
    return OK


def describe(turn: Mapping[str, Any]) -> dict[str, Any]:
    record = turn["record"]
    fields = {name: record.get(name) for name in COMPARED}
    return {"id": turn["id"], **fields, "seconds": record["duration"], "answer": list_answer(turn)}


def list_answer(turn: Mapping[str, Any]) -> list[str]:
    """What the client received, one line of text or one call per item."""
    lines: list[str] = []
    text = ""
    for event in turn.get("events") or ():
        if event["kind"] == "text":
            text += event["text"]
            continue
        lines, text = [*lines, *text.splitlines()], ""
        if event["kind"] == "call":
            lines.append(f"call {event['text']}")
        elif event["kind"] == "arguments" and lines and lines[-1].startswith("call "):
            lines[-1] += f" {event['text']}" if "{" not in lines[-1] else event["text"]
        elif event["kind"] in ("failed", "rejected"):
            lines.append(f"{event['kind']}: {event['text']}")
    return [*lines, *text.splitlines()]


def format_comparison(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """A table of the fields, then the answers as a diff."""
    one, other = describe(before), describe(after)
    rows = [
        (" " if one[name] == other[name] else "*", name, show(one[name]), show(other[name]))
        for name in (*COMPARED, "seconds")
    ]
    yield format_table(("", "", str(one["id"]), str(other["id"])), rows)
    yield ""
    if one["answer"] == other["answer"]:
        yield "the answers are the same" if one["answer"] else "no answer was recorded"
        return
    yield from difflib.unified_diff(one["answer"], other["answer"], "before", "after", lineterm="")


def show(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "-" if value in ("", None) else str(value)
