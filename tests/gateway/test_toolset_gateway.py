"""Tool sets for editing through the gateway: agents that edit files with their own tools, models that know others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from gateway.test_anthropic_gateway import connect
from support.editors import EDITORS, work
from support.gateway import Answer, gateway, run
from support.rows import in_one_test

from toolglot.clients.toolsets import all_mappings
from toolglot.core.conversation import Conversation, Tool
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Finished, TextDelta
from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimCall, SimOptions
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

EDITOR = "str_replace_based_edit_tool"
PAIRS = {(mapping.client.name, mapping.model.name): mapping for mapping in all_mappings()}
BEFORE = "import os\n\ndef main():\n    return 1\n"
AFTER = "# top\nimport os\n\ndef main():\n    return '=======\\\\ ü😀'\n"
OLD, NEW = "    return 1", "    return '=======\\\\ ü😀'"
VIEWED = "1 | import os"
Call = tuple[str, dict[str, Any]]

WORK: dict[str, list[Call]] = {
    "anthropic": [
        (EDITOR, {"command": "view", "path": "a.py", "view_range": [3, -1]}),
        (EDITOR, {"command": "str_replace", "path": "a.py", "old_str": OLD, "new_str": NEW}),
        (EDITOR, {"command": "insert", "path": "a.py", "insert_line": 0, "insert_text": "# top"}),
    ],
    "roo": [
        ("read_file", {"path": "a.py", "mode": "slice", "offset": 3}),
        ("apply_diff", {"path": "a.py", "diff": f"<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE"}),
        ("insert_content", {"path": "a.py", "line": 1, "content": "# top"}),
    ],
    "opencode": [
        ("read", {"filePath": "a.py", "offset": 3}),
        ("edit", {"filePath": "a.py", "oldString": OLD, "newString": NEW}),
        ("write", {"filePath": "a.py", "content": AFTER}),
        ("bash", {"command": "ls", "timeout": 5, "description": "List"}),
    ],
    "claude_code": [
        ("Read", {"file_path": "a.py", "offset": 3}),
        ("Edit", {"file_path": "a.py", "old_string": OLD, "new_string": NEW}),
        ("Write", {"file_path": "a.py", "content": AFTER}),
        ("Bash", {"command": "ls", "timeout": 5, "description": "List"}),
    ],
}
"""What a model does, step by step, in the words of each set."""
EDITED = {"file_path": "a.py", "old_string": OLD, "new_string": NEW}
MADE = WORK | {"roo": [WORK["roo"][0], ("edit", EDITED), WORK["roo"][2]]}
"""The client's call for it: the exact counterpart is preferred to a diff."""
WAYS = [("roo", "anthropic"), ("anthropic", "roo"), ("opencode", "claude_code"), ("claude_code", "opencode")]
LOOKS = {"read_file", "list_files", "read", "Read", "bash", "Bash"}


def use(client: str, file: str, call: Call) -> tuple[str, str]:
    """The file after the call, and what the client answers."""
    name, arguments = call
    if name in LOOKS or arguments.get("command") == "view":
        return file, VIEWED
    changed = work(EDITORS[client], file, [(name, json.dumps(arguments))])
    assert changed is not None
    return changed, "done"


def declare(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": tool.name, "description": "", "parameters": dict(tool.parameters)}}
        for tool in tools
    ]


def calls_of(answer: Answer, streamed: bool) -> list[tuple[str, str]]:
    if streamed:
        calls: list[tuple[str, str]] = answer.joined[1]
        return calls
    return [(call["function"]["name"], call["function"]["arguments"]) for call in answer.message["tool_calls"]]


