"""The web chat of Qwen, ``POST /api/v2/chat/completions``: a stateful upstream without tools. No client uses it."""

from __future__ import annotations

from toolglot.wires.protocol import Wire
from toolglot.wires.qwen_web.chats import CHAT, COMPLETIONS
from toolglot.wires.qwen_web.errors import decode_error
from toolglot.wires.qwen_web.request_encoder import CARRIES, NAME, encode_request
from toolglot.wires.qwen_web.response_decoder import StreamDecoder, decode_response
from toolglot.wires.qwen_web.terms import TERMS


def locate(model: str, *, stream: bool) -> str:
    return COMPLETIONS


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


WIRE = Wire(
    name=NAME,
    base_path="",
    stream_type="text/event-stream",
    carries=CARRIES,
    encode_request=encode_request,
    locate=locate,
    authorize=authorize,
    open_decoder=StreamDecoder,
    decode_response=decode_response,
    decode_error=decode_error,
    chat=CHAT,
    terms=TERMS,
    variables={"api_key": "QWEN_TOKEN", "cookies": "QWEN_COOKIES"},
    intercepted_marks=("<tool_call>",),
)
