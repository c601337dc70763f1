"""The Gemini wire, ``POST /v1beta/models/{model}:generateContent`` and ``:streamGenerateContent``.

The path names the model and says whether a stream is wanted; ``?alt=sse`` asks for events, otherwise it is a list.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from toolglot.core.errors import RequestError
from toolglot.wires.gemini.errors import decode_error, encode_error
from toolglot.wires.gemini.field_names import NAME
from toolglot.wires.gemini.request_decoder import STREAMING, decode_request
from toolglot.wires.gemini.request_encoder import adapt_request, encode_request
from toolglot.wires.gemini.response_decoder import StreamDecoder as read_stream
from toolglot.wires.gemini.response_decoder import decode_reply, read_reply
from toolglot.wires.gemini.response_encoder import StreamEncoder as write_stream
from toolglot.wires.gemini.response_encoder import encode_reply
from toolglot.wires.protocol import Marks

WHOLE = "generateContent"
ROUTES = tuple(f"{root}/models/{{model:.+}}:{{method:{WHOLE}|{STREAMING}}}" for root in ("/v1beta", "/v1", ""))
HOME = "/v1beta"
STREAM_TYPE = "text/event-stream"
SEALS = True
WHOLE_CALLS = True
TOOL_NAMES = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"
ROOT = "/v1beta"

_SAYS = re.compile(rb'"parts"')


def may_end(event: bytes) -> object:
    """It has a ``finishReason`` or a ``blockReason``, in either spelling, or an error."""
    return event.find(b'eason"') >= 0 or event.find(b'"error"') >= 0


MARKS = Marks(b'"candidates"', _SAYS.search, may_end, final=True)


def locate(model: str, *, stream: bool) -> str:
    """The path of a request. A name that leads to another path than that of a model is none."""
    name = quote(model.removeprefix("models/"), safe="/:@")
    if not {".", ".."}.isdisjoint(name.split("/")):
        raise RequestError(f"{model[:200]!a} cannot be the name of a model: no part of it may be '.' or '..'.", "model")
    return f"/models/{name}:{STREAMING}?alt=sse" if stream else f"/models/{name}:{WHOLE}"


def authorize(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


__all__ = [
    "HOME",
    "MARKS",
    "NAME",
    "ROOT",
    "ROUTES",
    "SEALS",
    "STREAM_TYPE",
    "TOOL_NAMES",
    "WHOLE_CALLS",
    "adapt_request",
    "authorize",
    "decode_error",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "locate",
    "read_reply",
    "read_stream",
    "write_stream",
]