@in_one_test("streamed", [False, True])
@in_one_test("mode", ["text", "native"])
@in_one_test(("client", "model"), WAYS)
def test_an_agent_edits_a_file_with_a_model_that_knows_other_tools(
    client: str, model: str, mode: str, streamed: bool
) -> None:
    tools = PAIRS[client, model].tools
    steps = WORK[model]
    script = tuple(
        ScriptedAnswer(SimAnswer("Well.", (SimCall(name, json.dumps(given)),)), times=1) for name, given in steps
    )
    options = SimOptions(dialect="native" if mode == "native" else "hermes", script=script, chunk=5)

    async def agree() -> None:
        file, made = BEFORE, list[Call]()
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Edit a.py"}]
        async with gateway(options, model={"editing": model}, mode=mode, dialect="hermes") as gate:
            for at in range(len(steps)):
                body = {"model": "claude-x", "messages": messages, "tools": declare(tools), "stream": streamed}
                [(name, arguments)] = calls_of(await gate.ask(body), streamed)
                made.append((name, json.loads(arguments)))
                file, received = use(client, file, made[-1])
                function = {"name": name, "arguments": arguments}
                messages += [
                    {
                        "role": "assistant",
                        "content": "Well.",
                        "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}],
                    },
                    {"role": "tool", "tool_call_id": f"c{at}", "content": received},
                ]
            assert file == AFTER
            assert made == MADE[client]
            last = gate.record.bodies[-1]
        names = {tool.name for tool in tools if tool.name not in {name for name, _ in steps}}
        if mode == "native":
            streamed_calls = [
                call["function"] for message in last["messages"] for call in message.get("tool_calls") or ()
            ]
            assert [(call["name"], json.loads(call["arguments"])) for call in streamed_calls] == steps[:-1]
            assert {tool["function"]["name"] for tool in last["tools"]}.isdisjoint(names)
        assert VIEWED in json.dumps(last)

    run(agree)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("declared", [{"type": "text_editor_20250728"}, {"type": "text_editor_20250124"}])
def test_a_client_of_the_messages_wire_that_declares_the_editor_by_its_type(
    declared: dict[str, str], streamed: bool
) -> None:
    name = EDITOR if declared["type"].endswith("0728") else "str_replace_editor"
    both = "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE" for old, new in ("ab", "cd"))
    made = (SimCall("apply_diff", json.dumps({"path": "a.py", "diff": both})),)

    async def agree() -> None:
        options = SimOptions(dialect="native", script=(ScriptedAnswer(SimAnswer("Well.", made)),), chunk=5)
        async with gateway(options, model={"editing": "roo"}, mode="native") as gate, connect(gate) as client:
            asked: Any = {
                "model": "sim",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "Edit a.py"}],
                "tools": [{**declared, "name": name}],
            }
            if streamed:
                async with client.messages.stream(**asked) as stream:
                    answer = await stream.get_final_message()
            else:
                answer = await client.messages.create(**asked)
            blocks = [block.to_dict() for block in answer.content if block.type == "tool_use"]
            assert [(block["name"], block["input"]) for block in blocks] == [
                (name, {"command": "str_replace", "path": "a.py", "old_str": old, "new_str": new})
                for old, new in ("ab", "cd")
            ]
            assert len({block["id"] for block in blocks}) == 2 and answer.stop_reason == "tool_use"
            offered = {tool["function"]["name"] for tool in gate.record.last.body["tools"]}
            assert offered == {"read_file", "list_files", "write_to_file", "apply_diff", "insert_content"}

    run(agree)


@in_one_test("wire", sorted(client_wires()))
@in_one_test("streamed", [False, True])
def test_an_upstream_of_any_wire_is_offered_the_tools_of_its_model(wire: str, streamed: bool) -> None:
    """Also the client's own wire, where nothing would have been written anew without a mapping."""
    arguments = json.dumps(WORK["anthropic"][2][1])
    answer: list[Event] = [TextDelta("Well."), CallStarted(0, "call_1", EDITOR), CallArguments(0, arguments)]
    answer += [CallEnded(0), Finished("tool_calls")]
    rendered, asked_of = all_wires()[wire], list[Any]()

    async def reply(request: web.Request) -> web.Response:
        asked_of.append(await request.json())
        asked = ClientRequest(conversation=Conversation("m", ()))
        if not streamed:
            return web.Response(body=rendered.encode_response(answer, ResponseIdentity("1", 0, "m"), asked))
        body = rendered.open_encoder(ResponseIdentity("1", 0, "m"), asked).write(answer)
        return web.Response(body=body, content_type=rendered.stream_type)

    async def agree() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", reply)
        tools = declare(PAIRS["roo", "anthropic"].tools)
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools, "stream": streamed}
        changed: Any = {"upstream": {"wire": wire}, "model": {"editing": "anthropic"}, "mode": "native"}
        async with gateway(app=app, **changed) as gate:
            received = await gate.ask(body)
            assert received.status == 200, received.body
            [(name, given)] = calls_of(received, streamed)
            assert (name, json.loads(given)) == WORK["roo"][2]
        assert EDITOR in json.dumps(asked_of[0]["tools"]) and "apply_diff" not in json.dumps(asked_of[0])

    run(agree)
