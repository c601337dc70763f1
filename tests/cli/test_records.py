"""``toolglot records`` and ``toolglot sessions``, on the store of a gateway that runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ASK
from support.loopback import running_gateway, running_loop, running_sim

from toolglot.cli.main import main
from toolglot.store import open_store
from toolglot.store.interface import Chat, SessionRow

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLGLOT_CONFIG", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main([*arguments, "--state-dir", str(tmp_path)])
        except SystemExit as stop:
            code = int(str(stop.code))
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Callable[..., None]]:
    """A gateway; the function sends it one request."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    with (
        running_loop() as loop,
        running_sim(loop) as sim,
        running_gateway(loop, sim, state_dir=str(folder), **settings) as url,
    ):

        def ask(data: bytes | None = None, **fields: Any) -> None:
            body = json.dumps({**ASK, **fields}).encode() if data is None else data
            try:
                urlopen(Request(f"{url}/chat/completions", body, {"content-type": "application/json"})).read()
            except HTTPError as error:
                error.close()
            urlopen(f"{url}/records?limit=1").read()  # so that the record is written

        yield ask


def add_session(folder: Path, name: str, chat: str = "") -> None:
    async def add() -> None:
        store = open_store("sqlite:toolglot.db", state_folder=folder, now=time.time)
        assert store is not None
        row = SessionRow(id=name, owner=b"x", created=1e9, used=1.5e9, turns=3, model="m", upstream="u", client="codex")
        await store.add_session(row, [])
        if chat:
            await store.add_chat(Chat(id=chat, account="qwen/me", session=name, owner=b"x"), "holder", 1)
        await store.close()

    asyncio.run(add())


def test_records_have_how_much_of_a_prompt_stays_the_same(cli: Cli, tmp_path: Path) -> None:
    with serving(tmp_path) as ask:
        talk = [{"role": "user", "content": "Go. " * 1000}]
        ask(messages=talk)
        talk += [{"role": "assistant", "content": "Well."}, {"role": "user", "content": "On."}]
        ask(messages=talk)
        ask(messages=[*talk[:1], {"role": "assistant", "content": "No."}, *talk[2:]])
        newest, second, first = [json.loads(line) for line in cli("records", "list", "--json")[1].splitlines()]
        assert first["prompt_bytes"] > 4000 and first["stable_bytes"] is None
        assert second["stable_bytes"] == first["prompt_bytes"] and second["unstable_at"] == ""
        assert newest["stable_bytes"] < second["prompt_bytes"] and newest["unstable_at"] == "messages[1]"
        assert [line.split()[8] for line in cli("records", "list")[1].splitlines()[1:]] == ["99%", "99%", "-"]


def test_records_while_the_gateway_runs(cli: Cli, tmp_path: Path) -> None:
    with serving(tmp_path, store_bodies="failures") as ask:
        ask(model="one")
        ask(model="two")
        ask(b"{")
        code, out, _ = cli("records", "list")
        assert code == 0
        heads, *rows = out.splitlines()
        assert heads.split() == [
            "id",
            "time",
            "outcome",
            "status",
            "wire",
            "model",
            "seconds",
            "calls",
            "stable",
            "finish",
            "error",
        ]
        assert [row.split()[2] for row in rows] == ["refused", "ok", "ok"]
        code, out, _ = cli("records", "list", "--json", "--outcome", "ok")
        found = [json.loads(line) for line in out.splitlines()]
        assert [one["model"] for one in found] == ["two", "one"]
        assert cli("records", "list", "--json", "--model", "one")[1].splitlines() == out.splitlines()[1:]
        assert (
            cli("records", "list", "--json", "--limit", "1", "--before", found[0]["id"])[1].splitlines()
            == out.splitlines()[1:]
        )
        assert cli("records", "list", "--session", "none")[1] == "no records\n"
        for name in (found[0]["id"], found[0]["request_id"]):
            code, out, _ = cli("records", "show", name)
            assert code == 0 and json.loads(out) == found[0]
        refused = json.loads(cli("records", "list", "--json", "--limit", "1")[1])
        shown = json.loads(cli("records", "show", refused["id"])[1])
        assert shown["bodies"]["request"] == "{" and json.loads(shown["bodies"]["answer"])["error"]["type"]


