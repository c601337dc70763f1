"""The Gemini wire, ``POST /v1beta/models/{model}:generateContent`` and ``:streamGenerateContent``.

The path holds the model and whether to stream; ``?alt=sse`` asks for server-sent events, otherwise a stream is a JSON
list.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from toolglot.core.errors import RequestError
from toolglot.wires.gemini.errors import decode_error, encode_error
from toolglot.wires.gemini.field_names import FORMAT_PATHS, NAME
from toolglot.wires.gemini.request_decoder import STREAMING, decode_request
from toolglot.wires.gemini.request_encoder import CARRIES, adapt_request, encode_request, enforces_format
from toolglot.wires.gemini.response_decoder import StreamDecoder, decode_response
from toolglot.wires.gemini.response_encoder import KNOWN_FIELDS, KNOWN_REQUEST, StreamEncoder, encode_response
from toolglot.wires.id_references import ReferenceFields
from toolglot.wires.protocol import StreamPatterns, Wire

WHOLE = "generateContent"

_CONTENT = re.compile(rb'"parts"')


def may_end(event: bytes) -> object:
    """A ``finishReason`` or a ``blockReason``, in either spelling, or an error."""
    return event.find(b'eason"') >= 0 or event.find(b'"error"') >= 0


def locate(model: str, *, stream: bool) -> str:
    """The path of a request. ``RequestError`` for a model name that would lead to another path."""
    name = quote(model.removeprefix("models/"), safe="/:@")
    if not {".", ".."}.isdisjoint(name.split("/")):
        raise RequestError(f"{model[:200]!a} cannot be the name of a model: no part of it may be '.' or '..'.", "model")
    return f"/models/{name}:{STREAMING}?alt=sse" if stream else f"/models/{name}:{WHOLE}"


def authorize(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


WIRE = Wire(
    name=NAME,
    routes=tuple(f"{root}/models/{{model:.+}}:{{method:{WHOLE}|{STREAMING}}}" for root in ("/v1beta", "/v1", "")),
    base_path="/v1beta",
    own_prefix="/v1beta",
    stream_type="text/event-stream",
    stream_patterns=StreamPatterns(
        common=b'"candidates"', may_have_content=_CONTENT.search, may_end=may_end, finish_is_final=True
    ),
    models_sign_reasoning=True,
    sends_whole_calls=True,
    tool_name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
    carries=CARRIES,
    format_fields=FORMAT_PATHS,
    enforces_format=enforces_format,
    references=ReferenceFields(free=("response",)),
    known_fields=KNOWN_FIELDS,
    known_request=KNOWN_REQUEST,
    decode_request=decode_request,
    encode_request=encode_request,
    adapt_request=adapt_request,
    locate=locate,
    authorize=authorize,
    open_decoder=StreamDecoder,
    decode_response=decode_response,
    open_encoder=StreamEncoder,
    encode_response=encode_response,
    decode_error=decode_error,
    encode_error=encode_error,
)
