"""docs/before-after.md: every *after* is what a gateway in front of the simulated model makes of the *before*.

``pytest --update-samples tests/project/test_before_after.py`` writes them again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.gateway import Answer, gateway

import toolglot
from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimOptions

PAGE = Path(__file__).resolve().parents[2] / "docs/before-after.md"
EXAMPLE = re.compile(
    r"(?P<lead><!-- (?P<kind>tool|prompt|answer|stream|messages)(?:: (?P<only>[\w ]+))? -->\n```\w+\n(?P<before>.*?)```\n"
    r"(?:(?!```|<!--).)*?```\w+\n)(?P<after>.*?)(?=```)",
    re.DOTALL,
)
ASK = [{"role": "user", "content": "Go on."}]


def exchange(request: dict[str, Any], text: str = "Done.", chunk: int = 12) -> tuple[Answer, dict[str, Any]]:
    """The answer to a request if the model writes this text, and what the model received."""

    async def ask() -> tuple[Answer, dict[str, Any]]:
        script = (ScriptedAnswer(SimAnswer(text), times=1),)
        async with gateway(SimOptions(script=script, chunk=chunk), mode="text", dialect="roo_xml") as gate:
            answer = await gate.ask({"model": "qwen3-max", **request})
            return answer, gate.record.bodies[-1]

    return asyncio.run(ask())


def show(value: Any) -> str:
    """JSON with the ids of calls counted."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    for number, call_id in enumerate(dict.fromkeys(re.findall(r'"(call_\w+)"', text)), 1):
        text = text.replace(call_id, f"call_{number}")
    return text + "\n"


def describe_tool(before: str, offered: list[Any]) -> str:
    tool = json.loads(before)
    prompt = toolglot.teach([tool], dialect="roo_xml")
    return prompt[prompt.index(f"## {tool['function']['name']}") :].partition("</tools>")[0]


def write_prompt(before: str, offered: list[Any]) -> str:
    _, sent = exchange(json.loads(before))
    assert "tools" not in sent and sent["messages"][1:] == json.loads(before)["messages"]
    return str(sent["messages"][0]["content"]) + "\n"


def read_answer(before: str, offered: list[Any]) -> str:
    answer, _ = exchange({"messages": ASK, "tools": offered}, before.removesuffix("\n"))
    [choice] = answer.json["choices"]
    return show({"message": choice["message"], "finish_reason": choice["finish_reason"]})


def read_stream(before: str, offered: list[Any]) -> str:
    request = {"messages": ASK, "tools": offered, "stream": True}
    answer, _ = exchange(request, before.removesuffix("\n"), chunk=6)
    text, calls, finish = answer.joined
    assert len(answer.chunks) > 3
    joined = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return show({"content": text, "tool_calls": joined, "finish_reason": finish})


def render_messages(before: str, offered: list[Any]) -> str:
    _, sent = exchange({**json.loads(before), "tools": offered})
    return show(sent["messages"][1:])


AFTER: dict[str, Callable[[str, list[Any]], str]] = {
    "tool": describe_tool,
    "prompt": write_prompt,
    "answer": read_answer,
    "stream": read_stream,
    "messages": render_messages,
}


def test_every_after_is_what_the_gateway_makes(request: pytest.FixtureRequest) -> None:
    tools: list[Any] = []
    wrong = []

    def renew(found: re.Match[str]) -> str:
        if found["kind"] == "tool":
            tools.append(json.loads(found["before"]))
        only = (found["only"] or "").split()
        offered = [tool for tool in tools if not only or tool["function"]["name"] in only]
        after = AFTER[found["kind"]](found["before"], offered)
        if after != found["after"]:
            wrong.append((found["before"], found["after"], after))
        return found["lead"] + after

    text, count = EXAMPLE.subn(renew, PAGE.read_text("utf-8"))
    if request.config.getoption("--update-samples"):
        PAGE.write_text(text, "utf-8")
        return
    assert count == len(re.findall(r"^After", text, re.MULTILINE)) > 10
    assert wrong == []
