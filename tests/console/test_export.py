"""One session as one file: complete, redacted, inert."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest
from support.console import opened_console
from support.gateway import run

from toolglot.cli.main import main
from toolglot.config import make_key
from toolglot.console.export import bundle, wrap, write_page

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


def test_the_command_writes_the_same_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session, served = "", b""

    async def record() -> None:
        nonlocal session, served
        async with opened_console(tmp_path) as console:
            await console.ask()
            session = (await console.only_session())["session"]["id"]
            served = (await console.call(f"/sessions/{session}/export")).body

    run(record)
    target = tmp_path / "out.html"
    assert main(["sessions", "export", session, "--html", str(target), "--state-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    one, other = read_page(target.read_bytes())[1], read_page(served)[1]
    assert {**one, "exported": ""} == {**other, "exported": ""}
    assert main(["sessions", "export", "ses_nothing", "--html", "--state-dir", str(tmp_path)]) == 2
    assert "there is no session" in capsys.readouterr().err
    assert main(["sessions", "export", session, "--html", "/nowhere/x.html", "--state-dir", str(tmp_path)]) == 2
    assert "cannot be written" in capsys.readouterr().err


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
