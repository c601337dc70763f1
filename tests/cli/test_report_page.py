"""``toolglot report --since`` and ``--html``: the store as a source, and a page that is inert."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from gateway.test_kpis import make_record
from support.gateway import gateway, run

from toolglot.cli.main import main
from toolglot.cli.report_page import make_page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"


class Checker(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)


def check(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    return checker


def test_a_page_has_plots_and_no_script() -> None:
    records = [make_record(60 * number, outcomes={"reading": {"success": 1}}).decode() for number in range(30)]
    page = make_page(records)
    found = check(page)
    assert "svg" in found.elements and "polyline" in found.elements
    assert found.elements.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert page.count("<svg") == 4  # no faults, so no plot of them
    assert "30 requests" in page and "coder" in page and "100.0%" in page


def test_hostile_names_are_text() -> None:
    record = make_record(model=HOSTILE, dialect=HOSTILE, arms={HOSTILE: "on"}, outcomes={HOSTILE: {"success": 1}})
    found = check(make_page([record.decode()]))
    assert found.elements.isdisjoint({"script", "img"})
    assert not any(name.startswith("on") for name in found.attributes)


def test_a_log_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, page = tmp_path / "requests.log", tmp_path / "report.html"
    log.write_text("noise\n" + "\n".join("gw-1 | " + make_record(number).decode() for number in range(3)), "utf-8")
    assert main(["report", str(log), "--html", str(page)]) == 0
    assert "3 requests" in page.read_text("utf-8")
    assert "success rate" in capsys.readouterr().out


def test_records_of_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ask() -> None:
        async with gateway(mode="text", dialect="hermes", state_dir=str(tmp_path)) as gate:
            assert (await gate.ask()).status == 200
            await asyncio.sleep(0.5)

    run(ask)
    page = tmp_path / "report.html"
    assert main(["report", "--since", "1h", "--state-dir", str(tmp_path), "--html", str(page)]) == 0
    assert re.search(r"success rate +100\.0 %", capsys.readouterr().out)
    assert "1 requests" in page.read_text("utf-8")
    assert main(["report", "--since", "2126-01-01", "--state-dir", str(tmp_path)]) == 2
    assert "no records of that time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--since", "soon"], "neither a time"),
        (["--since", "1h", "--url", "http://127.0.0.1:1"], "give files, --url or --since"),
        (["--url", "http://127.0.0.1:1", "--html", "x.html"], "--html needs logs"),
    ],
)
def test_odd_options(options: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["report", *options])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2
    assert problem in capsys.readouterr().err
