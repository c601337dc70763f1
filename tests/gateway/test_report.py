"""``toolglot report``: measures of invented records, and of a log of a gateway before the simulated model."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateway import READ, gateway, run
from support.xmlprompts import write_roo

from toolglot.cli.main import main
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.config.rollout import TRANSFORMATIONS
from toolglot.gateway.telemetry.log import log_to
from toolglot.gateway.telemetry.report import TARGET, Groups, Tally, read_log, read_metrics
from toolglot.sim import SimOptions
from toolglot.sim.script import parse_script

EMPTY: dict[str, Any] = {
    "request_id": "r",
    "status": 200,
    "conversation": "",
    "arms": {},
    "outcomes": {},
    "transformed": [],
    "confidences": [],
    "complaints": [],
    "would": None,
}


def line(**fields: Any) -> str:
    return json.dumps(EMPTY | fields)


def made(*tools: str, arm: str = "on", **fields: Any) -> str:
    """A record of an answer in which calls to these tools were made out of text."""
    received = {
        "transformed": tools,
        "confidences": [0.95] * len(tools),
        "outcomes": {"reading": {"success": len(tools)}},
    }
    return line(arms={"reading": arm}, **received | fields)


def would(*tools: str, **ends: int) -> str:
    outcomes = {"reading": ends | ({"success": len(tools)} if tools else {})}
    received = {"tools": tools, "confidences": [1.0] * len(tools), "outcomes": outcomes, "calls": len(tools)}
    return line(arms={"reading": "dry_run"}, would=received, complaints=["no_tool"])


def tally(*lines: str, arm: str = "on") -> Tally:
    groups, _ = read_log(lines)
    return groups["reading"][arm]


# Measures


def test_every_rate_of_the_plan() -> None:
    """19 good calls, one of them refused by the client; one malformed; one skipped; one answer without any call."""
    found = tally(
        *[made("read_file", conversation=str(number % 3)) for number in range(18)],
        made("write_to_file", complaints=["missing_parameter"]),
        line(arms={"reading": "on"}, outcomes={"reading": {"malformed": 1, "low_confidence": 1}}),
        line(arms={"reading": "on"}, complaints=["no_tool"]),
        line(arms={"reading": "on"}, status=502),
    )
    assert (found.answers, found.transformed, found.attempts, found.successes) == (21, 19, 20, 19)
    assert (found.failures, found.skipped) == ({"malformed": 1}, {"low_confidence": 1})
    assert found.conversations == {"0", "1", "2"}
    assert found.tools == {"read_file": 18, "write_to_file": 1}
    assert found.rates() == {
        "transformation rate": 19 / 21,
        "success rate": 18 / 20,
        "error rate": 2 / 20,
        "tool recognition": 19 / 22,
        "without complaint": 19 / 21,
    }
    assert found.confidence == pytest.approx(0.95)
    assert found.verdict == "missed"


@pytest.mark.parametrize(("good", "bad", "verdict"), [(95, 5, "met"), (94, 6, "missed"), (0, 0, "no attempts")])
def test_the_target_is_that_of_the_plan(good: int, bad: int, verdict: str) -> None:
    """Seed 000, success metrics: 95 % success rate."""
    assert TARGET == 0.95
    lines = [made("a")] * good + [line(arms={"reading": "on"}, outcomes={"reading": {"malformed": 1}})] * bad
    assert tally(*lines, line(arms={"reading": "on"})).verdict == verdict


def test_a_dry_run_is_judged_by_what_it_would_have_done() -> None:
    found = tally(would("read"), would("read"), would(truncated=1), would(), arm="dry_run")
    rates = found.rates()
    assert (rates["success rate"], rates["tool recognition"], rates["transformation rate"]) == (2 / 3, 2 / 3, 0.5)
    assert rates["without complaint"] == 0
    assert found.tools == {"read": 2}


def test_control_is_judged_by_complaints_alone() -> None:
    found = tally(made(arm="control", complaints=["no_tool"]), made(arm="control"), arm="control")
    assert {name: rate for name, rate in found.rates().items() if rate is not None} == {"without complaint": 0.5}


def test_more_complaints_than_calls_are_no_less_than_nothing() -> None:
    found = tally(made("a", complaints=["missing_parameter", "unknown_tool"]))
    assert (found.rates()["success rate"], found.rates()["without complaint"]) == (0, 0)


@pytest.mark.parametrize(
    "text",
    ["", "toolglot is listening", '{"level": "warning"}', '{"arms": 1}', '{"arms": {', '2026-11-16 {"arms"}', "[]"],
)
def test_other_lines_are_no_records(text: str) -> None:
    assert read_log([text]) == ({}, 0)


def test_a_log_collector_may_add_a_prefix() -> None:
    assert read_log(["Nov 16 05:00:01 host toolglot[1]: " + made("a")])[1] == 1


# The command


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == 0
    return capsys.readouterr().out


def test_arms_are_compared_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    control = line(arms={"reading": "control"}, conversation="c", complaints=["no_tool"])
    rescue = line(arms={"rescue": "on"})
    lines = [
        made("read", conversation="a"),
        made("read", "write", conversation="b"),
        control,
        would("x"),
        rescue,
        line(),
    ]
    path.write_text("\n".join(lines))
    assert (
        report(capsys, str(path))
        == """\
reading: describe tools as text in the prompt, and parse calls from text

                            on  control  dry_run  target
  answers                    2        1        1
  conversations              2        1        0
  transformation rate  100.0 %        -  100.0 %
  success rate         100.0 %        -  100.0 %  95%, met
  error rate             0.0 %        -    0.0 %
  tool recognition     100.0 %        -  100.0 %
  without complaint    100.0 %    0.0 %    0.0 %
  mean confidence        0.950        -    1.000

  on
    attempts:   3, 3 of them calls
    tools:      read 2, write 1

  control
    complaints: no_tool 1

  dry_run
    attempts:   1, 1 of them calls
    complaints: no_tool 1
    tools:      x 1

