"""Random conversations and answers over all pairs of wires, written and read by an independent implementation.

What must arrive is all that was sent, but for the losses that docs/wires.md lists. ``TOOLGLOT_TALKS`` sets how
many of each pair, whole and streamed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from random import Random

from support.line import Line
from support.oracle.formats import OBJECT
from support.oracle.records import (
    ORDERED,
    WIRES,
    Answer,
    Call,
    Image,
    Reasoning,
    Request,
    Result,
    Text,
    Turn,
    WireError,
    compact,
    dump,
    load,
    merged,
    text_of,
)
from support.oracle.talks import make_answer, make_request, make_shape
from support.oracle.wires import path_of, read_answer, read_request, write_answer, write_request
from support.rows import in_one_test

from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream

TALKS = int(os.environ.get("TOOLGLOT_TALKS", "10"))
PAIRS = [(client, upstream) for client in WIRES for upstream in WIRES]


@cache
def line_of(client: str, upstream: str) -> Line:
    return Line(client, upstream)


def carry(exchange: Exchange, raw: bytes, rng: Random) -> bytes:
    """What the client gets of the upstream's bytes, however they are cut."""
    if not exchange.streamed:
        return reply(exchange, raw)
    stream = open_stream(exchange)
    out, size = [], rng.choice([20, 150, 1000, 100_000])
    for at in range(0, len(raw), size):
        out.append(stream.feed(raw[at : at + size]))
    return b"".join([*out, stream.close()])


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream"), PAIRS)
def test_all_that_both_wires_can_express_arrives(client: str, upstream: str, stream: bool) -> None:
    line = line_of(client, upstream)
    for seed in range(TALKS):
        rng = Random(f"{client} {upstream} {stream} {seed}")
        asked, answer = make_request(rng, stream), make_answer(rng)
        body = write_request(client, asked)
        exchange = line.open(body, stream)
        if client == upstream:
            assert exchange.upstream_body == body
        arrived = read_request(upstream, path_of(upstream, "m", stream), exchange.upstream_body)
        check_request(client, upstream, asked, arrived)
        raw = write_answer(upstream, answer, stream, rng.choice([1, 3, 7, 1000]))
        out = carry(exchange, raw, rng)
        if client == upstream:
            assert out == raw
        check_answer(client, upstream, answer, read_answer(client, out, stream), stream)


@in_one_test(("client", "upstream"), PAIRS)
def test_a_format_of_the_answer_arrives(client: str, upstream: str) -> None:
    line = line_of(client, upstream)
    for seed in range(TALKS):
        rng = Random(f"{client} {upstream} {seed}")
        objects = [] if "anthropic_messages" in (client, upstream) else [OBJECT]
        shape = rng.choice([make_shape(rng), *objects])
        asked = replace(make_request(rng, False), tools=(), system="Answer in JSON.", shape=shape)
        exchange = line.open(write_request(client, asked), False)
        arrived = read_request(upstream, path_of(upstream, "m", False), exchange.upstream_body)
        check_request(client, upstream, asked, arrived)
        assert arrived.shape == asked.shape
        assert not any("not carried" in note for note in exchange.recorder.notes)


@in_one_test(("client", "upstream"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_a_format_beside_tools_never_prevents_a_call(client: str, upstream: str) -> None:
    """Upstreams that take no format beside tools are asked for it in the prompt."""
    rng = Random(f"{client} {upstream}")
    asked = replace(make_request(rng, False), shape=make_shape(rng), system="Be brief.")
    exchange = line_of(client, upstream).open(write_request(client, asked), False)
    arrived = read_request(upstream, path_of(upstream, "m", False), exchange.upstream_body)
    assert arrived.tools == asked.tools
    if upstream in ("gemini", "ollama"):
        assert arrived.shape == "" and asked.shape in arrived.system
        assert any("stated in the prompt" in note for note in exchange.recorder.notes)
    else:
        assert (arrived.shape, arrived.system) == (asked.shape, "Be brief.")


# -- requests ----------------------------------------------------------------------------------------------------------


def check_request(client: str, upstream: str, sent: Request, got: Request) -> None:
    assert (got.system, got.tools, got.temperature, got.effort) == (
        sent.system,
        sent.tools,
        sent.temperature,
        sent.effort,
    )
    assert got.limit == (sent.limit or (4096 if "anthropic_messages" in (client, upstream) else 0))
    assert [turn.role for turn in got.turns] == [turn.role for turn in sent.turns]
    for before, after in zip(sent.turns, got.turns, strict=True):
        if before.role == "user":
            check_user(client, upstream, before, after)
        elif before.role == "assistant":
            assert text_of(after.parts) == text_of(before.parts)
            assert calls_of(after.parts, ids=False) == calls_of(before.parts, ids=False)
        else:
            assert [flat(part.text) for part in after.parts] == [flat(part.text) for part in before.parts]
    if "ollama" not in (client, upstream):
        assert pairs_of(got) == pairs_of(sent)


def check_user(client: str, upstream: str, before: Turn, after: Turn) -> None:
    assert [part.data for part in after.parts if isinstance(part, Image)] == [
        part.data for part in before.parts if isinstance(part, Image)
    ]
    sent, got = ([part.text for part in turn.parts if isinstance(part, Text)] for turn in (before, after))
    # this wire has one place for text: what was apart is parted by a blank line
    assert got == (["\n\n".join(sent)] if "ollama" in (client, upstream) else sent)


def calls_of(parts: tuple[object, ...], *, ids: bool = True) -> list[tuple[str, ...]]:
    calls = [part for part in compact(parts) if isinstance(part, Call)]
    return [((call.id,) if ids else ()) + (call.name, call.arguments) for call in calls]


def flat(text: str) -> str:
    """A result that is JSON may be an object on the way."""
    try:
        return dump(load(text))
    except (json.JSONDecodeError, WireError):
        return text


def pairs_of(asked: Request) -> list[int]:
    """Which call every result belongs to."""
    parts = [part for turn in asked.turns for part in turn.parts]
    ids = [part.id for part in parts if isinstance(part, Call)]
    return [ids.index(part.call_id) for part in parts if isinstance(part, Result)]


# -- answers -----------------------------------------------------------------------------------------------------------


def check_answer(client: str, upstream: str, sent: Answer, got: Answer, stream: bool) -> None:
    assert got.finish == sent.finish
    ids = "ollama" not in (client, upstream)
    assert calls_of(got.parts, ids=ids) == calls_of(sent.parts, ids=ids)
    if client in ORDERED:
        order = list_order(sent)
        if upstream not in ORDERED and not stream:  # the upstream has sent all text before the first call
            text = text_of(sent.parts)
            order = [Text(text)] * bool(text) + [part for part in order if isinstance(part, str)]
        assert list_order(got) == order
    assert [thoughts_of(got), text_of(got.parts)] == [thoughts_of(sent), text_of(sent.parts)]
    usage, received = sent.usage, got.usage
    details = () if "ollama" in (client, upstream) else (usage.cached, usage.reasoning)
    assert (received.input, received.output) == (usage.input, usage.output)
    assert (received.cached, received.reasoning)[: len(details)] == details


def thoughts_of(answer: Answer) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Reasoning))


def list_order(answer: Answer) -> list[Text | str]:
    """Texts, and the names of calls, as they come."""
    parts = merged([part for part in answer.parts if not isinstance(part, Reasoning)])
    return [part.name if isinstance(part, Call) else part for part in parts]
