"""``toolglot setup`` and links, pipes, devices and other things in the place of its files."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolglot.cli.backups import BACKUP, MAX_FILE, NOTE
from toolglot.cli.main import main
from toolglot.core.regular_files import replace_file

Cli = Callable[..., tuple[int, str, str]]
BEFORE = '{"theme": "mine"}\n'
SETUP = ("--model", "m", "--url", "http://127.0.0.1:9", "--no-test")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "XDG_", "OPENAI_", "ANTHROPIC_", "CLAUDE", "GEMINI")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    signal.alarm(30)  # a pipe must not be waited for
    yield tmp_path
    signal.alarm(0)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], home: Path) -> Cli:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["setup", *arguments])
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


@pytest.fixture
def path(home: Path) -> Path:
    return home / ".claude/settings.json"


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def list_entries(folder: Path) -> dict[str, object]:
    """What is in a folder, links and special files included."""

    def describe(entry: Path) -> object:
        state = entry.lstat()
        if stat.S_ISLNK(state.st_mode):
            return os.readlink(entry)
        content = entry.read_bytes() if stat.S_ISREG(state.st_mode) and state.st_size < 10_000 else b""
        return stat.filemode(state.st_mode), content

    return {str(entry.relative_to(folder)): describe(entry) for entry in sorted(folder.rglob("*"))}


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    folder = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(folder)


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def make_link_to_fifo(path: Path) -> None:
    os.mkfifo(path.with_name("fifo"))
    path.symlink_to("fifo")


def make_link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, MAX_FILE + 1)


def make_link_to_file(path: Path) -> None:
    path.with_name("precious").write_text("precious", "utf-8")
    path.symlink_to("precious")


IRREGULAR = [
    (make_fifo, "it is not a regular file"),
    (make_folder, "it is not a regular file"),
    (make_socket, "No such device or address"),
    (make_loop, "a link that leads nowhere (Too many levels of symbolic links): correct or remove it"),
    (make_dangling, "a link that leads nowhere (No such file or directory): correct or remove it"),
    (make_link_to_fifo, "it is not a regular file"),
    (make_link_to_device, "it is not a regular file"),
    (make_huge, f"it is larger than {MAX_FILE} bytes"),
]
OWN = [
    (make_fifo, "it is not a regular file"),
    (make_folder, "it is not a regular file"),
    (make_loop, "is a link, which setup did not make: move it away"),
    (make_dangling, "is a link, which setup did not make: move it away"),
    (make_link_to_file, "is a link, which setup did not make: move it away"),
    (make_link_to_device, "is a link, which setup did not make: move it away"),
]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def link_folder(home: Path, path: Path) -> Path:
    """Make the folder of the file a link to one with a file. Returns: that folder."""
    folder = home / "dotfiles/claude"
    folder.mkdir(parents=True)
    (folder / path.name).write_text(BEFORE, "utf-8")
    path.parent.rmdir()
    path.parent.symlink_to("dotfiles/claude")
    return folder


def set_owners(home: Path, of_home: int, link: Path, of_link: int, folder: Path, of_folder: int) -> None:
    os.chown(home, of_home, -1)
    os.lchown(link, of_link, -1)
    os.chown(folder, of_folder, -1)


def check_refusal(cli: Cli, home: Path, message: str, *arguments: str) -> None:
    before = list_entries(home)
    code, out, errors = cli("claude", *arguments)
    assert (code, out) == (2, "")
    assert message in errors and errors.count("\n") == 1, "one line"
    assert list_entries(home) == before, "nothing is changed"


@pytest.mark.parametrize(("make", "message"), IRREGULAR)
def test_what_is_not_a_regular_file_is_refused(
    make: Callable[[Path], None], message: str, cli: Cli, home: Path, path: Path
) -> None:
    make(path)
    check_refusal(cli, home, message, *SETUP)
    assert str(path) in cli("claude", *SETUP)[2] or "fifo" in make.__name__ or "device" in make.__name__
    check_refusal(cli, home, message, *SETUP, "--print")


@pytest.mark.parametrize("suffix", [BACKUP, NOTE])
@pytest.mark.parametrize(("make", "message"), OWN)
def test_nothing_is_written_over_what_setup_did_not_make(
    make: Callable[[Path], None], message: str, suffix: str, cli: Cli, home: Path, path: Path
) -> None:
    path.write_text(BEFORE, "utf-8")
    make(beside(path, suffix))
    check_refusal(cli, home, message, *SETUP)


@pytest.mark.parametrize("suffix", [BACKUP, NOTE])
@pytest.mark.parametrize(("make", "message"), OWN)
def test_undo_follows_no_links(
    make: Callable[[Path], None], message: str, suffix: str, cli: Cli, home: Path, path: Path
) -> None:
    path.write_text(BEFORE, "utf-8")
    assert cli("claude", *SETUP)[0] == 0
    beside(path, suffix).unlink()
    make(beside(path, suffix))
    check_refusal(cli, home, message, "--undo")
    check_refusal(cli, home, message, "--undo", "--force")


@pytest.mark.parametrize(("make", "message"), IRREGULAR)
def test_undo_of_what_is_not_a_regular_file_any_more(
    make: Callable[[Path], None], message: str, cli: Cli, home: Path, path: Path
) -> None:
    path.write_text(BEFORE, "utf-8")
    assert cli("claude", *SETUP)[0] == 0
    path.unlink()
    make(path)
    check_refusal(cli, home, message, "--undo")


def test_a_managed_file_is_changed_where_it_is(cli: Cli, home: Path, path: Path) -> None:
    """Programs that manage dotfiles make links."""
    target = home / "dotfiles/claude.json"
    target.parent.mkdir()
    target.write_text(BEFORE, "utf-8")
    target.chmod(0o640)
    path.symlink_to("../dotfiles/claude.json")
    before = list_entries(home)
    code, out, _ = cli("claude", *SETUP)
    assert code == 0 and f"written {path}, a link to {target} (before: {path}{BACKUP})" in out
    assert "127.0.0.1:9" in target.read_text("utf-8") and os.readlink(path) == "../dotfiles/claude.json"
    assert target.stat().st_mode & 0o777 == 0o640
    assert cli("claude", "--undo")[0] == 0
    assert list_entries(home) == before


def test_a_link_to_a_file_of_another_user_is_not_followed(
    cli: Cli, home: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = home / "target"
    target.write_text(BEFORE, "utf-8")
    path.symlink_to(target)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    check_refusal(cli, home, f"{path}, a link to {target}, belongs to another user", *SETUP)
    code, out, _ = cli("claude", *SETUP, "--print")
    assert code == 0 and "mine" in out
    path.unlink()
    target.rename(path)
    check_refusal(cli, home, f"{path} belongs to another user", *SETUP)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_root_follows_no_link_of_another_user(cli: Cli, home: Path, path: Path) -> None:
    """A user could make root change a file of root."""
    target = home / "target"
    target.write_text(BEFORE, "utf-8")
    path.symlink_to(target)
    os.lchown(path, 4242, 4242)
    check_refusal(cli, home, "belongs to another user", *SETUP)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_undo_by_root_follows_no_link_of_another_user(force: list[str], cli: Cli, home: Path, path: Path) -> None:
    """A user could write backup and note himself, and choose what root restores where."""
    target = home / "target"
    target.write_text(BEFORE, "utf-8")
    path.symlink_to(target)
    backup = b"chosen"
    beside(path, BACKUP).write_bytes(backup)
    note = {"sha256": digest(target.read_bytes()), "target": str(target), "backup_sha256": digest(backup)}
    beside(path, NOTE).write_text(json.dumps(note), "utf-8")
    os.lchown(path, 4242, 4242)
    check_refusal(cli, home, "belongs to another user", "--undo", *force)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
@pytest.mark.parametrize(
    ("of_home", "of_link", "of_folder"), [(0, 0, 4242), (0, 4242, 0), (0, 4242, 4242), (4242, 4242, 0)]
)
def test_root_follows_no_linked_folder_of_another_user(
    of_home: int, of_link: int, of_folder: int, cli: Cli, home: Path, path: Path
) -> None:
    folder = link_folder(home, path)
    set_owners(home, of_home, path.parent, of_link, folder, of_folder)
    check_refusal(cli, home, f"{path.parent}, a link to {folder}, belongs to another user", *SETUP)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
@pytest.mark.parametrize("owner", [0, 4242])
def test_root_follows_links_of_root_and_of_the_owner_of_the_home_folder(
    owner: int, cli: Cli, home: Path, path: Path
) -> None:
    folder = link_folder(home, path)
    set_owners(home, 4242, path.parent, owner, folder, owner)
    before = list_entries(home)
    assert cli("claude", *SETUP)[0] == 0 and "127.0.0.1:9" in (folder / path.name).read_text("utf-8")
    assert cli("claude", "--undo")[0] == 0 and list_entries(home) == before


def test_a_linked_folder_of_another_user_is_not_written(
    cli: Cli, home: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is new there, too."""
    folder = link_folder(home, path)
    (folder / path.name).unlink()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    check_refusal(cli, home, f"{path.parent}, a link to {folder}, belongs to another user", *SETUP)


