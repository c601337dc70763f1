"""The streams of the simulated web chat, read by an independent client: phases, interception, faults, errors."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.chat_client import ChatClient, ChatReply, make_create
from support.rows import in_one_test

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.prompting.conversation import render_as_text, write_result
from toolglot.sim import Answer, ScriptedAnswer, SimCall
from toolglot.sim.qwen_web import FAULTS, ChatSimOptions, ChatSimulation, SeenMessage, make_app, running
from toolglot.sim.qwen_web.errors import ERRORS, PAGES
from toolglot.sim.qwen_web.faults import DEGENERATE, STREAM_FAULTS
from toolglot.sim.qwen_web.model import read_context

TEXT = "Größe: 🙂 — naïve 漢字, the end."
ARGUMENTS = {"path": "a.txt", "content": 'Größe "eins" 🙂\nline two'}
CALLS = (SimCall("write", json.dumps(ARGUMENTS, ensure_ascii=False)), SimCall("read", '{"path": "b.txt"}'))
IMPATIENCE = 0.6


def ask(
    options: Mapping[str, Any] | None = None,
    text: str = "hello",
    *,
    patience: float = 20,
    simulation: ChatSimulation | None = None,
    **changes: Any,
) -> ChatReply:
    """One completion in a new chat."""

    async def start() -> ChatReply:
        subject = simulation or ChatSimulation(ChatSimOptions(**({"brain": lambda _: TEXT} | dict(options or {}))))
        async with running(make_app(subject)) as address, ChatClient(address, patience=patience) as client:
            return await client.ask(await client.create(), text, **changes)

    return asyncio.run(start())


# Form


def test_a_stream_has_the_form_of_a_recorded_one() -> None:
    reply = ask({"chunk": 10})
    first, *rest = reply.data.decode().split("\n\n")
    assert first.endswith("} ") and first.startswith('data: {"response.created":{"chat_id":')
    assert rest.pop() == "" and all(line.startswith("data: {") and line.endswith("}") for line in rest)
    created = reply.created[0]
    assert created.keys() == {"chat_id", "parent_id", "response_id", "response_index"}
    assert created["response_index"] == "0" and len({*created.values()}) == 4
    assert {event["response_id"] for event in reply.own} == {created["response_id"]}
    assert [delta["content"] for delta in reply.deltas] == [TEXT[:10], TEXT[10:20], TEXT[20:], ""]
    assert [delta["status"] for delta in reply.deltas] == ["typing", "typing", "typing", "finished"]
    assert {delta["phase"] for delta in reply.deltas} == {"answer"}
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-toolglot-sim"] == "1"
    assert b"[DONE]" not in reply.data


def test_usage_is_cumulative_and_absent_in_the_last_event() -> None:
    reply = ask({"chunk": 4}, "x" * 400)
    assert [usage["output_tokens"] for usage in reply.usage] == list(range(1, len(reply.usage) + 1))
    assert all(usage["input_tokens"] == 100 for usage in reply.usage)
    assert all(usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] for usage in reply.usage)
    assert "usage" not in reply.own[-1]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_network_writes_split_lines_and_characters(size: int) -> None:
    reply = ask({"chunk_bytes": size})
    assert reply.text == TEXT and reply.is_finished
    if size == 1:
        assert reply.reads > 50


def test_text_is_cumulative_unless_increments_are_asked_for() -> None:
    for reply in (ask({"chunk": 10}, incremental_output=False), ask({"chunk": 10, "faults": ("cumulative",)})):
        assert [delta["content"] for delta in reply.deltas] == [TEXT[:10], TEXT[:20], TEXT, TEXT]


def test_a_whole_answer_needs_a_knob() -> None:
    assert "stream" in ask(stream=False).error["details"]
    body = ask({"faults": ("whole_answers",)}, stream=False).json
    assert body["success"] is True and body["data"]["choices"][0]["message"]["content"] == TEXT
    assert ask({"faults": ("whole_answers",)}).text == TEXT


def test_latency_and_pace_send_events_one_by_one() -> None:
    reply = ask({"latency": 30, "pace": 5, "chunk": 4})
    assert reply.text == TEXT and reply.reads > 4


# Thinking

THOUGHT = "First I look.\nThen I answer."


def test_a_model_thinks_only_if_it_is_asked_to() -> None:
    answer = {"brain": lambda _: Answer(TEXT, reasoning=THOUGHT), "chunk": 5}
    assert {delta["phase"] for delta in ask(answer).deltas} == {"answer"}
    reply = ask(answer, config={"thinking_enabled": True})
    thinking = reply.phase("think")
    assert "".join(delta["content"] for delta in thinking) == THOUGHT and reply.text == TEXT
    assert thinking[-1]["status"] == "finished" and reply.deltas.index(thinking[-1]) < len(reply.deltas) - 2
    assert reply.usage[-1]["output_tokens_details"]["reasoning_tokens"] == 7


@pytest.mark.parametrize("by_fault", [False, True])
def test_a_summary_of_thinking_grows(by_fault: bool) -> None:
    brain = lambda _: Answer(TEXT, reasoning=THOUGHT)  # noqa: E731
    config = {"thinking_enabled": True, "thinking_format": "summary"}
    reply = ask({"brain": brain, "faults": ("thinking_summary",)}) if by_fault else ask({"brain": brain}, config=config)
    *growing, last = reply.phase("thinking_summary")
    thoughts = [delta["extra"]["summary_thought"]["content"] for delta in growing]
    titles = [delta["extra"]["summary_title"]["content"] for delta in growing]
    assert thoughts == [[], ["First I look."], ["First I look."], ["First I look.", "Then I answer."]]
    assert [len(shown) for shown in titles] == [1, 1, 2, 2]
    assert all(delta["content"] == "" for delta in growing) and last["status"] == "finished"
    assert reply.text == TEXT


def test_thinking_can_be_forced() -> None:
    reply = ask({"faults": ("thinking",)})
    assert "".join(delta["content"] for delta in reply.phase("think")) and reply.text == TEXT


# Interception

NATIVE_TEXTS = {
    "hermes": "".join(
        f'\n<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>' for call in CALLS
    ),
    "function form": "\n<tool_call>\n<function=write>\n<parameter=path>\na.txt\n</parameter>\n"
    f"<parameter=content>\n{ARGUMENTS['content']}\n</parameter>\n</function>\n</tool_call>"
    "\n<tool_call>\n<function=read>\n<parameter=path>\nb.txt\n</parameter>\n</function>\n</tool_call>",
}


@pytest.mark.parametrize("form", NATIVE_TEXTS)
def test_native_calls_are_intercepted(form: str) -> None:
    simulation = ChatSimulation(ChatSimOptions(brain=lambda _: f"I look.{NATIVE_TEXTS[form]}\nDone!", chunk=9))
    reply = ask(simulation=simulation)
    assert "tool_call" not in reply.text and "Done!" not in reply.text
    assert reply.text.startswith("I look.") and "I'm sorry" in reply.text and reply.is_finished
    snapshots = [delta for delta in reply.deltas if "function_call" in delta]
    for name, wanted in (("write", ARGUMENTS), ("read", {"path": "b.txt"})):
        growing = [one["function_call"]["arguments"] for one in snapshots if one["function_call"]["name"] == name]
        assert growing[0] == "" and growing[-1] == growing[-2] and json.loads(growing[-1]) == wanted
        assert all(later.startswith(earlier) for earlier, later in pairwise(growing))
    for delta in snapshots:
        assert delta["content"] == "" and delta["phase"] == "answer" and "function_id" not in delta
        assert delta["extra"]["display_position"] == "answer"
    results = [delta for delta in reply.deltas if delta["role"] == "function"]
    assert [(delta["name"], delta["content"]) for delta in results] == [
        ("write", "Tool write does not exists."),
        ("read", "Tool read does not exists."),
    ]
    names = [(one.get("function_call") or one).get("name") for one in reply.deltas]
    assert [name for name, before in zip(names, [None, *names], strict=False) if name and name != before] == [
        *("write", "read", "write", "read"),
    ], "calls one after the other, then the results"
    [stored] = [one for one in simulation.chats[simulation.seen[0].chat_id].messages.values() if one.role != "user"]
    assert "<tool_call>" in stored.content and "does not exists" in stored.content and "I'm sorry" in stored.content


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call">\n{"name": "read", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "read", "arguments": {}\n</tool_call>',
        '<tool_call>\n{"name": "read", "arguments": {}}',
        "<tool_call>\n[1]\n</tool_call>",
        "<read>\n<path>a.txt</path>\n</read>",
        '[TOOL CALL]{"name": "read"}[END TOOL CALL]',
    ],
)
def test_other_markup_is_left_alone(text: str) -> None:
    reply = ask({"brain": lambda _: text})
    assert reply.text == text and not any("function_call" in delta for delta in reply.deltas)


def test_interception_can_be_switched_off() -> None:
    text = NATIVE_TEXTS["hermes"]
    assert ask({"brain": lambda _: text, "faults": ("no_interception",)}).text == text


def test_calls_of_a_brain_are_written_in_the_dialect_or_natively() -> None:
    answer = Answer("I look.", CALLS[1:])
    native = ask({"brain": lambda _: answer})
    assert [delta["name"] for delta in native.deltas if delta["role"] == "function"] == ["read"]
    written = ask({"brain": lambda _: answer, "dialect": "roo_xml"})
    tool = {"type": "function", "function": {"name": "read", "parameters": {"properties": {"path": {}}}}}
    assert [call.name for call in toolglot.read(written.text, [tool]).calls] == ["read"]


# The rules and scripts of the simulated model

READ = Tool(
    "read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)


@pytest.mark.parametrize("dialect", ["roo_xml", "glm45", "fenced_json", "anthropic"])
def test_the_dialect_and_the_tools_are_learned_from_the_prompt(dialect: str) -> None:
    conversation = Conversation(
        "sim",
        (Message("system", (Text("Be brief."),)), Message("user", (Text('call read_file with {"path": "a.txt"}'),))),
        tools=(READ,),
    )
    prompted = render_as_text(conversation, dialect).conversation
    texts = [part.text for message in prompted.messages for part in message.parts if isinstance(part, Text)]

    async def talk() -> tuple[ChatReply, ChatReply]:
        async with running(make_app(ChatSimOptions())) as address, ChatClient(address) as client:
            chat = await client.create()
            first = await client.ask(chat, "\n\n".join(texts))
            return first, await client.ask(chat, 'call read_file with {"path": "b.txt"}', first.response_id)

    definition = {"type": "function", "function": {"name": READ.name, "parameters": READ.parameters}}
    for reply, path in zip(asyncio.run(talk()), ("a.txt", "b.txt"), strict=True):
        [call] = toolglot.read(reply.text, [definition], dialect=dialect).calls
        assert (call.name, json.loads(call.arguments)) == ("read_file", {"path": path})


@pytest.mark.parametrize("dialect", ["roo_xml", "glm45", "fenced_json"])
def test_the_result_of_a_tool_is_quoted(dialect: str) -> None:
    async def talk() -> ChatReply:
        options = ChatSimOptions(dialect=dialect)
        async with running(make_app(options)) as address, ChatClient(address) as client:
            chat = await client.create()
            listing = json.dumps({"type": "function", "function": {"name": READ.name, "parameters": READ.parameters}})
            first = await client.ask(chat, f"Tools:\n\n{listing}\n\n## User\n\nread a.txt\n\nand be quick")
            assert "a.txt" in first.text and "read_file" in first.text
            return await client.ask(chat, write_result(dialect, "read_file", "It is blue.\nVery."), first.response_id)

    assert asyncio.run(talk()).text == "Done. The tool said: `It is blue.`"


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("read a.txt", "read a.txt"),
        ("{tools}\n\nread a.txt", "read a.txt"),
        ("{tools}\n\n### User\nread a.txt\n\nBe quick.", "read a.txt\n\nBe quick."),
        ("{tools}\n\n[User]\nhello\n\n[Assistant]\nhi\n\n[User]\nread a.txt", "read a.txt"),
        ("{tools}\n\nUser: hello\nAssistant: hi\nUser: read a.txt", "read a.txt"),
        ("<user>\nuser: root\n</user>\n{tools}\n\nread a.txt", "read a.txt"),
        ("{tools}\n\nUser", "User"),
    ],
)
def test_the_question_is_found_in_a_message(message: str, question: str) -> None:
    tools = json.dumps({"type": "function", "function": {"name": READ.name, "parameters": READ.parameters}})
    context = read_context([SeenMessage("user", message.replace("{tools}", f"# Tools\n\n{tools}"))], "sim")
    assert context.question == question and bool(context.tools) == ("{tools}" in message)


def test_a_script_answers_and_sets_faults() -> None:
    script = (
        ScriptedAnswer(None, times=1, options={"faults": ("in_progress",)}),
        ScriptedAnswer(Answer("It rains."), when="weather", options={"faults": ("done",)}),
    )

    async def talk() -> list[ChatReply]:
        async with running(make_app(ChatSimOptions(script=script))) as address, ChatClient(address) as client:
            chat = await client.create()
            return [await client.ask(chat, text) for text in ("weather?", "weather?", "else?")]

    first, second, third = asyncio.run(talk())
    assert first.error["details"] == "The chat is in progress!"
    assert second.text == "It rains." and b"[DONE]" in second.data
    assert third.text.startswith("This is a simulated model")


def test_damage_applies_to_written_calls() -> None:
    options = {"brain": lambda _: Answer("", CALLS[1:]), "dialect": "roo_xml"}
    whole = ask(options).text
    assert whole.endswith("</read>") and not ask(options | {"faults": ("lost_closer",)}).text.endswith("</read>")


# Faults of the stream


def with_fault(*faults: str, **options: Any) -> ChatReply:
    return ask({"faults": faults, "chunk": 10, **options})


def test_done_ends_the_stream() -> None:
    assert with_fault("done").data.endswith(b"data: [DONE]\n\n")


def test_there_may_be_no_blank_lines() -> None:
    reply = with_fault("no_blank_lines", "keep_alive", "done")
    assert b"\n\n" not in reply.data and reply.text == TEXT and reply.data.endswith(b"data: [DONE]\n")


def test_the_phase_may_be_missing_in_an_answer() -> None:
    reply = with_fault("no_phase", "thinking")
    assert reply.phase("think") and not any(delta.get("phase") == "answer" for delta in reply.deltas)
    assert reply.text == TEXT


def test_the_end_may_be_missing_or_a_finish_reason() -> None:
    reply = with_fault("no_finish")
    assert reply.text == TEXT and not reply.is_finished and not reply.broken
    reply = with_fault("finish_reason")
    assert reply.own[-1]["choices"][0]["finish_reason"] == "stop"
    assert not any(delta.get("status") == "finished" for delta in reply.deltas)


def test_usage_and_ids_may_be_missing() -> None:
    assert with_fault("no_usage").usage == []
    reply = with_fault("no_response_id")
    assert reply.text == TEXT and not any("response_id" in event for event in reply.own)


def test_events_without_content_come_between_the_others() -> None:
    assert sum("response.info" in event for event in with_fault("keep_alive").events) == 5
    for fault, mark in (("ping", b"event: ping\n"), ("comments", b": still here\n")):
        reply = with_fault(fault)
        assert reply.data.count(mark) == 5 and reply.text == TEXT


def test_lines_may_end_with_cr_lf() -> None:
    reply = with_fault("crlf")
    assert reply.text == TEXT and b"\r\n\r\n" in reply.data and not re.search(rb"[^\r]\n", reply.data)


def test_one_event_may_be_broken() -> None:
    with pytest.raises(json.JSONDecodeError):
        _ = with_fault("bad_frame").events


def test_the_content_type_may_be_missing() -> None:
    reply = with_fault("no_content_type")
    assert "event-stream" not in reply.headers["content-type"] and reply.text == TEXT


def test_the_platform_uses_its_own_tools() -> None:
    reply = with_fault("platform_tool", "web_search")
    calls = [delta for delta in reply.deltas if "function_call" in delta]
    assert calls and all(re.fullmatch(r"round_0_call_[0-9a-f]+", delta["function_id"]) for delta in calls)
    [result] = [delta for delta in reply.deltas if delta["role"] == "function"]
    assert result["extra"]["tool_result"] and result["phase"] == "bash" == calls[0]["phase"]
    search = reply.phase("web_search")
    assert search[-1]["status"] == "finished" and reply.text == TEXT


def test_two_answers_come_in_one_stream() -> None:
    reply = with_fault("dual_response")
    assert [created["response_index"] for created in reply.created] == ["0", "1"]
    assert reply.text == TEXT and reply.is_finished
    other = [event for event in reply.events if event.get("response_id") == reply.created[1]["response_id"]]
    assert "".join(event["choices"][0]["delta"]["content"] for event in other) == f"Another answer: {TEXT}"
    ids = [event["response_id"] for event in reply.events if "choices" in event]
    assert ids[0] != ids[1] and ids[0] == ids[2], "their events are mixed"


@pytest.mark.parametrize(("fault", "text"), [("empty_answer", ""), ("dots", "..."), ("ok", "OK"), ("yes", "Yes")])
def test_degenerate_answers(fault: str, text: str) -> None:
    reply = with_fault(fault)
    assert reply.text == text and reply.is_finished


def test_a_stream_may_drip() -> None:
    assert with_fault("slow_drip").reads > 20


@pytest.mark.parametrize("fault", ["reset", "cut_mid", "hang_before_headers", "hang_after_headers", "hang_mid"])
def test_a_connection_may_break_or_hang(fault: str) -> None:
    simulation = ChatSimulation(ChatSimOptions(brain=lambda _: TEXT, chunk=5, faults=(fault,)))
    reply = ask(simulation=simulation, patience=IMPATIENCE)
    assert reply.broken and not reply.data.count(b"finished")
    assert bool(reply.data) == fault.endswith("mid")
    [chat] = simulation.chats.values()
    assert chat.is_busy(simulation.options.clock()), "a broken stream locks its chat"


# Errors, as the protocol lists them

LISTED = {
    "rate_limited": ("RateLimited", "upper limit"),
    "parallel_limited": ("ParallelLimited", ""),
    "too_many_requests": ("Too_Many_Requests", ""),
    "quota_limited": ("quotaLimited", ""),
    "exceed_limit": ("ExceedLimit", ""),
    "quota_exhausted": ("quota_exhausted", ""),
    "allocated_quota": ("", "Allocated quota exceeded"),
    "too_many_messages": ("Bad_Request", "Invalid input too many messages."),
    "parent_not_exist": ("", " is not exist."),
    "parent_not_found": ("PARENT_NOT_FOUND", ""),
    "not_found": ("Not_Found", ""),
    "chat_not_found": ("CHAT_NOT_FOUND", "This chat has been deleted"),
    "in_progress": ("", "The chat is in progress!"),
    "unauthorized": ("Unauthorized", ""),
    "unauthorized_lowercase": ("unauthorized", ""),
    "token_expired": ("", "Token has expired"),
    "context_length_exceeded": ("ContextLengthExceeded", ""),
    "internal_server_error": ("Internal_Server_Error", ""),
    "internal_error": ("Bad_Request", "internal error"),
}
STATUS = {"in_progress": 400, "unauthorized": 401, "unauthorized_lowercase": 401, "token_expired": 401}


def fits(error: Mapping[str, Any], name: str) -> bool:
    code, details = LISTED[name]
    return (not code or error["code"] == code) and details in error["details"]


@in_one_test("name", LISTED)
def test_an_error_comes_instead_of_an_answer_first_or_in_the_middle(name: str) -> None:
    reply = with_fault(name)
    in_stream = name == "context_length_exceeded"
    assert reply.status == 200 and fits(reply.error, name)
    assert reply.data.startswith(b"data:") is in_stream
    first = with_fault(f"{name}_first")
    assert first.created and not first.deltas and fits(first.error, name)
    assert first.events[-1]["response_id"] == first.response_id
    middle = with_fault(f"{name}_mid")
    assert fits(middle.error, name) and middle.text and TEXT.startswith(middle.text) and not middle.is_finished
    if name in STATUS:
        reply = with_fault(f"{name}_status")
        assert reply.status == STATUS[name] and fits(reply.error, name)
        assert with_fault(name, "status_errors").status == STATUS[name]
    else:
        assert f"{name}_status" not in FAULTS


def test_the_hours_of_a_rate_limit_are_given() -> None:
    error = with_fault("rate_limited").error
    assert error["num"] == 6 and "{{num}} hours" in error["template"]


def test_a_refused_request_leaves_no_trace_and_no_lock() -> None:
    async def talk(simulation: ChatSimulation) -> None:
        async with running(make_app(simulation)) as address, ChatClient(address) as client:
            chat = await client.create()
            for fault in ("rate_limited", "internal_error"):
                simulation.inject(fault)
                assert (await client.ask(chat)).error
            assert not simulation.chats[chat].messages and not simulation.seen
            simulation.inject("too_many_requests_mid")
            assert (await client.ask(chat)).error
            assert (await client.ask(chat)).text == TEXT

    asyncio.run(talk(ChatSimulation(ChatSimOptions(brain=lambda _: TEXT))))


@pytest.mark.parametrize(
    ("fault", "content_type", "mark"),
    [
        ("waf_json", "application/json", b"RGV587_ERROR"),
        ("waf_html", "text/html", b"aliyun_waf"),
        ("empty_body", "application/json", b""),
        ("bad_gateway", "text/html", b"Bad Gateway"),
    ],
)
def test_pages_come_instead_of_an_answer(fault: str, content_type: str, mark: bytes) -> None:
    reply = with_fault(fault)
    assert reply.status == 200 and reply.headers["content-type"].startswith(content_type)
    assert mark in reply.data and bool(reply.data) == bool(mark)
    if fault == "waf_json":
        assert reply.json["ret"][0] == "FAIL_SYS_USER_VALIDATE" and "action=captcha" in reply.json["data"]["url"]


def test_the_other_calls_fail_by_name() -> None:
    async def talk(simulation: ChatSimulation) -> None:
        async with running(make_app(simulation)) as address, ChatClient(address) as client:
            chat = await client.create()
            response_id = (await client.ask(chat)).response_id
            calls: dict[str, tuple[str, str, Any]] = {
                "create": ("POST", "/api/v2/chats/new", make_create()),
                "models": ("GET", "/api/v2/models/", None),
                "stop": ("POST", "/api/v2/chat/completions/stop", {"chat_id": chat, "response_id": response_id}),
                "delete": ("DELETE", f"/api/v2/chats/{chat}", None),
            }
            for route, (method, path, body) in calls.items():
                for name in LISTED:
                    simulation.inject(f"{route}_{name}")
                    reply = await client.request(method, path, body)
                    assert reply.status == 200 and fits(reply.error, name), (route, name)
                for name, status in STATUS.items():
                    simulation.inject(f"{route}_{name}_status")
                    assert (await client.request(method, path, body)).status == status
                simulation.inject(f"{route}_waf_html")
                assert b"aliyun_waf" in (await client.request(method, path, body)).data
                assert (await client.request(method, path, body)).json["success"] is True

    asyncio.run(talk(ChatSimulation(ChatSimOptions(brain=lambda _: TEXT))))


@in_one_test("fault", sorted(name for name in FAULTS if not re.match("create_|models_|stop_|delete_|hang", name)))
def test_every_fault_leaves_a_server_that_answers(fault: str) -> None:
    async def talk(simulation: ChatSimulation) -> None:
        async with running(make_app(simulation)) as address, ChatClient(address) as client:
            simulation.inject(fault)
            await client.ask(await client.create())
            assert (await client.ask(await client.create())).text == TEXT
            assert simulation.violations == []

    asyncio.run(talk(ChatSimulation(ChatSimOptions(brain=lambda _: TEXT, chunk_bytes=400))))


# The command


def test_the_command_serves_the_web_chat() -> None:
    command = [sys.executable, "-m", "toolglot", "sim", "--wire", "qwen_web", "--port", "0", "--echo", "--token", "t-1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(9)]
        address = re.search(r"http://[\d.]+:\d+", printed[0])
        try:
            assert address and f'    base_url = "{address[0]}"\n' in printed and '    wire = "qwen_web"\n' in printed
            assert "    accept_terms = true\n" in printed and any("QWEN_TOKEN=t-1" in line for line in printed)

            async def talk() -> tuple[ChatReply, ChatReply]:
                async with ChatClient(address[0], {"authorization": "Bearer t-1"}) as client:
                    reply = await client.ask(await client.create(), "hello there")
                    return reply, await client.request("GET", "/sim/seen")

            reply, seen = asyncio.run(talk())
            assert reply.text == "user: hello there"
            assert seen.json["seen"][0]["messages"] == [{"role": "user", "text": "hello there"}]
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--token", "x"], "--token can be used only with --wire qwen_web"),
        (["--echo", "--waf-after", "3"], "--waf-after, --echo can be used only with"),
        (["--wire", "qwen_web", "--fault", "no_done"], "no fault 'no_done'"),
        (["--wire", "qwen_web", "--lock", "-1"], "lock must be 0 or more"),
        (["--fault", "rate_limited"], "no fault 'rate_limited'"),
    ],
)
def test_wrong_use_of_the_command_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolglot.cli.main import main

    assert main(["sim", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_command_lists_the_faults_of_the_wire(capsys: pytest.CaptureFixture[str]) -> None:
    from toolglot.cli.main import main

    assert main(["sim", "--wire", "qwen_web", "--faults"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == set(FAULTS)


def test_the_documentation_names_every_fault_of_the_wire() -> None:
    text = (Path(__file__).parents[2] / "docs/SIM.md").read_text("utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    assert sorted({*ERRORS, *PAGES, *DEGENERATE, *STREAM_FAULTS} - named) == []
