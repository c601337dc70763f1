"""``toolglot run``: start an agent with a gateway of its own, without a change of the agent's files.

Strategy. The upstream is checked first. Then a gateway starts in a process of its own, on a free port, with its log in
a file. The agent gets variables, options and files in a temporary folder that point to it, and runs in the foreground.
When it ends, the gateway stops, its log and store give the summary, and its session becomes one HTML file.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolglot.cli.common_options import add_upstream_options, load_settings
from toolglot.cli.exit_codes import OK, USAGE_ERROR, AddParser
from toolglot.cli.foreground import SIGNALLED, Foreground
from toolglot.cli.gateway_contact import GatewayContact, choose_model, find_key
from toolglot.cli.gateway_process import direct_others, started
from toolglot.cli.run_page import write_page
from toolglot.cli.run_summary import RunSummary, count_records, find_sessions, read_records
from toolglot.cli.serve import repeat_options
from toolglot.clients.agents import AGENTS, Agent, Connection, find_agent, suggest_agent
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import Settings
from toolglot.config.settings import ANY
from toolglot.core.errors import ClientError, UsageError
from toolglot.core.installation import name_install_command
from toolglot.gateway.capabilities.learned import find_folder
from toolglot.server.upstream.findings import PROBLEM, Finding

if TYPE_CHECKING:
    from toolglot.server.upstream.checks import Examined

EXAMPLES = """\
examples:
  toolglot run claude                                          with the embedded model, or the settings here
  toolglot run codex --base-url http://127.0.0.1:8080/v1       with any OpenAI-compatible server
  toolglot run opencode --config toolglot.toml --model coder   with one of several models
  toolglot run claude -- --continue                            arguments for the agent come after --
  toolglot run gemini --print                                  show what would be run

exit codes:
  0    the agent has ended with 0; else it is the agent's own code
  2    the agent was not started, because something is wrong
