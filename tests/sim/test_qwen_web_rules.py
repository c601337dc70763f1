"""The simulated web chat is strict: each rule of the protocol is refused with its error, and what the model sees is exact."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.chat_client import ChatClient, ChatReply, make_completion, make_create
from support.rows import in_one_test

from toolglot.core.errors import UsageError
from toolglot.sim import Answer
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation, SeenMessage, echo, make_app, running


@asynccontextmanager
async def serve(simulation: ChatSimulation, headers: Mapping[str, str] | None = None) -> AsyncIterator[ChatClient]:
    async with running(make_app(simulation)) as address, ChatClient(address, headers) as client:
        yield client


def run(test: Callable[[ChatSimulation, ChatClient], Awaitable[None]], **options: Any) -> ChatSimulation:
    async def start() -> ChatSimulation:
        simulation = ChatSimulation(ChatSimOptions(**{"brain": lambda _: "fine", **options}))
        async with serve(simulation) as client:
            await test(simulation, client)
        return simulation

    return asyncio.run(start())


# Strictness

FIRST = "11111111-1111-4111-8111-111111111111"
BROKEN_COMPLETIONS: dict[str, tuple[dict[str, Any], str]] = {
    "two messages": ({"messages": [{"role": "user"}, {"role": "user"}]}, "too many messages."),
    "no message": ({"messages": []}, "messages."),
    "messages are no list": ({"messages": {"role": "user"}}, "messages."),
    "a message is text": ({"messages": ["hello"]}, "messages."),
    "another chat in the body": ({"chat_id": FIRST}, "chat_id"),
    "another chat in the other field": ({"chatId": FIRST}, "chat_id"),
    "old envelope": ({"version": "2.0"}, "version"),
    "whole answer": ({"stream": False}, "stream"),
    "stream as text": ({"stream": "true"}, "stream"),
    "no model": ({"model": ""}, "model"),
    "unknown mode": ({"chat_mode": "loud"}, "chat_mode"),
    "milliseconds": ({"timestamp": 1790000000000}, "timestamp, it must be in seconds"),
    "fraction": ({"timestamp": 1790000000.5}, "timestamp"),
    "milliseconds in the message": ({"message": {"timestamp": 1790000000000}}, "timestamp"),
    "tool role": ({"message": {"role": "tool"}}, "role"),
    "assistant role": ({"message": {"role": "assistant"}}, "role"),
    "no role": ({"message": {"role": None}}, "role"),
    "content parts": ({"message": {"content": [{"type": "text", "text": "hello"}]}}, "content"),
    "empty content": ({"message": {"content": ""}}, "content"),
    "no fid": ({"message": {"fid": None}}, "fid"),
    "files as text": ({"message": {"files": "a.txt"}}, "files"),
    "unknown chat type": ({"message": {"chat_type": "text"}}, "chat_type"),
    "unknown action": ({"message": {"user_action": "edit"}}, "user_action"),
    "no feature_config": ({"message": {"feature_config": None}}, "feature_config"),
    "no output_schema": ({"config": {"output_schema": None}}, "output_schema"),
    "two parents": ({"message": {"parent_id": FIRST}}, "parent_id, the request names more than one"),
    "two parents, other field": ({"parentId": FIRST}, "parent_id, the request names more than one"),
    "parent is a number": ({"parent_id": 7}, "parent_id, it must be text"),
}


@in_one_test("name", BROKEN_COMPLETIONS)
def test_a_broken_completion_is_refused_with_its_error(name: str) -> None:
    changes, expected = BROKEN_COMPLETIONS[name]

    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        path = f"/api/v2/chat/completions?chat_id={chat}"
        reply = await client.request("POST", path, make_completion(chat, **changes))
        assert reply.status == 200
        assert reply.error["code"] == "Bad_Request" and expected in reply.error["details"]
        assert reply.headers["content-type"].startswith("application/json")
        assert simulation.violations == [reply.error["details"]]
        assert not simulation.seen and not simulation.chats[chat].messages
        assert (await client.ask(chat)).text == "fine"

    run(test)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"timestamp": 1790000000}, "timestamp, it must be in milliseconds"),
        ({"timestamp": "1790000000000"}, "timestamp"),
        ({"models": []}, "models"),
        ({"models": "qwen3.7-plus"}, "models"),
        ({"chat_mode": None}, "chat_mode"),
        ({"chat_type": "text"}, "chat_type"),
    ],
)
def test_a_broken_create_is_refused_with_its_error(changes: dict[str, Any], expected: str) -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        reply = await client.request("POST", "/api/v2/chats/new", make_create(**changes))
        assert reply.error["code"] == "Bad_Request" and expected in reply.error["details"]
        assert simulation.violations and not simulation.chats

    run(test)


def test_a_missing_parent_field_is_refused() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        body = make_completion(await client.create())
        del body["parent_id"]
        assert "parent_id, it is missing" in (await client.complete(body)).error["details"]

    run(test)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b"null"])
def test_a_body_that_is_no_object_is_refused(raw: bytes) -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        for path in ("/api/v2/chats/new", "/api/v2/chat/completions?chat_id=x", "/api/v2/chats/batch_delete"):
            async with client.http.post(path, data=raw) as response:
                body = await response.json()
            assert response.status == 200 and body["data"]["code"] == "Bad_Request"

    run(test)


JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1e300,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"a": []},
    "sim:chunk=0",
    "sim:a=b",
    "9" * 400,
]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in entries for place in places_in(child, (*path, key)))]


def test_no_body_makes_the_server_fail() -> None:
    rng = random.Random(7)

    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        bodies: dict[str, Any] = {
            "/api/v2/chats/new": make_create(),
            f"/api/v2/chat/completions?chat_id={chat}": make_completion(chat),
            "/api/v2/chat/completions/stop": {"chat_id": chat, "response_id": FIRST},
            "/api/v2/chats/batch_delete": {"ids": ["x"]},
        }
        refused = 0
        for _ in range(400):
            path = rng.choice(list(bodies))
            body = json.loads(json.dumps(bodies[path]))
            *parents, last = rng.choice([place for place in places_in(body) if place])
            target = body
            for key in parents:
                target = target[key]
            target[last] = rng.choice(JUNK)
            reply = await client.request("POST", path, body)
            assert reply.status in (200, 400), (path, body, reply.data)
            refused += not reply.data.startswith(b"data:") and reply.json.get("success") is False
        assert refused > 100
        assert (await client.ask(await client.create())).text == "fine"

    run(test)


def test_a_request_in_the_form_of_another_api_gets_the_risk_page() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        body = {"model": "qwen3.7-plus", "messages": [{"role": "user", "content": "hello"}], "stream": True}
        reply = await client.request("POST", f"/api/v2/chat/completions?chat_id={chat}", body)
        assert reply.status == 200 and "RGV587_ERROR" in reply.json["ret"][1]
        assert simulation.violations and not simulation.seen

    run(test)


def test_settings_of_other_apis_are_ignored() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        tool = {"type": "function", "function": {"name": "read", "parameters": {}}}
        reply = await client.ask(await client.create(), "read a.txt", tools=[tool], temperature=9, max_tokens=1)
        assert reply.text.startswith("This is a simulated model. You said")
        assert simulation.seen[-1].messages == (("user", "read a.txt"),)

    run(test, brain=None)


def test_a_system_message_opens_a_stream_without_an_answer() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        reply = await client.ask(await client.create(), message={"role": "system"})
        assert len(reply.events) == 1 and reply.response_id and not reply.deltas
        assert simulation.violations and not simulation.seen

    run(test)


# Token


def test_a_token_is_required_everywhere() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        calls: list[tuple[str, str, Any]] = [
            ("POST", "/api/v2/chats/new", make_create()),
            ("POST", f"/api/v2/chat/completions?chat_id={chat}", make_completion(chat)),
            ("POST", "/api/v2/chat/completions/stop", {"chat_id": chat, "response_id": ""}),
            ("GET", "/api/models", None),
            ("GET", "/api/v2/models/", None),
            ("GET", f"/api/v2/chats/{chat}", None),
            ("GET", "/api/v2/chats/?page=1", None),
            ("DELETE", f"/api/v2/chats/{chat}", None),
            ("POST", "/api/v2/chats/batch_delete", {"ids": [chat]}),
            ("GET", "/api/v1/auths/", None),
        ]
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "sim-token"}, {"cookie": "a=b"}):
            other = ChatClient(str(client.http._base_url), headers)
            async with other:
                for method, path, body in calls:
                    reply = await other.request(method, path, body)
                    assert (reply.status, reply.error["code"]) == (200, "Unauthorized"), (headers, path)
        async with ChatClient(str(client.http._base_url), {"cookie": "x=1; token=sim-token"}) as other:
            assert (await other.ask(chat)).text == "fine"

    run(test)


def test_a_token_expires_after_a_number_of_requests() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        assert (await client.ask(chat)).text == "fine"
        for _ in range(2):
            reply = await client.ask(chat)
            assert (reply.status, reply.error["details"]) == (200, "Token has expired")
        assert simulation.violations == []

    run(test, expire_after=2)


def test_errors_may_come_with_their_status() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        simulation.chats[chat].answering = FIRST
        assert (await client.ask(chat)).status == 400
        simulation.expired = True
        assert (await client.ask(chat)).status == 401

    run(test, faults=("status_errors",))


def test_the_risk_page_comes_after_a_number_of_requests() -> None:
    for page, mark in (("waf_html", b"aliyun_waf"), ("waf_json", b"FAIL_SYS_USER_VALIDATE")):

        async def test(simulation: ChatSimulation, client: ChatClient, mark: bytes = mark) -> None:
            chat = await client.create()
            assert (await client.ask(chat)).text == "fine"
            for reply in (await client.ask(chat), await client.request("GET", "/api/models")):
                assert reply.status == 200 and mark in reply.data
            assert len(simulation.seen) == 1

        run(test, waf_after=2, risk_page=page)


# Chats


def test_chats_are_listed_shown_and_deleted() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        first, second, third = [await client.create(title=title) for title in "abc"]
        reply = await client.ask(first, "hello")
        listed = (await client.request("GET", "/api/v2/chats/?page=1&exclude_project=true")).json["data"]
        assert {chat["id"]: chat["title"] for chat in listed} == {first: "a", second: "b", third: "c"}
        assert (await client.request("GET", "/api/v2/chats/?page=2")).json["data"] == []
        shown = (await client.request("GET", f"/api/v2/chats/{first}")).json["data"]["chat"]["messages"]
        assert [(entry["role"], entry["content"]) for entry in shown] == [("user", "hello"), ("assistant", "fine")]
        assert shown[0]["childrenIds"] == [shown[1]["id"]] == [reply.response_id]
        assert shown[1]["parentId"] == shown[0]["id"] == reply.created[0]["parent_id"]
        deleted = await client.request("DELETE", f"/api/v2/chats/{first}")
        assert deleted.json["success"] is True and deleted.json["data"] == {"status": True}
        assert (await client.request("GET", f"/api/v2/chats/{first}")).error["code"] == "Not_Found"
        assert (await client.ask(first)).error["code"] == "CHAT_NOT_FOUND"
        await client.request("POST", "/api/v2/chats/batch_delete", {"ids": [second, "unknown"]})
        assert (await client.request("POST", "/api/v2/chats/batch_delete", {"ids": second})).status == 400
        assert list(simulation.chats) == [third]

    assert run(test).violations == []


def test_a_chat_that_never_was_is_not_found() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        assert (await client.ask(FIRST)).error["code"] == "Not_Found"
        assert (await client.request("DELETE", f"/api/v2/chats/{FIRST}")).error["code"] == "Not_Found"

    run(test)


def test_a_chat_may_be_deleted_behind_the_back_of_the_client() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        parent = (await client.ask(chat)).response_id
        parent = (await client.ask(chat, parent=parent)).response_id
        assert (await client.ask(chat, parent=parent)).error["code"] == "CHAT_NOT_FOUND"
        chat = await client.create()
        simulation.inject("chat_deleted")
        assert (await client.ask(chat)).error["code"] == "CHAT_NOT_FOUND"
        assert (await client.ask(await client.create())).text == "fine"

    run(test, delete_after=2)


@pytest.mark.parametrize(("kept", "missing"), [("flat", "/api/v2/models/"), ("nested", "/api/models")])
def test_models_are_listed_in_two_shapes(kept: str, missing: str) -> None:
    async def both(simulation: ChatSimulation, client: ChatClient) -> None:
        flat = (await client.request("GET", "/api/models")).json
        nested = (await client.request("GET", "/api/v2/models/")).json
        assert nested["success"] is True and nested["data"] == flat
        assert [entry["id"] for entry in flat["data"]] == ["m-1", "m-2"]
        assert flat["data"][0]["info"]["meta"]["max_context_length"] > 0

    async def one(simulation: ChatSimulation, client: ChatClient) -> None:
        assert (await client.request("GET", missing)).status == 404
        other = {"/api/models", "/api/v2/models/"} - {missing}
        assert (await client.request("GET", other.pop())).status == 200

    run(both, models=("m-1", "m-2"))
    run(one, model_list=kept)


def test_the_account_is_shown() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        reply = await client.request("GET", "/api/v1/auths/")
        assert reply.json["role"] == "user" and b"sim-token" not in reply.data

    run(test)


# The tree


def test_an_unknown_parent_is_refused() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        one, two = await client.create(), await client.create()
        parent = (await client.ask(one)).response_id
        reply = await client.ask(two, parent=parent)
        assert reply.error == {"code": "Bad_Request", "details": f"Invalid input chat parent_id {parent} is not exist."}
        assert not simulation.chats[two].messages and simulation.violations == []

    run(test)


async def talk(client: ChatClient) -> list[ChatReply]:
    """A chat with an edit: a - b, and c as another message below the first answer; then a new root d."""
    chat = await client.create()
    a = await client.ask(chat, "a")
    b = await client.ask(chat, "b", a.response_id)
    c = await client.ask(chat, "c", a.response_id)
    d = await client.ask(chat, "d")
    e = await client.ask(chat, "e", a.created[0]["parent_id"])
    return [a, b, c, d, e]


PATHS = [["a"], ["a", "A", "b"], ["a", "A", "c"], ["d"], ["a", "e"]]
WHOLE = [["a"], ["a", "A", "b"], ["a", "A", "b", "B", "c"], [*"aAbBcCd"], [*"aAbBcCdDe"]]


@pytest.mark.parametrize(("semantics", "expected"), [("path", PATHS), ("whole_chat", WHOLE)])
def test_the_model_sees_the_path_or_the_whole_chat(semantics: str, expected: list[list[str]]) -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        replies = await talk(client)
        assert [[text for _, text in seen.messages] for seen in simulation.seen] == expected
        assert [seen.response_id for seen in simulation.seen] == [reply.response_id for reply in replies]
        shown = (await client.request("GET", "/sim/seen")).json
        assert [entry["text"] for entry in shown["seen"][0]["messages"]] == expected[-1]
        assert shown["semantics"] == semantics and shown["violations"] == []
        assert len((await client.request("GET", "/sim/seen?limit=2")).json["seen"]) == 2
        assert (await client.request("GET", "/sim/seen?limit=all")).status == 400

    run(test, semantics=semantics, brain=lambda seen: seen[-1].text.upper())


@pytest.mark.parametrize("semantics", ["path", "whole_chat"])
def test_random_trees_show_what_they_should(semantics: str) -> None:
    """The tree is rebuilt here from the answers alone, with another structure: a list of texts for every id."""
    rng = random.Random(15)

    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chats = [await client.create() for _ in range(3)]
        paths: dict[str, dict[str | None, list[SeenMessage]]] = {chat: {None: []} for chat in chats}
        order: dict[str, list[SeenMessage]] = {chat: [] for chat in chats}
        for number in range(60):
            chat = rng.choice(chats)
            parent = rng.choice(list(paths[chat]))
            reply = await client.ask(chat, f"q{number}", parent)
            asked, answered = SeenMessage("user", f"q{number}"), SeenMessage("assistant", f"answer {number}")
            expected = paths[chat][parent] if semantics == "path" else order[chat]
            assert list(simulation.seen[-1].messages) == [*expected, asked]
            assert reply.text == f"answer {number}"
            paths[chat][reply.created[0]["parent_id"]] = [*paths[chat][parent], asked]
            paths[chat][reply.response_id] = [*paths[chat][parent], asked, answered]
            order[chat] += [asked, answered]

    count = iter(range(60))
    assert run(test, semantics=semantics, brain=lambda _: f"answer {next(count)}").violations == []


def test_echo_repeats_what_the_model_sees() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        first = await client.ask(chat, "one")
        assert first.text == "user: one"
        assert (
            await client.ask(chat, "two", first.response_id)
        ).text == "user: one\n\nassistant: user: one\n\nuser: two"

    run(test, brain=echo)


def test_a_used_fid_gets_another_id() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        first, second = [await client.ask(chat, message={"fid": FIRST}) for _ in range(2)]
        assert first.created[0]["parent_id"] == FIRST != second.created[0]["parent_id"]
        assert len(simulation.chats[chat].messages) == 4

    run(test)


# One answer at a time


def test_only_one_of_many_requests_at_once_is_answered() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat, other = await client.create(), await client.create()
        replies = await asyncio.gather(*(client.ask(chat, str(number)) for number in range(20)), client.ask(other))
        refused = [reply.error for reply in replies if not reply.data.startswith(b"data:")]
        assert len(refused) == 19 and {error["details"] for error in refused} == {"The chat is in progress!"}
        assert len(simulation.chats[chat].messages) == 2 and len(simulation.chats[other].messages) == 2
        assert (await client.ask(chat)).text == "fine"

    async def think(_: object) -> str:
        await asyncio.sleep(0.3)
        return "fine"

    assert run(test, brain=think).violations == []


def test_the_chat_is_free_as_soon_as_the_last_event_can_be_read() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat, parent = await client.create(), None
        for number in range(30):
            body = make_completion(chat, str(number), parent)
            async with client.http.post(f"/api/v2/chat/completions?chat_id={chat}", json=body) as response:
                data = b""
                while b'"finished"' not in data:
                    piece = await response.content.readany()
                    assert piece, data
                    data += piece
                parent = json.loads(data.split(b"\n")[0].removeprefix(b"data: "))["response.created"]["response_id"]
        assert len(simulation.chats[chat].messages) == 60

    run(test, chunk_bytes=7, faults=("done", "keep_alive"))


async def abort(client: ChatClient, chat: str) -> str:
    """Read the first event of an answer, then close the connection."""
    body = make_completion(chat)
    async with client.http.post(f"/api/v2/chat/completions?chat_id={chat}", json=body) as response:
        line = await response.content.readline()
        response.close()
    return str(json.loads(line.removeprefix(b"data: "))["response.created"]["response_id"])


async def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not happen")


def test_an_aborted_stream_locks_its_chat_for_a_while() -> None:
    now = [1_790_000_000.0]

    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        response_id = await abort(client, chat)
        await wait_for(lambda: simulation.chats[chat].answering is None)
        assert simulation.record.last.outcome == "abandoned"
        now[0] += 4.9
        assert (await client.ask(chat)).error["details"] == "The chat is in progress!"
        now[0] += 0.2
        assert (await client.ask(chat, "more", response_id)).is_finished
        assert simulation.seen[-1].messages[1].text == "x" * 400, "the service has finished the answer by itself"

    run(test, pace=5, chunk=20, lock=5, clock=lambda: now[0], brain=lambda _: "x" * 400)


def test_stop_ends_an_answer_and_unlocks_its_chat() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        task = asyncio.create_task(client.ask(chat))
        await wait_for(lambda: any(one.sent > 2000 for one in simulation._generations.values()))
        response_id = simulation.seen[-1].response_id
        assert (await client.stop(chat, response_id)).json["data"] == {"status": True}
        following = asyncio.create_task(client.ask(chat, "more", response_id))
        reply = await task
        assert reply.events[-1].keys() == {"response.stopped"} and not reply.is_finished
        kept = simulation.chats[chat].messages[response_id].content
        assert kept == reply.text and 0 < len(kept) < 4000
        await wait_for(lambda: len(simulation.seen) == 2)
        assert [text for _, text in simulation.seen[-1].messages] == ["hello", kept, "more"]
        following.cancel()

    run(test, pace=5, chunk=10, brain=lambda _: "x" * 4000)


def test_stop_unlocks_an_aborted_chat_unless_it_is_known_not_to() -> None:
    for faults in ((), ("stop_keeps_lock",)):

        async def test(simulation: ChatSimulation, client: ChatClient, keeps: bool = bool(faults)) -> None:
            chat = await client.create()
            response_id = await abort(client, chat)
            await wait_for(lambda: simulation.chats[chat].answering is None)
            await client.stop(chat, response_id)
            busy = simulation.chats[chat].is_busy(simulation.options.clock())
            assert busy is keeps

        run(test, pace=5, lock=100, faults=faults, brain=lambda _: "x" * 400)


def test_stop_checks_what_it_is_asked() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        reply = await client.ask(chat)
        assert (await client.stop(chat, reply.response_id)).json["success"] is True
        assert "response_id" in (await client.stop(chat, reply.created[0]["parent_id"])).error["details"]
        assert (await client.stop(FIRST, reply.response_id)).error["code"] == "Not_Found"

    run(test)


# Options


def test_faults_can_be_injected_for_some_requests() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        simulation.inject("rate_limited", "create_internal_server_error", times=2)
        simulation.inject("dots")
        for _ in range(2):
            reply = await client.request("POST", "/api/v2/chats/new", make_create())
            assert reply.error["code"] == "Internal_Server_Error"
        chat = await client.create()
        for _ in range(2):
            assert (await client.ask(chat)).error["num"] == 6
        assert [(await client.ask(chat)).text for _ in range(2)] == ["...", "fine"]
        with pytest.raises(UsageError, match="no fault 'nonsense'"):
            simulation.inject("nonsense")

    run(test)


def test_a_request_sets_options_by_model_name_and_header() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        chat = await client.create()
        assert (await client.ask(chat, model="sim:dots")).text == "..."
        by_header = await client.complete(make_completion(chat, model="sim:dots"), x_sim_fault="ok")
        assert by_header.text == "OK"
        assert len((await client.ask(chat, model="sim:chunk=1")).phase("answer")) == 5
        wrong = await client.ask(chat, model="sim:nonsense")
        assert wrong.status == 400 and "nonsense" in wrong.error["details"]
        wrong = await client.complete(make_completion(chat), x_sim_chunky="1")
        assert wrong.status == 400 and "chunky" in wrong.error["details"]

    run(test)


@in_one_test(
    "options",
    [
        {"semantics": "forest"},
        {"model_list": "none"},
        {"risk_page": "empty_body"},
        {"lock": -1},
        {"waf_after": -1},
        {"token": ""},
        {"faults": ("no_done",)},
        {"dialect": "klingon"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ChatSimOptions(**options)


def test_a_brain_may_answer_with_text_thinking_and_calls() -> None:
    async def test(simulation: ChatSimulation, client: ChatClient) -> None:
        reply = await client.ask(await client.create(), config={"thinking_enabled": True})
        assert reply.text == "hello" and "".join(delta["content"] for delta in reply.phase("think")) == "hm"
        assert simulation.record.last.size > 500

    run(test, brain=lambda seen: Answer(seen[-1].text, reasoning="hm"))
