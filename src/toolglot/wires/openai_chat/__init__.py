"""OpenAI's Chat Completions wire, ``POST /v1/chat/completions``: used by most clients and nearly every server."""

from __future__ import annotations

import re

from toolglot.wires.id_references import ReferenceFields
from toolglot.wires.openai_chat.errors import decode_error, encode_error
from toolglot.wires.openai_chat.request_decoder import FORMAT, NAME, REASONING_FIELDS, decode_request
from toolglot.wires.openai_chat.request_encoder import CARRIES, OUTPUT_FORMATS, adapt_request, encode_request
from toolglot.wires.openai_chat.response_decoder import StreamDecoder, decode_response
from toolglot.wires.openai_chat.response_encoder import DONE, KNOWN_FIELDS, KNOWN_REQUEST, encode_response, open_encoder
from toolglot.wires.protocol import StreamPatterns, Wire

_CONTENT = re.compile(
    rb'"(?:content|refusal)"\s*:\s*(?:"[^"]|[\[{])|"(?:tool_calls|function_call|audio|images)"\s*:\s*[\[{]'
)
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_may_finish = _FINISH.search


def may_end(event: bytes) -> object:
    return event.find(b"[DONE]") >= 0 or event.find(b'"error"') >= 0 or _may_finish(event)


def may_be_recorded(events: bytes) -> bool:
    return b'"usage"' in events or b'"tool_calls"' in events or b'"function_call"' in events


def locate(model: str, *, stream: bool) -> str:
    return "/chat/completions"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


WIRE = Wire(
    name=NAME,
    routes=("/v1/chat/completions", "/chat/completions"),
    stream_type="text/event-stream",
    stream_patterns=StreamPatterns(
        common=b'"choices"',
        may_have_content=_CONTENT.search,
        may_end=may_end,
        terminator=DONE,
        may_be_recorded=may_be_recorded,
    ),
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",
    reasoning_fields=REASONING_FIELDS,
    known_fields=KNOWN_FIELDS,
    known_request=KNOWN_REQUEST,
    carries=CARRIES,
    output_formats=OUTPUT_FORMATS,
    format_fields=(FORMAT,),
    references=ReferenceFields(),
    decode_request=decode_request,
    encode_request=encode_request,
    adapt_request=adapt_request,
    locate=locate,
    authorize=authorize,
    open_decoder=StreamDecoder,
    decode_response=decode_response,
    open_encoder=open_encoder,
    encode_response=encode_response,
    decode_error=decode_error,
    encode_error=encode_error,
)
