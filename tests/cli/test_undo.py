"""``toolglot setup --undo`` after others have changed the files: only what setup wrote goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolglot.cli.backups import BackedUpFile
from toolglot.cli.main import main
from toolglot.clients.agents import AGENTS, find_agent
from toolglot.clients.file_editing import parse_text
from toolglot.core.errors import UsageError

Cli = Callable[..., tuple[int, str, str]]
WITH_FILES = [agent.name for agent in AGENTS if agent.files]
ADDRESS = "http://127.0.0.1:9"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "XDG_", "OPENAI_", "ANTHROPIC_", "CLAUDE", "CODEX", "GEMINI", "CLINE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], home: Path) -> Cli:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["setup", *arguments])
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


def set_up(cli: Cli, client: str, model: str = "m") -> None:
    code, _, errors = cli(client, "--model", model, "--url", ADDRESS, "--no-test")
    assert code == 0, errors


def locate(client: str, home: Path) -> list[Path]:
    agent = find_agent(client)
    assert agent is not None
    return [file.locate({}, home) for file in agent.files]


def rewrite(path: Path, kind: str) -> None:
    """What a client does that reads its settings and saves them again: other layout, a setting of its own."""
    values = parse_text(path.read_text("utf-8"), kind)
    if kind == "json":
        path.write_text(json.dumps({"$version": 4, **values}, indent=4), "utf-8")
    elif kind == "yaml":
        path.write_text(yaml.safe_dump({**values, "own": 4}, default_flow_style=None), "utf-8")
    else:
        path.write_text("own = 4\n" + path.read_text("utf-8"), "utf-8")


@pytest.mark.parametrize("client", WITH_FILES)
def test_a_client_that_rewrites_its_file_keeps_only_its_own_settings(client: str, cli: Cli, home: Path) -> None:
    agent = find_agent(client)
    assert agent is not None
    set_up(cli, client)
    paths = locate(client, home)
    for path, file in zip(paths, agent.files, strict=True):
        rewrite(path, file.format)
    code, out, errors = cli(client, "--undo")
    assert (code, errors) == (0, "") and "took the settings for toolglot out of" in out and "kept" not in out
    for path, file in zip(paths, agent.files, strict=True):
        left = parse_text(path.read_text("utf-8"), file.format)
        own = {key: value for key, value in left.items() if key not in file.defaults}
        assert own in ({"$version": 4}, {"own": 4}, {"own": "4"})
        assert left == {**file.defaults, **own}, "a file that stays keeps the form that the client wants"
        assert [entry.name for entry in path.parent.iterdir() if "toolglot" in entry.name] == []
    assert "nothing to undo" in cli(client, "--undo")[1]


def test_settings_that_were_there_before_come_back(cli: Cli, home: Path) -> None:
    path = home / ".qwen/settings.json"
    path.parent.mkdir()
    path.write_text('{"model": {"name": "mine"}, "env": {"OPENAI_BASE_URL": "http://mine/v1", "A": "1"}}', "utf-8")
    set_up(cli, "qwen")
    rewrite(path, "json")
    code, out, _ = cli("qwen", "--undo", "--json")
    assert code == 0 and json.loads(out)["files"] == [
        {"path": str(path), "state": "taken back", "kept": [], "remarks": []}
    ]
    assert json.loads(path.read_bytes()) == {
        "$version": 4,
        "model": {"name": "mine"},
        "env": {"OPENAI_BASE_URL": "http://mine/v1", "A": "1"},
    }


def test_what_the_user_changed_after_the_setup_stays_and_is_named(cli: Cli, home: Path) -> None:
    set_up(cli, "claude")
    path = home / ".claude/settings.json"
    path.write_text(path.read_text("utf-8").replace('"ANTHROPIC_MODEL": "m"', '"ANTHROPIC_MODEL": "mine"'), "utf-8")
    code, out, _ = cli("claude", "--undo")
    assert code == 0 and "kept env.ANTHROPIC_MODEL, which was changed since the setup" in out
    assert json.loads(path.read_bytes()) == {"env": {"ANTHROPIC_MODEL": "mine"}}


def test_what_the_client_keeps_up_to_date_is_no_change_of_a_person(cli: Cli, home: Path) -> None:
    set_up(cli, "cline")
    path = home / ".cline/data/settings/providers.json"
    path.write_text(path.read_text("utf-8").replace("2026-01-01T00", "2027-02-03T04"), "utf-8")
    code, out, _ = cli("cline", "--undo")
    assert code == 0 and "kept" not in out and not path.exists()


def test_a_file_that_was_there_keeps_no_defaults(cli: Cli, home: Path) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"theme": "x"}', "utf-8")
    set_up(cli, "opencode")
    rewrite(path, "json")
    assert cli("opencode", "--undo")[0] == 0
    assert json.loads(path.read_bytes()) == {"$version": 4, "theme": "x"}


def test_a_second_setup_leaves_nothing_of_the_first(cli: Cli, home: Path) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"model": "mine/a", "small_model": "mine/b"}', "utf-8")
    set_up(cli, "opencode", "first")
    rewrite(path, "json")
    path.write_text(path.read_text("utf-8").replace('"toolglot/first"', '"mine/c"', 1), "utf-8")
    set_up(cli, "opencode", "second")
    values = json.loads(path.read_bytes())
    assert list(values["provider"]["toolglot"]["models"]) == ["second"] and values["model"] == "toolglot/second"
    before = path.read_bytes()
    code, out, _ = cli("opencode", "--model", "second", "--url", ADDRESS, "--no-test")
    assert code == 0 and "unchanged" in out and path.read_bytes() == before
    rewrite(path, "json")
    code, out, _ = cli("opencode", "--model", "second", "--url", ADDRESS, "--no-test")
    assert code == 0 and "unchanged" in out, "another layout is no reason to write"
    assert cli("opencode", "--undo")[0] == 0
    assert json.loads(path.read_bytes()) == {"$version": 4, "model": "mine/c", "small_model": "mine/b"}


def test_force_restores_the_bytes_of_the_backup(cli: Cli, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(b"# mine\n")
    set_up(cli, "codex")
    rewrite(path, "toml")
    assert cli("codex", "--undo", "--force")[0] == 0 and path.read_bytes() == b"# mine\n"
    set_up(cli, "claude")
    rewrite(home / ".claude/settings.json", "json")
    code, out, _ = cli("claude", "--undo", "--force")
    assert code == 0 and "removed" in out and not (home / ".claude").exists()


def test_a_file_that_was_deleted_since(cli: Cli, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(b"# mine\n")
    for client in ("codex", "claude"):
        set_up(cli, client)
    path.unlink()
    code, out, _ = cli("codex", "--undo")
    assert code == 0 and "restored" in out and "had been deleted" in out and path.read_bytes() == b"# mine\n"
    (home / ".claude/settings.json").unlink()
    code, out, _ = cli("claude", "--undo")
    assert code == 0 and "had been deleted" in out and not (home / ".claude").exists()


@pytest.mark.parametrize("damage", ["missing", "changed"])
@pytest.mark.parametrize("edited", [False, True])
def test_without_a_good_backup_settings_are_taken_back_one_by_one(
    damage: str, edited: bool, cli: Cli, home: Path
) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "mine"  # x\n', "utf-8")
    set_up(cli, "codex")
    backup = path.with_name("config.toml.toolglot-backup")
    backup.unlink() if damage == "missing" else backup.write_bytes(b"other")
    if edited:
        rewrite(path, "toml")
    code, out, _ = cli("codex", "--undo")
    assert code == 0 and "backup is " + ("missing" if damage == "missing" else "changed since") in out
    assert path.read_text("utf-8") == ("own = 4\n" if edited else "") + 'model = "mine"  # x\n'
    assert backup.exists() is (damage == "changed") and "nothing to undo" in cli("codex", "--undo")[1]


def test_without_backup_and_file(cli: Cli, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(b"# mine\n")
    set_up(cli, "codex")
    path.unlink()
    path.with_name("config.toml.toolglot-backup").unlink()
    for arguments in (["codex", "--undo"], ["codex", "--undo", "--force"]):
        code, _, errors = cli(*arguments)
        assert code == 2 and ("nothing left to restore" in errors or "there is no backup" in errors)
        assert f"delete {path}.toolglot-setup" in errors


@pytest.mark.parametrize("note", [b"{", b"[]", b"\xff", b'{"sha256": 1}', b""])
def test_a_damaged_note_names_what_to_do(note: bytes, cli: Cli, home: Path) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{"a": 1}')
    set_up(cli, "claude")
    path.with_name("settings.json.toolglot-setup").write_bytes(note)
    for action in (["--undo"], ["--model", "n", "--url", ADDRESS, "--no-test"]):
        written = path.read_bytes()
        code, _, errors = cli("claude", *action)
        assert code == 2 and "is damaged" in errors and "--print" in errors and "--force" in errors
        assert path.read_bytes() == written
    assert cli("claude", "--undo", "--force")[0] == 0 and path.read_bytes() == b'{"a": 1}'


def test_a_damaged_note_without_a_backup_deletes_nothing(cli: Cli, home: Path) -> None:
    set_up(cli, "claude")
    path = home / ".claude/settings.json"
    path.with_name("settings.json.toolglot-setup").write_bytes(b"{")
    for force in ([], ["--force"]):
        code, _, errors = cli("claude", "--undo", *force)
        assert code == 2 and "by hand" in errors and path.exists()


def test_a_note_without_a_list_of_settings(cli: Cli, home: Path) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_bytes(b'{"a": 1}')
    set_up(cli, "claude")
    path.with_name("settings.json.toolglot-setup").write_text(json.dumps({"sha256": "0"}), "utf-8")
    code, _, errors = cli("claude", "--undo")
    assert code == 2 and "does not say which settings are toolglot's" in errors and "--force" in errors


@pytest.mark.parametrize("content", [b'{"env": ', b"\xff\xfe"])
def test_a_file_that_was_damaged_since(content: bytes, cli: Cli, home: Path) -> None:
    set_up(cli, "gemini")
    path = home / ".gemini/settings.json"
    path.write_bytes(content)
    before = (home / ".gemini/.env").read_bytes()
    code, _, errors = cli("gemini", "--undo")
    assert code == 2 and str(path) in errors and path.read_bytes() == content
    assert (home / ".gemini/.env").read_bytes() == before, "nothing is undone unless all can be"


def test_an_address_at_another_place_is_pointed_out(cli: Cli, home: Path) -> None:
    """As after an upgrade of the client that renames its settings."""
    set_up(cli, "claude")
    path = home / ".claude/settings.json"
    path.write_text(path.read_text("utf-8").replace("ANTHROPIC_BASE_URL", "NEW_BASE_URL"), "utf-8")
    code, out, _ = cli("claude", "--undo")
    assert code == 0 and f"it still names {ADDRESS}" in out
    assert json.loads(path.read_bytes()) == {"env": {"NEW_BASE_URL": ADDRESS}}


def test_a_file_that_has_another_name_since(cli: Cli, home: Path) -> None:
    set_up(cli, "opencode")
    old = home / ".config/opencode/opencode.json"
    (home / ".config/opencode/opencode.jsonc").write_text("{}", "utf-8")
    old.unlink()
    code, out, _ = cli("opencode", "--undo")
    assert code == 0 and str(old) in out and "nothing to undo" in cli("opencode", "--undo")[1]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"A=old")
    link.symlink_to(target)
    file = BackedUpFile(link, "env")
    assert file.write(file.read(), "A=new", "") and link.is_symlink() and target.read_bytes() == b"A=new"
    plan = file.plan_undo()
    assert plan is not None
    file.undo(plan)
    assert link.is_symlink() and target.read_bytes() == b"A=old"


def test_interrupted_before_the_file_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = BackedUpFile(tmp_path / "a", "env")
    file.path.write_bytes(b"A=old")
    put: Any = BackedUpFile._put

    failure: BaseException = OSError(28, "No space left on device")

    def fail(self: BackedUpFile, path: Path, data: bytes) -> None:
        if path == self.path:
            raise failure
        put(self, path, data)

    monkeypatch.setattr(BackedUpFile, "_put", fail)
    with pytest.raises(OSError):
        file.write(file.read(), "A=new\nB=1", "")
    assert os.listdir(tmp_path) == ["a"], "nothing is left of a setup that failed"
    failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        file.write(file.read(), "A=new\nB=1", "")
    monkeypatch.undo()
    plan = file.plan_undo()
    assert plan is not None and plan.content == b"A=old" and plan.kept == []


def test_changed_layouts_that_cannot_be_edited_name_the_settings(tmp_path: Path) -> None:
    file = BackedUpFile(tmp_path / "a", "json")
    file.path.write_text('{"a": {}}', "utf-8")
    file.write(file.read(), '{"a": {"b.c": 1}}', "")
    file.path.write_text('{"a": {"b.c": 2, "b.c": 1}}', "utf-8")
    with pytest.raises(UsageError, match=r'cannot be edited: its layout is unusual.*Settings of toolglot are: a."b.c"'):
        file.plan_undo()
