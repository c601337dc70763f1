"""The fast path of streamed answers: the same bytes as without it, chunk by chunk."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

from support.line import Line, sum_up
from support.rows import in_one_test
from support.samples import load_samples
from support.wiring import new_ids

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.events import TextDelta
from toolglot.gateway.context import Source
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.recovery import checked_delivery, fast_path
from toolglot.gateway.response_streams import TranslatedStream, open_stream
from toolglot.wires import client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["path"],
}
TOOLS = tuple(Tool(name, "Does it.", SCHEMA) for name in ("read_file", "write_file"))
CONTENTS = (
    "word after word, nothing else " * 8,
    "if a < b:\n    print('x')\n\n\n" * 6,
    "<p>ä &amp; 日本 \U0001f600</p>\n" * 6,
    '```\ncode `x` \\ "y"\n```\n' * 5,
    " \n\t " * 9,
)


def write_hermes(content: str) -> str:
    quoted = content.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'<tool_call>\n{{"name": "write_file", "arguments": {{"path": "a", "content": "{quoted}"}}}}\n</tool_call>'


def write_xml(content: str) -> str:
    body = f"<parameter=path>\na\n</parameter>\n<parameter=content>\n{content}\n</parameter>"
    return f"<tool_call>\n<function=write_file>\n{body}\n</function>\n</tool_call>"


WRITERS = {"hermes": write_hermes, "qwen3_coder": write_xml}


def make_answer(rng: random.Random, dialect: str) -> str:
    """Prose and calls, some of them cut, unknown or with values that the schema refuses."""
    parts = []
    for _ in range(rng.randint(1, 5)):
        call = WRITERS[dialect](rng.choice(CONTENTS))
        damaged = rng.random()
        if damaged < 0.1:
            call = call.replace("write_file", "delete_file")
        elif damaged < 0.2:
            call = call[: rng.randrange(len(call))]
        elif damaged < 0.3:
            call = call.replace("path", "line", 1)
        parts.append(call if rng.random() < 0.6 else rng.choice(CONTENTS))
    return rng.choice(("", "I write it.\n")) + "\n".join(parts)


def make_chunks(rng: random.Random, line: Line, text: str, longest: int) -> list[bytes]:
    """The answer of a server, as the network delivers it: mostly one event at a time, some in pieces or together."""
    asked = ClientRequest(conversation=Conversation("m", ()), stream=True, wants_usage=True)
    encoder = line.upstream.open_encoder(ResponseIdentity("1", 1234567890, "m"), asked)
    frames, at = [], 0
    while at < len(text):
        size = rng.randint(1, longest)
        frames.append(encoder.write([TextDelta(text[at : at + size])]))
        at += size
    last = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    chunks: list[bytes] = []
    for frame in [*frames, last]:
        chance = rng.random()
        if chance < 0.05:
            middle = rng.randrange(1, len(frame))
            chunks += [frame[:middle], frame[middle:]]
        elif chance < 0.15 and chunks:
            chunks[-1] += frame
        else:
            chunks.append(frame)
    return chunks


def open_text_exchange(line: Line, quoted: str = "") -> Exchange:
    messages = (Message("user", (Text(f"Write it. {quoted}"),)),)
    return line.ask(Conversation("m", messages, TOOLS), stream=True)


def convert(
    line: Line, chunks: list[bytes], quoted: str = "", keeps_text: bool = False
) -> tuple[list[bytes], Exchange]:
    """What the client gets for each chunk. ``keeps_text``: the record keeps the model's text."""
    line.source = Source(line.clock, new_ids())
    exchange = open_text_exchange(line, quoted)
    exchange.recorder.model_text = [] if keeps_text else None
    stream = open_stream(exchange)
    assert isinstance(stream, TranslatedStream)
    written = []
    for chunk in chunks:
        written.append(stream.feed(chunk))
        if stream.over:
            break
    return [*written, stream.close()], exchange


def make_line(client: str, dialect: str, **more: Any) -> Line:
    more |= {"recovery_retries": 1, "recovery_hold_calls": "never"}  # a defect changes nothing for the next answer
    return Line(client, "openai_chat", "text", dialect=dialect, **more)


class Counter:
    """Counts the pieces of text that took the fast path."""

    def __init__(self) -> None:
        self.pieces = 0

    def find(self, *given: Any) -> fast_path.FastPath | None:
        found = fast_path.find_fast_path(*given)
        if found is None:
            return None

        def deliver(text: str) -> Any:
            self.pieces += 1
            return found(text)

        return deliver


