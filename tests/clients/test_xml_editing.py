"""XML clients before models that were trained on other tools for editing, through the gateway.

What the client gets is read with the port of its own parser and done by an editor of our own; what the client sends is
written as the client writes it. So a whole piece of work is done, with bytes compared at the end.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway.test_toolset_gateway import AFTER, BEFORE, EDITOR, NEW, OLD, VIEWED, WORK
from gateway.test_xml_gateway import ask, calls_of, scripted, send_capabilities, text_of
from support.editors import EDITORS, work
from support.gateway import Answer, gateway, run
from support.rows import in_one_test
from support.xmlprompts import ROO, write_cline, write_roo

from toolglot.clients.toolsets import Untranslatable, find_mapping
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.call_renderer import render_call
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.core.lenient_json import dump
from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimCall, SimOptions, make_app
from toolglot.sim.faults import FAULTS

MODES = [("native", "native"), ("text", "hermes"), ("text", "roo_xml"), ("text", "fenced_json")]
STEPS = [
    (EDITOR, {"command": "view", "path": "a.py", "view_range": [3, 4]}),
    (EDITOR, {"command": "view", "path": "src/"}),
    *WORK["anthropic"][1:],
]
DONE: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"args": {"file": [{"path": "a.py", "line_range": ["3-4"]}]}}),
    ("list_files", {"path": "src", "recursive": False}),
    ("apply_diff", {"path": "a.py", "diff": f"<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE"}),
    ("insert_content", {"path": "a.py", "line": 1, "content": "# top"}),
]


def as_json(values: Any) -> Any:
    """Values as the port of a parser gives them, with numbers as numbers."""
    return json.loads(dump(values))


def text_of_call(name: str, shown: str) -> list[dict[str, str]]:
    parts = (f"[{name} for 'a.py'] Result:", shown, "<environment_details>\nnow\n</environment_details>")
    return [{"type": "text", "text": text} for text in parts]


@in_one_test("stream", [False, True])
@in_one_test(("mode", "dialect"), MODES)
def test_roo_edits_a_file_with_a_model_that_knows_the_editor_of_anthropic(
    mode: str, dialect: str, stream: bool
) -> None:
    script = tuple(
        ScriptedAnswer(SimAnswer("Well.", (SimCall(name, json.dumps(given)),)), times=1) for name, given in STEPS
    )
    sim = SimOptions(dialect=dialect, script=script, chunk=5)

    async def check() -> None:
        file, made = BEFORE, list[Any]()
        answer_text: list[tuple[str, Any]] = [("user", "<task>\nGo.\n</task>")]
        taught = "hermes" if mode == "native" else dialect
        async with gateway(sim, model={"editing": "anthropic"}, mode=mode, dialect=taught) as gate:
            for _ in STEPS:
                text = text_of(await gate.ask(ask(write_roo(), *answer_text, stream=stream)), stream)
                ((name, params),) = calls_of(text, "roo-3.29")
                made.append((name, as_json(params)))
                shown = VIEWED
                if name in ("apply_diff", "insert_content"):
                    changed = work(EDITORS["roo"], file, [(name, json.dumps(made[-1][1]))])
                    assert changed is not None
                    file, shown = changed, "done"
                answer_text += [("assistant", text), ("user", text_of_call(name, shown))]
            assert (file, made) == (AFTER, DONE)
            bodies = gate.record.bodies
        if mode == "native":
            check_native(bodies)
        else:
            check_text(bodies, dialect)

    run(check)


def check_native(bodies: list[Any]) -> None:
    last = bodies[-1]
    offered = {tool["function"]["name"]: tool["function"] for tool in last["tools"]}
    assert offered.keys() >= {EDITOR, "execute_command", "attempt_completion"}
    assert offered.keys().isdisjoint({"read_file", "list_files", "write_to_file", "apply_diff", "insert_content"})
    assert offered[EDITOR]["parameters"]["properties"]["command"]["enum"] == ["view", "create", "str_replace", "insert"]
    calls = [call for message in last["messages"] for call in message.get("tool_calls") or ()]
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls] == STEPS[:-1]
    results = [message for message in last["messages"] if message["role"] == "tool"]
    assert [result["tool_call_id"] for result in results] == [call["id"] for call in calls]
    assert [result["content"] for result in results] == [VIEWED, VIEWED, "done"]
    assert last["parallel_tool_calls"] is False


def check_text(bodies: list[Any], dialect: str) -> None:
    received = json.dumps(bodies[-1]["messages"])
    assert EDITOR in received and "str_replace" in received and "done" in received
    assert "<apply_diff>" not in received and "## apply_diff" not in received and "execute_command" in received


CONTENTS = [
    pytest.param("<b>1 &lt; 2 &amp; 3</b>\n</content>\n<path>no</path> ]]>\n", id="tags and entities"),
    pytest.param("```python\nprint(1)\n```", id="a fence around it"),
    pytest.param("", id="empty"),
    pytest.param("  a\n\tb  \n\n", id="blanks at the ends"),
    pytest.param("<str_replace_based_edit_tool>\n<command>view</command>\n</str_replace_based_edit_tool>", id="a call"),
]


@in_one_test("stream", [False, True])
@in_one_test(("mode", "dialect"), MODES)
@in_one_test("content", CONTENTS)
@in_one_test("profile", ["roo-3.29", "cline-legacy"])
def test_a_file_is_created_with_the_very_bytes_or_not_at_all(
    profile: str, content: str, mode: str, dialect: str, stream: bool
) -> None:
    call = {"name": EDITOR, "arguments": {"command": "create", "path": "a.txt", "file_text": content}}

    async def check() -> None:
        sim = scripted({"when": "Go", "text": "I write.", "calls": [call]}, dialect=dialect, chunk=3)
        prompt = write_roo() if profile.startswith("roo") else write_cline()
        taught = "hermes" if mode == "native" else dialect
        async with gateway(sim, model={"editing": "anthropic"}, mode=mode, dialect=taught) as gate:
            text = text_of(await gate.ask(ask(prompt, stream=stream)), stream)
        made = calls_of(text, profile)
        if not made:
            assert "was not made" in text
            return
        ((name, params),) = made
        params.pop("line_count", None)
        assert (name, params) == ("write_to_file", {"path": "a.txt", "content": content})
        assert text.startswith("I write.\n\n<write_to_file>")

    run(check)


@in_one_test("stream", [False, True])
@in_one_test(("mode", "dialect"), MODES)
@in_one_test(
    ("name", "given", "params"),
    [
        ("execute_command", {"command": "ls -la"}, {"command": "ls -la"}),
        ("list_files", {"path": "src", "recursive": True}, {"path": "src", "recursive": True}),
        ("mcp--weather--get_forecast", {"city": "Ulm"}, None),
    ],
)
def test_calls_to_the_clients_own_tools_are_made_as_they_are(
    name: str, given: dict[str, Any], params: dict[str, Any] | None, mode: str, dialect: str, stream: bool
) -> None:
    """Those that have no equivalent, and those that have one and were called by their own name all the same."""

    async def check() -> None:
        call = {"name": name, "arguments": given}
        sim = scripted({"when": "Go", "text": "", "calls": [call]}, dialect=dialect, chunk=4)
        taught = "hermes" if mode == "native" else dialect
        async with gateway(sim, model={"editing": "anthropic"}, mode=mode, dialect=taught) as gate:
            text = text_of(await gate.ask(ask(write_roo(), stream=stream)), stream)
        ((made, got),) = calls_of(text, "roo-3.29")
        if params is None:
            assert made == "use_mcp_tool" and as_json(got["arguments"]) == given
        else:
            assert (made, got) == (name, params)

    run(check)


@in_one_test("stream", [False, True])
@in_one_test(("mode", "dialect"), MODES)
@in_one_test(
    ("given", "why"),
    [
        ({"command": "view", "path": "a.py", "view_range": [3, -1]}, "the last line"),
        ({"command": "str_replace", "path": "a.py", "old_str": "", "new_str": "x"}, "nothing to look for"),
    ],
)
def test_a_call_the_client_cannot_make_becomes_text(
    given: dict[str, Any], why: str, mode: str, dialect: str, stream: bool
) -> None:
    async def check() -> None:
        call = {"name": EDITOR, "arguments": given}
        sim = scripted({"when": "Go", "text": "Hm.", "calls": [call]}, dialect=dialect, chunk=4)
        taught = "hermes" if mode == "native" else dialect
        async with gateway(sim, model={"editing": "anthropic"}, mode=mode, dialect=taught) as gate:
            text = text_of(await gate.ask(ask(write_roo(), stream=stream)), stream)
        assert calls_of(text, "roo-3.29") == []
        assert text.startswith("Hm.") and "was not made" in text and why in text

    run(check)


def test_a_long_refused_call_is_abbreviated() -> None:
    given = {"command": "str_replace", "path": "a.py", "old_str": "", "new_str": "x" * 300_000}

    async def check() -> None:
        sim = scripted({"when": "Go", "calls": [{"name": EDITOR, "arguments": given}]}, dialect="native", chunk=5000)
        async with gateway(sim, model={"editing": "anthropic"}, mode="native") as gate:
            text = text_of(await gate.ask(ask(write_roo())), False)
        assert len(text) < 10_000 and "was not made" in text and "were left out here" in text

    run(check)


def test_a_client_without_such_tools_keeps_its_prompt() -> None:
    prompt = write_roo([tool for tool in ROO if tool.name in ("execute_command", "attempt_completion")])

    async def check() -> None:
        async with gateway(scripted({"text": "Hm."}), mode="text", model={"editing": "anthropic"}) as gate:
            asked = ask(prompt)
            await gate.ask(asked)
            assert gate.record.last.body == asked

    run(check)


FAULTED = sorted(fault for fault in FAULTS if not fault.startswith(("hang", "slow", "lost_inner")))


@in_one_test(("mode", "dialect"), MODES[:3])
@in_one_test("fault", FAULTED)
def test_whatever_goes_wrong_nothing_else_is_run(fault: str, mode: str, dialect: str) -> None:
    content = "line\n" * 40
    call = {"name": EDITOR, "arguments": {"command": "create", "path": "a.txt", "file_text": content}}

    async def check() -> None:
        sim = scripted({"calls": [call], "times": 9}, dialect=dialect, faults=(fault,))
        taught = "hermes" if mode == "native" else dialect
        async with gateway(sim, model={"editing": "anthropic"}, mode=mode, dialect=taught) as gate:
            for stream in (False, True):
                check_faulted(await gate.ask(ask(write_roo(), stream=stream)), stream, content)

    run(check)


def check_faulted(answer: Answer, stream: bool, content: str) -> None:
    if answer.status != 200:
        assert answer.error["message"]
        return
    text = answer.joined[0] if stream else str(answer.message["content"])
    assert text or b"error" in answer.body
    for block in all_clients()["roo-3.29"].read(text, "sim"):
        if isinstance(block, XmlCallBlock):
            assert not block.partial
            params = {name: value for name, value in block.params.items() if name != "line_count"}
            assert (block.name, params) == ("write_to_file", {"path": "a.txt", "content": content})


@pytest.mark.parametrize("stream", [False, True])
def test_tools_become_text_if_native_tools_do_not_work(stream: bool) -> None:
    """The mapped tools too: the model still knows the other editor."""
    call = {"name": EDITOR, "arguments": {"command": "view", "path": "a.py"}}

    async def check() -> None:
        sim = scripted({"when": "Go", "calls": [call], "times": 2}, dialect="hermes", faults=("no_tools_400",))
        app = make_app(sim)
        app.router.add_get("/props", send_capabilities)
        async with gateway(app=app, mode="auto", dialect="hermes", model={"editing": "anthropic"}) as gate:
            text = text_of(await gate.ask(ask(write_roo(), stream=stream)), stream)
            assert calls_of(text, "roo-3.29") == [("read_file", {"args": {"file": [{"path": "a.py"}]}})]
            first, second = (seen.body for seen in gate.record.requests)
        assert EDITOR in json.dumps(first["tools"])
        assert "tools" not in second and EDITOR in second["messages"][0]["content"]

    run(check)


PROFILES = sorted(all_clients())


@in_one_test("profile", PROFILES)
@in_one_test("wanted", ["anthropic", "opencode", "claude_code"])
def test_every_profile_has_a_mapping_and_takes_what_it_gives(profile: str, wanted: str) -> None:
    """Each call of the client is mapped to the model's tools and back, and the client reads the same call."""
    client = all_clients()[profile]

    def check(name: str, arguments: str) -> str:
        return "; ".join(map(str, render_call(client, "m", name, arguments).defects))

    mapping = find_mapping(client.list_tools(), wanted, check=check)
    assert mapping is not None
    samples: dict[str, list[dict[str, Any]]] = {
        "read_file": [{"path": "a.py"}, {"args": {"file": [{"path": "a & b.py", "line_range": ["2-9"]}]}}],
        "list_files": [{"path": "src", "recursive": False}],
        "write_to_file": [{"path": "a.py", "content": "x < y\n&lt;\n"}],
        "apply_diff": [{"path": "a.py", "diff": DONE[2][1]["diff"]}],
        "insert_content": [{"path": "a.py", "line": 3, "content": "  x\n"}],
    }
    received = 0
    for name, rows in samples.items():
        for given in rows if name in mapping.hidden_tools else ():
            try:
                carried = mapping.map_call_to_model(name, json.dumps(given))
                ((back, arguments),) = [
                    made for call in carried.calls for made in mapping.map_call_to_client(*call).calls
                ]
            except Untranslatable:
                continue
            rendered = render_call(client, "m", back, arguments)
            assert rendered.text and not rendered.defects, (back, arguments, rendered)
            (block,) = client.read(rendered.text, "m")
            assert isinstance(block, XmlCallBlock) and not block.partial
            again = mapping.map_call_to_model(block.name, dump(dict(block.params)))
            assert again.calls == carried.calls
            received += 1
    assert received >= 3
