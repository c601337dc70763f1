"""``toolglot sim``: run the simulated model. Its server is imported only when it runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toolglot import sim as simulators
from toolglot.cli.exit_codes import AddParser
from toolglot.core.errors import UsageError
from toolglot.core.installation import name_install_command
from toolglot.sim.faults import FAULTS
from toolglot.sim.options import AUTO, SimOptions, parse_faults
from toolglot.sim.script import load_script

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

DEFAULT_WIRE = "openai_chat"
LAST_PORT = 65_535
EXAMPLES = """\
examples:
  toolglot sim                                       use the dialect of the prompt, or native calls for native tools
  toolglot sim --dialect qwen3_coder --chunk 3       write calls in a dialect, three characters per event
  toolglot sim --dialect hermes --chunk-bytes 1      send one byte per network write
  toolglot sim --script answers.toml                 send scripted answers, see docs/SIM.md
  toolglot sim --fault lost_closer --fault no_done   inject faults; 'toolglot sim --faults' lists them
  toolglot sim --defects 0.3 --seed 7                a weak model: 30 % of its turns have a defect
  toolglot serve --base-url http://127.0.0.1:8099/v1 --model sim:hermes+cut_mid_call
                                                     with a gateway in front; the model name overrides options
"""
EXIT_CODES = """
exit codes:
  0    stopped with Ctrl-C
  2    usage error: an invalid option or script, or an address that cannot be used
"""


def list_wires() -> dict[str, ModuleType]:
    """The commands of the simulators of other wires. Each is a package in ``toolglot.sim``."""
    packages = [found.name for found in iter_modules(simulators.__path__) if found.ispkg]
    return {name: import_module(f"{simulators.__name__}.{name}.command") for name in packages}


def add(add_parser: AddParser) -> None:
    """Register ``toolglot sim``."""
    wires = list_wires()
    sim = add_parser(
        description="Run a simulated model behind an OpenAI-compatible server. No model is involved: it picks an "
        "offered tool by rules, or sends scripted answers, in any dialect and with any of the listed faults.",
        epilog=EXAMPLES + "".join(wire.EXAMPLES for wire in wires.values()) + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sim.add_argument(
        "--wire",
        choices=[DEFAULT_WIRE, *wires],
        default=DEFAULT_WIRE,
        help=f"the protocol of the server (default: {DEFAULT_WIRE})",
    )
    sim.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    sim.add_argument("--port", type=_port, default=8099, help="port to listen on; 0 takes a free port (default: 8099)")
    sim.add_argument("--dialect", default=AUTO, metavar="D", help="a dialect, 'native' or 'auto' (default: auto)")
    sim.add_argument("--script", metavar="FILE", help="scripted answers, as TOML")
    sim.add_argument("--chunk", type=int, default=12, metavar="N", help="characters per event (default: 12)")
    sim.add_argument(
        "--chunk-bytes", type=int, default=0, metavar="N", help="bytes per network write (default: whole events)"
    )
    sim.add_argument("--latency", type=float, default=0, metavar="MS", help="milliseconds before the first byte")
    sim.add_argument("--pace", type=float, default=0, metavar="MS", help="milliseconds between writes")
    sim.add_argument("--fault", action="append", default=[], metavar="NAME", help="a fault to inject (repeatable)")
    sim.add_argument("--faults", action="store_true", help="list the faults of the wire and exit")
    sim.add_argument("--json", action="store_true", help="with --faults: print one JSON document")
    sim.add_argument("--defects", type=float, default=0, metavar="P", help="share of turns with a defect, 0 to 1")
    sim.add_argument("--heeds", type=float, default=1, metavar="P", help="share of corrections it follows (default: 1)")
    sim.add_argument("--seed", type=int, default=0, metavar="N", help="decides which turns are defective (default: 0)")
    sim.add_argument("--class", dest="classes", action="append", default=[], metavar="NAME", help="only such defects")
    for wire in wires.values():
        wire.add_arguments(sim)
    sim.set_defaults(run=run_sim)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 to {LAST_PORT}")
    return int(text)


def run_sim(arguments: argparse.Namespace) -> int:
    wires = list_wires()
    for name, other in wires.items():
        given = [option for option in other.OPTIONS if getattr(arguments, option) is not None]
        if name != arguments.wire and given:
            flags = ", ".join("--" + option.replace("_", "-") for option in given)
            raise UsageError(f"{flags} can be used only with --wire {name}")
    wire = wires.get(arguments.wire)
    if arguments.faults:
        list_faults(wire.FAULTS if wire else FAULTS, as_json=arguments.json)
        return 0
    shared = {
        "dialect": arguments.dialect,
        "chunk": arguments.chunk,
        "chunk_bytes": arguments.chunk_bytes,
        "latency": arguments.latency,
        "pace": arguments.pace,
        "faults": tuple(name for text in arguments.fault for name in parse_faults(text)),
        "script": load_script(arguments.script) if arguments.script else (),
    }
    if wire and arguments.defects:
        raise UsageError(f"--defects can be used only with --wire {DEFAULT_WIRE}")
    options = wire.make_options(shared, arguments) if wire else make_options(shared, arguments)
    import asyncio

    with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=_choose_loop()) as runner:
        runner.run(_serve(options, arguments))
    return 0


def list_faults(faults: Mapping[str, str], as_json: bool = False) -> None:
    if as_json:
        print(json.dumps(dict(faults), ensure_ascii=False, indent=2))
        return
    width = max(map(len, faults))
    sys.stdout.writelines(f"{name:<{width}} {about}\n" for name, about in faults.items())


def make_options(shared: dict[str, Any], arguments: argparse.Namespace) -> SimOptions:
    """The options of the default wire: those of every wire, and those of a weak model."""
    weak = {name: getattr(arguments, name) for name in ("defects", "heeds", "seed")}
    return SimOptions(**shared, **weak, classes=tuple(arguments.classes))


def _choose_loop() -> Callable[[], AbstractEventLoop] | None:
    """uvloop if it is installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


async def _serve(options: SimOptions, arguments: argparse.Namespace) -> None:
    import asyncio

    wire = list_wires().get(arguments.wire)
    host, port = arguments.host, arguments.port
    try:
        from toolglot.sim.server import running

        server: Any = import_module(f"{wire.__package__}.server" if wire else "toolglot.sim.server")
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is missing: {name_install_command('server')}") from error
    try:
        async with running(server.make_app(options), host, port) as address:
            sys.stdout.writelines(wire.describe(address, options) if wire else describe(address))
            sys.stdout.flush()
            await asyncio.Event().wait()
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def describe(address: str) -> Iterator[str]:
    """The lines printed once the server is listening."""
    yield f"toolglot sim: a simulated model (no real one) at {address}/v1, model 'sim'\n"
    yield f"  toolglot serve --base-url {address}/v1 --model sim\n"
    yield f"  curl {address}/v1/models\n"
