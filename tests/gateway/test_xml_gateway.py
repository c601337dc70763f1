"""XML clients before the gateway: text models and native ones behind it, whole and streamed.

What the client gets is read with the port of its own parser, so the assertions are about what it would run.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from support.gateway import Answer, gateway, run
from support.rows import in_one_test
from support.xmlprompts import CUSTOM, ROO, Doc, write_cline, write_compact, write_roo

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.profile import XmlBlock, XmlCallBlock, XmlTextBlock
from toolglot.sim import SimOptions, make_app
from toolglot.sim.faults import FAULTS
from toolglot.sim.script import parse_script

CONTENT = "<b>1 &lt; 2 &amp; 3</b>\n</content>\n<path>no path</path> ]]> ```\n"
"""Tags, entities, a closing tag of its own, and a line break at the end."""
DIALECTS = ("hermes", "qwen3_coder", "fenced_tool_flat", "fenced_json", "glm45", "mistral_args", "native")
LATER = tuple(tool for tool in ROO if tool.name not in ("insert_content", "search_and_replace", "write_to_file"))
PROMPTS = {
    "roo-3.29": write_roo(),
    "cline-legacy": write_cline(),
}


def ask(prompt: str, *messages: tuple[str, Any], model: str = "sim", stream: bool = False) -> dict[str, Any]:
    received = [{"role": role, "content": content} for role, content in messages or [("user", "<task>\nGo.\n</task>")]]
    return {"model": model, "messages": [{"role": "system", "content": prompt}, *received], "stream": stream}


def text_of(answer: Answer, stream: bool) -> str:
    assert answer.status == 200, answer.body
    if stream:
        text, calls, finish = answer.joined
        assert (calls, finish) == ([], "stop")
        return text
    assert "tool_calls" not in answer.message
    assert answer.finish == "stop"
    return str(answer.message["content"])


def read(text: str, profile: str, model: str = "sim") -> list[XmlBlock]:
    return all_clients()[profile].read(text, model)


def calls_of(text: str, profile: str, model: str = "sim") -> list[Any]:
    return [
        (block.name, dict(block.params))
        for block in read(text, profile, model)
        if isinstance(block, XmlCallBlock) and not block.partial
    ]


def scripted(*answers: dict[str, Any], **options: Any) -> SimOptions:
    return SimOptions(script=parse_script({"answer": list(answers)}), **options)


WRITE = {"name": "write_to_file", "arguments": {"path": "a.txt", "content": CONTENT}}


@in_one_test("stream", [False, True])
@in_one_test("profile", PROMPTS)
@in_one_test("dialect", DIALECTS)
def test_any_dialect_becomes_the_clients_xml(dialect: str, profile: str, stream: bool) -> None:
    """Whatever the model wrote, the client runs the call with the very bytes."""

    async def check() -> None:
        sim = scripted({"when": "Go", "text": "I write.", "calls": [WRITE]}, dialect=dialect, chunk=3)
        async with gateway(sim, mode="native" if dialect == "native" else "text") as gate:
            text = text_of(await gate.ask(ask(PROMPTS[profile], stream=stream)), stream)
            assert text.startswith("I write.\n\n<write_to_file>\n")
            assert text.endswith("\n</write_to_file>")
            ((name, params),) = calls_of(text, profile)
            params.pop("line_count", None)
            assert (name, params) == ("write_to_file", {"path": "a.txt", "content": CONTENT})

    run(check)


def test_a_text_model_gets_the_prompt_of_the_client() -> None:
    """The prompt teaches already, and its history is what the client shows: nothing but the model's name is changed."""

    async def check() -> None:
        async with gateway(scripted({"when": "x", "text": "Hm."}), mode="text", model={"model": "other"}) as gate:
            asked = ask(
                PROMPTS["roo-3.29"],
                ("user", "x"),
                ("assistant", "<list_files><path>.</path></list_files>"),
                ("user", [{"type": "text", "text": "[list_files for '.'] Result:"}, {"type": "text", "text": "x"}]),
            )
            await gate.ask(asked | {"top_k": 3})
            assert gate.record.requests[-1].body == asked | {"top_k": 3, "model": "other"}

    run(check)


