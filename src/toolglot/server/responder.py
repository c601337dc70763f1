"""Turns an upstream's response into the client's: upstream bytes in, client bytes out.

Strategy. One write to the client for each read from the upstream. The response head waits for the upstream's head, so
that an error status can be passed on, but never longer than one heartbeat; from then on errors are sent within the
stream. One timer per stream sends heartbeats; a task per stream would cost more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Protocol

from toolglot.config.upstream_errors import KEY_STATUSES, explain_refused_key
from toolglot.core import offload
from toolglot.core.error_guide import find_reference
from toolglot.core.errors import AuthenticationError, ToolglotError, UpstreamError, UpstreamResponseError, forget_frames
from toolglot.core.redaction import redact, redact_code
from toolglot.core.watchdog import watch
from toolglot.gateway import response_pipeline as answers
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_streams import Stream, TranslatedStream, open_stream
from toolglot.server.http_request import Request, Response
from toolglot.server.upstream.connection import SMALL_BODY, UpstreamResponse
from toolglot.wires.sse import BLANK_LINES, NDJSON, EventMeter

REQUEST_ID = "x-request-id"
FORWARDED_VALUE = re.compile(r"\d{1,12}(?:\.\d{1,6})?|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", re.ASCII)
"""A number or an HTTP date."""
FORWARDED_HEADERS = ("retry-after", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests")
CONTEXT_EXCEEDED = re.compile(r"context[ _](?:size|length|window)|maximum context", re.IGNORECASE)
"""Found in the errors of servers for a request that exceeds the context window."""
MOVED = "let the operator set base_url of the upstream to its new address; redirects are not followed."
CONTEXT_CODE = "context_length_exceeded"
MODEL_TOO_SMALL = (
    "this model is too small for such a request, as agents make them; let the operator start the gateway in front of a"
    " larger one ('toolglot serve --base-url ...')."
)
BUSY_SECONDS = 0.1
"""The least time until the next heartbeat, which waits while a thread converts a part of the answer."""
STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class StreamConsumer(Protocol):
    """Consumes a chunk of a streamed body, or what a thread made of it. Returns whether reading should pause."""

    def __call__(self, chunk: bytes, out: bytes | None = None) -> bool: ...


class Responder:
    """Answers one request. Its methods return the response, or None if it was already written to the client."""

    def __init__(
        self, request: Request, exchange: Exchange, heartbeat_seconds: float, *, sent_client_key: bool = False
    ) -> None:
        self.sent_client_key = sent_client_key
        self.request = request
        self.exchange = exchange
        self.recorder = exchange.recorder
        self.heartbeat_seconds = heartbeat_seconds
        self.loop = request.loop
        self.work = watch()
        self.stream: Stream | None = None
        self.tail = b""
        self.large: list[bytes] = []
        """Chunks of a large event that are not converted yet."""
        self.converting = False
        self.last_write = self.loop.time()
        self.timer = self.loop.call_later(heartbeat_seconds, self.heartbeat) if exchange.streamed else None
        if self.recorder.overhead is None:
            self.recorder.add_overhead(self.recorder.began)

    async def answer(self, response: UpstreamResponse) -> Response | None:
        if 300 <= response.status < 400:
            raise UpstreamError(f"The upstream answered with status {response.status}: it may have moved.", step=MOVED)
        if response.status >= 400:
            return await self.answer_refusal(self.decode_refusal(response, await response.read(SMALL_BODY)))
        chat = self.exchange.upstream_wire.chat
        if chat is not None and not await response.is_streamed(self.exchange.upstream_wire.stream_type):
            error = chat.read_error(await response.read(SMALL_BODY))
            raise self.redact_error(
                error or UpstreamResponseError("The upstream sent something else than a stream.", 502)
            )
        if not self.exchange.streamed:
            return await self.answer_whole(response)
        if await response.is_streamed(self.exchange.upstream_wire.stream_type):
            await self.stream_body(response)
        else:
            await self.answer_stream_from_whole(response)
        return None

    async def answer_refusal(self, error: UpstreamResponseError) -> Response | None:
        """Answer an error of the upstream, if it could not parse what its model wrote. Raises: any other error."""
        exchange = self.exchange
        if not exchange.is_unparsed(error):
            raise error
        if not exchange.streamed:
            out = self.work.run(answers.reply_to_failure, exchange, error)
            return None if exchange.asks_again else self.respond(out)
        stream = self.open_stream()
        assert isinstance(stream, TranslatedStream)
        await self.end_unless_asked_again(self.work.run(stream.convert_failure, error))
        return None

    def decode_refusal(self, response: UpstreamResponse, body: bytes) -> UpstreamResponseError:
        """The upstream's error, redacted: upstreams may repeat keys in any of its fields."""
        try:
            error = self.exchange.upstream_wire.decode_error(response.status, body)
        except RecursionError:
            error = UpstreamResponseError(f"The upstream answered with status {response.status}.", response.status)
        headers = {name: response.headers[name].strip() for name in FORWARDED_HEADERS if name in response.headers}
        error.headers |= {name: value for name, value in headers.items() if FORWARDED_VALUE.fullmatch(value)}
        return self.redact_error(error)

    def redact_error(self, error: UpstreamResponseError) -> UpstreamResponseError:
        """The error without secrets, and with what this gateway knows about it."""
        upstream, secrets = self.exchange.route.upstream, self.exchange.secrets
        error.place = upstream.place
        known = find_reference(error.message) not in ("", AuthenticationError.code)  # by another toolglot behind it
        if error.status in KEY_STATUSES and self.exchange.upstream_wire.chat is None and not known:
            explain_refused_key(error, upstream, sent_client_key=self.sent_client_key)
        if CONTEXT_EXCEEDED.search(f"{error.kind} {error.message}"):
            self.recorder.notes.append("the request is larger than the context of the model")
            error.entry = CONTEXT_CODE
            error.step = MODEL_TOO_SMALL if upstream.coached else ""
        error.message = redact(error.message, secrets)
        error.code = redact_code(error.code, secrets) or UpstreamResponseError.code
        error.kind = redact_code(error.kind, secrets) or None
        return error

    async def answer_whole(self, response: UpstreamResponse) -> Response | None:
        streamed = await response.is_streamed(self.exchange.upstream_wire.stream_type)
        body, read = await response.read(), self.recorder.clock()
        out = await offload.run(len(body) >= offload.LARGE_ANSWER, answers.reply, self.exchange, body, streamed)
        self.recorder.add_overhead(read)
        if self.exchange.asks_again:
            return None
        await self.run_before_end()
        return self.respond(out)

    def respond(self, body: bytes) -> Response:
        self.recorder.count_bytes(body)
        return Response(body, headers=self.headers(whole=True))

    def settle(self) -> Response | None:
        """Answer with the first attempt: the model could not be asked again."""
        if not self.exchange.streamed:
            return self.respond(self.work.run(answers.settle_whole, self.exchange))
        assert isinstance(self.stream, TranslatedStream)
        self.begin()
        self.end(self.work.run(self.stream.settle))
        return None

    async def answer_stream_from_whole(self, response: UpstreamResponse) -> None:
        """Answer a streaming request from a complete upstream response."""
        stream = self.stream if isinstance(self.stream, TranslatedStream) else TranslatedStream(self.exchange)
        self.stream = stream
        body, read = await response.read(), self.recorder.clock()
        out = await offload.run(len(body) >= offload.LARGE_ANSWER, stream.convert_whole, body)
        self.recorder.add_overhead(read)
        self.begin()
        await self.end_unless_asked_again(out)

    async def end_unless_asked_again(self, out: bytes) -> None:
        """Write the end of the stream, or what came of it before the model is asked again."""
        if not self.exchange.asks_again:
            await self.run_before_end()
            self.begin()
            self.end(out)
        elif out:
            self.begin()
            self.recorder.count_bytes(out)
            self.request.write(out)

    async def run_before_end(self) -> None:
        for call in tuple(self.exchange.before_end):
            await call()

    async def stream_body(self, response: UpstreamResponse) -> None:
        if self.exchange.chat_turn is None:  # the errors of stateful upstreams come within their streams
            self.begin()
        stream = self.open_stream()
        try:
            consume = self.make_consumer(stream, response)
            await response.stream_to(consume, partial(self.drain, stream, consume))
            if large := bool(self.large):  # it lacks its end
                await self.drain(stream, consume)
        except ToolglotError as error:
            self.fail(error)
            forget_frames(error)  # one of them is this, which holds the event that was too large
            return
        if not self.request.response_complete:
            await self.end_unless_asked_again(self.tail or await self.convert(large, stream.close))
        if not response.ended:
            await response.drain_tail()

    def make_consumer(self, stream: Stream, response: UpstreamResponse) -> StreamConsumer:
        """The callback for each chunk of the upstream's body (hot path). The chunks of a large event are left in
        ``self.large`` for ``drain``, which calls it again with what became of them."""
        write, count_bytes, now = self.request.write, self.recorder.count_bytes, self.loop.time
        feed = self.work.guard(stream.feed)
        limit, lines = self.exchange.settings.limits.event_bytes, self.exchange.upstream_wire.stream_type == NDJSON
        small, delimiters = min(limit, offload.LARGE_ANSWER), (b"\n",) if lines else BLANK_LINES
        meter: EventMeter | None = None

        def consume(chunk: bytes, out: bytes | None = None) -> bool:
            nonlocal meter
            if out is None:
                before = 0 if meter is None else meter.size
                if before or len(chunk) > small or not chunk.endswith(delimiters):  # which is rare
                    meter = meter or EventMeter(limit, lines)
                    complete = meter.add(chunk)
                    if before + len(chunk) > offload.LARGE_ANSWER:
                        self.large.append(chunk)
                        return complete
                out = feed(chunk)
            if stream.over:
                self.tail = out + self.work.run(stream.close)
                if not self.exchange.before_end and not self.exchange.asks_again:
                    self.end(self.tail)
                response.stop()
                return False
            if not out:
                return False
            if not self.recorder.chunks:
                self.exchange.commit()
                self.begin()
            self.last_write = now()
            count_bytes(out)
            return write(out)

        return consume

    async def drain(self, stream: Stream, consume: StreamConsumer) -> None:
        """Convert a large event, and wait until the client can take more."""
        if self.large:
            chunk = b"".join(self.large)
            self.large.clear()
            consume(b"", await self.convert(True, stream.feed_large, chunk))
        await self.request.drain()

    async def convert(self, large: bool, work: Callable[..., bytes], *args: bytes) -> bytes:
        """Convert a part of the answer, in a thread if it is large. Meanwhile there are no heartbeats."""
        self.converting = large
        try:
            return await offload.run(large, work, *args)
        finally:
            self.converting = False

    def fail(self, error: ToolglotError) -> None:
        """Send the error within the stream. Raises it if no stream has started, or a retry is possible."""
        if isinstance(error, UpstreamError):
            error.place = error.place or self.exchange.route.upstream.place
        if not self.request.response_started or self.exchange.may_ask_again(error):
            raise error
        stream = self.open_stream()
        if not stream.over:
            self.recorder.note_error(error)
        self.end(self.work.run(stream.fail, error))

    def begin_attempt(self) -> None:
        """The model is asked again; its next answer continues the stream."""
        self.tail = b""
        if isinstance(self.stream, TranslatedStream):
            self.stream.begin_attempt()

    def restart(self) -> None:
        """Reset the stream: the upstream is asked again."""
        if isinstance(self.stream, TranslatedStream):
            self.stream.restart()

    def close(self) -> None:
        """The exchange is over. Its recovery refers back to it; without that cycle everything is freed at once, and
        the next request gets memory that is in the caches, not memory that the garbage collector frees later."""
        self.cancel_heartbeat()
        recovery, self.exchange.recovery = self.exchange.recovery, None
        if recovery is not None:
            recovery.delivery = None

    def open_stream(self) -> Stream:
        if self.stream is None:
            self.stream = open_stream(self.exchange)
        return self.stream

    # -- writing -------------------------------------------------------------------------------------------------------

    def headers(self, whole: bool = False) -> dict[str, str]:
        route, recorder = self.exchange.route, self.recorder
        headers = {REQUEST_ID: recorder.request_id, "x-toolglot-mode": recorder.mode}
        if self.exchange.prompted is not None:
            headers["x-toolglot-dialect"] = (recorder.read_as or [route.dialect])[0]
        if whole:
            headers["x-toolglot-repairs"] = ",".join(recorder.repairs)
            headers["x-toolglot-attempts"] = str(len(recorder.attempts) + 1)
        return headers

    def begin(self) -> None:
        if not self.request.response_started:
            self.request.begin(STREAM_HEADERS | self.headers(), self.exchange.stream_type)

    def end(self, out: bytes = b"") -> None:
        """Write the end of the stream, once."""
        if not self.request.response_complete:
            self.cancel_heartbeat()
            if out:
                self.recorder.count_bytes(out)
            self.request.end(out)

    def cancel_heartbeat(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    def heartbeat(self) -> None:
        """Send a heartbeat if nothing was written for the heartbeat interval; schedule the next check."""
        quiet = self.loop.time() - self.last_write
        if quiet >= self.heartbeat_seconds and not self.converting:
            self.last_write = self.loop.time()
            quiet = 0.0
            self.begin()
            sign = self.open_stream().heartbeat()
            if sign and not self.request.is_blocked:
                self.request.write(sign)
        self.timer = self.loop.call_later(max(BUSY_SECONDS, self.heartbeat_seconds - quiet), self.heartbeat)
