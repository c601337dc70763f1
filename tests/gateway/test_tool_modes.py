"""Native if the upstream supports tools, text if not, and failures that are learned."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.error_texts import what_failed
from support.gateway import ASK, Answer, Gate, gateway, run

from toolglot.config import Upstream, load
from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.gateway.capabilities.learned import LearnedFailures, find_folder
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.gateway.routing import Capabilities, CapabilitiesUnknown, Route, ToolMode, choose_route
from toolglot.server.upstream import discovery
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.sim import REQUEST_LOG, SimOptions, make_app, running
from toolglot.sim.script import parse_script

STREAMED = ASK | {"stream": True}
CALL = ("read", '{"filePath":"package.json"}')
PROPS = {
    "chat_template": "x",
    "chat_template_caps": dict.fromkeys(
        ("supports_tools", "supports_tool_calls", "supports_parallel_tool_calls"), True
    ),
}


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def waiting(*args: Any, **kwargs: Any) -> None:
        run(lambda: test(*args, **kwargs))

    return waiting


def with_properties(
    app: web.Application, properties: Any = PROPS, path: str = "/props", asked: list[str] | None = None
) -> web.Application:
    """An app that also reports its properties."""

    async def send_properties(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append(request.path)
        return web.json_response(properties)

    app.router.add_get(path, send_properties)
    return app


def able(options: SimOptions | None = None, properties: Any = PROPS, asked: list[str] | None = None) -> web.Application:
    """A simulated model behind a server that reports its properties."""
    return with_properties(make_app(options), properties, asked=asked)


def call_of(answer: Answer) -> tuple[str, str]:
    """The one call of an answer, streamed or whole."""
    if answer.headers["Content-Type"].startswith("text/event-stream"):
        _, calls, finish = answer.joined
        assert finish == "tool_calls", answer.body
        (call,) = calls
    else:
        assert answer.status == 200 and answer.finish == "tool_calls", answer.body
        (made,) = answer.message["tool_calls"]
        call = made["function"]["name"], made["function"]["arguments"]
    return call[0], json.dumps(json.loads(call[1]), separators=(",", ":"))


def tiers(gate: Gate) -> list[str]:
    """How the upstream was asked."""
    return ["native" if "tools" in body else "text" for body in gate.record.bodies]


# what decides


@awaited
async def test_a_server_that_has_tools_is_asked_natively() -> None:
    asked: list[str] = []
    async with gateway(app=able(asked=asked)) as gate:
        for body in (ASK, STREAMED):
            answer = await gate.ask(body)
            assert call_of(answer) == CALL and answer.headers["x-toolglot-mode"] == "native"
        assert tiers(gate) == ["native"] * 2 and asked == ["/props"]


@pytest.mark.parametrize("properties", [None, {"chat_template": "no tools"}])
@awaited
async def test_a_server_without_tools_or_properties_gets_a_prompt(properties: Any) -> None:
    async with gateway(app=able(properties=properties)) as gate:
        answer = await gate.ask()
        assert call_of(answer) == CALL and answer.headers["x-toolglot-mode"] == "text"
        assert tiers(gate) == ["text"]


@awaited
async def test_no_server_is_asked_if_nothing_depends_on_it() -> None:
    asked: list[str] = []
    async with gateway(app=able(asked=asked)) as gate:
        await gate.ask({key: value for key, value in ASK.items() if key != "tools"})
        await gate.ask(x_toolglot_mode="text")
        assert tiers(gate) == ["text", "text"] and asked == []
    async with gateway(app=able(asked=asked), mode="native") as gate:
        await gate.ask()
        assert tiers(gate) == ["native"] and asked == []


@awaited
async def test_requests_share_one_look_and_wait_a_moment_at_most() -> None:
    looks = 0
    app = make_app()

    async def stall(request: web.Request) -> web.Response:
        nonlocal looks
        looks += 1
        await asyncio.sleep(30)
        return web.Response()

    app.router.add_get("/props", stall)
    async with gateway(app=app) as gate:
        began = asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(gate.ask() for _ in range(5)))
        assert asyncio.get_running_loop().time() - began < 5
        assert {answer.headers["x-toolglot-mode"] for answer in answers} == {"text"}
        assert looks == 1


def make_late_app(pauses: list[float]) -> web.Application:
    """A server that reports its properties late, each time after the next pause."""
    app = make_app()

    async def report(request: web.Request) -> web.Response:
        await asyncio.sleep(pauses.pop(0))
        return web.json_response(PROPS)

    app.router.add_get("/props", report)
    return app


@awaited
async def test_a_busy_server_on_this_machine_is_waited_for() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "TIMEOUT", 0.01)
        patch.setattr(discovery, "LOCAL_TIMEOUT", 30.0)
        async with gateway(app=make_late_app([0.2])) as gate:
            assert (await gate.ask()).headers["x-toolglot-mode"] == "native"


@awaited
async def test_a_server_that_answers_late_is_asked_again_soon() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "LOCAL_TIMEOUT", 0.5)
        patch.setattr(discovery, "NO_RESPONSE_TTL", 2.0)
        async with gateway(app=make_late_app([60.0, 0.0])) as gate:
            assert (await gate.ask()).headers["x-toolglot-mode"] == "text"
            patch.setattr(discovery, "LOCAL_TIMEOUT", 30.0)
            await asyncio.sleep(2.1)
            other = ASK | {"messages": [{"role": "user", "content": "Read package.json, please."}]}
            assert (await gate.ask(other)).headers["x-toolglot-mode"] == "native"


@awaited
async def test_quirk_fields_are_sent_where_tools_are_text() -> None:
    received = {"tp_size": 1, "version": "0.5", "tool_call_parser": None}
    async with gateway(app=with_properties(make_app(), received, "/get_server_info")) as gate:
        await gate.ask()
        assert tiers(gate) == ["text"] and gate.record.last.body["skip_special_tokens"] is False


# falling back


@pytest.mark.parametrize("fault", ["no_tools_400", "no_parser_400", "parse_500", "parse_error"])
@pytest.mark.parametrize("body", [ASK, STREAMED], ids=["whole", "streamed"])
@awaited
async def test_trouble_with_native_tools_is_met_with_text_and_remembered(fault: str, body: Any) -> None:
    async with gateway(app=able(SimOptions(faults=(fault,)))) as gate:
        assert call_of(await gate.ask(body)) == CALL
        assert tiers(gate) == ["native", "text"]
        for _ in range(2):
            answer = await gate.ask(body)
            assert call_of(answer) == CALL and answer.headers["x-toolglot-mode"] == "text"
        assert tiers(gate) == ["native", "text", "text", "text"]


@awaited
async def test_sent_text_is_not_retracted_but_the_failure_is_learned() -> None:
    async with gateway(app=able(SimOptions(faults=("parse_error_late",)))) as gate:
        script = {"messages": [{"role": "user", "content": "Hello, who are you?"}]}
        answer = await gate.ask(STREAMED | script)
        assert "Failed to parse" in answer.chunks[-1]["error"]["message"] and tiers(gate) == ["native"]
        assert call_of(await gate.ask(STREAMED)) == CALL
        assert tiers(gate) == ["native", "text"]


@pytest.mark.parametrize("fault", ["http_400", "http_500", "http_429", "http_401"])
@awaited
async def test_other_errors_are_passed_on_and_not_learned(fault: str) -> None:
    async with gateway(app=able(SimOptions(faults=(fault,)))) as gate:
        assert (await gate.ask()).status == int(fault[5:8])
        await gate.ask()
        assert tiers(gate) == ["native", "native"]


@pytest.mark.parametrize("how", ["setting", "header"])
@awaited
async def test_a_mode_that_was_set_is_not_called_into_question(how: str) -> None:
    settings: dict[str, Any] = {"mode": "native"} if how == "setting" else {}
    headers = {"x_toolglot_mode": "native"} if how == "header" else {}
    async with gateway(app=able(SimOptions(faults=("no_tools_400",))), **settings) as gate:
        for _ in range(2):
            answer = await gate.ask(**headers)
            assert (answer.status, what_failed(answer.error["message"])) == (
                400,
                "The simulated model does not support tools",
            )
        assert tiers(gate) == ["native", "native"]


@awaited
async def test_if_text_fails_too_that_error_is_passed_on() -> None:
    app = web.Application()
    seen: list[bool] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append("tools" in await request.json())
        text = "m does not support tools" if seen[-1] else "out of memory"
        return web.json_response({"error": {"message": text}}, status=400 if seen[-1] else 500)

    app.router.add_post("/v1/chat/completions", answer)
    async with gateway(app=with_properties(app)) as gate:
        for body in (ASK, STREAMED):
            answered = await gate.ask(body)
            assert (answered.status, what_failed(answered.error["message"])) == (500, "out of memory")
        assert seen == [True, False, False]


@awaited
async def test_a_heartbeat_does_not_hinder_the_second_way() -> None:
    app = able()

    @web.middleware
    async def slow(request: web.Request, handler: Any) -> Any:
        if request.method == "POST" and b'"tools"' in await request.read():
            await asyncio.sleep(0.5)
            return web.json_response({"error": "m does not support tools"}, status=400)
        return await handler(request)

    app.middlewares.append(slow)
    async with gateway(app=app, heartbeat_seconds="0.1") as gate:
        answer = await gate.ask(STREAMED)
        assert call_of(answer) == CALL and len({chunk["id"] for chunk in answer.chunks}) == 1
        assert answer.chunks[0]["choices"][0]["delta"] == {}


# calls that come as text


@awaited
async def test_repeated_leaked_calls_are_learned_as_a_failure() -> None:
    async with gateway(app=able(SimOptions(dialect="hermes"))) as gate:
        for _ in range(4):
            assert call_of(await gate.ask(STREAMED)) == CALL
        assert tiers(gate) == ["native", "native", "text", "text"]


@awaited
async def test_one_that_leaks_now_and_then_stays_native() -> None:
    leak, fine = {"dialect": "hermes", "times": 1}, {"dialect": "native", "times": 1}
    script = parse_script({"answer": [leak, fine, leak, fine, leak]})
    async with gateway(app=able(SimOptions(script=script))) as gate:
        for _ in range(6):
            assert call_of(await gate.ask()) == CALL
        assert tiers(gate) == ["native"] * 6


@awaited
async def test_a_text_answer_costs_one_request() -> None:
    async with gateway(app=able()) as gate:
        for _ in range(3):
            answer = await gate.ask(ASK | {"messages": [{"role": "user", "content": "Hello!"}]})
            assert answer.finish == "stop" and answer.message["content"]
        assert tiers(gate) == ["native"] * 3


THOUGHT = 'I should look.\n<tool_call>\n{"name": "read", "arguments": {"filePath": "package.json"}}\n</tool_call>'


@pytest.mark.parametrize("mode", ["native", "text"])
@pytest.mark.parametrize("body", [ASK, STREAMED], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ({"text": "", "reasoning": THOUGHT}, 1),
        ({"text": "\n", "reasoning": THOUGHT}, 1),
        ({"text": "", "reasoning": THOUGHT + "\nOr rather not."}, 0),
        ({"text": "No need to look.", "reasoning": THOUGHT}, 0),
        ({"text": "", "reasoning": THOUGHT[:-30], "finish": "length"}, 0),
    ],
)
@awaited
async def test_a_call_at_the_end_of_reasoning_is_delivered(mode: str, body: Any, answer: Any, calls: int) -> None:
    async with gateway(SimOptions(script=parse_script({"answer": [answer]})), mode=mode) as gate:
        received = await gate.ask(body)
        if calls:
            assert call_of(received) == CALL
        else:
            assert b"tool_calls" not in received.body
        assert b"I should lo" in received.body or (received.status, received.error["code"]) == (502, "empty_answer")


# learned failures


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_learned_failures_survive_a_restart_and_expire(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    first = LearnedFailures(folder, cool_down=100)
    first.learn("http://me:secret@h/v1?key=secret", "m", "refused", "m does\nnot support tools " + "x" * 900, 1000.0)
    assert "secret" not in (folder / "learned.json").read_text("utf-8")
    second = LearnedFailures(folder, cool_down=100)
    failure = second.recall("http://h/v1", "m", 1099.0)
    assert failure is not None and failure.evidence.startswith("m does not support tools x")
    assert len(failure.evidence) == 300 and "tried again in 0 min" in failure.explain(1099.0)
    assert second.recall("http://h/v1", "other", 1099.0) is None
    assert second.recall("http://h/v1", "m", 1101.0) is None


def test_processes_learn_from_each_other(tmp_path: Path) -> None:
    one, other = LearnedFailures(tmp_path), LearnedFailures(tmp_path)
    assert other.recall("http://h", "a", 0.0) is None
    one.learn("http://h", "a", "refused", "no", 1.0)
    other.learn("http://h", "b", "refused", "no", 2.0)
    assert [failure.model for failure in one.recall_all(9.0)] == ["a", "b"]
    assert [failure.model for failure in other.recall_all(9.0)] == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["learned.json"]


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"lessons": 3}', '{"lessons": [3, {}, {"address": 1}]}'])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "learned.json").write_text(text, encoding="utf-8")
    learned = LearnedFailures(tmp_path)
    assert learned.recall("http://h", "m", 0.0) is None
    learned.learn("http://h", "m", "refused", "no", 0.0)
    assert LearnedFailures(tmp_path).recall("http://h", "m", 1.0) is not None


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    learned = LearnedFailures(tmp_path / "file")
    learned.learn("http://h", "m", "refused", "no", 0.0)
    assert learned.recall("http://h", "m", 1.0) is not None
    assert "cannot be saved" in caplog.text


def test_the_folder_is_where_the_system_wants_it() -> None:
    assert find_folder("", {"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/toolglot")
    assert find_folder("", {"HOME": "/h"}) == Path("/h/.local/state/toolglot")
    assert find_folder("mine", {}) == Path("mine")
    assert find_folder("none", {"HOME": "/h"}) is None


@awaited
async def test_after_a_restart_nothing_is_learned_twice(tmp_path: Path) -> None:
    app = able(SimOptions(faults=("no_tools_400",)))
    async with running(app) as address:
        upstream = {"base_url": address + "/v1"}
        for _ in range(2):
            async with gateway(upstream=upstream, state_dir=str(tmp_path)) as gate:
                assert call_of(await gate.ask()) == CALL
    assert ["tools" in body for body in app[REQUEST_LOG].bodies] == [True, False, False]


# routes without a network

TALK = Conversation("m", (Message("user", (Text("hi"),)),), (Tool("read"),))


def load_settings(address: str, **arguments: Any) -> tuple[Any, Capabilities, Clock]:
    clock = Clock()
    settings = load({"base_url": address, "state_dir": "none", "recovery_retries": 0, **arguments}, {})
    return settings, load_capabilities(settings, clock), clock


def route_of(*given: Any) -> Route:
    route = choose_route(*given)
    assert isinstance(route, Route)
    return route


def test_a_learned_failure_expires_and_native_is_tried_again() -> None:
    settings, capabilities, clock = load_settings("https://api.groq.com/openai/v1", tool_calling_cool_down_seconds="60")
    assert route_of(TALK, settings, capabilities).tool_mode is ToolMode.NATIVE
    capabilities.failures.learn("https://api.groq.com/openai/v1", "m", "refused", "no", clock())
    route = route_of(TALK, settings, capabilities)
    assert route.tool_mode is ToolMode.TEXT and route.failure is not None and not route.can_fall_back
    clock.now += 61
    assert route_of(TALK, settings, capabilities).tool_mode is ToolMode.NATIVE


def test_facts_hold_for_a_while_then_the_upstream_is_asked_again() -> None:
    settings, capabilities, clock = load_settings("http://h/v1")
    assert choose_route(TALK, settings, capabilities) == CapabilitiesUnknown(settings.upstreams[0], "m")
    capabilities.set_facts(settings.upstreams[0], "m", {"server": ("vllm",)}, 10)
    route = route_of(TALK, settings, capabilities)
    assert route.tool_mode is ToolMode.NATIVE and route.rule is not None and route.rule.name == "vLLM"
    clock.now += 11
    assert isinstance(choose_route(TALK, settings, capabilities), CapabilitiesUnknown)


def test_a_rule_gives_the_dialect_unless_one_was_set(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[[rule]]\nname = 'x'\nnative = false\ndialect = 'glm45'\n", encoding="utf-8")
    settings, capabilities, _ = load_settings("http://h/v1", profiles=str(path))
    assert route_of(TALK, settings, capabilities).dialect == "glm45"
    settings, capabilities, _ = load_settings("http://h/v1", profiles=str(path), dialect="hermes")
    assert route_of(TALK, settings, capabilities).dialect == "hermes"


def test_an_embedded_model_always_gets_the_tool_prompt() -> None:
    settings, _, _ = load_settings("http://h/v1")
    settings = settings.answered_by(Upstream(name="default", base_url="http://h/v1", coached=True))
    capabilities = Capabilities(load_profiles(), LearnedFailures(), Clock())
    assert route_of(TALK, settings, capabilities).tool_mode is ToolMode.TEXT