def test_a_linked_folder_is_followed_over_several_links(cli: Cli, home: Path, path: Path) -> None:
    folder = link_folder(home, path)
    path.parent.unlink()
    (home / "more").mkdir()
    (home / "more/link").symlink_to("../dotfiles/claude")
    path.parent.symlink_to(home / "more/link")
    before = list_entries(home)
    assert cli("claude", *SETUP)[0] == 0 and "127.0.0.1:9" in (folder / path.name).read_text("utf-8")
    assert cli("claude", "--undo")[0] == 0 and list_entries(home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_root_keeps_the_owner(cli: Cli, path: Path) -> None:
    path.write_text(BEFORE, "utf-8")
    path.chmod(0o640)
    os.chown(path, 4242, 4243)
    assert cli("claude", *SETUP)[0] == 0
    for written in (path, beside(path, BACKUP), beside(path, NOTE)):
        state = written.stat()
        assert (state.st_uid, state.st_gid, state.st_mode & 0o777) == (4242, 4243, 0o640)


def test_another_name_of_a_file_stays_as_it_is(cli: Cli, home: Path, path: Path) -> None:
    path.write_text(BEFORE, "utf-8")
    os.link(path, home / "other")
    assert cli("claude", *SETUP)[0] == 0
    assert (home / "other").read_text("utf-8") == BEFORE
    assert cli("claude", "--undo")[0] == 0
    assert path.read_text("utf-8") == BEFORE


def test_a_file_that_setup_made_and_that_is_a_link_since(cli: Cli, home: Path, path: Path) -> None:
    assert cli("claude", *SETUP)[0] == 0
    path.rename(home / "dotfile")
    path.symlink_to(home / "dotfile")
    check_refusal(cli, home, "is a link now, which setup did not make", "--undo")


@pytest.mark.parametrize("before", [None, BEFORE])
def test_force_follows_no_link_that_was_made_since(before: str | None, cli: Cli, home: Path, path: Path) -> None:
    if before is not None:
        path.write_text(before, "utf-8")
    assert cli("claude", *SETUP)[0] == 0
    path.rename(home / "dotfile")
    path.symlink_to(home / "dotfile")
    message = f"{path} is a link to {home}/dotfile, through which setup did not write"
    check_refusal(cli, home, message, "--undo", "--force")
    path.unlink()
    (home / "dotfile").rename(path)
    assert cli("claude", "--undo", "--force")[0] == 0, "as the message says"
    assert not path.exists() if before is None else path.read_text("utf-8") == before


def test_force_follows_the_link_through_which_setup_wrote(cli: Cli, home: Path, path: Path) -> None:
    make_link_to_file(path)
    path.write_text(BEFORE, "utf-8")
    assert cli("claude", *SETUP)[0] == 0
    path.write_text("changed", "utf-8")
    assert cli("claude", "--undo", "--force")[0] == 0
    assert path.is_symlink() and path.with_name("precious").read_text("utf-8") == BEFORE
    assert cli("claude", *SETUP)[0] == 0
    path.unlink()
    (home / "other").write_text("other", "utf-8")
    path.symlink_to(home / "other")
    check_refusal(cli, home, "through which setup did not write", "--undo", "--force")


@pytest.mark.parametrize("content", [None, "changed"])
def test_a_backup_without_its_note_is_not_overwritten(content: str | None, cli: Cli, home: Path, path: Path) -> None:
    """Messages advise to delete a damaged note."""
    path.write_text(BEFORE, "utf-8")
    assert cli("claude", *SETUP)[0] == 0
    beside(path, NOTE).unlink()
    path.unlink()
    if content is not None:
        path.write_text('{"theme": "edited"}', "utf-8")
    check_refusal(cli, home, f"{path}{BACKUP} is there and {path}{NOTE} is not", *SETUP)
    beside(path, BACKUP).rename(path)
    assert cli("claude", *SETUP)[0] == 0 and cli("claude", "--undo")[0] == 0
    assert path.read_text("utf-8") == BEFORE


def test_a_setup_that_was_killed_before_the_note_is_repeated(cli: Cli, path: Path) -> None:
    for file in (path, beside(path, BACKUP)):
        file.write_text(BEFORE, "utf-8")
    assert cli("claude", *SETUP)[0] == 0 and cli("claude", "--undo")[0] == 0
    assert path.read_text("utf-8") == BEFORE


def test_only_folders_above_the_file_are_removed(cli: Cli, home: Path, path: Path) -> None:
    assert cli("claude", *SETUP)[0] == 0
    (home / "empty").mkdir()
    note = json.loads(beside(path, NOTE).read_bytes())
    beside(path, NOTE).write_text(json.dumps(note | {"folders": [str(home / "empty")]}), "utf-8")
    assert cli("claude", "--undo")[0] == 0 and (home / "empty").exists()


def test_what_is_in_the_way_of_a_folder(cli: Cli, home: Path, path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file", "utf-8")
    check_refusal(cli, home, "Not a directory", *SETUP)
    path.parent.unlink()
    path.parent.symlink_to(path.parent.name)
    check_refusal(cli, home, "Too many levels of symbolic links", *SETUP)


def test_no_file_is_written_if_another_cannot_be(cli: Cli, home: Path) -> None:
    """Gemini CLI has two files."""
    (home / ".gemini").mkdir()
    os.mkfifo(home / ".gemini/settings.json")
    before = list_entries(home)
    code, _, errors = cli("gemini", *SETUP)
    assert code == 2 and "it is not a regular file" in errors
    assert list_entries(home) == before


@pytest.mark.parametrize("suffix", [BACKUP, NOTE])
@pytest.mark.parametrize(("make", "message"), OWN)
def test_no_file_is_written_if_the_backup_of_another_cannot_be(
    make: Callable[[Path], None], message: str, suffix: str, cli: Cli, home: Path
) -> None:
    (home / ".gemini").mkdir()
    make(home / f".gemini/settings.json{suffix}")
    before = list_entries(home)
    code, _, errors = cli("gemini", *SETUP)
    assert code == 2 and message in errors
    assert list_entries(home) == before


def test_a_folder_that_cannot_be_written(cli: Cli, home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(BEFORE, "utf-8")
    opened = os.open

    def refuse(name: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(name))
        return opened(name, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    check_refusal(cli, home, f"cannot use {path}{BACKUP}: Permission denied", *SETUP)


def test_a_full_disk_leaves_the_file_as_it_was(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(BEFORE, "utf-8")

    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError) as caught:
        replace_file(path, b"new")
    assert caught.value.filename == str(path)
    assert os.listdir(path.parent) == [path.name] and path.read_text("utf-8") == BEFORE


def test_a_link_is_replaced_and_not_followed(home: Path, path: Path) -> None:
    make_link_to_file(path)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new" and not path.is_symlink()
    assert path.with_name("precious").read_text("utf-8") == "precious"
