"""One client being answered: bytes from the upstream in, bytes to the client out.

Strategy. One write to the client for each read from the upstream. The head of the answer waits for the upstream's, so
that its status can be kept, but never longer than one heartbeat; from then on errors travel inside the stream. A timer
looks after silence for the whole life of a stream, because a task of its own would cost every stream more.
"""

from __future__ import annotations

import re
from http import HTTPStatus

from toolglot.core import offload
from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.core.redaction import redact, redact_code
from toolglot.gateway import response_pipeline as answers
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_streams import Stream, TranslatedStream, open_stream
from toolglot.server.http_request import Request, Response
from toolglot.server.upstream.connection import Take, UpstreamResponse

REQUEST_ID = "x-request-id"
KEPT_VALUE = re.compile(r"\d{1,12}(?:\.\d{1,6})?|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", re.ASCII)
"""A number, or a date."""
KEPT_HEADERS = ("retry-after", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests")
TOO_LONG = re.compile(r"context[ _](?:size|length|window)|maximum context", re.IGNORECASE)
"""What servers say of a request that does not fit."""
TOO_SMALL = (
    ". This model is too small for such a request, as agents make them: start the gateway in front of a larger one"
    " ('toolglot serve --base-url ...')."
)
STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Responder:
    """One client being answered. What it gives back is the answer, if that was not written to the client already."""

    def __init__(self, request: Request, exchange: Exchange, heartbeat: float) -> None:
        self.request = request
        self.exchange = exchange
        self.watch = exchange.recorder
        self.heartbeat = heartbeat
        self.loop = request.loop
        self.stream: Stream | None = None
        self.spoke = self.loop.time()
        self.timer = self.loop.call_later(heartbeat, self.look) if exchange.streamed else None

    async def answer(self, reply: UpstreamResponse) -> Response | None:
        if 300 <= reply.status < 400:
            raise UpstreamError(f"The upstream answered with status {reply.status}: it may have moved.")
        if reply.status >= 400:
            raise self.describe_refusal(reply, await reply.whole())
        if not self.exchange.streamed:
            return await self.answer_whole(reply)
        if await reply.is_streamed(self.exchange.upstream_wire.stream_type):
            await self.pump(reply)
        else:
            await self.answer_late_whole(reply)
        return None

    def describe_refusal(self, reply: UpstreamResponse, body: bytes) -> UpstreamResponseError:
        """The upstream's error as it may be told: upstreams repeat keys in any field of it."""
        upstream, secrets = self.exchange.route.upstream, self.exchange.secrets
        try:
            error = self.exchange.upstream_wire.decode_error(reply.status, body)
        except RecursionError:
            error = UpstreamResponseError(f"The upstream answered with status {reply.status}.", reply.status)
        if reply.status == HTTPStatus.UNAUTHORIZED:
            error.message = f"Upstream {upstream.name!r} refused the API key that it was sent: {error.message}"
        if TOO_LONG.search(f"{error.kind} {error.message}"):
            self.watch.notes.append("the request is larger than the context of the model")
            error.message += TOO_SMALL if upstream.coached else ""
        error.message = redact(error.message, secrets)
        error.code = redact_code(error.code, secrets) or UpstreamResponseError.code
        error.kind = redact_code(error.kind, secrets) or None
        told = {name: reply.headers[name].strip() for name in KEPT_HEADERS if name in reply.headers}
        error.headers = {name: value for name, value in told.items() if KEPT_VALUE.fullmatch(value)}
        return error

    async def answer_whole(self, reply: UpstreamResponse) -> Response:
        streamed = await reply.is_streamed(self.exchange.upstream_wire.stream_type)
        given = await reply.whole()
        body = await offload.run(len(given) >= offload.LARGE_ANSWER, answers.reply, self.exchange, given, streamed)
        self.watch.sent(body)
        return Response(body, headers=self.headers(whole=True))

    async def answer_late_whole(self, reply: UpstreamResponse) -> None:
        """A stream was asked for and the upstream answers in one piece."""
        stream = self.stream if isinstance(self.stream, TranslatedStream) else TranslatedStream(self.exchange)
        self.stream = stream
        given = await reply.whole()
        out = await offload.run(len(given) >= offload.LARGE_ANSWER, stream.convert_whole, given)
        self.begin()
        self.end(out)

    async def pump(self, reply: UpstreamResponse) -> None:
        self.begin()
        stream = self.open_stream()
        try:
            await reply.pour(self.pass_on(stream, reply), self.request.drain)
        except ToolglotError as error:
            self.fail(error)
            return
        if not self.request.answered:
            self.end(stream.close())
        if not reply.over:
            await reply.part()

    def pass_on(self, stream: Stream, reply: UpstreamResponse) -> Take:
        """What is done with each piece."""
        feed, write, sent, now = stream.feed, self.request.write, self.watch.sent, self.loop.time

        def take(piece: bytes) -> bool:
            out = feed(piece)
            if stream.over:
                self.end(out + stream.close())
                reply.leave()
                return False
            if not out:
                return False
            if not self.watch.chunks:
                self.exchange.commit()
            self.spoke = now()
            sent(out)
            return write(out)

        return take

    def fail(self, error: ToolglotError) -> None:
        """Tell the error inside the stream; if that has not begun, as a reply of its own."""
        if not self.request.begun or self.exchange.may_fall_back(error):
            raise error
        stream = self.open_stream()
        if not stream.over:
            self.watch.error = error.code
        self.end(stream.fail(error))

    def restart(self) -> None:
        """The upstream is asked again."""
        if isinstance(self.stream, TranslatedStream):
            self.stream.restart()

    def open_stream(self) -> Stream:
        if self.stream is None:
            self.stream = open_stream(self.exchange)
        return self.stream

    # -- writing -------------------------------------------------------------------------------------------------------

    def headers(self, whole: bool = False) -> dict[str, str]:
        route, watch = self.exchange.route, self.watch
        headers = {REQUEST_ID: watch.request_id, "x-toolglot-mode": watch.mode}
        if self.exchange.prompted is not None:
            headers["x-toolglot-dialect"] = (watch.read_as or [route.dialect])[0]
        if whole:
            headers["x-toolglot-repairs"] = ",".join(watch.repairs)
        return headers

    def begin(self) -> None:
        if not self.request.begun:
            self.request.begin(STREAM_HEADERS | self.headers(), self.exchange.stream_type)

    def end(self, out: bytes = b"") -> None:
        """The last words, once."""
        if not self.request.answered:
            self.over()
            if out:
                self.watch.sent(out)
            self.request.end(out)

    def over(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    # -- silence -------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Has the client been left without a word for too long?"""
        quiet = self.loop.time() - self.spoke
        if quiet >= self.heartbeat:
            self.spoke = self.loop.time()
            quiet = 0.0
            self.begin()
            sign = self.open_stream().heartbeat()
            if sign and not self.request.blocked:
                self.request.write(sign)
        self.timer = self.loop.call_later(self.heartbeat - quiet, self.look)
