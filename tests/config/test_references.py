"""Secrets in files: ``file:PATH``, and variables ``NAME_FILE``, as Docker and Kubernetes mount them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from toolglot.cli.gateway_contact import find_key
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import KeyHash, Settings, load
from toolglot.config.references import FILE_SUFFIX, MAX_SECRET
from toolglot.config.settings import FALLBACK, SETTINGS
from toolglot.core.errors import UsageError
from toolglot.core.redaction import redact

KEY = "sk-a-secret-of-this-test-0123456789"
OTHER = "sk-another-secret-0123456789"
UPSTREAM = '[[upstream]]\nbase_url = "http://127.0.0.1:9/v1"\n'
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_secret(text: str | bytes = KEY + "\n", mode: int = 0o600, name: str = "secret") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return path

    return write_secret


def load_toml(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "toolglot.toml"
    path.write_text(text, "utf-8")
    return load({}, environ, path)


def refuse(load_all: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        load_all()
    assert KEY not in caught.value.message
    return caught.value.message


def hashes(*keys: str) -> tuple[KeyHash, ...]:
    return tuple(map(KeyHash.of, keys))


# -- client keys -------------------------------------------------------------------------------------------------------


def test_the_file_of_a_client_key_is_read_wherever_it_is_named(write: Write, tmp_path: Path) -> None:
    """The path itself is never the key."""
    named = f"file:{write()}"
    for settings in (
        load_toml(tmp_path, f'server.keys = "{named}"'),
        load_toml(tmp_path, f'server.keys = ["{named}"]'),
        load_toml(tmp_path, 'server.keys = ["file:secret"]'),
        load_toml(tmp_path, 'server.keys = ["env:MINE"]', MINE=named),
        load_toml(tmp_path, 'server.keys = ["env:MINE"]', MINE_FILE=str(tmp_path / "secret")),
        load({}, {"TOOLGLOT_CLIENT_KEYS": named}),
        load({}, {"TOOLGLOT_CLIENT_KEYS_FILE": str(tmp_path / "secret")}),
        load({"client_keys": named}, {}),
        load({"client_keys": (named,)}, {}),
    ):
        assert settings.server.keys == hashes(KEY)


def test_several_keys_in_one_file_and_beside_it(write: Write, tmp_path: Path) -> None:
    write(f"{KEY}\r\n{OTHER}\n\n")
    assert load({}, {"TOOLGLOT_CLIENT_KEYS_FILE": str(tmp_path / "secret")}).server.keys == hashes(KEY, OTHER)
    given = f"third, file:{tmp_path / 'secret'}"
    assert load({}, {"TOOLGLOT_CLIENT_KEYS": given}).server.keys == hashes("third", KEY, OTHER)
    assert load_toml(tmp_path, 'server.keys = ["file:secret", "third"]').server.keys == hashes(KEY, OTHER, "third")
    write(f"{KEY},{OTHER}")
    assert load_toml(tmp_path, 'console.keys = "file:secret"').console.keys == hashes(KEY, OTHER)


def test_keys_of_litellm_may_be_files(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    write()
    path = tmp_path / "config.yaml"
    model = "model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: os.environ/MINE}}]\n"
    path.write_text(model, "utf-8")
    secret = str(tmp_path / "secret")
    settings = load({}, {"MINE_FILE": secret, "LITELLM_MASTER_KEY_FILE": secret}, path)
    assert settings.server.keys == hashes(KEY)
    assert settings.upstreams[0].api_key.reveal() == KEY
    path.write_text(model.replace(", api_key: os.environ/MINE", "") + "general_settings: {master_key: file:secret}")
    settings = load({}, {"OPENAI_API_KEY_FILE": secret}, path)
    assert settings.server.keys == hashes(KEY)
    assert settings.upstreams[0].api_key.reveal() == KEY


# -- variables ---------------------------------------------------------------------------------------------------------


SECRETS = [(one, name) for one in (*SETTINGS, *FALLBACK) if one.kind.secret for name in one.variables]
VALUES = {"store.url": "postgresql://user:a-password@127.0.0.1/base"}


@pytest.mark.parametrize(("one", "name"), SECRETS, ids=[name for _, name in SECRETS])
def test_every_secret_variable_has_one_for_a_file(one: object, name: str, write: Write) -> None:
    key = getattr(one, "key", "")
    path = write(VALUES.get(key, KEY))
    base = {"TOOLGLOT_BASE_URL": "http://127.0.0.1:9/v1"}
    settings = load({}, {**base, name + FILE_SUFFIX: str(path)})
    assert settings == load({}, {**base, name: VALUES.get(key, KEY)})
    assert name + FILE_SUFFIX in settings.sources.values(), "config show names the variable"
    assert not settings.notes


def test_the_variables_of_a_wire_have_files_too(write: Write, tmp_path: Path) -> None:
    cookies = write("token=a; other=b\n", name="cookies")
    text = '[[upstream]]\nwire = "qwen_web"\nbase_url = "https://chat.qwen.ai"\naccept_terms = true\n'
    text += 'api_key = "env:QWEN_TOKEN"\n'
    [upstream] = load_toml(tmp_path, text, QWEN_TOKEN_FILE=str(write()), QWEN_COOKIES_FILE=str(cookies)).upstreams
    assert (upstream.api_key.reveal(), upstream.cookies.reveal()) == (KEY, "token=a; other=b")


def test_a_header_may_be_a_secret_file(write: Write, tmp_path: Path) -> None:
    write()
    [upstream] = load_toml(tmp_path, UPSTREAM + 'headers = { X-Key = "file:secret" }').upstreams
    assert upstream.headers == {"X-Key": KEY}


def test_commands_find_the_client_key_in_a_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert find_key(None) == ""
    monkeypatch.setenv(KEY_VARIABLE + FILE_SUFFIX, str(write()))
    assert find_key(None) == KEY
    assert find_key(OTHER) == OTHER
    assert load({}, dict(os.environ)).notes == load({}, {}).notes, "the variable is known"


def test_a_variable_and_its_file_are_not_both_given(write: Write) -> None:
    path = str(write())
    message = refuse(lambda: load({}, {"TOOLGLOT_CLIENT_KEYS": OTHER, "TOOLGLOT_CLIENT_KEYS_FILE": path}))
    assert message == "TOOLGLOT_CLIENT_KEYS and TOOLGLOT_CLIENT_KEYS_FILE are both set: give only one of them"
    assert load({}, {"TOOLGLOT_CLIENT_KEYS": " ", "TOOLGLOT_CLIENT_KEYS_FILE": path}).server.keys == hashes(KEY)


def test_other_settings_have_no_variables_for_files(write: Write) -> None:
    settings = load({}, {"TOOLGLOT_DEFAULT_MODEL_FILE": str(write())})
    assert not settings.server.default_model
    assert any("TOOLGLOT_DEFAULT_MODEL_FILE is not a setting" in note for note in settings.notes)
    assert load({}, {"TOOLGLOT_DEFAULT_MODEL": "env:HOME"}).server.default_model == "env:HOME"


# -- the files ---------------------------------------------------------------------------------------------------------


def load_key(path: Path) -> Settings:
    return load({}, {"TOOLGLOT_CLIENT_KEYS_FILE": str(path)})


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640, 0o444, 0o644, 0o660, 0o755])
def test_the_modes_of_containers_are_accepted(mode: int, write: Write) -> None:
    assert load_key(write(mode=mode)).server.keys == hashes(KEY)


@pytest.mark.parametrize("mode", [0o602, 0o646, 0o666, 0o777])
def test_a_file_that_everyone_may_change_is_refused(mode: int, write: Write) -> None:
    path = write(mode=mode)
    assert refuse(lambda: load_key(path)) == (
        f"TOOLGLOT_CLIENT_KEYS_FILE refers to {path}, which every user can change: run chmod o-w {path}"
    )


@pytest.mark.parametrize(("mode", "noted"), [(0o644, True), (0o640, False), (0o600, False)])
def test_a_note_says_that_others_can_read_a_file(
    mode: int, noted: bool, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of another user, as containers mount it, is not noted; nor is one of root."""
    path = write(mode=mode)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner or 1000)
    if not owner:
        os.chown(path, 1000, -1)
    assert any("every user of this machine can read" in note for note in load_key(path).notes) == noted
    for other in (0, 4242):
        monkeypatch.setattr(os, "geteuid", lambda other=other: other)
        assert not load_key(path).notes