rescue: parse calls that leak into the text of a model with native tools

                            on  target
  answers                    1
  transformation rate    0.0 %
  success rate               -  95%, no attempts
  error rate                 -
  tool recognition           -
  without complaint    100.0 %
  mean confidence            -

none: requests without a transformation

                           off  target
  answers                    1
  transformation rate        -
  success rate               -  95%, no attempts
  error rate                 -
  tool recognition           -
  without complaint    100.0 %
  mean confidence            -
"""
    )


def test_several_files_and_standard_input_are_one_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text(made("a") + "\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(made("b").encode())))
    document = json.loads(report(capsys, str(path), str(path), "-", "--json"))
    assert document["reading"][0]["tools"] == {"a": 2, "b": 1}
    assert document["reading"][0]["verdict"] == "met"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.log"], "cannot read missing.log"),
        (["--url", "gateway"], "is not the address"),
        (["--url", "http://127.0.0.1:1"], "cannot read the metrics"),
        (["--url", "http://127.0.0.1:1", "x.log"], "give files, --url or --since"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_log_without_records_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("05:00:01 200 m text/hermes 1.50s\n")
    assert main(["report", str(path)]) == 2
    assert "no request records found" in capsys.readouterr().err


# A real run


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    logger = logging.getLogger("toolglot")
    before = (logger.handlers[:], logger.level, logger.propagate)
    path = tmp_path / "requests.log"
    with path.open("w") as file:
        log_to(file)
        yield path
    logger.handlers[:], logger.level, logger.propagate = before


PROMPT = write_roo()
COMPLAINT = "[ERROR] You did not use a tool in your previous response! Please retry with a tool use."


def summarize(groups: Groups) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (name, arm): (one.answers, one.transformed, one.outcomes, one.complaints, one.tools, one.rates())
        for name, arms in groups.items()
        for arm, one in arms.items()
    }


def test_the_log_and_the_metrics_of_one_run_agree(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent at work: it asks, and where it got no call it complains."""
    got = {True: 0, False: 0}
    metrics = ""

    async def test() -> None:
        nonlocal metrics
        async with gateway(SimOptions(dialect="hermes"), mode="text", rollout_reading="canary-50") as gate:
            for number in range(24):
                text = [{"role": "user", "content": f'Read the file "{number}.txt"'}]
                model = "sim:missing_argument" if number % 6 == 5 else "sim"
                body = {"model": model, "messages": text, "tools": [READ], "stream": False}
                message = (await gate.ask(body)).message
                called = bool(message.get("tool_calls"))
                got[called] += 1
                if not called:
                    text += [
                        {"role": "assistant", "content": message["content"]},
                        {"role": "user", "content": COMPLAINT},
                    ]
                    await gate.ask(body)
            metrics = (await gate.get("/metrics")).body.decode()
            url = gate.address + "/v1"
            import asyncio

            assert await asyncio.to_thread(main, ["report", "--url", url]) == 0

    run(test)
    assert "transformation rate" in capsys.readouterr().out
    groups, found = read_log(log.read_text().splitlines())
    assert found == 24 + got[False]
    on, control = groups["reading"]["on"], groups["reading"]["control"]
    assert on.answers + control.answers == found
    assert on.successes >= got[True] > 0
    assert on.outcomes["missing_argument"] > 0
    assert control.attempts == 0 and control.complaints["no_tool"] == control.answers / 2
    assert (on.rates()["without complaint"] or 0) > (control.rates()["without complaint"] or 0)
    assert summarize(groups) == summarize(read_metrics(metrics))
    assert f"answers{'':>14}" in report(capsys, str(log))


def test_an_xml_client_is_the_judge(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model writes JSON in a code block. The client reads each answer with its own parser, and complains or not."""
    answer = {"when": "task", "text": "I look.", "calls": [{"name": "list_files", "arguments": {"path": "."}}]}
    sim = SimOptions(script=parse_script({"answer": [answer | {"times": 0}]}), dialect="fenced_tool_flat")
    client = all_clients()["roo-3.29"]

    async def test() -> None:
        async with gateway(sim, mode="text", rollout_xml="canary-50") as gate:
            for number in range(16):
                answer_text = [
                    {"role": "system", "content": PROMPT},
                    {"role": "user", "content": f"<task>{number}</task>"},
                ]
                body = {"model": "sim", "messages": answer_text}
                text = (await gate.ask(body)).message["content"]
                read = any(isinstance(block, XmlCallBlock) for block in client.read(text, "sim"))
                received = "[list_files for '.'] Result:\n\na.txt" if read else COMPLAINT
                answer_text += [
                    {"role": "assistant", "content": text},
                    {"role": "user", "content": f"{received}\n\ntask"},
                ]
                await gate.ask(body)

    run(test)
    arms = read_log(log.read_text().splitlines())[0]["xml"]
    on, control = arms["on"], arms["control"]
    assert (on.answers > 0, control.answers > 0, on.answers + control.answers) == (True, True, 32)
    assert on.outcomes == {"success": on.answers} and not on.complaints
    assert control.complaints["no_tool"] == control.answers / 2
    assert on.verdict == "met"
    assert on.rates()["without complaint"] == 1 and control.rates()["without complaint"] == 0.5
    assert f"xml: {TRANSFORMATIONS['xml']}\n" in report(capsys, str(log))
