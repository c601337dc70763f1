"""Two gateways that also repair calls, each in an environment of its own, before the same model.

They are installed by name with pip into a folder of the bench and started with what their documentation recommends for a
llama.cpp server. Both need a newer Python than toolglot; what cannot be installed is left out with a message.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packages import tell

PYTHONS = ("python3.13", "python3.12", "python3.14")
START_PATIENCE = 90.0
MODEL_PATIENCE = 600
PROVIDERS = """\
allow_paid: false
default_profile: default
providers:
  - name: model
    kind: openai_compat
    base_url: {base_url}
    model: {model}
    timeout_s: {patience}
    capabilities: {{chat: true, streaming: true, tools: true}}
    output_filters: [strip_thinking, strip_stop_markers]
profiles:
  - name: default
    providers: [model]
"""


@dataclass(frozen=True)
class Rival:
    """``command`` makes the arguments from the environment's folder, the address of the model, its name, a port and a
    folder for files."""

    requirement: str
    command: Callable[[Path, str, str, int, Path], Sequence[str | Path]]
    messages_wire: bool = False
    """Whether it is asked on the Messages wire, where it repairs more."""


def _command_forge(environment: Path, base_url: str, model: str, port: int, folder: Path) -> Sequence[str | Path]:
    address = ("--backend-url", base_url.removesuffix("/v1"), "--backend", "llamaserver", "--model", model)
    patience = ("--backend-timeout", str(MODEL_PATIENCE))
    return environment / "bin" / "python", "-m", "forge.proxy", *address, *patience, "--port", str(port)


def _command_coderouter(environment: Path, base_url: str, model: str, port: int, folder: Path) -> Sequence[str | Path]:
    config = folder / "providers.yaml"
    config.write_text(PROVIDERS.format(base_url=base_url, model=model, patience=MODEL_PATIENCE))
    return environment / "bin" / "coderouter", "serve", "--port", str(port), "--config", config


RIVALS: Mapping[str, Rival] = {
    "forge": Rival("forge-guardrails==0.10.0", _command_forge),
    "coderouter": Rival("coderouter-cli==2.19.0", _command_coderouter, messages_wire=True),
}


def find_python(named: str | None) -> str:
    """A Python that the rivals run on: the one named, or one on the path. ``RuntimeError`` if there is none."""
    on_path = filter(None, map(shutil.which, [named] if named else PYTHONS))
    found = next(filter(_runs, on_path), None)  # a version manager has programs on the path that only print an error
    if found is None:
        raise RuntimeError(f"no Python {named or ' or '.join(PYTHONS)} is installed (--python FILE names one)")
    return found


def _runs(python: str) -> bool:
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


def install(rival: Rival, folder: Path, python: str | None) -> Path:
    """The environment of a rival, made once. ``RuntimeError`` if it cannot be."""
    environment = folder / rival.requirement.replace("==", "-")
    if (environment / ".installed").exists():
        return environment
    tell(f"installing {rival.requirement} into {environment} ...")
    shutil.rmtree(environment, ignore_errors=True)
    _run(find_python(python), "-m", "venv", environment)
    _run(environment / "bin" / "python", "-m", "pip", "install", "--quiet", rival.requirement)
    (environment / ".installed").touch()
    return environment


def _run(*command: str | Path) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{ended.args[0]} failed: {(ended.stderr or ended.stdout).strip()[-600:]}")


@contextmanager
def running(name: str, base_url: str, model: str, folder: Path, python: str | None) -> Iterator[str]:
    """A rival before the model at ``base_url``; gives its own base URL. ``RuntimeError`` if it does not start."""
    rival = RIVALS[name]
    environment = install(rival, folder, python)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        command = rival.command(environment, base_url, model, port, home)
        clean = {"PATH": os.environ["PATH"], "HOME": temporary, "LANG": "C.UTF-8"}
        with (home / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=clean, cwd=home)
        try:
            _wait(f"http://127.0.0.1:{port}", process, home / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/v1/models", timeout=10).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.3)
        else:
            return
    raise RuntimeError(f"it did not start: {log.read_text()[-600:]}")
