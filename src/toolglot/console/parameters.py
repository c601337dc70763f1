"""Reads the parameters and bodies of the console's requests, and writes its responses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from toolglot.core.errors import ForbiddenError, RequestError, UnknownPathError
from toolglot.gateway.mounting import HttpRequest, Response

MAX_TEXT: Final = 500
NO_STORE: Final = (
    "This gateway has no store, so there are no sessions. Set store.url (TOOLGLOT_STORE_URL), and server.state_dir if"
    " that is 'none'."
)
READ_ONLY: Final = "The console is read-only (console.read_only)."
Body = TypeVar("Body")


def read_only_error() -> ForbiddenError:
    return ForbiddenError(READ_ONLY, step="set console.read_only to false, if the console may change something.")


def read_query(query: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """The parameters that are not empty. Raises: RequestError for unknown ones and values that cannot be right."""
    for name, value in query.items():
        if name not in known:
            raise RequestError(f"Unknown parameter {name[:100]!a}; known are {', '.join(known)}.")
        if len(value) > MAX_TEXT or not value.isprintable():
            raise RequestError(f"{name} must be printable text of at most {MAX_TEXT} characters.", name)
    return {name: value for name, value in query.items() if value}


def read_number(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number. Raises: RequestError."""
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most):
        raise RequestError(f"{name} must be a whole number from {least} to {most}.", name)
    return int(text)


def read_id(request: HttpRequest) -> str:
    """The id in the path. Raises: UnknownPathError if nothing can have it."""
    given = request.path_params["id"]
    if len(given) > MAX_TEXT or not given.isprintable():
        raise UnknownPathError("There is nothing with that id.")
    return given


async def read_body(request: HttpRequest, kind: type[Body]) -> Body:
    """The body as JSON of a type. Raises: RequestError."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"The body is not valid: {error}") from None


def make_response(value: object) -> Response:
    return Response(encode_json(value))


def encode_json(value: object) -> bytes:
    """A value as JSON. Texts of models may have lone surrogates, which only escapes can express."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()
