"""A server on loopback that answers every model name with the events of that name, in one wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from aiohttp import web

from toolglot.core.conversation import Conversation
from toolglot.core.errors import UpstreamError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
    Usage,
)
from toolglot.wires.protocol import ResponseIdentity, Wire

USED = Usage(input_tokens=11, output_tokens=7, total_tokens=18)


def call(index: int, name: str, *fragments: str) -> list[Event]:
    arguments: list[Event] = [CallArguments(index, fragment) for fragment in fragments]
    return [CallStarted(index, f"call_{index}", name), *arguments, CallEnded(index)]


ONE = call(0, "read", '{"filePath":', '"pack', 'age.json"}')
TWO = call(1, "write", '{"filePath":"ä","content":"x\\ny"}')

ANSWERS: Mapping[str, list[Event]] = {
    "text": [TextDelta("Hello "), TextDelta("wörld"), Finished("stop", USED)],
    "one": [TextDelta("Now. "), *ONE, Finished("tool_calls", USED)],
    "two": [*ONE, *TWO, Finished("tool_calls", USED)],
    "thought": [ReasoningDelta("I should "), ReasoningDelta("read."), ReasoningSigned("c2VhbA=="), *ONE, Finished("tool_calls", USED)],
    "length": [TextDelta("Hello "), Finished("length", USED)],
    "error": [TextDelta("Hello "), Failed("upstream_closed", "It broke.")],
}  # fmt: skip


WRITTEN = '<tool_call>\n{"name": "read", "arguments": {"filePath": "package.json"}}\n</tool_call>'
WIRES: Mapping[str, list[Event]] = {
    "written": [TextDelta("Now. "), *(TextDelta(letter) for letter in WRITTEN), Finished("stop", USED)],
}
"""Answers of a model that writes its calls as text."""

SEEN = web.AppKey("seen", list[Conversation])


def replaying(wire: Any) -> web.Application:
    """The server; what it is asked stands in ``app[SEEN]``."""
    app = web.Application()
    app[SEEN] = []
    rendered = cast("Wire", wire)

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = rendered.decode_request(await request.read(), {**request.query, **request.match_info})
        app[SEEN].append(asked.conversation)
        events = {**ANSWERS, **WIRES}[asked.conversation.model]
        answerer = ResponseIdentity("0123", 1234567890, asked.conversation.model)
        if not asked.stream:
            if isinstance(events[-1], Failed):
                body = rendered.encode_error(UpstreamError(events[-1].message))
                return web.Response(status=502, body=body, content_type="application/json")
            return web.Response(body=rendered.encode_response(events, answerer, asked), content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": rendered.stream_type})
        await response.prepare(request)
        writer = rendered.open_encoder(answerer, asked)
        await response.write(writer.heartbeat())
        for event in events:
            await response.write(writer.write([event]))
        await response.write_eof()
        return response

    for route in {*rendered.routes, "/v1" + rendered.locate("{model}", stream=True).partition("?")[0]}:
        app.router.add_post(route, answer)
    return app