def test_links_are_followed_as_kubernetes_makes_them(tmp_path: Path) -> None:
    folder = tmp_path / "..2026_01_01"
    folder.mkdir()
    (folder / "key").write_text(KEY, "utf-8")
    (tmp_path / "..data").symlink_to(folder.name)
    (tmp_path / "key").symlink_to("..data/key")
    assert load_key(tmp_path / "key").server.keys == hashes(KEY)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe", "is not text"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"x" * (MAX_SECRET + 1), "is too large: it has more than"),
        (KEY.encode() + b" b", "has white space inside; it must be "),
        (KEY.encode() + b"\0b", "has a NUL character; it must be "),
        (b"\xef\xbb\xbf" + KEY.encode(), "has a byte order mark; it must be "),
        (b"a\n" + KEY.encode() + b"\x1b", "has several lines; it must be "),
        (b"sha256:" + KEY.encode(), "cannot be used; it must be "),
    ],
)
def test_content_that_cannot_be_a_secret(content: bytes, problem: str, write: Write, tmp_path: Path) -> None:
    """The message names the setting, the path and the reason; nothing of it is masked in the log."""
    path = write(content)
    message = refuse(lambda: load_key(path))
    assert message.startswith(f"TOOLGLOT_CLIENT_KEYS_FILE refers to {path}, which {problem}")
    if b"sha256" in content:
        return
    for setting in ('api_key = "file:secret"', 'cookies = "file:secret"', 'headers = { X = "file:secret" }'):
        if not setting.startswith("headers") or b" b" not in content:
            message = refuse(partial(load_toml, tmp_path, f"{UPSTREAM}{setting}\n"))
            assert f" refers to {path}, which {problem.partition(';')[0]}" in message and redact(message) == message


def test_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    reasons = {
        "fifo": "it is not a regular file",
        "folder": "it is not a regular file",
        "socket": "No such device or address",
        "loop": "Too many levels of symbolic links",
        "dangling": "No such file or directory",
        "missing": "No such file or directory",
    }
    for name, reason in reasons.items():
        path = tmp_path / name
        expected = f"TOOLGLOT_CLIENT_KEYS_FILE refers to {path}, which cannot be read: {reason}"
        assert refuse(partial(load_key, path)) == expected == redact(expected)
    assert "not a regular file" in refuse(lambda: load({}, {"TOOLGLOT_API_KEY_FILE": "/dev/zero", **BASE}))
    message = refuse(lambda: load_toml(tmp_path, 'server.keys = "file:missing"'))
    assert message.startswith(f"{tmp_path}/toolglot.toml: [server] keys refers to {tmp_path}/missing, which cannot")


BASE = {"TOOLGLOT_BASE_URL": "http://127.0.0.1:9/v1"}
