"""What a model gets whose profile has the quirk ``needs_guidance``, and that others do not get it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateway import gateway, run

from toolglot.gateway.capabilities.profiles import NEEDS_GUIDANCE, load_profiles

RULE = "[[rule]]\nname = 'x'\nnative = false\nparallel = true\ndialect = 'fenced_json'\nquirks = [{quirk}]\n"
GUIDED, OTHER = "'needs_guidance'", ""
ASKED = [{"role": "user", "content": "Who is the owner in package.yaml?"}]
CALL = '```json\n{"name": "read_file", "arguments": {"path": "package.yaml"}}\n```'


def make_tool(name: str, *parameters: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in parameters}}
    return {"type": "function", "function": {"name": name, "parameters": schema | {"required": [*parameters]}}}


TOOLS = [
    make_tool("read_file", "path"),
    make_tool("edit_file", "path", "old_text", "new_text"),
    make_tool("write_file", "path", "content"),
]


def ask(
    folder: Path, answer: str, messages: list[dict[str, Any]], quirk: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The message that the client gets, and the messages that the model is sent."""
    requests: list[dict[str, Any]] = []

    async def respond(request: web.Request) -> web.Response:
        requests.append(await request.json())
        message = {"role": "assistant", "content": answer}
        return web.json_response({"id": "x", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})

    profiles = folder / "profiles.toml"
    profiles.write_text(RULE.format(quirk=quirk))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", respond)
    received: dict[str, Any] = {}

    async def test() -> None:
        async with gateway(app=app, profiles=str(profiles), mode="auto", recovery_retries=1) as gate:
            got = await gate.ask({"model": "m", "messages": messages, "tools": TOOLS})
            received.update(got.message)

    run(test)
    [sent] = requests
    return received, sent["messages"]


def test_the_prompt_has_examples_and_the_answer_is_delivered(tmp_path: Path) -> None:
    received, sent = ask(tmp_path, CALL, ASKED, GUIDED)
    assert received["tool_calls"][0]["function"]["arguments"] == '{"path":"package.yaml"}'
    examples = "".join(message["content"] for message in sent[1:-1])
    assert "Which mode does zq" in examples and '"read_file"' in examples and "package.yaml" not in examples
    assert sent[-1] == ASKED[0]


def test_other_models_get_no_examples(tmp_path: Path) -> None:
    _, sent = ask(tmp_path, CALL, ASKED, OTHER)
    assert [message["role"] for message in sent] == ["system", "user"]


def test_a_value_of_the_examples_is_delivered_like_any_other(tmp_path: Path) -> None:
    named = "zq1.cfg"
    received, _ = ask(tmp_path, CALL.replace("package.yaml", named), ASKED, GUIDED)
    assert json.loads(received["tool_calls"][0]["function"]["arguments"]) == {"path": named}


@pytest.mark.parametrize(("quirk", "noted"), [(GUIDED, True), (OTHER, False)])
def test_a_failed_call_is_called_one(tmp_path: Path, quirk: str, noted: bool) -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": json.dumps({"path": "a"})}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "Error: there is no file a"}
    answer: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [made]}
    _, sent = ask(tmp_path, "It failed.", [*ASKED, answer, result], quirk)
    assert "Error: there is no file a" in sent[-1]["content"]
    assert ("This call failed" in sent[-1]["content"]) is noted


def test_a_profile_may_teach_several_calls_in_any_dialect(tmp_path: Path) -> None:
    _, sent = ask(tmp_path, CALL, ASKED, OTHER)
    assert "You may use several tools in one message" in sent[0]["content"]


def test_which_models_are_guided() -> None:
    facts = {"server": ("llama.cpp",)}
    find = load_profiles().find
    for model, guided in (
        ("qwen2.5-coder-0.5b", False),
        ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", True),
        ("qwen2.5-coder-7b-instruct", False),
        ("qwen3-coder-30b", False),
    ):
        assert (NEEDS_GUIDANCE in find("http://h/v1", model, facts).quirks) is guided
