"""The openai package against the gateway: whole answers, streams and its stream helper; tools run on real files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from openai import (
    APIError,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    OpenAI,
    RateLimitError,
)
from support.loopback import (
    DIALECTS,
    FAREWELL,
    MANIFEST,
    NOTES,
    QUESTION,
    Loop,
    Sim,
    ask_for_notes,
    running_gateway,
    running_loop,
    running_sim,
    script_notes,
)

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Read a file",
            "parameters": {
                "type": "object",
                "properties": {"filePath": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["filePath"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "write",
            "description": "Write content to a file",
            "parameters": {
                "type": "object",
                "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}},
                "required": ["filePath", "content"],
            },
        },
    },
]
MOST_STEPS = 6

Message: TypeAlias = dict[str, Any]
Way: TypeAlias = Callable[[OpenAI, str, list[Any]], tuple[Message, str]]
"""One way to ask: the message that came back, as it goes into the history, and the finish reason."""


def ask_whole(client: OpenAI, model: str, messages: list[Any]) -> tuple[Message, str]:
    completion = client.chat.completions.create(model=model, messages=messages, tools=TOOLS)
    assert completion.usage and completion.usage.total_tokens > 0
    choice = completion.choices[0]
    return choice.message.to_dict(), choice.finish_reason


def ask_streamed(client: OpenAI, model: str, messages: list[Any]) -> tuple[Message, str]:
    """Joins the pieces as the documentation of the protocol describes, without the package."""
    message: Message = {"role": "assistant", "content": ""}
    calls: dict[int, Message] = {}
    finish, used = "", 0
    options: Any = {"include_usage": True}
    for chunk in client.chat.completions.create(
        model=model, messages=messages, tools=TOOLS, stream=True, stream_options=options
    ):
        used = chunk.usage.total_tokens if chunk.usage else used
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            message["content"] += choice.delta.content or ""
            for piece in choice.delta.tool_calls or []:
                function = piece.function
                assert function is not None
                if piece.index not in calls:
                    assert piece.id and piece.type == "function" and function.name
                    called = {"name": function.name, "arguments": ""}
                    calls[piece.index] = {"id": piece.id, "type": "function", "function": called}
                calls[piece.index]["function"]["arguments"] += function.arguments or ""
    assert used > 0
    if calls:
        message["tool_calls"] = list(calls.values())
    return message, finish


def ask_with_helper(client: OpenAI, model: str, messages: list[Any]) -> tuple[Message, str]:
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as stream:
        seen = [event.type for event in stream]
        completion = stream.get_final_completion()
    choice = completion.choices[0]
    if choice.message.tool_calls:
        assert "tool_calls.function.arguments.delta" in seen
        assert "tool_calls.function.arguments.done" in seen
    return choice.message.to_dict(), choice.finish_reason


WAYS: dict[str, Way] = {"create": ask_whole, "create_stream": ask_streamed, "stream": ask_with_helper}


def run_tool(call: Message, folder: Path) -> str:
    arguments = json.loads(call["function"]["arguments"])
    path = folder / str(arguments["filePath"])
    if call["function"]["name"] == "read":
        return path.read_text("utf-8")
    path.write_text(arguments["content"], "utf-8", newline="")
    return f"Wrote {path.name}"


def work(client: OpenAI, model: str, way: Way, question: str, folder: Path) -> tuple[list[str], list[Message], str]:
    """An agent: ask, run what is called, ask again. Gives the finish reasons, the calls and the last text."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    reasons: list[str] = []
    called: list[Message] = []
    for _ in range(MOST_STEPS):
        message, finish = way(client, model, messages)
        messages.append(message)
        reasons.append(finish)
        calls = message.get("tool_calls") or []
        if not calls:
            break
        called += calls
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": run_tool(call, folder)} for call in calls]
    assert len({call["id"] for call in called}) == len(called)
    return reasons, called, messages[-1]["content"]


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def sim(loop: Loop) -> Iterator[Sim]:
    tasks = [f"{way}-{dialect}" for way in WAYS for dialect in DIALECTS]
    with running_sim(loop, script_notes(tasks), chunk=5) as sim:
        yield sim


