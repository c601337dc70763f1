"""The wheel and the sdist: built twice, compared, and installed in new environments as a user would."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent
UV = TOOLS / "uv"
"""Installs in a tenth of the time; without it pip does the same."""
EPOCH = "1700000000"
CALL = '<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>\n'
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TOOLGLOT_", "OPENAI_"))
}


def run(
    *command: str | Path,
    text: str = "",
    code: int = 0,
    folder: Path = ROOT,
    variables: Mapping[str, str] | None = None,
) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env=ENVIRONMENT | dict(variables or {}),
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session", autouse=True)
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip everything if no package index can be reached."""
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "PyYAML"]
    done = subprocess.run(
        [*probe, "-d", str(tmp_path_factory.mktemp("probe"))], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[-1]}")


def build(source: Path, target: Path, *options: str) -> Path:
    installer = ["--installer=uv"] if UV.exists() else []
    command = [sys.executable, "-m", "build", "--outdir", str(target), *installer, *options, str(source)]
    run(*command, variables={"SOURCE_DATE_EPOCH": EPOCH})
    return target


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, index: None) -> Path:
    """A folder with a wheel and an sdist."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(built: Path) -> Path:
    (path,) = built.glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def install(environment: Path, *requirements: str) -> Path:
    """A new environment with nothing but these packages. Returns: the folder of its programs."""
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    programs = environment / "bin"
    if UV.exists():
        run(UV, "pip", "install", "--quiet", "--python", programs / "python", *requirements)
    else:
        run(sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", *requirements)
    return programs


@pytest.fixture(scope="session")
def library(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("library") / "env", str(wheel))


@pytest.fixture(scope="session")
def server(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("server") / "env", f"{wheel}[server]")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def metadata_of(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


# What is built


def test_a_second_build_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = build(ROOT, tmp_path)
    assert {path.name: digest(path) for path in again.iterdir()} == {
        path.name: digest(path) for path in built.iterdir()
    }


def test_the_sdist_builds_the_same_wheel_elsewhere(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    assert not (unpacked / ".git").exists()
    build(unpacked, tmp_path, "--wheel")
    (again,) = tmp_path.iterdir()
    assert (again.name, digest(again)) == (wheel.name, digest(wheel))


def test_the_sdist_is_complete(unpacked: Path) -> None:
    listed = run("git", "ls-files", "src", "tests", "docs", "bench", "examples").split("\n")
    missing = [name for name in listed if name and (ROOT / name).is_file() and not (unpacked / name).is_file()]
    assert missing == []
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".env.example", "PKG-INFO"):
        assert (unpacked / name).is_file(), name
    assert [path for path in unpacked.rglob("*") if path.name in ("node_modules", ".venv", "__pycache__")] == []


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"toolglot"}
    assert {"toolglot/py.typed", "toolglot/gateway/capabilities/profiles.toml"} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert sources <= set(names)


def test_the_metadata(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(re.split(r"[<>=]", line)[0] for line in required) == ["msgspec", "pyyaml"]
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "server",
        "local",
        "postgres",
        "otel",
        "docs",
        "examples",
        "test",
    }
    assert metadata["License-Expression"] == "Apache-2.0"
    assert str(metadata.get_payload()).startswith("# toolglot")
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?(\.dev\d+)?(\+[\w.]+)?", metadata["Version"])


def test_the_version_comes_from_tags(tmp_path: Path) -> None:
    def version(folder: Path) -> str:
        return run(sys.executable, "-m", "hatchling", "version", folder=folder).strip()

    clone, copy = tmp_path / "clone", tmp_path / "copy"
    run("git", "clone", "--quiet", "--no-tags", ROOT, clone)
    shutil.copy(ROOT / "pyproject.toml", clone)
    git = ("git", "-C", clone, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    run(*git, "commit", "--quiet", "--allow-empty", "-am", "settings of the build")
    assert re.fullmatch(r"0\.1\.dev\d+\+g[0-9a-f]+", version(clone)), "no tags"
    run(*git, "tag", "v9.8.7")
    assert version(clone) == "9.8.7"
    run(*git, "commit", "--quiet", "--allow-empty", "-m", "more")
    assert re.fullmatch(r"9\.8\.8\.dev1\+g[0-9a-f]+", version(clone))
    shutil.copytree(clone, copy, ignore=shutil.ignore_patterns(".git"))
    assert version(copy) == "0.1.dev0", "no git"


# What is installed


def test_the_library_alone_needs_two_packages(library: Path, wheel: Path) -> None:
    program = (
        "import json, sys, importlib.metadata as m, toolglot\n"
        f"found = toolglot.read({CALL!r})\n"
        "print(json.dumps([[d.name.lower() for d in m.distributions()], toolglot.__version__,"
        " [call.name for call in found.calls], sorted({'aiohttp', 'asyncio', 'yaml'} & set(sys.modules))]))"
    )
    names, version, calls, modules = json.loads(run(library / "python", "-I", "-c", program))
    assert sorted(names) == ["msgspec", "pyyaml", "toolglot"]
    assert version == metadata_of(wheel)["Version"]
    assert calls == ["list_sensors"]
    assert modules == []


def test_the_command_works_with_the_library_alone(library: Path, wheel: Path, tmp_path: Path) -> None:
    toolglot = library / "toolglot"
    assert run(toolglot, "--version", folder=tmp_path) == f"toolglot {metadata_of(wheel)['Version']}\n"
    assert json.loads(run(toolglot, "read", "--json", text=CALL, folder=tmp_path))["calls"][0]["name"] == "list_sensors"
    for command in ("dialects", "config show", "config schema", "completion zsh", "key", "--help"):
        assert run(toolglot, *command.split(), folder=tmp_path)
    for command in ("serve", "probe", "doctor", "explain"):
        options = [command, "--base-url", "http://127.0.0.1:1", "--port", "0", "--state-dir", "none"]
        assert "toolglot[server]" in run(toolglot, *options, code=2, text="{}", folder=tmp_path), command
    assert "toolglot[server]" in run(toolglot, "sim", "--port", "0", code=2, folder=tmp_path)


@pytest.fixture
def gateway(server: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [server / "toolglot", "serve", "--port", "0", "--base-url", "http://127.0.0.1:1/v1", "--state-dir", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        yield process, next(found[0] for line in lines if (found := re.search(r"http://[\d.]+:\d+", line)))
    finally:
        process.kill()
        process.communicate()


def test_the_gateway_of_the_server_extra(gateway: tuple[subprocess.Popen[str], str], wheel: Path) -> None:
    process, address = gateway
    with urlopen(f"{address}/health", timeout=60) as reply:
        assert json.loads(reply.read())["version"] == metadata_of(wheel)["Version"]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.mark.parametrize("tool", ["uvx --from", "pipx run --spec"])
def test_it_runs_without_an_installation(tool: str, wheel: Path, tmp_path: Path) -> None:
    name, *options = tool.split()
    program = TOOLS / name
    if not program.exists():
        pytest.skip(f"{name} is not installed")
    places = {
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    shown = run(program, *options, wheel, "toolglot", "--version", folder=tmp_path, variables=places)
    assert f"toolglot {metadata_of(wheel)['Version']}" in shown.splitlines()
