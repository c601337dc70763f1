"""Starting the embedded model for a command: download with a progress bar, banner, and the upstream that it is."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from toolglot.config import ModelSettings, Secret, Settings, Upstream
from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream.embedded import check_runtime, start
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, MIB, ModelChoice, choose_model
from toolglot.server.upstream.weights import fetch_weights, find_cache_folder, find_kept_weights

UPSTREAM: Final = "embedded"
NOT_RUNNING: Final = "http://embedded.invalid/v1"
"""The address of an embedded model that is only explained."""
SERVER_FACTS: Final = {"server": ("llama.cpp",)}
INTERRUPTED: Final = 130
BAR_WIDTH: Final = 30
LINE_STEP: Final = 0.1
"""Part of a download after which a line is printed where there is no terminal."""
MODELS_FOLDER: Final = "models"


def wants_embedded(settings: Settings) -> bool:
    """Whether the gateway runs a model itself: one is named, or there is no other upstream."""
    return bool(settings.embedded.model) or not settings.upstreams


def choose_embedded(settings: Settings) -> ModelChoice:
    """The model that the settings name, or the default. Raises: UsageError if there is none of that name."""
    return choose_model(settings.embedded.model or DEFAULT_MODEL)


def add_embedded(settings: Settings, choice: ModelChoice, base_url: str, api_key: str = "") -> Settings:
    """The settings with an embedded model as the upstream of all names that no other has."""
    upstream = Upstream(name=UPSTREAM, base_url=base_url, api_key=Secret(api_key), coached=choice.coached)
    mode = "text" if choice.coached else ""
    return settings.answered_by(upstream, ModelSettings(model=choice.model, dialect=choice.dialect, mode=mode))


def find_weights(choice: ModelChoice, settings: Settings) -> Path | None:
    """The model file if it is there already."""
    if isinstance(choice.weights, Path):
        return choice.weights
    return find_kept_weights(choice.weights, _find_folder(settings))


def _find_folder(settings: Settings) -> Path:
    return find_cache_folder(settings.embedded.cache_dir, os.environ) / MODELS_FOLDER


def prepare_weights(settings: Settings) -> ModelChoice:
    """The model that the settings name, or the default, with its weights on this machine.

    Raises: UsageError if it cannot be downloaded, or there is none of that name.
    """
    choice = choose_embedded(settings)
    check_runtime()
    try:
        find_weights(choice, settings) or _download(choice, settings)
    except UnreachableError as failure:
        raise UsageError(failure.message) from None
    return choice


@contextmanager
def run_embedded(settings: Settings) -> Iterator[Settings]:
    """Run the embedded model while the block runs; gives the settings with it as an upstream.

    Its weights are downloaded if they are not there. Raises: UsageError if it cannot be downloaded or started.
    """
    choice = choose_embedded(settings)
    check_runtime()
    reason = "" if settings.embedded.model else "No upstream is configured: "
    print(f"{reason}{'s' if reason else 'S'}tarting the embedded model ...", file=sys.stderr, flush=True)
    try:
        weights = find_weights(choice, settings) or _download(choice, settings)
        context, threads = settings.embedded.context, settings.embedded.threads
        running = start(weights, choice, context=context, threads=threads)
    except UnreachableError as failure:
        raise UsageError(failure.message) from None
    with running:
        print(f"embedded model: {choice.description}", file=sys.stderr, flush=True)
        yield add_embedded(settings, choice, running.base_url, running.api_key)


def _download(choice: ModelChoice, settings: Settings) -> Path:
    assert not isinstance(choice.weights, Path)
    folder, bar = _find_folder(settings), ProgressBar(choice.name)
    print(f"Downloading {choice.name}, {choice.weights.size // MIB:,} MiB, to {folder}", file=sys.stderr, flush=True)
    try:
        return fetch_weights(choice.weights, folder, bar.show)
    except KeyboardInterrupt:
        bar.end()
        print("toolglot: stopped; the next start goes on from here", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    finally:
        bar.end()


@dataclass
class ProgressBar:
    """Progress on one line of a terminal; elsewhere a line now and then."""

    name: str
    stream: IO[str] = field(default_factory=lambda: sys.stderr)
    _began: float = field(default_factory=time.monotonic)
    _first: int = -1
    _last: tuple[str, int] = ("", -1)
    _open: bool = False

    def show(self, doing: str, done: int, size: int) -> None:
        """Show how much of ``size`` bytes is done; without a size only what is being done."""
        self._first = done if self._first < 0 else self._first
        share = done / size if size else 0.0
        if not self.stream.isatty():
            step = (doing, int(share / LINE_STEP))
            if step != self._last:
                self._last = step
                print(self._describe(doing, done, size), file=self.stream, flush=True)
            return
        filled = round(share * BAR_WIDTH)
        bar = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] " if size else ""
        line = f"{bar}{self._describe(doing, done, size)}"
        width = shutil.get_terminal_size().columns - 1
        self.stream.write(f"\r{line[:width]:<{width}}")
        self.stream.flush()
        self._open = True

    def _describe(self, doing: str, done: int, size: int) -> str:
        if not size:
            return f"{doing} {self.name}"
        seconds = time.monotonic() - self._began
        rate = max(0, done - self._first) / seconds if seconds else 0
        left = f", {(size - done) / rate:,.0f} s left" if rate and done < size else ""
        return f"{done / size:.0%} of {size // MIB:,} MiB{left}, {doing} {self.name}"

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._open:
            print(file=self.stream, flush=True)
            self._open = False
