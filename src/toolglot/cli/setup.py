"""``toolglot setup``: point a client to the gateway, and test that the model can call a tool through it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from toolglot.cli.backups import REMOVED, RESTORED, TAKEN_BACK, BackedUpFile
from toolglot.cli.common_options import load_settings
from toolglot.cli.exit_codes import FINDINGS, OK, AddParser
from toolglot.cli.gateway_contact import GatewayContact, choose_model, find_address, find_key, name_models
from toolglot.clients.agents import AGENTS, Agent, ConfigFile, Connection, find_agent, suggest_agent
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.core.errors import UsageError

EXAMPLES = """\
examples:
  toolglot setup claude                          write the file of Claude Code, then make a test call
  toolglot setup codex --model qwen3-coder       choose one of several models
  toolglot setup opencode --print                print the configuration and write nothing
  toolglot setup openai                          print a program for an SDK
  toolglot setup claude --undo                   take back what setup wrote
  toolglot setup gemini --url http://10.0.0.5:8484 --key ...

exit codes:
  0  the client is configured, and a tool was called through the gateway
  1  the client is configured, but the test call failed
  2  usage error: no gateway, an unknown client or model, or a file that cannot be edited
"""

UNDONE = {
    RESTORED: "restored {}",
    REMOVED: "removed {}, which setup had made",
    TAKEN_BACK: "took the settings for toolglot out of {}; what was changed there since stays",
}


def add(add_parser: AddParser) -> None:
    setup = add_parser(
        description="Write the configuration of a client for a running gateway, keep a backup, and make one test call"
        " with a tool over the wire that the client uses.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    setup.add_argument("client", metavar="CLIENT", help=", ".join(agent.name for agent in AGENTS))
    setup.add_argument("--url", metavar="URL", help="address of the gateway (default: that of the settings, port 8484)")
    setup.add_argument("--model", metavar="NAME", help="model to use (default: the only one of the gateway)")
    setup.add_argument(
        "--key", metavar="KEY", help=f"client key; visible in the process list, unlike {KEY_VARIABLE} (default: none)"
    )
    action = setup.add_mutually_exclusive_group()
    action.add_argument("--print", action="store_true", help="print the whole configuration and write nothing")
    action.add_argument("--undo", action="store_true", help="take back what setup wrote, and nothing else")
    setup.add_argument(
        "--force", action="store_true", help="with --undo: restore the backups, whatever was changed since"
    )
    setup.add_argument("--no-test", action="store_true", help="make no test call")
    setup.add_argument("--json", action="store_true", help="print one JSON document")
    setup.add_argument("--config", metavar="FILE", help="settings file of the gateway, for its address")
    setup.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    agent = find_agent(arguments.client)
    if agent is None:
        names = ", ".join(agent.name for agent in AGENTS)
        raise UsageError(
            f"{arguments.client!r} is not a known client{suggest_agent(arguments.client)}; known are: {names}"
        )
    try:
        document = undo(agent, arguments.force) if arguments.undo else set_up(agent, arguments)
    except OSError as error:
        raise UsageError(f"cannot use {error.filename}: {error.strerror}") from None
    print(json.dumps(document, ensure_ascii=False, indent=2) if arguments.json else "\n".join(format_lines(document)))
    test = document.get("test")
    return FINDINGS if test and not test["called"] else OK


def undo(agent: Agent, force: bool) -> dict[str, Any]:
    """Take back what setup wrote to the files of a client. Raises: UsageError if that cannot be done for all."""
    places = [
        BackedUpFile(path, file.format)
        for file in reversed(agent.files)
        for path in file.list_places(os.environ, Path.home())
    ]
    plans = [(file, plan) for file in places if (plan := file.plan_undo(force)) is not None]
    for file, plan in plans:
        file.undo(plan)
    files = [
        {"path": str(plan.path), "state": plan.state, "kept": plan.kept, "remarks": plan.remarks} for _, plan in plans
    ]
    return {"client": agent.name, "restored": [file["path"] for file in files], "files": files}


def set_up(agent: Agent, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write or print the configuration. Raises: UsageError if there is no gateway or a file cannot be edited."""
    key = find_key(arguments.key)
    settings = load_settings(argparse.Namespace(config=arguments.config), needs_secrets=False)
    contact = GatewayContact(find_address(arguments.url, settings), key, "toolglot-setup")
    tests = not (arguments.no_test or arguments.print)
    listed = list_models(contact, needed=tests or not arguments.model)
    model = choose_model(arguments.model, listed)
    test = contact.test_call(agent.wire, model) if tests and listed and model not in listed else None
    if test is not None and test.problem:
        raise UsageError(
            f"{test.describe()}. The gateway does not list {model!r}, so nothing was written; {name_models(listed)}"
        )
    connection = Connection(address=contact.address, model=model, key=key)
    plans = [plan_file(file, connection, write=not arguments.print) for file in agent.files]
    files = [apply_file(plan, connection.address, write=not arguments.print) for plan in plans]
    document = {
        "client": agent.name,
        "title": agent.title,
        "address": contact.address,
        "model": model,
        "wire": agent.wire,
        "tested": agent.tested,
        "files": files,
        "snippet": connection.fill(agent.snippet),
        "environment": connection.fill(agent.variables) if arguments.print else {},
        "start": agent.start,
        "notes": [*list_notes(agent, connection, listed), *list_key_notes(agent, files)],
    }
    if tests:
        test = test or contact.test_call(agent.wire, model)
        document["test"] = test.as_json() | {"summary": test.describe()}
    return document