def test_export(cli: Cli, tmp_path: Path) -> None:
    with serving(tmp_path) as ask:
        ask()
    with serving(tmp_path, store_bodies="all") as ask:
        ask(stream=True)
        ask(b"{")
    target = tmp_path / "out.jsonl"
    code, out, errors = cli("records", "export", "--output", str(target))
    assert (code, out) == (0, "") and errors == "3 records written\n"
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [sorted(one.get("bodies", ())) for one in lines] == [
        ["answer", "request"],
        ["answer", "model", "request", "trace", "upstream_request"],
        [],
    ]
    code, out, errors = cli("records", "export", "--format", "openai-finetune")
    assert code == 0
    (example,) = [json.loads(line) for line in out.splitlines()]
    assert [message["role"] for message in example["messages"]] == ["user", "assistant"]
    assert example["tools"] == ASK["tools"]
    assert errors.splitlines() == [
        "1 records written",
        "1 records skipped: not answered",
        "1 records skipped: no bodies",
        'hint: set bodies = "all" under [store] to keep the bodies of further requests',
    ]
    code, _, errors = cli("records", "export", "--output", str(tmp_path / "no" / "folder"))
    assert code == 2 and "cannot write" in errors


def test_export_reads_all_pages(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolglot.cli.records.PAGE", 3)
    with serving(tmp_path) as ask:
        for _ in range(7):
            ask()
    for limit in (1, 3, 4, 6, 7, 8):
        lines = cli("records", "list", "--json", "--limit", str(limit))[1].splitlines()
        ids = [json.loads(line)["id"] for line in lines]
        assert len(ids) == min(limit, 7) and ids == sorted(set(ids), reverse=True)
    assert len(cli("records", "export")[1].splitlines()) == 7


def test_sessions(cli: Cli, tmp_path: Path) -> None:
    add_session(tmp_path, "ses_1")
    add_session(tmp_path, "ses_2", "chat_1")
    code, out, _ = cli("sessions", "list")
    heads, *rows = out.splitlines()
    assert code == 0 and heads.split()[:5] == ["id", "created", "used", "turns", "client"]
    assert [row.split() for row in rows] == [
        [name, "2001-09-09T01:46:40", "2017-07-14T02:40:00", "3", "codex", "m", "u", "-"] for name in ("ses_2", "ses_1")
    ]
    assert json.loads(cli("sessions", "list", "--json", "--before", "ses_2")[1])["id"] == "ses_1"
    shown = json.loads(cli("sessions", "show", "ses_1")[1])
    assert (shown["id"], shown["records"]) == ("ses_1", []) and "owner" not in shown
    code, out, _ = cli("sessions", "delete", "ses_2")
    assert code == 0
    assert out.splitlines() == ["deleted ses_2", "chat chat_1 of qwen/me is not deleted at the upstream"]
    for action in ("show", "delete"):
        code, _, errors = cli("sessions", action, "ses_2")
        assert (code, errors) == (2, "toolglot: there is no session 'ses_2'\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("records", "show", "rec_x"), "there is no store at "),
        (("sessions", "list"), "'toolglot serve' makes it, or give another --state-dir"),
        (("records", "list", "--store-url", "none"), "there is no store: set store.url"),
        (("records", "list", "--store-url", "mysql://u:pass@h/d"), "--store-url is ***; it must be none, sqlite:"),
        (("records", "list", "--limit", "0"), "must be a whole number of at least 1"),
        (("records", "list", "--outcome", "good"), "invalid choice"),
        (("records", "list", "--store-url", "sqlite:/proc/no/toolglot.db"), "there is no store at /proc/no/toolglot.db"),
        (("sessions", "list", "--store-url", "postgresql://me:swordfish@127.0.0.1:1/d"), "postgresql://***@127.0.0.1:1/d"),
    ],
)  # fmt: skip
def test_mistakes(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    code, _, errors = cli(*arguments)
    assert code == 2
    assert message in errors
    assert "pass@" not in errors and "swordfish" not in errors


def test_the_store_of_a_settings_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    add_session(tmp_path / "other", "ses_9")
    path = tmp_path / "my.toml"
    path.write_text(f'[store]\nurl = "sqlite:{tmp_path}/other/toolglot.db"\n')
    assert json.loads(cli("sessions", "list", "--json", "--config", str(path))[1])["id"] == "ses_9"
