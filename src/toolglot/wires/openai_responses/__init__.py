"""OpenAI's Responses wire, ``POST /v1/responses``: used by Codex and newer agents."""

from __future__ import annotations

import re

from toolglot.wires.openai_responses.errors import decode_error, encode_error
from toolglot.wires.openai_responses.output_items import KNOWN_FIELDS, KNOWN_REQUEST
from toolglot.wires.openai_responses.previous_responses import REFERENCES, expand_request
from toolglot.wires.openai_responses.request_decoder import FORMAT, NAME, decode_request
from toolglot.wires.openai_responses.request_encoder import CARRIES, adapt_request, encode_request
from toolglot.wires.openai_responses.response_decoder import StreamDecoder, decode_response
from toolglot.wires.openai_responses.response_encoder import StreamEncoder, encode_response, interject
from toolglot.wires.protocol import StreamPatterns, Wire

_CONTENT = re.compile(rb'"response\.(?:output_text|refusal)\.delta"|"response\.output_item\.')


def may_end(event: bytes) -> object:
    """Only events that begin or end a response contain the response object."""
    return event.find(b'"response"') >= 0 or event.find(b'"error"') >= 0


def locate(model: str, *, stream: bool) -> str:
    return "/responses"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


WIRE = Wire(
    name=NAME,
    routes=("/v1/responses", "/responses"),
    stream_type="text/event-stream",
    stream_patterns=StreamPatterns(common=b'"response.', may_have_content=_CONTENT.search, may_end=may_end),
    models_sign_reasoning=True,
    client_returns_signatures=True,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",
    carries=CARRIES,
    format_fields=(".".join(FORMAT),),
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
    expand_request=expand_request,
    references=REFERENCES,
    interject=interject,
)