def list_models(contact: GatewayContact, needed: bool) -> list[str]:
    """The models of the gateway; none if they are not needed and it does not answer. Raises: UsageError."""
    try:
        if contact.is_running():
            return contact.list_models()
    except UsageError:
        if needed:
            raise
    if needed:
        raise UsageError(f"no gateway answers at {contact.address}: start it with 'toolglot serve', or give --url")
    return []


class FilePlan(NamedTuple):
    """A file of a client, its text without what an earlier setup wrote, and the text that it gets."""

    file: ConfigFile
    kept: BackedUpFile
    base: str
    text: str
    keyed: list[str]


def plan_file(file: ConfigFile, connection: Connection, write: bool) -> FilePlan:
    """Merge the settings into the text of a file. Nothing is written. Raises: UsageError, OSError."""
    path = file.locate(os.environ, Path.home())
    kept = BackedUpFile(path, file.format)
    base = kept.read()
    if write:
        kept.check_places()
    try:
        text = file.merge(base, connection)
    except ValueError as error:
        raise UsageError(
            f"{path} cannot be edited: {error}. Correct it, or paste what 'toolglot setup ... --print' shows"
            if write
            else f"{path} cannot be edited: {error}"
        ) from None
    return FilePlan(file, kept, base, text, [] if connection.key else file.list_keyed(text))


def apply_file(plan: FilePlan, address: str, write: bool) -> dict[str, Any]:
    """Write a file, or show what it would be. Raises: UsageError, OSError."""
    file, kept, base, text, keyed = plan
    state = "printed"
    if write:
        changed = kept.write(base, text, address, file.volatile, file.defaults)
        state = "written" if changed else "unchanged"
    target = kept.find_target()
    return {
        "path": str(kept.path),
        "target": str(target) if target != kept.path else "",
        "state": state,
        "backup": str(kept.backup) if kept.backup.is_file() else "",
        "content": text if state == "printed" else "",
        "keyed": keyed,
    }


def list_notes(agent: Agent, connection: Connection, listed: list[str]) -> list[str]:
    notes = [connection.fill(note) for note in agent.notes]
    if listed and connection.model not in listed:
        notes.append(f"the gateway does not list {connection.model!r}; {name_models(listed)}")
    return notes


def list_key_notes(agent: Agent, files: list[dict[str, Any]]) -> list[str]:
    """What a file has for another gateway, with client keys, and the client does not start without."""
    return [
        f"{file['path']} has {setting}: {agent.title} wants that variable set, or the line removed"
        for file in files
        for setting in file["keyed"]
    ]


def format_undo(document: dict[str, Any]) -> Iterator[str]:
    for file in document["files"]:
        yield UNDONE[file["state"]].format(file["path"])
        yield from (f"  kept {setting}, which was changed since the setup" for setting in file["kept"])
        yield from (f"  note: {remark}" for remark in file["remarks"])
    if not document["files"]:
        yield f"nothing to undo: setup has changed no file of {document['client']}"


def format_lines(document: dict[str, Any]) -> Iterator[str]:
    if "restored" in document:
        yield from format_undo(document)
        return
    for file in document["files"]:
        if file["state"] == "printed":
            yield f"# {file['path']}"
            yield file["content"]
        else:
            linked = f", a link to {file['target']}" if file["target"] else ""
            kept = f" (before: {file['backup']})" if file["backup"] else ""
            yield f"{file['state']} {file['path']}{linked}{kept}"
    if document["snippet"]:
        yield document["snippet"]
    if document["environment"]:
        yield "# or, for one shell, without any file"
        yield from (f"export {name}={shlex.quote(value)}" for name, value in document["environment"].items())
    yield from (f"note: {note}" for note in document["notes"])
    if "test" in document:
        yield f"test: {document['test']['summary']}"
        if not document["test"]["called"]:
            yield "next: toolglot doctor"
    if document["start"]:
        yield f"start: {document['start']}"
