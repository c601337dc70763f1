"""Random conversations over all pairs of wires: what is sent is valid by the types of the vendors' own packages.

``TOOLGLOT_TALKS`` sets how many of each pair, whole and streamed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from random import Random

from support.line import Line
from support.oracle.records import WIRES
from support.oracle.talks import make_answer, make_request
from support.oracle.wires import write_answer, write_request
from support.rows import in_one_test
from support.vendor_types import check_answer, check_request

from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream

TALKS = int(os.environ.get("TOOLGLOT_TALKS", "10"))
NEWEST = {"anthropic-version": "2026-10-21"}
"""The version of a protocol that the newest package asks for; by default requests ask for an older one."""
PAIRS = [(client, upstream) for client in WIRES for upstream in WIRES if client != upstream]


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream"), PAIRS)
def test_requests_and_answers_are_valid_by_the_types_of_the_vendors(client: str, upstream: str, stream: bool) -> None:
    line = Line(client, upstream)
    line.settings = replace(line.settings, upstreams=(replace(line.settings.upstreams[0], headers=NEWEST),))
    for seed in range(TALKS):
        rng = Random(f"{client} {upstream} {stream} {seed}")
        exchange = line.open(write_request(client, make_request(rng, stream)), stream)
        check_request(upstream, exchange.upstream_body)
        raw = write_answer(upstream, make_answer(rng), stream, rng.choice([1, 7, 1000]))
        if stream:
            opened = open_stream(exchange)
            check_answer(client, opened.feed(raw) + opened.close(), stream)
        else:
            check_answer(client, reply(exchange, raw), stream)


@in_one_test("stream", [False, True])
@in_one_test("wire", WIRES)
def test_requests_that_are_encoded_again_for_their_own_wire_are_valid(wire: str, stream: bool) -> None:
    line = Line(wire, wire)
    for seed in range(TALKS):
        asked = make_request(Random(f"{wire} {stream} {seed}"), stream)
        temperature = "" if wire == "anthropic_messages" else asked.temperature
        body = write_request(wire, replace(asked, temperature=temperature))
        conversation = line.client.decode_request(body, {"model": "m"}).conversation
        check_request(wire, line.upstream.encode_request(conversation, stream=stream, wants_usage=True))


def test_sampling_is_sent_where_the_version_takes_it() -> None:
    """The version is that of the client, of the settings, or the default one, which takes it."""
    chat = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.5, "top_p": 0.9}
    own = chat | {"max_tokens": 9, "top_k": 4}
    line = Line("openai_chat", "anthropic_messages")
    assert json.loads(line.open(json.dumps(chat).encode(), False).upstream_body)["temperature"] == 0.5
    for version, kept in (("2023-06-01", ["temperature", "top_p", "top_k"]), ("2026-10-21", [])):
        line = Line("anthropic_messages", "anthropic_messages", mode="off")
        exchange = line.open(json.dumps(own).encode(), False, headers={"anthropic-version": version})
        sent = json.loads(exchange.upstream_body)
        assert [name for name in ("temperature", "top_p", "top_k") if name in sent] == kept
        assert exchange.forwarded_headers == {"anthropic-version": version}
        assert any("temperature, top_p, top_k" in note for note in exchange.recorder.notes) is not bool(kept)
