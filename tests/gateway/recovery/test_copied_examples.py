"""A call with a value of an example is never delivered: the model is asked again, or the call stays text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway.recovery import test_guided_models as guided
from support.gateway import gateway, run
from support.line import Line, sum_up

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, Tools
from toolglot.core.events import Finished, TextDelta
from toolglot.core.made_up_values import make_number

QUESTION = {"role": "user", "content": "Change the port in config.ini to 8080."}
GOOD = '```json\n{"name": "read_file", "arguments": {"path": "config.ini"}}\n```'
VALUE = re.compile(r"zq[a-z]{8}", re.IGNORECASE)


def copy_example(sent: dict[str, Any], change: str) -> str:
    """A call with the first word that the prompt made up."""
    text = "\n".join(message["content"] for message in sent["messages"])
    word = next(iter(VALUE.findall(text)))
    value = {"whole": word, "case": word.swapcase(), "path": f"src/{word}/x", "escaped": f"\\u007a{word[1:]}"}[change]
    return f'```json\n{{"name": "read_file", "arguments": {{"path": "{value}"}}}}\n```'


def ask(
    folder: Path, change: str, retries: int, stream: bool, *messages: dict[str, Any]
) -> tuple[list[str], str, list[str]]:
    """The arguments of the calls that the client gets, everything else it gets, and the last message of each request."""
    requests: list[str] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        sent = await request.json()
        requests.append(sent["messages"][-1]["content"])
        answer = GOOD if len(requests) > 1 else copy_example(sent, change)
        if not sent.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
            return web.json_response({"id": "x", "choices": [choice]})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in (*answer, None):
            delta = {"content": piece} if piece else {}
            choice = {"index": 0, "delta": delta, "finish_reason": None if piece else "stop"}
            await response.write(f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    profiles = folder / "profiles.toml"
    profiles.write_text(guided.RULE.format(quirk=guided.GUIDED))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", respond)
    answers: list[Any] = []

    async def test() -> None:
        async with gateway(app=app, profiles=str(profiles), mode="auto", recovery_retries=retries) as gate:
            body = {"model": "m", "messages": messages or [QUESTION], "tools": guided.TOOLS, "stream": stream}
            answers.append(await gate.ask(body))

    run(test)
    (answer,) = answers
    if stream:
        text, called, _ = answer.joined
        return [arguments for _, arguments in called], text, requests
    calls = [call["function"]["arguments"] for call in answer.message.get("tool_calls") or []]
    return calls, str(answer.message.get("content") or ""), requests


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("change", ["whole", "case", "path", "escaped"])
def test_the_model_is_asked_again(tmp_path: Path, change: str, stream: bool) -> None:
    calls, _, requests = ask(tmp_path, change, 1, stream)
    sent_in_part = (
        stream and change == "path"
    )  # what was sent cannot be retracted, and the corrected call is another one
    assert calls == ['{"path":"src/' if sent_in_part else '{"path":"config.ini"}']
    assert "comes from an example; use the values of the task" in requests[1]
    assert "[... write your value of path here ...]" in requests[1]


@pytest.mark.parametrize("change", ["whole", "case", "path", "escaped"])
def test_without_recovery_the_call_stays_text(tmp_path: Path, change: str) -> None:
    calls, text, requests = ask(tmp_path, change, 0, stream=False)
    assert (calls, len(requests)) == ([], 1)
    assert VALUE.search(text) or change == "escaped"


def test_a_value_that_the_user_names_is_no_copy(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(sent: dict[str, Any], change: str) -> str:
        seen.append(VALUE.findall("\n".join(message["content"] for message in sent["messages"]))[0])
        return GOOD

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "copy_example", note)
        ask(tmp_path, "whole", 0, stream=False)
    calls, _, requests = ask(tmp_path, "whole", 1, False, {"role": "user", "content": f"Read {seen[0].upper()}."})
    assert calls == [json.dumps({"path": seen[0]}, separators=(",", ":"))] and len(requests) == 1


@pytest.mark.parametrize("dialect", [dialect.name for dialect in toolglot.list_dialects()])
def test_the_library_reads_examples(dialect: str) -> None:
    """Only the gateway refuses them: it knows that the prompt was its own."""
    taught = toolglot.write("read_file", {"path": "Zqkesakabe"}, dialect, guided.TOOLS)
    assert toolglot.read(taught, guided.TOOLS, dialect).calls


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("stream", [False, True])
def test_a_longer_number_is_another_one_however_it_is_cut(size: int, stream: bool) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    asked = Conversation("m", (Message("user", (Text("Read it."),)),), Tools((Tool("read_file", "", schema),)))
    value = {"path": f"{make_number('read_file', 'path')}0"}
    text = toolglot.write("read_file", value)
    line = Line("openai_chat", "openai_chat", "text", dialect="hermes")
    pieces = (TextDelta(text[at : at + size]) for at in range(0, len(text), size))
    answer = line.answer(line.ask(asked, stream), [*pieces, Finished("stop")])
    assert sum_up(answer)[1] == [("read_file", value)]