def native_history(call_text: str) -> list[tuple[str, Any]]:
    heading = "[write_to_file for 'a.txt'] Result:"
    environment = "<environment_details>\nnow\n</environment_details>"
    parts = [{"type": "text", "text": text} for text in (heading, "saved", environment)]
    return [("user", "<task>\nGo.\n</task>"), ("assistant", call_text), ("user", parts)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_native_model_is_asked_natively(stream: bool) -> None:
    """Tools with schemas, no XML in the prompt; and the call comes back from the client with the id it was made with."""

    async def check() -> None:
        sim = scripted(
            {"when": "Go", "text": "I write.", "calls": [WRITE], "times": 1}, {"when": "now", "text": "Done."}
        )
        async with gateway(sim, mode="native") as gate:
            prompt = PROMPTS["roo-3.29"]
            text = text_of(await gate.ask(ask(prompt, stream=stream)), stream)
            first = gate.record.requests[-1].body
            assert first["parallel_tool_calls"] is False
            assert first["tool_choice"] == "required"
            tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]}
            assert tools["write_to_file"]["required"] == ["path", "content", "line_count"]
            assert tools["mcp--weather--get_forecast"]["required"] == ["city"]
            assert "XML" not in first["messages"][0]["content"].split("USER'S")[0]
            await gate.ask(ask(prompt, *native_history(text), stream=stream))
            _, _, call, result, rest = gate.record.requests[-1].body["messages"]
            (made,) = call["tool_calls"]
            assert made["id"].startswith("call_sim_")
            assert f"<id>{made['id']}</id>" in text
            assert call["content"] == "I write."
            assert json.loads(made["function"]["arguments"])["content"] == CONTENT
            assert result == {"role": "tool", "tool_call_id": made["id"], "content": "saved"}
            assert rest["content"] == "<environment_details>\nnow\n</environment_details>"

    run(check)


@pytest.mark.parametrize("stream", [False, True])
def test_tools_of_servers(stream: bool) -> None:
    call = {"name": "mcp--github_com_example_issues--create_issue", "arguments": {"title": "A </arguments> & more"}}

    async def check() -> None:
        names = []
        async with gateway(scripted({"when": "x", "text": "."}), mode="native") as gate:
            await gate.ask(ask(PROMPTS["roo-3.29"]))
            names = [tool["function"]["name"] for tool in gate.record.requests[-1].body["tools"]]
        (call["name"],) = [name for name in names if "issue" in name]
        async with gateway(scripted({"when": "Go", "calls": [call]}), mode="native", recovery_retries=1) as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream)
            assert calls_of(text, "roo-3.29") == [
                (
                    "use_mcp_tool",
                    {
                        "server_name": "github.com/example/issues",
                        "tool_name": "create_issue",
                        "arguments": call["arguments"],
                    },
                )
            ]
            assert len(gate.record.requests) == 1, "the model was told that the offered tool does not exist"

    run(check)


def test_tools_that_only_the_prompt_knows() -> None:
    async def check() -> None:
        call = {"name": "deploy_shop", "arguments": {"stage": "test", "force": True}}
        async with gateway(scripted({"when": "Go", "calls": [call]}, dialect="hermes"), mode="text") as gate:
            text = text_of(await gate.ask(ask(write_roo(LATER, custom=CUSTOM))), False)
            assert text == "<deploy_shop>\n<stage>test</stage>\n<force>true</force>\n</deploy_shop>"

    run(check)