"""
LOGS_KEPT: Final = 50
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
LOOPBACK: Final = "127.0.0.1,localhost"


def add(add_parser: AddParser) -> None:
    run_parser = add_parser(
        usage="toolglot run CLIENT [options] [-- ARGUMENTS ...]",
        description="Check the upstream, start a gateway on a free port, and start an agent that uses it, in this"
        " terminal. No file of the agent is changed. At the end turns, calls, repairs, retries and tokens are shown,"
        " and the session is written to one HTML file.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(agent.name for agent in AGENTS if agent.launch)
    run_parser.add_argument("client", metavar="CLIENT", help=names)
    run_parser.add_argument("--print", action="store_true", help="print what would be run, and run nothing")
    run_parser.add_argument("--json", action="store_true", help="print the summary as one line of JSON")
    run_parser.add_argument(
        "--no-html", action="store_true", help="do not write the session to an HTML file at the end"
    )
    run_parser.add_argument("--no-check", action="store_true", help="start the agent whatever the checks find")
    run_parser.add_argument(
        "--key",
        metavar="KEY",
        help=f"client key, if the settings define keys; visible in the process list, unlike {KEY_VARIABLE}",
    )
    add_upstream_options(run_parser)
    run_parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    agent = require_agent(arguments.client)
    options = {name: value for name, value in vars(arguments).items() if name not in OWN and value is not None}
    settings = load_settings(argparse.Namespace(**options))
    key = find_key(arguments.key)
    if arguments.print:
        print_plan(
            agent, arguments, Connection(address=ADDRESS, model=arguments.model or MODEL, key=key, folder=FOLDER)
        )
        return OK
    require_program(agent)
    try:
        return run_agent(agent, arguments, settings, options, key)
    except KeyboardInterrupt:  # before or after the agent, which handles it itself
        return SIGNALLED + 2


ADDRESS, MODEL, FOLDER = "http://127.0.0.1:PORT", "MODEL", "FOLDER"
"""What ``--print`` shows for values that are not known before the start."""
OWN: Final = ("client", "print", "json", "no_html", "no_check", "key", "model", "passed", "run")
"""What the settings of the gateway are not loaded with. The model is chosen here."""
STORED: Final = ("config", "state_dir")
"""The options that decide which store is used."""


def require_agent(name: str) -> Agent:
    """The client of this name, which has a program. Raises: UsageError."""
    agent = find_agent(name)
    known = ", ".join(one.name for one in AGENTS if one.launch)
    if agent is None:
        raise UsageError(f"{name!r} is not a known client{suggest_agent(name)}; known are: {known}")
    if agent.launch is None:
        raise UsageError(
            f"{agent.title} has no program that could be started: 'toolglot setup {name}' shows how it is pointed to a"
            f" gateway ('toolglot serve'). Clients with a program are: {known}"
        )
    return agent


def require_program(agent: Agent) -> None:
    """Raises: UsageError if the program of the client is not installed."""
    assert agent.launch is not None
    program = agent.start.split()[0]
    if shutil.which(program) is None:
        raise UsageError(
            f"{agent.title} is not installed: there is no program {program!r} in PATH. Install it with:"
            f" {agent.launch.install}"
        )


def run_agent(
    agent: Agent, arguments: argparse.Namespace, settings: Settings, options: Mapping[str, Any], key: str
) -> int:
    """Start the gateway and the agent, and print the summary. Returns: the exit code."""
    import asyncio

    from toolglot.cli.embedded import prepare_weights, wants_embedded

    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    model = arguments.model or ""
    if wants_embedded(settings):
        if model:
            raise UsageError("--model needs an upstream: give --base-url, or a settings file that has one")
        print(f"note: {prepare_weights(settings).description}", file=sys.stderr)
    else:
        model, fatal = asyncio.run(choose_checked_model(settings, model))
        if fatal and not arguments.no_check:
            print(f"toolglot: {agent.title} was not started (--no-check starts it nevertheless)", file=sys.stderr)
            return USAGE_ERROR
        if not model:
            raise UsageError("no model is known: give one with --model")
    with Foreground() as foreground:
        summary = supervise_agent(agent, arguments, settings, Start(options, model, key), foreground)
        print_summary(summary, agent, arguments, settings)
    return summary.exit_code


class Start(NamedTuple):
    """What a gateway is started with, and the client key for it."""

    options: Mapping[str, Any]
    model: str
    key: str


def supervise_agent(
    agent: Agent, arguments: argparse.Namespace, settings: Settings, start: Start, foreground: Foreground
) -> RunSummary:
    """Start the gateway and the agent, and wait for the agent's end."""
    import asyncio

    log = open_log(settings, agent)
    with (
        tempfile.TemporaryDirectory(prefix="toolglot-run-") as folder,
        started(start.options, start.model, log) as gateway,
    ):
        GatewayContact(gateway.address, start.key).require_access()
        connection = Connection(address=gateway.address, model=gateway.model, key=start.key, folder=folder)
        environment = make_environment(agent, os.environ, connection)
        write_files(agent, connection)
        say = f"toolglot: gateway at {gateway.address}, model {gateway.model}, log {log}"
        print(say, file=sys.stderr, flush=True)
        began = time.time()
        code = foreground.run(agent.list_command(arguments.passed, connection), environment)
        seconds = time.time() - began
        if not gateway.is_running():
            print(f"toolglot: the gateway ended before {agent.title}; its log says why", file=sys.stderr)
    records = read_records(log)
    requests = {record["request_id"] for record in records}
    sessions = asyncio.run(find_sessions(settings, requests, began)) if requests else ()
    wants_page = bool(sessions) and not arguments.no_html
    return RunSummary(
        client=agent.name,
        exit_code=code,
        seconds=round(seconds, 3),
        model=gateway.model,
        sessions=sessions,
        html=write_page(settings, sessions[0], log.with_suffix(".html")) if wants_page else "",
        log=str(log),
        **count_records(records),
    )


def print_summary(summary: RunSummary, agent: Agent, arguments: argparse.Namespace, settings: Settings) -> None:
    """Standard output belongs to the agent, so only JSON goes there, as the last line."""
    if arguments.json:
        print(json.dumps(summary.as_json(), ensure_ascii=False))
        return
    lines = summary.format_lines(agent.title, repeat_options(arguments, STORED), settings.store.bodies)
    print("\n".join(lines), file=sys.stderr)
    if agent.launch and agent.launch.resume and summary.turns:
        again = f"toolglot run {agent.name}{repeat_options(arguments)} -- {agent.launch.resume}"
        print(f"  resume:  {again}", file=sys.stderr)


# The upstream and its model


async def choose_checked_model(settings: Settings, given: str) -> tuple[str, bool]:
    """Check the upstreams, print what is wrong, and choose the model. Returns: it, and whether requests must fail.

    Raises: UsageError if there are several models, or none.
    """
    try:
        from toolglot.server.upstream.checks import Examined, check_start
        from toolglot.server.upstream.probe import fresh_pool
    except ImportError as error:
        raise UsageError(f"run needs the server extra: {name_install_command('server')} ({error})") from None
    try:
        wanted = given or settings.server.default_model
        settings = direct_others(settings, wanted) if wanted else settings
        upstreams = (settings.model_for(wanted)[1],) if wanted else settings.upstreams
    except ClientError as error:
        raise UsageError(error.message) from None
    examined = [Examined(upstream) for upstream in upstreams]
    failed: set[str] = set()
    async with fresh_pool() as pool:
        for one in examined:
            async for finding in check_start(settings, one, pool):
                print_finding(finding)
                if finding.severity == PROBLEM:
                    failed.add(one.upstream.name)
    fatal = len(failed) == len(examined)
    if wanted or fatal:
        return wanted, fatal
    return choose_model(None, list_names(settings, examined)), fatal