@in_one_test("limit", [100_000, 250])
@in_one_test("dialect", ["hermes", "qwen3_coder"])
@in_one_test("client", sorted(client_wires()))
def test_the_fast_path_writes_the_same_bytes(client: str, dialect: str, limit: int) -> None:
    rng, counter, chunks_in_all = random.Random(f"{client} {dialect} {limit}"), Counter(), 0
    line = make_line(client, dialect, tool_calling_max_parameter_bytes=str(limit))
    for number in range(15):
        text = make_answer(rng, dialect)
        quoted = WRITERS[dialect]("quoted") if number % 5 == 4 else ""
        chunks = make_chunks(rng, line, text, rng.choice((1, 4, 9)))
        with patch.object(checked_delivery, "find_fast_path", counter.find):
            fast, exchange = convert(line, chunks, quoted)
        chunks_in_all += len(fast)
        with patch.object(checked_delivery, "find_fast_path", lambda *given: None):
            slow, usual = convert(line, chunks, quoted)
        assert fast == slow, (text, chunks)
        assert exchange.asks_again == usual.asks_again
        assert exchange.recorder.notes == usual.recorder.notes
        assert exchange.recovery and usual.recovery
        assert exchange.recovery.defect == usual.recovery.defect
    # where calls are sent whole, all text is kept for the end of a call
    assert counter.pieces > 0.25 * chunks_in_all or line.client.sends_whole_calls


def test_all_dialects_give_the_same_bytes() -> None:
    rng = random.Random(11)
    line = make_line("openai_chat", "auto")
    for sample in rng.sample([one for one in load_samples() if len(one.text) < 3000], 120):
        chunks = make_chunks(rng, line, f"Some words first.\n{sample.text}", 4)
        fast, _ = convert(line, chunks)
        with patch.object(checked_delivery, "find_fast_path", lambda *given: None):
            slow, _ = convert(line, chunks)
        assert fast == slow, sample.text


def test_arguments_at_the_limit_fail_in_the_same_place() -> None:
    """The limit counts bytes of UTF-8, on the fast path too."""
    for content in ("a" * 400, "ä" * 200, "日" * 133 + "a"):
        text = f"I write.\n{write_hermes(content)}"
        size = len('{"path":"a","content":""}') + 400
        for limit, failed in ((size, False), (size - 1, True)):
            line = make_line("openai_chat", "hermes", tool_calling_max_parameter_bytes=str(limit))
            written, _ = convert(line, make_chunks(random.Random(3), line, text, 3))
            reader = line.client.open_decoder(line.source.token)
            read = [*reader.feed(b"".join(written)), *reader.close()]
            assert (sum_up(read)[2] == "failed") is failed, (content, limit)


def test_a_template_survives_chunks_that_the_network_splits() -> None:
    line = make_line("openai_chat", "hermes")
    text = f"I write.\n{write_hermes('word ' * 200)}"
    chunks = make_chunks(random.Random(5), line, text, 4)
    split = [piece for chunk in chunks for piece in (chunk[:40], chunk[40:])]
    mixed = [*split[:60], *chunks[30:]]
    counter = Counter()
    with patch.object(checked_delivery, "find_fast_path", counter.find):
        written, _ = convert(line, mixed)
    assert counter.pieces > 0.7 * (len(chunks) - 30)
    reader = line.client.open_decoder(line.source.token)
    _, [(name, arguments)], _ = sum_up([*reader.feed(b"".join(written)), *reader.close()])
    assert (name, arguments["content"]) == ("write_file", "word " * 200)


def test_a_record_that_keeps_the_text_has_every_piece() -> None:
    line, text = make_line("openai_chat", "hermes"), f"I write.\n{write_hermes('word ' * 100)}"
    _, exchange = convert(line, make_chunks(random.Random(5), line, text, 4), keeps_text=True)
    assert "".join(exchange.recorder.model_text or ()) == text


def test_what_continues_a_cut_answer_is_not_sent_twice() -> None:
    """The model repeats the end of its cut answer, in so many chunks that these have a template."""
    line = make_line("openai_chat", "hermes", recovery_continue_cut="true")
    content = "".join(f"line {number} of it, " for number in range(60))
    whole = f"I write.\n{write_hermes(content)}"
    cut = len(whole) - 300
    rng, length = random.Random(5), b'"finish_reason":"length"'
    first = [chunk.replace(b'"finish_reason":"stop"', length) for chunk in make_chunks(rng, line, whole[:cut], 3)]
    exchange = open_text_exchange(line)
    stream = open_stream(exchange)
    assert isinstance(stream, TranslatedStream)
    written = b"".join(map(stream.feed, first)) + stream.close()
    assert exchange.asks_again
    exchange.ask_again()
    stream.begin_attempt()
    written += b"".join(map(stream.feed, make_chunks(rng, line, whole[cut - 200 :], 3))) + stream.close()
    reader = line.client.open_decoder(line.source.token)
    _, calls, reason = sum_up([*reader.feed(written), *reader.close()])
    assert (calls, reason) == ([("write_file", {"path": "a", "content": content})], "tool_calls")