@pytest.fixture(scope="module", params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(loop: Loop, sim: Sim, dialect: str) -> Iterator[OpenAI]:
    with running_gateway(loop, sim, mode="text", dialect=dialect) as base_url, connect(base_url) as client:
        yield client


def connect(base_url: str, key: str = "none") -> OpenAI:
    return OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package.json").write_text(MANIFEST, "utf-8")
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_cycle_one(way: str, dialect: str, client: OpenAI, sim: Sim, folder: Path) -> None:
    before = sim.total
    reasons, calls, text = work(client, f"sim:{dialect}", WAYS[way], QUESTION, folder)
    assert reasons == ["tool_calls", "stop"]
    assert [call["function"]["name"] for call in calls] == ["read"]
    assert [call["function"]["arguments"] for call in calls] == ['{"filePath":"package.json"}']
    assert text.startswith("Done. The tool said: `")
    assert sim.total - before == 2
    assert '"express": "^4.18.0"' in sim.since(before)[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize("way", WAYS)
def test_notes(way: str, dialect: str, client: OpenAI, sim: Sim, folder: Path) -> None:
    before = sim.total
    question = ask_for_notes(f"{way}-{dialect}")
    reasons, calls, text = work(client, f"sim:{dialect}", WAYS[way], question, folder)
    assert reasons == ["tool_calls", "tool_calls", "stop"]
    assert [call["function"]["name"] for call in calls] == ["read", "write"]
    assert (folder / "notes.txt").read_bytes() == NOTES.encode()
    assert text == FAREWELL
    assert sim.total - before == 3


# What goes wrong


@pytest.fixture(scope="module")
def hermes(loop: Loop, sim: Sim) -> Iterator[OpenAI]:
    with running_gateway(loop, sim, mode="text", dialect="hermes") as base_url, connect(base_url) as client:
        yield client


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


ASKED = [{"role": "user", "content": QUESTION}]


def test_a_wrong_key_is_refused(way: Way, loop: Loop, sim: Sim) -> None:
    before = sim.total
    with running_gateway(loop, sim, client_keys="sk-toolglot-right") as base_url:
        with connect(base_url, "sk-toolglot-wrong") as client, pytest.raises(AuthenticationError) as refused:
            way(client, "sim:hermes", ASKED)
        assert refused.value.code == "invalid_api_key"
        assert sim.total == before
        with connect(base_url, "sk-toolglot-right") as client:
            assert way(client, "sim:hermes", ASKED)[1] == "tool_calls"


def test_an_unknown_model_is_refused(way: Way, loop: Loop, sim: Sim, tmp_path: Path) -> None:
    settings = tmp_path / "toolglot.toml"
    settings.write_text(
        f'[[upstream]]\nname = "sim"\nbase_url = "{sim.base_url}"\n[[model]]\nname = "known"\nmodel = "sim:hermes"\n'
    )
    with running_gateway(loop, sim, settings) as base_url, connect(base_url) as client:
        assert [model.id for model in client.models.list()] == ["known"]
        assert way(client, "known", ASKED)[1] == "tool_calls"
        with pytest.raises(NotFoundError) as refused:
            way(client, "stranger", ASKED)
    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("http_400", BadRequestError, 400),
        ("http_401", AuthenticationError, 401),
        ("http_429", RateLimitError, 429),
        ("http_500", InternalServerError, 500),
        ("http_502_html", InternalServerError, 502),
        ("http_503", InternalServerError, 503),
    ],
)
def test_the_status_of_the_upstream_is_kept(
    fault: str, kind: type[APIError], status: int, way: Way, hermes: OpenAI
) -> None:
    with pytest.raises(kind) as refused:
        way(hermes, f"sim:hermes+{fault}", ASKED)
    assert getattr(refused.value, "status_code", None) == status
    if "html" not in fault:
        assert "simulated model" in refused.value.message


def test_retry_after_is_sent(hermes: OpenAI) -> None:
    with pytest.raises(RateLimitError) as refused:
        ask_streamed(hermes, "sim:hermes+http_429", ASKED)
    assert refused.value.response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("cut_mid_call", "The connection to the upstream broke"),
        ("error_after_first", "The simulated model has failed in the middle."),
        ("event_error", "The simulated model has failed in the middle."),
    ],
)
def test_an_answer_that_breaks_off_raises(fault: str, expected: str, way: Way, hermes: OpenAI) -> None:
    with pytest.raises(APIError, match=expected):
        way(hermes, f"sim:hermes+{fault}", ASKED)


@pytest.mark.parametrize(
    "fault", ["no_content_type", "json_instead_of_sse", "no_done", "no_finish", "crlf", "comments"]
)
def test_an_odd_upstream_is_understood(fault: str, way: Way, hermes: OpenAI, folder: Path) -> None:
    reasons, calls, _ = work(hermes, f"sim:hermes+{fault}", way, QUESTION, folder)
    assert reasons == ["tool_calls", "stop"] and len(calls) == 1


def test_the_rest_of_a_cut_call_is_no_text(hermes: OpenAI) -> None:
    message, finish = ask_streamed(hermes, "sim:hermes+length", ASKED)
    assert message["content"].strip() == "I'll use the read tool."
    assert finish == "length"
    with pytest.raises(ValueError):
        json.loads(message["tool_calls"][0]["function"]["arguments"])


def test_one_answer_is_all_there_is(hermes: OpenAI, sim: Sim) -> None:
    before = sim.total
    messages: Any = ASKED
    with pytest.raises(BadRequestError) as refused:
        hermes.chat.completions.create(model="sim:hermes", messages=messages, tools=TOOLS, n=2)
    assert refused.value.param == "n"
    assert sim.total == before