def print_finding(finding: Finding) -> None:
    print(f"{finding.severity}: {finding}", file=sys.stderr, flush=True)


def list_names(settings: Settings, examined: list[Examined]) -> list[str]:
    """The names that a client can ask for: those of the settings and, for patterns, those that upstreams list."""
    names: dict[str, None] = {}
    for model in settings.models:
        if ANY not in model.name:
            names[model.name] = None
        elif model.model and ANY not in model.model:
            names[model.model] = None
        else:
            upstream = settings.upstream_of(model).name
            listed = [name for one in examined if one.upstream.name == upstream for name in one.names]
            names |= dict.fromkeys(name for name in listed if model.match(name) is not None)
    return list(names)


# The agent


def make_environment(agent: Agent, environ: Mapping[str, str], connection: Connection) -> dict[str, str]:
    """The variables of the agent. Raises: UsageError if one that has to be extended is not JSON."""
    assert agent.launch is not None
    try:
        variables = agent.list_variables(environ, connection)
    except ValueError as error:
        raise UsageError(f"a variable of {agent.title} in the environment cannot be extended: {error}") from None
    kept = {name: value for name, value in environ.items() if name not in agent.launch.unset}
    return kept | bypass_proxy(environ) | variables


def bypass_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep requests to this machine away from a proxy, if there is one."""
    if not any(environ.get(name) or environ.get(name.lower()) for name in PROXIES):
        return {}
    given = environ.get("NO_PROXY") or environ.get("no_proxy")
    return dict.fromkeys(("NO_PROXY", "no_proxy"), f"{given},{LOOPBACK}" if given else LOOPBACK)


def list_files(agent: Agent, connection: Connection) -> Iterator[tuple[Path, str]]:
    """The files in the temporary folder. Raises: UsageError if the file that one stands for cannot be read."""
    assert agent.launch is not None
    for file in agent.launch.files:
        own = file.locate(os.environ, Path.home())
        try:
            text = own.read_text("utf-8") if agent.launch.copies and own.is_file() else ""
            yield Path(connection.folder, agent.launch.mirrors, file.names[0]), file.merge(text, connection)
        except (OSError, ValueError) as error:
            raise UsageError(f"{own} cannot be used: {error}") from None


def write_files(agent: Agent, connection: Connection) -> None:
    """Fill the temporary folder: files for the gateway, and links to the others of a folder that is mirrored."""
    assert agent.launch is not None
    for path, text in list_files(agent, connection):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, "utf-8")
    if agent.launch.mirrors:
        own = agent.launch.files[0].locate(os.environ, Path.home()).parent
        for entry in own.iterdir() if own.is_dir() else ():
            link = Path(connection.folder, agent.launch.mirrors, entry.name)
            if not link.exists():
                link.symlink_to(os.path.realpath(entry), target_is_directory=entry.is_dir())


def print_plan(agent: Agent, arguments: argparse.Namespace, connection: Connection) -> None:
    """Print command, variables and files of the agent."""
    assert agent.launch is not None
    command = agent.list_command(arguments.passed, connection)
    variables = agent.list_variables(os.environ, connection) | bypass_proxy(os.environ)
    files = {str(path): text for path, text in list_files(agent, connection)}
    unset = [name for name in agent.launch.unset if name in os.environ]
    if arguments.json:
        plan = {"command": command, "environment": variables, "unset": unset, "files": files}
        print(json.dumps(plan, ensure_ascii=False, indent=2))
        return
    for path, text in files.items():
        print(f"# {path}\n{text.rstrip()}\n")
    for name in unset:
        print(f"unset {name}")
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    print(shlex.join(command))


# The log


def open_log(settings: Settings, agent: Agent) -> Path:
    """A new file for the log of the gateway, next to the store; the oldest ones are deleted, with their pages."""
    folder = find_folder(settings.server.state_dir, os.environ)
    try:
        logs = folder / "runs" if folder else Path(tempfile.mkdtemp(prefix="toolglot-log-"))
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(logs.glob("*.log"))[: -LOGS_KEPT + 1]:
            old.unlink(missing_ok=True)
            old.with_suffix(".html").unlink(missing_ok=True)
        log = logs / f"{datetime.now():%Y%m%d-%H%M%S-%f}-{agent.name}-{os.getpid()}.log"
        log.touch(0o600, exist_ok=False)
    except OSError as error:
        raise UsageError(f"the log cannot be written: {error}. Set another --state-dir") from None
    return log
