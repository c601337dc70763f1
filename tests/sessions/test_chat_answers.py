"""Answers of the web chat that an earlier proxy got wrong, through the whole gateway."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.chat_lab import Client, Lab

from toolglot.sim.answer import Answer


def tool(name: str, required: str, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": required.split(),
    }
    return {"type": "function", "function": {"name": name, "description": f"{name}.", "parameters": schema}}


TOOLS = [
    tool("write", "path content", path="string", content="string"),
    tool("read", "path", path="string", limit="integer"),
]


def ask(
    folder: Path, answer: str | Answer, tools: list[dict[str, Any]] | None = TOOLS, **options: Any
) -> dict[str, Any]:
    """The message that a client gets for an answer of the model."""
    lab = Lab(folder, stream=options.pop("stream", True))
    lab.answers = [answer if isinstance(answer, Answer) else Answer(answer)]

    async def run() -> dict[str, Any]:
        async with lab.open(**options):
            client = Client(lab, tools=list(tools or ()))
            client.say()
            status, message = await client.post()
            return {"status": status, **message}

    return asyncio.run(asyncio.wait_for(run(), 60))


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<div>hello</div>",
        "Use `<b>` for bold, as in <b>this</b>.",
        "A call looks like this:\n```xml\n<read>\n<path>a.txt</path>\n</read>\n```\nand that is all.",
        "It returns a List<String> of names.",
        "<think>maybe</think> No.",
        "The element is <String>.",
    ],
)
def test_prose_is_no_call(text: str, tmp_path: Path) -> None:
    message = ask(tmp_path, text)
    assert calls_of(message) == []
    assert message["status"] == 200
    if not text.startswith("<think>"):
        assert message["content"] == text


@pytest.mark.parametrize("value", ["42", "true", "007", "null", "1e5"])
def test_text_stays_text(value: str, tmp_path: Path) -> None:
    message = ask(tmp_path, f"<write>\n<path>a.txt</path>\n<content>{value}</content>\n</write>")
    assert calls_of(message) == [("write", {"path": "a.txt", "content": value})]


@pytest.mark.parametrize(
    "content",
    [
        "line\n</write>\nmore",
        "<content>inner</content>",
        "\n\nleading and trailing\n\n",
        "<write><path>x</path></write>",
        "a & b < c &amp; d",
    ],
)
def test_files_are_written_as_the_model_wrote_them(content: str, tmp_path: Path) -> None:
    message = ask(tmp_path, Answer("", (json_call("write", path="a.txt", content=content),)))
    assert calls_of(message) == [("write", {"path": "a.txt", "content": content})]


def json_call(name: str, **arguments: Any) -> Any:
    from toolglot.sim.answer import SimCall

    return SimCall(name, json.dumps(arguments))


def test_two_calls_are_two_calls(tmp_path: Path) -> None:
    message = ask(tmp_path, Answer("Both.", (json_call("read", path="a"), json_call("read", path="b", limit=3))))
    assert calls_of(message) == [("read", {"path": "a"}), ("read", {"path": "b", "limit": 3})]


@pytest.mark.parametrize("text", ["<read>\n<path>a.txt", "<read>\n", "<write>\n<path>a</path>\n<content>cut"])
def test_a_cut_call_is_never_made(text: str, tmp_path: Path) -> None:
    assert calls_of(ask(tmp_path, text)) == []


@pytest.mark.parametrize("fence", ["json", "tool_code"])
def test_a_call_as_json_is_a_call(fence: str, tmp_path: Path) -> None:
    text = f'```{fence}\n{{"name": "read", "arguments": {{"path": "a.txt"}}}}\n```'
    assert calls_of(ask(tmp_path, text)) == [("read", {"path": "a.txt"})]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>',
        "<tool_call>\n<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
    ],
)
@pytest.mark.parametrize("faults", [(), ("no_interception",)])
def test_the_own_forms_of_the_model_are_calls(text: str, faults: tuple[str, ...], tmp_path: Path) -> None:
    message = ask(tmp_path, text, faults=faults)
    assert calls_of(message) == [("read", {"path": "a.txt"})]
    assert "does not exist" not in (message["content"] or "")


def test_a_client_without_tools_gets_its_text(tmp_path: Path) -> None:
    text = "<attempt_completion>\n<result>\nDone.\n</result>\n</attempt_completion>"
    message = ask(tmp_path, text, tools=None)
    assert message["content"] == text
    assert calls_of(message) == []


def test_thinking_is_no_part_of_the_answer(tmp_path: Path) -> None:
    message = ask(tmp_path, Answer("Paris.", reasoning="The capital of France."), faults=("thinking",))
    assert message["content"] == "Paris."


def test_an_image_is_refused_in_plain_words(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def run() -> tuple[int, dict[str, Any]]:
        async with lab.open():
            image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
            return await Client(lab, messages=[{"role": "user", "content": [image]}]).post()

    status, error = asyncio.run(run())
    assert status == 400
    assert "mage" in error["message"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_characters_are_whole_however_the_stream_is_cut(size: int, tmp_path: Path) -> None:
    text = "Grüße, 世界 🎉 – ok?"
    assert ask(tmp_path, text, chunk_bytes=size)["content"] == text
