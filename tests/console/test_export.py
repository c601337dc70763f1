"""One session as one file: complete, redacted, inert."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from contextlib import AsyncExitStack
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import aiohttp
import pytest
from support.console import opened_console
from support.gateway import run
from support.stores import record, session

from toolglot.cli.main import main
from toolglot.config import make_key
from toolglot.console.export import bundle, wrap, write_page
from toolglot.console.sessions import MAX_EXPORTS
from toolglot.core.errors import StoreError
from toolglot.core.redaction import HIDING_ESCAPE
from toolglot.store import open_store
from toolglot.store.interface import RecordRow
from toolglot.store.sql_store import SqlStore

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \x1b[31m \u202e <img src=x onerror=alert(1)> ]]> '\"&"
SECRET = make_key(Random(7).randbytes)


class Tags(HTMLParser):
    """The tags of a page and the text of its data block."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self.within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.within = dict(attrs).get("id") or ""

    def handle_data(self, data: str) -> None:
        self.data += data if self.within == "data" else ""


def read_page(page: bytes) -> tuple[list[str], dict[str, object]]:
    parser = Tags()
    parser.feed(page.decode())
    return parser.tags, json.loads(parser.data)


def test_hostile_text_adds_no_markup(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask(HOSTILE, model=f"model {HOSTILE}"[:150])
            found = await console.only_session()
            plain = await console.call(f"/sessions/{found['session']['id']}/export")
            assert plain.headers["content-type"].startswith("text/html")
            assert "attachment" in plain.headers["content-disposition"]
            tags, data = read_page(plain.body)
            assert tags == [
                "html",
                "head",
                "meta",
                "meta",
                "meta",
                "meta",
                "title",
                "style",
                "body",
                "div",
                "noscript",
                "script",
                "script",
            ]
            turns = data["turns"]
            assert isinstance(turns, dict)
            [turn] = turns.values()
            assert json.loads(turn["request"])["messages"][0]["content"] == HOSTILE

    run(test)


def test_keys_are_redacted(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask(f"My key is {SECRET}, keep it.", key=SECRET)
            found = await console.only_session()
            page = await console.call(f"/sessions/{found['session']['id']}/export")
            assert b"My key is ***" in page.body
            assert SECRET.encode() not in page.body
            [turn] = found["turns"]
            assert SECRET.encode() not in (await console.call(f"/turns/{turn['id']}")).body

    run(test)


def test_keys_behind_escapes_are_redacted(tmp_path: Path) -> None:
    """In the request, as some clients write JSON, and in the arguments of a call, where it is JSON in JSON."""

    async def test() -> None:
        escaped = "".join(f"\\u{ord(char):04x}" for char in SECRET)
        twice = escaped.replace("\\", "\\\\")
        called = f'{{"name":"read","arguments":"{{\\"filePath\\":\\"{twice}\\"}}"}}'
        call = f'{{"id":"c","type":"function","function":{called}}}'
        messages = (
            f'[{{"role":"user","content":"My key is {escaped}"}},{{"role":"assistant","tool_calls":[{call}]}},'
            '{"role":"tool","tool_call_id":"c","content":"x"}]'
        )
        body = f'{{"model":"sim","stream":true,"messages":{messages}}}'.encode()
        async with opened_console(tmp_path) as console:
            url, headers = f"{console.address}/v1/chat/completions", {"authorization": f"Bearer {SECRET}"}
            async with console.http.post(url, data=body, headers=headers) as response:
                assert response.status == 200
                await response.read()
            name = (await console.only_session())["session"]["id"]
            page = (await console.call(f"/sessions/{name}/export")).body.decode()
            assert "My key is ***" in page
            while HIDING_ESCAPE.search(page):
                page = HIDING_ESCAPE.sub(lambda found: chr(int(found["code"], 16)) if found["code"] else "/", page)
            assert SECRET not in page

    run(test)


def test_the_command_writes_the_same_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, served = "", b""

    async def export() -> None:
        nonlocal name, served
        async with opened_console(tmp_path) as console:
            await console.ask()
            name = (await console.only_session())["session"]["id"]
            served = (await console.call(f"/sessions/{name}/export")).body

    run(export)
    target = tmp_path / "out.html"
    assert main(["sessions", "export", name, "--html", str(target), "--state-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    one, other = read_page(target.read_bytes())[1], read_page(served)[1]
    assert {**one, "exported": ""} == {**other, "exported": ""}
    assert main(["sessions", "export", "ses_nothing", "--html", "--state-dir", str(tmp_path)]) == 2
    assert "there is no session" in capsys.readouterr().err
    assert main(["sessions", "export", name, "--html", "/nowhere/x.html", "--state-dir", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


async def fill(folder: Path, turns: int, size: int) -> None:
    """A session with turns of some size."""
    store = open_store("sqlite:toolglot.db", state_folder=folder, now=time.time)
    assert store is not None
    await store.open()
    await store.add_session(session("ses_large", owner=b"", created=time.time(), used=time.time()), [])
    data = json.dumps({"mode": "text", "stream": False, "duration": 1.0}).encode()
    bodies = {"request": b"<" * size}
    rows = [
        record(f"rec_{n:030x}", owner=b"", session="ses_large", time=time.time(), data=data, bodies=bodies)
        for n in range(turns)
    ]
    await store.add_records(rows)
    await store.close()


def test_a_slow_reader_holds_one_turn_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are read from the store as the client reads; what it gets in the end is complete."""
    loaded: list[str] = []
    get_record = SqlStore.get_record

    async def note(store: SqlStore, owner: bytes | None, record_id: str) -> RecordRow | None:
        loaded.append(record_id)
        return await get_record(store, owner, record_id)

    async def test() -> None:
        await fill(tmp_path, turns=30, size=1 << 20)
        async with opened_console(tmp_path) as console:
            monkeypatch.setattr(SqlStore, "get_record", note)
            slow = socket.create_connection(("127.0.0.1", int(console.address.rpartition(":")[2])))
            slow.sendall(b"GET /console/api/sessions/ses_large/export HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            before = -1
            while before != len(loaded) or not loaded:
                before = len(loaded)
                await asyncio.sleep(0.5)
            assert len(loaded) < 10
            page = await asyncio.to_thread(read_all, slow)
            tags, data = read_page(page.partition(b"\r\n\r\n")[2])
            assert "script" in tags and data["left_out"] == 20
            turns = data["turns"]
            assert isinstance(turns, dict) and len(turns) == 10  # each "<" takes six bytes
            assert len(loaded) == 11

    def read_all(connection: socket.socket) -> bytes:
        with connection, connection.makefile("rb") as file:
            return file.read()

    run(test)


def test_there_are_only_so_many_exports_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        await fill(tmp_path, turns=9, size=1 << 20)
        path = "/sessions/ses_large/export"
        async with opened_console(tmp_path) as console, AsyncExitStack() as stack:
            url = f"{console.address}/console/api{path}"
            assert (await console.call(f"{path}?check=1")).json == {}
            for _ in range(MAX_EXPORTS):
                response = await stack.enter_async_context(console.http.get(url, read_bufsize=1 << 12))
                assert response.status == 200
            for refused in (path, f"{path}?check=1"):
                answer = await console.call(refused)
                assert answer.status == 503 and answer.headers["retry-after"] == "10"
                assert "try again" in answer.json["error"]["message"]
            await stack.aclose()  # the clients leave
            async with asyncio.timeout(20):
                while (await console.call(f"{path}?check=1")).status != 200:
                    await asyncio.sleep(0.05)

    run(test)


def test_a_store_that_fails_on_the_way_gives_no_file_that_looks_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(store: SqlStore, owner: bytes | None, record_id: str) -> RecordRow | None:
        raise StoreError("The disk is gone.")

    async def test() -> None:
        await fill(tmp_path, turns=3, size=1000)
        async with opened_console(tmp_path) as console:
            monkeypatch.setattr(SqlStore, "get_record", fail)
            with pytest.raises(aiohttp.ClientError):
                await console.call("/sessions/ses_large/export")

    run(test)


def test_only_the_script_of_the_page_is_allowed() -> None:
    page = write_page("A <b> session", b'{"x": "<"}').decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "unsafe" not in policy[1] and policy[1].count("sha256-") == 2
    assert "default-src 'none'" in policy[1]
    assert "<title>A &lt;b&gt; session</title>" in page
    assert '{"x": "\\u003c"}' in page


def test_modules_are_joined() -> None:
    script = bundle("console/export_page.js")
    assert re.findall(r"^\s*(?:import|export)\b", script, re.MULTILINE) == []
    assert script.index("modules['preact'] =") < script.index("modules['console/lib/html.js'] =")
    joined = wrap("x", 'import a, { b as c } from "y";\nexport const d = 1;\nexport { c as e };\nexport default a;\n')
    assert "const { default: a, b: c } = modules['y'];" in joined
    assert "return { e: c, d: d, default: default_export };" in joined
