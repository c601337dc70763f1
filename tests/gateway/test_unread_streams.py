"""Exceptions of the gateway in the middle of a stream: the rest passes as it came, nothing lost, nothing twice."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from support.line import Line, sum_up
from support.rows import in_one_test
from support.wiring import USAGE

from toolglot.core.conversation import Conversation, Message, Text, Tool, Tools
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Finished, ReasoningDelta, TextDelta
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.response_streams import open_stream
from toolglot.reading.reader import Reader
from toolglot.wires import client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

PATHS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ASKED = Conversation("m", (Message("user", (Text("Read a and b."),)),), Tools((Tool("read_file", "", PATHS),)))
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
PROSE = 'I <b>look</b> at `x < 3` and at {"a": [1]}.\n\nThen *this* <tool'
NATIVE: list[Event] = [
    CallStarted(0, "call_n", "read_file"),
    *(CallArguments(0, piece) for piece in ('{"pa', 'th": "', "n", '"}')),
    CallEnded(0),
]
ANSWERS: dict[str, tuple[str, str, list[Event]]] = {
    "prose": ("text", PROSE, []),
    "a call": ("text", f"{PROSE}>\n\n{CALL}", []),
    "prose of a native model": ("native", PROSE, []),
    "a leaked call": ("native", f"I look.\n\n{CALL}\n\nDone.", []),
    "a native call": ("native", PROSE, NATIVE),
}
PLACES: list[tuple[type, str]] = [
    *((Reader, name) for name in ("feed", "close")),
    *((Delivery, name) for name in ("deliver_each", "accept", "check_output", "finish")),
]


@in_one_test("wire", sorted(client_wires()))
@in_one_test(("mode", "text", "native"), ANSWERS.values(), ids=ANSWERS)
@in_one_test(("place", "at"), [*product(PLACES, (0, 1, 2, 5, 9, 14, 20, 30))])
def test_the_rest_passes_as_it_came(
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[type, str],
    at: int,
    mode: str,
    text: str,
    native: list[Event],
    wire: str,
) -> None:
    line = Line(wire, "openai_chat", mode, recovery_retries=1, recovery_hold_calls="always", dialect="hermes")
    exchange = line.ask(ASKED, True)
    events: list[Event] = [
        ReasoningDelta("Hm."),
        *(TextDelta(text[i : i + 5]) for i in range(0, len(text), 5)),
        *native,
    ]
    asked = ClientRequest(conversation=Conversation("m", ()), stream=True, wants_usage=True)
    encoder = line.upstream.open_encoder(ResponseIdentity("1", 1, "m"), asked)
    chunks = [encoder.write([event]) for event in (*events, Finished("tool_calls" if native else "stop", USAGE))]
    stream = open_stream(exchange)
    with monkeypatch.context() as patch:
        original, calls = getattr(*place), iter(range(10_000))

        def broken(*given: Any) -> Any:
            out = original(*given)
            if next(calls) == at:
                raise RuntimeError("a mistake of ours")
            return out

        patch.setattr(*place, broken)
        sent = b"".join(map(stream.feed, chunks)) + stream.close()
    is_broken = "the answer could not be read and is left as it is" in exchange.recorder.notes
    decoder = line.client.open_decoder(line.source.token)
    answer, made, reason = sum_up([*decoder.feed(sent), *decoder.close()])
    if native:
        assert (answer, made, reason) == (text, [("read_file", {"path": "n"})], "tool_calls")
    elif made:
        assert made == [("read_file", {"path": "a"})]
        assert "".join(answer.split()) == "".join(text.replace(CALL, "").split())
    else:
        assert (answer, reason) == (text, "stop") and (is_broken or CALL not in text)
    assert exchange.recorder.calls == len(made) and exchange.recorder.notes.count("the answer could not be read") <= 1
