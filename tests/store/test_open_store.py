"""Store URLs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolglot.core.errors import UsageError
from toolglot.store import open_store
from toolglot.store.sqlite import SqliteStore

SECRET = "planted-9f2c"


def path_of(url: str, folder: Path) -> Path:
    store = open_store(url, state_folder=folder, now=time.time)
    assert isinstance(store, SqliteStore)
    return store._path


def test_paths_of_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    assert path_of("sqlite:toolglot.db", tmp_path) == tmp_path / "toolglot.db"
    assert path_of("sqlite:a b/c?d=1#%20.db", tmp_path) == tmp_path / "a b/c?d=1#%20.db"
    assert path_of("sqlite:/var/lib/x.db", tmp_path) == Path("/var/lib/x.db")
    assert str(path_of("sqlite:///var/lib/x.db", tmp_path)) == "/var/lib/x.db"
    assert path_of("sqlite:~/x.db", tmp_path) == Path("/home/user/x.db")


def test_none_is_no_store(tmp_path: Path) -> None:
    assert open_store("none", state_folder=tmp_path, now=time.time) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite:",
        "sqlite:/",
        "sqlite::memory:",
        "sqlite://host/x.db",
        "sqlite:a\0b",
        "sqlite",
        f"mysql://u:{SECRET}@h/d",
        f"postgresql:{SECRET}",
        f"postgresql://u:p@h:{SECRET}/d",
        f"postgresql://u:{SECRET}/@h:x/d",
        f"postgresql://u:{SECRET}@[::1/d",
    ],
)
def test_other_urls_are_refused_without_being_quoted(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="store URL") as caught:
        open_store(url, state_folder=tmp_path, now=time.time)
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "rest", ["u:p@h/d", "u:p%40@[::1]:5432/d", "/d?host=/run/postgresql", "u:p@one:5432,two:5433/d", "h"]
)
def test_urls_of_postgresql(rest: str, tmp_path: Path) -> None:
    for scheme in ("postgresql://", "postgres://"):
        store = open_store(scheme + rest, state_folder=tmp_path, now=time.time)
        assert store is not None
        assert store.is_shared


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolglot.store.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs asyncpg: .*pip install .*\[postgres\]"):
        open_store("postgresql://u:p@h/d", state_folder=tmp_path, now=time.time)


def test_engines_are_imported_on_demand() -> None:
    program = "import sys, toolglot.store; print(sorted({'asyncpg', 'sqlite3', 'asyncio'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