OWN = [
    # as the client un-escapes it, so it is meant
    "<write_to_file>\n<path>a.txt</path>\n<content>\nif (a &lt; b &amp;&amp; c)\n</content>\n<line_count>1</line_count>\n</write_to_file>",
    # one line, other layout
    "<list_files><path>.</path><recursive>true</recursive></list_files>",
    "<read_file>\n<args>\n  <file>\n    <path>a &amp; b</path>\n  </file>\n</args>\n</read_file>",
    "<execute_command>\n<command>a &amp;&amp; b</command>\n</execute_command>",
    # a parameter that the tool does not have behind a value with a tag, or before it
    "<write_to_file>\n<path>a.ts</path>\n<content>\nif (a < b) {}\n</content>\n<line_count>1</line_count>\n"
    "<task_progress>\n- [ ] b\n</task_progress>\n</write_to_file>",
    "<execute_command>\n<command>sort < a | head</command>\n<requires_approval>false</requires_approval>\n"
    "</execute_command>",
    "<execute_command>\n<explanation>a < b</explanation>\n<command>ls</command>\n</execute_command>",
    # several files, several ranges, answers with modes
    "<read_file>\n<args>\n<file>\n<path>a.ts</path>\n<line_range>1-9</line_range>\n<line_range>20-30</line_range>\n"
    "</file>\n<file>\n<path>b.ts</path>\n</file>\n</args>\n</read_file>",
    "<ask_followup_question>\n<question>Which?</question>\n<follow_up>\n"
    '<suggest mode="code">A</suggest>\n<suggest>B</suggest>\n</follow_up>\n</ask_followup_question>',
    # marks of other dialects in a value
    "<attempt_completion>\n<result>\n<tool_call>{}</tool_call> <parameter=path> <![CDATA[x </tool_call>\n</result>\n"
    "</attempt_completion>",
]


@in_one_test("stream", [False, True])
@in_one_test("number", range(len(OWN)))
def test_what_is_written_in_the_clients_own_xml_passes_as_it_stands(number: int, stream: bool) -> None:
    async def check() -> None:
        async with gateway(scripted({"when": "Go", "text": f"Now.\n\n{OWN[number]}"}, chunk=3), mode="text") as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream)
            assert text == f"Now.\n\n{OWN[number]}"

    run(check)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", ["<condense>\n<context>\nAll of it.\n</context>\n</condense>"])
def test_a_tool_that_the_prompt_does_not_document_may_be_called(text: str, stream: bool) -> None:
    """Clients document some of their tools in a later message."""

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "text": text}, chunk=3), mode="text") as gate:
            assert text_of(await gate.ask(ask(PROMPTS["cline-legacy"], stream=stream)), stream) == text

    run(check)


@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_call_is_abbreviated(stream: bool) -> None:
    """A megabyte of arguments would keep the client busy for minutes."""
    call = {"name": "write_to_file", "arguments": {"path": "a", "content": "<list_files>" * 100_000}}

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "calls": [call]}, dialect="hermes"), mode="text") as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream)
            assert text.startswith("(The call of write_to_file was not made: ")
            assert "characters were left out here" in text
            assert len(text) < 20_000
            assert calls_of(text, "roo-3.29") == []
            assert "<list_files>" not in text

    run(check)


ONE_FILE = Doc("read_file", "Reads a file.", [("path", "required", "Its path.")], [("path", "File path here")])


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_reads_one_file_is_given_its_path(stream: bool) -> None:
    """For some models Roo documents, and has, a tool that knows no list of files."""
    prompt = write_roo((ONE_FILE, *(tool for tool in ROO if tool.name != "read_file")))
    call = {"name": "read_file", "arguments": {"path": "a & b.ts"}}

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "calls": [call]}, dialect="hermes"), mode="text") as gate:
            text = text_of(await gate.ask(ask(prompt, stream=stream)), stream)
            assert calls_of(text, "roo-3.29") == [("read_file", {"path": "a & b.ts"})]

    run(check)


@pytest.mark.parametrize("stream", [False, True])
def test_a_fence_around_the_clients_own_xml(stream: bool) -> None:
    """The client would run what is in it. One that is announced as an example, or followed by words, is only shown."""
    fence = f"```xml\n{OWN[1]}\n```"
    texts = {
        f"Now.\n\n{fence}": [("list_files", {"path": ".", "recursive": True})],
        f"For example:\n\n{fence}": [],
        f"{fence}\nThat is how it is done.": [],
    }

    async def check() -> None:
        for text, calls in texts.items():
            async with gateway(scripted({"when": "Go", "text": text}, chunk=3), mode="text") as gate:
                answer = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream)
                assert calls_of(answer, "roo-3.29") == calls

    run(check)


def test_own_xml_that_the_client_would_misread_is_written_anew() -> None:
    """The client would take the second path for that of the file."""
    written = (
        "<write_to_file>\n<path>a.txt</path>\n<content>\nA</content> B <path>b.txt</path> &lt;\n</content>\n"
        "<line_count>2</line_count>\n</write_to_file>"
    )

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "text": written}), mode="text") as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"])), False)
            ((_, params),) = calls_of(text, "roo-3.29")
            assert params["path"] == "a.txt"
            assert params["content"] == "A</content> B <path>b.txt</path> <"
            assert calls_of(written, "roo-3.29")[0][1]["path"] == "b.txt"

    run(check)


