"""The API of the playground: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.console import opened_console
from support.gateway import READ, run

CALL = 'On it.\n<tool_call>{"name": "read", "arguments": {"filePath": "a.py"}}</tool_call>'
WIRES = {"openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"}


def test_a_text_is_read_the_same_in_any_chunks(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            results: list[Any] = []
            for size in (0, 1, 7):
                answer = await console.call("/playground", "POST", {"text": CALL, "tools": [READ], "size": size})
                assert answer.status == 200, answer.body
                results.append(answer.json)
            for result in results:
                [call] = result["calls"]
                assert (call["name"], call["arguments"], call["dialect"]) == ("read", '{"filePath":"a.py"}', "hermes")
                assert result["text"] == "On it."
                assert "".join(text for _, text, _ in result["segments"]) == CALL
                assert set(result["wires"]) == WIRES
                assert all("a.py" in encoded and "On it." in encoded for encoded in result["wires"].values())
            assert results[1]["event_count"] > results[0]["event_count"]
            assert {event["chunk"] for event in results[0]["events"]} <= {0, 1}

    run(test)


def test_a_rejected_call_has_its_feedback_and_is_in_no_answer(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            text = '<tool_call>{"name": "read", "arguments": {"path": 5}}</tool_call>'
            found = (await console.call("/playground", "POST", {"text": text, "tools": [READ]})).json
            assert found["calls"] == []
            [rejected] = found["rejected"]
            assert rejected["defects"] and "filePath" in rejected["feedback"]
            assert all(
                "tool_calls" not in encoded or '"tool_calls":[' not in encoded for encoded in found["wires"].values()
            )

    run(test)


def test_dialects_are_listed_with_samples(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            dialects = await console.get("/dialects")
            assert {"hermes", "qwen3_coder", "roo_xml"} <= {one["name"] for one in dialects}
            for one in dialects:
                answer = await console.call("/playground", "POST", {"text": one["sample"], "dialect": one["name"]})
                assert answer.status == 200, one["name"]

    run(test)


def test_odd_input_is_refused_with_a_reason(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for body, reason in (
                ({}, "text"),
                ({"text": 1}, "text"),
                ({"text": "x", "tools": {}}, "tools"),
                ({"text": "x", "tools": [{"name": 1}]}, "name"),
                ({"text": "x", "size": -1}, "size"),
                ({"text": "x", "unknown_tools": "maybe"}, "unknown_tools"),
                ({"text": "x" * 1_000_001}, "1,000,000"),
                ({"text": "x" * 100_001, "size": 1}, "at least 16"),
                ({"text": "x", "odd": 1}, "odd"),
                (b"{", "body"),
            ):
                answer = await console.call("/playground", "POST", body)
                assert answer.status == 400, body
                assert reason in answer.error["message"]

    run(test)
