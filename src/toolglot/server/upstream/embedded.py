"""The embedded model: a real model that runs on this machine, without a key and without a network.

Strategy. The model server is native code and runs in a child process, so that it can neither block nor crash the
gateway. This file is both sides: ``start`` is the parent, ``python -m toolglot.server.upstream.embedded`` the child.
Two pipes connect them. The parent writes what to run as one line of JSON to the child's standard input, where no other
user sees the key. When the model is loaded, the child writes one line of JSON to its standard output: its URL or an
error. It goes on reading its standard input: when the parent ends, in whatever way, the child reads end-of-file and
exits.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from toolglot.core.errors import UnreachableError, UsageError
from toolglot.core.installation import name_install_command
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS, ModelChoice

RUNTIME = "xllamacpp"
START_TIMEOUT = 120.0
"""Seconds to load the model; it takes a few, and many when the disk is cold and the machine is busy."""

CACHE_MIB = 256
KEY_BYTES = 24

_ABSENT = """\
the embedded model cannot run: {missing} is not installed. Either
  install it:            {command}
  use another upstream:  toolglot serve --base-url http://127.0.0.1:8080/v1
  or a simulated one:    toolglot sim"""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A running embedded model. It ends with ``stop``, with the ``with`` block or with this process."""

    base_url: str
    process: subprocess.Popen[bytes]
    model: str
    api_key: str = field(repr=False)
    """The key that its server wants, so that neither other programs nor web pages can use it."""

    def is_running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """Kill the child; does nothing if it has already ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def __enter__(self) -> EmbeddedModel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def check_runtime() -> None:
    """Raise UsageError if the package that runs models is not installed."""
    if importlib.util.find_spec(RUNTIME) is None:
        raise UsageError(_ABSENT.format(missing=RUNTIME, command=name_install_command("local")))


def start(
    weights: Path,
    choice: ModelChoice = KNOWN_MODELS[DEFAULT_MODEL],
    *,
    context: int = 0,
    threads: int = 0,
    api_key: str = "",
    verbose: bool = False,
    timeout: float = START_TIMEOUT,
) -> EmbeddedModel:
    """Start an embedded model on a free loopback port and wait until it is ready.

    Parameters: ``weights`` is a model file in GGUF format; ``context`` and ``threads`` as in the settings; ``api_key``
    is random unless given; ``verbose`` shows the log of the model server.
    Raises: UsageError if the runtime is not installed, UnreachableError if the model does not start.
    """
    check_runtime()
    api_key = api_key or secrets.token_urlsafe(KEY_BYTES)
    order = {
        "weights": str(weights),
        "model": choice.model,
        "context": context or choice.context,
        "output_tokens": choice.output_tokens,
        "threads": threads or _count_threads(),
        "api_key": api_key,
        "verbose": verbose,
    }
    safe = () if {"", os.getcwd()} & set(sys.path) else ("-P",)  # import nothing from the current folder
    process = subprocess.Popen(
        [sys.executable, *safe, "-m", __spec__.name],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if verbose else subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the gateway, which first completes open responses
    )
    alarm = threading.Timer(timeout, process.kill)
    alarm.start()
    try:
        line = _give_order(process, order)
    finally:
        alarm.cancel()
    status = json.loads(line) if line.endswith(b"\n") else {}
    running = EmbeddedModel(status.get("url", ""), process, choice.model, api_key)
    if running.base_url:
        return running
    running.stop()
    ended = f"its process ended with code {process.returncode} before it answered (limit {timeout:g} s)"
    raise UnreachableError(f"the embedded model {choice.model} did not start: {status.get('problem', ended)}")


def _give_order(process: subprocess.Popen[bytes], order: Mapping[str, object]) -> bytes:
    """Send the order to the child; returns its status line, or less if it ended."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    return process.stdout.readline()


def _count_threads() -> int:
    """Half of the processors: on a busy machine more threads wait for each other and are slower than fewer."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // 2)


def _end_with_parent(parent: IO[bytes]) -> None:
    parent.read()
    os._exit(0)


def _serve(
    weights: str, model: str, context: int, output_tokens: int, threads: int, api_key: str, verbose: bool
) -> Any:
    """Start the model server; its threads run until the returned object is garbage-collected."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.model_alias = {model}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.api_keys = [api_key]
    settings.n_parallel = 1
    settings.n_ctx = context
    settings.n_predict = output_tokens
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.n_gpu_layers = 0
    settings.cache_ram_mib = CACHE_MIB
    settings.ui = False
    settings.cors_origins = ""
    settings.verbosity = 3 if verbose else 0
    return xllamacpp.Server(settings)


def main() -> None:
    """The child process: serve the model that the first line of standard input describes, until the parent ends."""
    order = sys.stdin.buffer.readline()
    watch = threading.Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True)
    watch.start()
    # only the status line may go to the parent; redirect what native code prints to standard error
    parent = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        server = _serve(**json.loads(order))
        status = {"url": f"{server.listening_address}/v1"}
    except Exception as failure:
        status = {"problem": f"{type(failure).__name__}: {failure}"}
    print(json.dumps(status), file=parent, flush=True)
    if "url" in status:
        watch.join()


if __name__ == "__main__":
    main()