TEXTS = [
    "I need to list the files first.",  # seed 000: natural language
    "```tool_code\n{invalid json}\n```",  # seed 000: malformed JSON
    '```tool_code\n{"tool": "no_such_tool", "path": "."}\n```',
    "Which file would you like to update?",
    "```bash\nnpm test\n```",
]


@in_one_test("stream", [False, True])
@in_one_test("text", TEXTS)
def test_what_is_no_call_stays_as_it_is(text: str, stream: bool) -> None:
    async def check() -> None:
        async with gateway(scripted({"when": "Go", "text": text}, chunk=2), mode="text") as gate:
            assert text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream) == text

    run(check)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["text", "native"])
def test_text_about_tools_is_no_call(mode: str, stream: bool) -> None:
    words = "I would use `<read_file>` or <list_files> with <path>.</path> here."

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "text": words}, chunk=2), mode=mode) as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream)), stream)
            assert [type(block) for block in read(text, "roo-3.29")] == [XmlTextBlock]
            assert text.replace("\u200b", "") == words
            if mode == "native":  # and the model sees again what it wrote
                await gate.ask(ask(PROMPTS["roo-3.29"], ("user", "Go"), ("assistant", text), ("user", "Well?")))
                assert gate.record.requests[-1].body["messages"][2]["content"] == words

    run(check)


@pytest.mark.parametrize("dialect, mode", [("hermes", "text"), ("native", "native")])
def test_one_call_for_each_message(dialect: str, mode: str) -> None:
    calls = [{"name": "list_files", "arguments": {"path": name}} for name in "ab"]

    async def check() -> None:
        async with gateway(scripted({"when": "Go", "calls": calls}, dialect=dialect), mode=mode) as gate:
            text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"], stream=True)), True)
            assert [params["path"] for _, params in calls_of(text, "roo-3.29")] == ["a"]

    run(check)


