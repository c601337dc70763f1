"""The description of the gateway's own HTTP API (OpenAPI 3.1), for ``GET /openapi.json``.

Paths and methods are those of the router; the schemas of client wires are in ``wires/<wire>/schemas.py``, statuses and
codes come from the error tree. What is left is here: the endpoints that belong to no wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

import toolglot
from toolglot.config import MODES
from toolglot.core import errors
from toolglot.core.errors import ToolglotError
from toolglot.gateway.telemetry.record_writer import RECORD_ID
from toolglot.server.queries import DEFAULT_LIMIT, MAX_LIMIT, MAX_TEXT, RECORD_FILTERS, SESSION_FILTERS
from toolglot.store.interface import OUTCOMES
from toolglot.wires import client_wires
from toolglot.wires.json_schemas import (
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    WHOLE,
    Schema,
    WireSchemas,
    fixed,
    listing,
    one_of,
    table,
    words,
)
from toolglot.wires.protocol import Wire

JSON: Final = "application/json"
NAMED_PART: Final = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")
ALTERNATIVES: Final = re.compile(r"\w+(?:\|\w+)+")
ErrorClasses = tuple[type[ToolglotError], ...]
Route = tuple[str, str, Wire]
"""Method, path of the router, and the wire in which errors are encoded."""

ALWAYS: Final[ErrorClasses] = (errors.RequestError, errors.HeaderSizeError, errors.InternalError)
MODEL_ERRORS: Final[ErrorClasses] = (errors.UnknownModelError,)
STORE_ERRORS: Final[ErrorClasses] = (errors.UnknownPathError, errors.StoreError)
COMPLETION_ERRORS: Final[ErrorClasses] = (
    *(errors.ToolResultsError, errors.UnknownModelError, errors.RequestSizeError, errors.RateLimitError),
    *(errors.UpstreamError, errors.UnreachableError, errors.UpstreamTimeoutError),
    *(errors.OverloadError, errors.ShutdownError),
)
OF_UPSTREAM: Final = "Any other status of the upstream that refused the request, with its own code and message."

RECORD: Final = table({"id": TEXT, "object": fixed("record")}, {"bodies": OBJECT})
SESSION: Final = table(
    {"id": TEXT, "object": fixed("session"), "created": NUMBER, "used": NUMBER, "turns": WHOLE, "model": TEXT}
)
MODEL: Final = table({"id": TEXT, "object": TEXT, "created": NUMBER, "owned_by": TEXT})
HEALTH: Final = table({"status": fixed("ok"), "name": fixed("toolglot"), "version": TEXT})
READINESS: Final = table(
    {"status": words("ready", "draining"), "store": words("none", "ok", "unavailable")}, {"store_problem": TEXT}
)
PLAIN_TEXT: Final[Schema] = {**TEXT, "maxLength": MAX_TEXT, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}
EMPTY: Final = fixed("")
"""A parameter that is empty does not count."""
PARAMETERS: Final[Mapping[str, Schema]] = {
    "limit": one_of({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}, EMPTY),
    "before": {**PLAIN_TEXT, "description": "the field next of the page before"},
    "model": PLAIN_TEXT,
    "session": PLAIN_TEXT,
    "outcome": words(*OUTCOMES, ""),
}
RECORD_PARAMETERS: Final[Mapping[str, Schema]] = {
    **PARAMETERS,
    "before": {**PARAMETERS["before"], "pattern": f"^(?:{RECORD_ID.pattern})?$"},
}
SECURITY: Final[Mapping[str, Schema]] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "anthropic": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "google": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
}


def make_page(entry: Schema) -> Schema:
    return table({"object": fixed("list"), "data": listing(entry), "has_more": FLAG, "next": TEXT_OR_NULL})


class Endpoint(Struct, frozen=True, kw_only=True):
    """An endpoint that belongs to no wire. ``open``: it needs no client key."""

    summary: str
    tag: str
    response: Schema
    content_type: str = JSON
    parameters: Mapping[str, Schema] = {}
    errors: ErrorClasses = ()
    also: Mapping[int, str] = {}
    """Further statuses with the same response."""
    open: bool = False


HEALTH_ENDPOINT: Final = Endpoint(summary="Whether the gateway runs", tag="health", response=HEALTH, open=True)
MODELS: Final = Endpoint(
    summary="The models that clients can name", tag="models", response=table({"object": TEXT, "data": listing(MODEL)})
)
ONE_MODEL: Final = Endpoint(summary="One model", tag="models", response=MODEL, errors=MODEL_ERRORS)

ENDPOINTS: Final[Mapping[tuple[str, str], Endpoint]] = {
    **{("GET", path): HEALTH_ENDPOINT for path in ("/", "/health", "/health/liveliness", "/health/liveness")},
    ("GET", "/health/readiness"): Endpoint(
        summary="Whether the gateway takes requests, and the state of its store",
        tag="health",
        response=READINESS,
        also={503: "The gateway is shutting down."},
        open=True,
    ),
    ("GET", "/openapi.json"): Endpoint(summary="This description", tag="health", response=OBJECT, open=True),
    ("GET", "/metrics"): Endpoint(
        summary="Metrics in the text format of Prometheus", tag="metrics", response=TEXT, content_type="text/plain"
    ),
    **{("GET", f"{prefix}/models"): MODELS for prefix in ("/v1", "")},
    **{("GET", f"{prefix}/models/{{name}}"): ONE_MODEL for prefix in ("/v1", "")},
    ("GET", "/v1/records"): Endpoint(
        summary="Records of requests, newest first",
        tag="records",
        response=make_page(RECORD),
        parameters={name: RECORD_PARAMETERS[name] for name in RECORD_FILTERS},
        errors=STORE_ERRORS,
    ),
    ("GET", "/v1/records/{id}"): Endpoint(
        summary="One record, by its id or that of the request, with stored bodies",
        tag="records",
        response=RECORD,
        errors=STORE_ERRORS,
    ),
    ("GET", "/v1/sessions"): Endpoint(
        summary="Sessions, newest first",
        tag="sessions",
        response=make_page(SESSION),
        parameters={name: PARAMETERS[name] for name in SESSION_FILTERS},
        errors=STORE_ERRORS,
    ),
    ("GET", "/v1/sessions/{id}"): Endpoint(
        summary="One session with its latest records",
        tag="sessions",
        response={"allOf": [SESSION, table({"records": make_page(RECORD)})]},
        errors=STORE_ERRORS,
    ),
    ("DELETE", "/v1/sessions/{id}"): Endpoint(
        summary="Delete a session, its records, and its chats at the upstream",
        tag="sessions",
        response=table({"id": TEXT, "object": fixed("session"), "deleted": FLAG}),
        errors=STORE_ERRORS,
    ),
}


CONSOLE: Final = "/console"


def describe_api(routes: Iterable[Route], *, keys_required: bool) -> dict[str, Any]:
    """Describe the routes of the gateway, without those of the console, which are its own. ``keys_required``: clients
    must present a key.

    Raises: KeyError for a route that is neither in ``ENDPOINTS`` nor of a wire.
    """
    paths: dict[str, dict[str, Any]] = {}
    for method, pattern, wire in routes:
        if pattern.startswith(CONSOLE):
            continue
        for path in expand_path(pattern):
            paths.setdefault(path, {})[method.lower()] = describe_route(method, path, pattern, wire, keys_required)
    schemas: dict[str, Schema] = {}
    for name in client_wires():
        known = load_schemas(name)
        parts = {"request": known.request, "response": known.response, "error": known.error}
        schemas |= {f"{name}_{part}": schema for part, schema in parts.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "toolglot",
            "version": toolglot.__version__,
            "description": "A gateway between agent clients and language models. Unknown request fields are passed on."
            " HEAD is answered for every path. docs/errors.md explains all errors; so does 'toolglot errors CODE'.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": dict(SECURITY)},
    }


def load_schemas(wire: str) -> WireSchemas:
    schemas: WireSchemas = import_module(f"toolglot.wires.{wire}.schemas").SCHEMAS
    return schemas


def expand_path(pattern: str) -> list[str]:
    """The paths of a route: named parts without their expression, and one path for each of several words."""
    found = NAMED_PART.search(pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], expand_path(pattern[found.end() :])
    listed = ALTERNATIVES.fullmatch(found[2] or "")
    choices = listed[0].split("|") if listed else [f"{{{found[1]}}}"]
    return [before + choice + rest for choice in choices for rest in after]


def describe_route(method: str, path: str, pattern: str, wire: Wire, keys_required: bool) -> dict[str, Any]:
    own = ENDPOINTS.get((method, path))
    if own is not None:
        described = describe_endpoint(own)
        error_schema = f"{wire.name}_error"
        classes = own.errors
    else:
        described, classes = describe_wire_route(method, path, pattern, wire)
        error_schema = f"{wire.name}_error"
    access: type[ToolglotError] = errors.AuthenticationError if keys_required else errors.OriginError
    guarded = own is None or not own.open
    classes = (*ALWAYS, *classes, *([access] if guarded or not keys_required else []))
    names = [found[1] for found in NAMED_PART.finditer(path)]
    in_path = [{"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}} for name in names]
    described["operationId"] = re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_")
    described["parameters"] = [*in_path, *described.get("parameters", ())]
    described["responses"] |= {
        status: one for status, one in describe_errors(classes, error_schema) if status not in described["responses"]
    }
    if guarded:
        described["security"] = [{name: []} for name in SECURITY] + ([] if keys_required else [{}])
    return described


def describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    answered = {endpoint.content_type: {"schema": endpoint.response}}
    statuses = {200: endpoint.summary, **endpoint.also}
    return {
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [{"name": name, "in": "query", "schema": one} for name, one in endpoint.parameters.items()],
        "responses": {str(status): {"description": why, "content": answered} for status, why in statuses.items()},
    }


def describe_wire_route(method: str, path: str, pattern: str, wire: Wire) -> tuple[dict[str, Any], ErrorClasses]:
    schemas = load_schemas(wire.name)
    if pattern in wire.routes:
        answered: Schema = {"$ref": f"#/components/schemas/{wire.name}_response"}
        whole = {"schema": listing(answered) if path.endswith(schemas.listed or "/") else answered}
        streamed = {"schema": {"description": schemas.stream}}
        mode = {"name": "x-toolglot-mode", "in": "header", "schema": words(*MODES)}
        upstream_errors = {"$ref": f"#/components/schemas/{wire.name}_error"}
        refused = {"description": OF_UPSTREAM, "content": {JSON: {"schema": upstream_errors}}}
        described = {
            "summary": f"{schemas.title}: ask a model",
            "tags": [wire.name],
            "parameters": [mode],
            "requestBody": make_body({"$ref": f"#/components/schemas/{wire.name}_request"}),
            "responses": {
                "200": {"description": "The answer", "content": {JSON: whole, wire.stream_type: streamed}},
                "4XX": refused,
                "5XX": refused,
            },
        }
        return described, COMPLETION_ERRORS
    ending = next(end for end in schemas.extra if path.endswith(end))
    request, response = schemas.extra[ending]
    described = {
        "summary": f"{schemas.title}: {ending.strip('/')}",
        "tags": [wire.name],
        **({"requestBody": make_body(request)} if request is not None else {}),
        "responses": {"200": {"description": "The answer", "content": {JSON: {"schema": response}}}},
    }
    return described, (errors.RequestSizeError,)


def make_body(schema: Schema) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": schema}}}


def describe_errors(classes: Sequence[type[ToolglotError]], schema: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The responses of these errors, by status, with their codes."""
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    for status in sorted({kind.status for kind in classes}):
        codes = dict.fromkeys(kind.code for kind in classes if kind.status == status)
        yield str(status), {"description": f"Codes: {', '.join(codes)}.", "content": content}