@pytest.mark.parametrize("dialect, mode", [("hermes", "text"), ("native", "native"), ("roo_xml", "text")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_was_cut_is_never_run(dialect: str, mode: str, stream: bool) -> None:
    long = {
        "name": "execute_command",
        "arguments": {"command": "rm -rf " + "very/long/path/" * 20, "requires_approval": False},
    }

    async def check() -> None:
        sim = scripted({"when": "Go", "calls": [long]}, dialect=dialect, faults=("cut_mid_call",))
        async with gateway(sim, mode=mode) as gate:
            answer = await gate.ask(ask(PROMPTS["cline-legacy"], stream=stream))
            if answer.status == 200:
                text = answer.joined[0] if stream else answer.message["content"]
                assert not any(isinstance(block, XmlCallBlock) for block in read(text, "cline-legacy"))

    run(check)


FAULTED = sorted(fault for fault in FAULTS if not fault.startswith(("hang", "slow", "lost_inner")))
"""Not those that only take time, nor the one that takes a tag out of the content itself."""


@in_one_test("dialect, mode", [("hermes", "text"), ("native", "native"), ("roo_xml", "text")])
@in_one_test("fault", FAULTED)
def test_whatever_goes_wrong_nothing_else_is_run(fault: str, dialect: str, mode: str) -> None:
    """Under every fault of the simulated model the client runs the intended call, or none, and the answer is not empty.
    It unescapes and trims what was written in its own XML, so that has only plain words."""
    content = "plain & <b>bold</b>" if dialect == "roo_xml" else CONTENT
    call = {"name": "write_to_file", "arguments": {"path": "a.txt", "content": content}}

    async def check() -> None:
        async with gateway(
            scripted({"calls": [call], "times": 9}, dialect=dialect, faults=(fault,)), mode=mode
        ) as gate:
            for stream in (False, True):
                answer = await gate.ask(ask(PROMPTS["cline-legacy"], stream=stream))
                if answer.status != 200:
                    assert answer.error["message"]
                    continue
                text = answer.joined[0] if stream else answer.message["content"]
                assert text or "error" in answer.chunks[-1]
                blocks = [block for block in read(text, "cline-legacy") if isinstance(block, XmlCallBlock)]
                assert len(blocks) <= 1 and not any(block.partial for block in blocks)
                complete = [block for block in blocks if {"path", "content"} <= block.params.keys()]
                assert all(block.params == call["arguments"] for block in complete)
                assert complete == blocks or dialect == "roo_xml"  # its own XML without a parameter: it complains

    run(check)


def test_the_header_of_the_client_counts() -> None:
    async def check() -> None:
        async with gateway(
            scripted({"when": "Go", "calls": [WRITE], "times": 9}, dialect="hermes"), mode="text"
        ) as gate:
            for agent, counted in (("RooCode/3.29.0", True), ("RooCode/3.36.16", False)):
                text = text_of(await gate.ask(ask(PROMPTS["roo-3.29"]), User_Agent=agent), False)
                assert ("<line_count>" in text) == counted

    run(check)


def test_the_setting() -> None:
    written = '<tool_call>\n{"name": "list_files", "arguments": {"path": "."}}\n</tool_call>'

    async def answers(prompt: str, **settings: Any) -> str:
        async with gateway(scripted({"when": "Go", "text": written, "times": 9}), mode="text", **settings) as gate:
            return text_of(await gate.ask(ask(prompt)), False)

    async def check() -> None:
        rendered = "<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>"
        assert await answers(PROMPTS["roo-3.29"], xml_clients="off") == written
        assert await answers("A prompt of my own.") == written
        assert await answers("A prompt of my own.", xml_clients="roo-3.36") == rendered
        assert await answers(write_compact()) == rendered

    run(check)


def test_off_means_off() -> None:
    async def check() -> None:
        text = '```tool_code\n{"tool": "list_files", "path": "."}\n```'
        async with gateway(scripted({"when": "Go", "text": text, "times": 9}), mode="off") as gate:
            assert text_of(await gate.ask(ask(PROMPTS["roo-3.29"])), False) == text

    run(check)


@pytest.mark.parametrize("stream", [False, True])
def test_native_tools_that_do_not_work_are_left_for_text(stream: bool) -> None:
    """In mode auto a native model that refuses tools is asked again, in the client's own words."""

    async def check() -> None:
        text = '```tool_code\n{"tool": "list_files", "path": "."}\n```'
        app = make_app(scripted({"when": "Go", "text": text, "times": 2}, faults=("no_tools_400",)))
        app.router.add_get("/props", send_capabilities)
        async with gateway(app=app, mode="auto") as gate:
            answer = await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream))
            assert "<list_files>" in text_of(answer, stream)
            first, second = (seen.body for seen in gate.record.requests)
            assert "tools" in first
            assert "tools" not in second
            assert second["messages"][0]["content"] == PROMPTS["roo-3.29"]

    run(check)


async def send_capabilities(request: web.Request) -> web.Response:
    capable = {"supports_tools": True, "supports_tool_calls": True, "supports_parallel_tool_calls": True}
    return web.json_response({"chat_template": "x", "chat_template_caps": capable})


@pytest.mark.parametrize("path, body", [("/v1/messages", "anthropic"), ("/api/chat", "ollama")])
def test_other_wires(path: str, body: str) -> None:
    asked: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "Go"}], "stream": False}
    if body == "anthropic":
        asked |= {"system": PROMPTS["cline-legacy"], "max_tokens": 100}
    else:
        asked["messages"].insert(0, {"role": "system", "content": PROMPTS["cline-legacy"]})

    async def check() -> None:
        sim = scripted({"when": "Go", "calls": [{"name": "list_files", "arguments": {"path": "."}}]}, dialect="hermes")
        async with gateway(sim, mode="text") as gate:
            answer = await gate.ask(asked, path)
            received = answer.json["content"][0]["text"] if body == "anthropic" else answer.json["message"]["content"]
            assert received == "<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>"

    run(check)


# -- Roo and its successors with native tools --------------------------------------------------------------------------

DIFF = "<<<<<<< SEARCH\n:start_line=3\n-------import os\n=======\nimport re\n>>>>>>> REPLACE"
GUARDED: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "entities": (
        "write_to_file",
        {"path": "a.tsx", "content": "it&apos;s < &lt; &nbsp;"},
        {"path": "a.tsx", "content": "it&amp;apos;s < &amp;lt; &nbsp;"},
    ),
    "diffs": (
        "apply_diff",
        {"path": "a.py", "diff": DIFF},
        {"path": "a.py", "diff": DIFF.replace("=3", ":3").replace("-------import", "-------\nimport")},
    ),
}


def offer(name: str, arguments: dict[str, str]) -> dict[str, Any]:
    properties = {key: {"type": "string"} for key in arguments}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


@in_one_test("stream", [False, True])
@in_one_test("mode", ["native", "text"])
@in_one_test("guard", GUARDED)
def test_arguments_are_guarded_where_that_is_wished(guard: str, mode: str, stream: bool) -> None:
    name, written, guarded = GUARDED[guard]
    asked = {
        "model": "sim",
        "messages": [{"role": "user", "content": "Go"}],
        "tools": [offer(name, written)],
        "stream": stream,
    }

    async def call(**settings: Any) -> Any:
        sim = scripted({"when": "Go", "calls": [{"name": name, "arguments": written}]}, chunk=3)
        async with gateway(sim, mode=mode, **settings) as gate:
            answer = await gate.ask(asked)
            assert answer.status == 200, answer.body
            if stream:
                ((called, arguments),) = answer.joined[1]
                return called, json.loads(arguments)
            (made,) = answer.message["tool_calls"]
            return made["function"]["name"], json.loads(made["function"]["arguments"])

    async def check() -> None:
        assert await call(client_guard=guard) == (name, guarded)
        assert await call() == (name, written)

    run(check)


@in_one_test("stream", [False, True])
@in_one_test("profile", PROMPTS)
@in_one_test("mode", ["text", "native"])
def test_a_call_that_the_user_showed_is_no_call_in_a_sentence(mode: str, profile: str, stream: bool) -> None:
    """Results of these clients travel in user messages. Alone, the same call is made."""
    call = "<read_file>\n<path>src/main.py</path>\n</read_file>"
    shown = [("user", "<task>\nGo.\n</task>"), ("assistant", "Hm."), ("user", f"[read_file] Result:\n12 | {call}")]

    async def check() -> None:
        for answer, made in ((f"The file says:\n\n{call}", 0), (f"{call}\n\nThat is in the file.", 0), (call, 1)):
            sim = scripted({"text": answer}, chunk=3)
            async with gateway(sim, mode=mode) as gate:
                text = text_of(await gate.ask(ask(PROMPTS[profile], *shown, stream=stream)), stream)
                assert len(calls_of(text, profile)) == made, text

    run(check)


@in_one_test("stream", [False, True])
@in_one_test(
    "call", ["<execute_command>\n<command>ls -l", '<tool_call>\n{"name":"execute_command","arguments":{"command":"ls']
)
def test_a_cut_call_keeps_its_place_behind_the_text(call: str, stream: bool) -> None:
    async def check() -> None:
        written = f"Now.\n\n{call}"
        sim = scripted({"when": "Go", "text": written, "finish": "length"}, chunk=3)
        async with gateway(sim, mode="text", recovery_retries=1) as gate:
            answer = await gate.ask(ask(write_roo(LATER), stream=stream))
            text = answer.joined[0] if stream else str(answer.message["content"])
            assert text.replace("\u200b", "") == written
            assert calls_of(text, "roo-3.29") == []

    run(check)


@in_one_test("stream", [False, True])
@in_one_test("retries", [0, 1])
@in_one_test("text", ["", "Now."])
def test_a_cut_native_call_is_mentioned_once(text: str, retries: int, stream: bool) -> None:
    async def check() -> None:
        note = "(The call of write_to_file was cut off before it was complete, and was not made.)"
        sim = scripted({"when": "Go", "text": text, "calls": [WRITE], "fault": "length"}, chunk=3)
        async with gateway(sim, mode="native", recovery_retries=retries) as gate:
            answer = await gate.ask(ask(PROMPTS["roo-3.29"], stream=stream))
            got = answer.joined[0] if stream else str(answer.message["content"])
            assert got == (f"{text}\n\n{note}" if text else note)

    run(check)
