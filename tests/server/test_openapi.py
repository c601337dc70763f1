"""``GET /openapi.json`` describes what the gateway does: every route, and for schemathesis every response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from support.gateway import ASK, Gate, gateway, run
from support.loopback import running_loop

from toolglot.config import load
from toolglot.core.errors import InternalError, RequestError, UpstreamResponseError
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.server.app import Gateway
from toolglot.server.openapi import ENDPOINTS, Route, describe_api, load_schemas
from toolglot.wires import client_wires

KEY = "sk-client-key-1"
EXAMPLES = 8
PATIENCE = 60
"""Seconds for a response: the server runs in the same process as what makes the examples."""
ALIASES = r"^(?!/v1)(?:/models|/messages|/responses|/chat/)|^/v1/models/\{model\}|^/health/live|^/$"
"""Other paths of the same endpoints; trying them again would take time and find nothing new."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder: Path = tmp_path_factory.mktemp("state")
    with running_loop() as loop, loop.entered(gateway(state_dir=str(folder), client_keys=KEY)) as gate:
        yield gate


def list_routes() -> list[Route]:
    gateway = Gateway(load({"state_dir": "none", "base_url": "http://127.0.0.1:1"}, {}), Telemetry())
    return [(method, path, wire) for method, path, (_, wire) in gateway.router.list_routes()]


DESCRIBED = describe_api(list_routes(), keys_required=True)
WIRES = list(client_wires())
OWN = schemathesis.openapi.from_dict(DESCRIBED).exclude(path_regex=ALIASES).exclude(tag=WIRES)
CLIENTS = schemathesis.openapi.from_dict(DESCRIBED).exclude(path_regex=ALIASES).include(tag=WIRES)
CLIENTS.config.phases.update(phases=["fuzzing"])
CLIENTS.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE])
EACH = settings(
    deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True, max_examples=EXAMPLES
)
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")  # large examples


@OWN.parametrize()
@EACH
def test_the_gateway_does_what_it_describes(case: schemathesis.Case[Any], server: Gate) -> None:
    case.call_and_validate(base_url=server.address, headers={"Authorization": f"Bearer {KEY}"}, timeout=PATIENCE)


@CLIENTS.parametrize()
@EACH
def test_the_gateway_answers_clients_as_it_describes(case: schemathesis.Case[Any], server: Gate) -> None:
    """Clients' requests are taken as tolerantly as upstreams take them, and upstreams may refuse any; so only the
    responses of these endpoints are judged. ``test_requests_that_a_schema_excludes_are_refused`` tries the requests."""
    excluded = [positive_data_acceptance, negative_data_rejection]
    case.call_and_validate(
        base_url=server.address, headers={"Authorization": f"Bearer {KEY}"}, excluded_checks=excluded, timeout=PATIENCE
    )


# -- the description itself --------------------------------------------------------------------------------------------


def test_every_endpoint_is_described_and_exists() -> None:
    described = {(method.upper(), path) for path, item in DESCRIBED["paths"].items() for method in item}
    assert described >= set(ENDPOINTS)
    for wire in client_wires().values():
        for end in load_schemas(wire.name).extra:
            assert any(path.endswith(end) for _, path in described)


def test_the_description_is_the_same_over_http_and_needs_no_key(server: Gate) -> None:
    async def test() -> None:
        async with gateway() as gate:
            answer = await gate.get("/openapi.json")
            assert answer.status == 200 and answer.headers["content-type"] == "application/json"
            assert answer.json == json.loads(json.dumps(describe_api(list_routes(), keys_required=False)))
            assert {} in answer.json["paths"]["/v1/models"]["get"]["security"]
        async with gateway(client_keys=KEY) as gate:
            assert (await gate.get("/openapi.json")).json == json.loads(json.dumps(DESCRIBED))
            assert (await gate.get("/v1/models")).status == 401

    run(test)


def test_statuses_come_from_the_error_tree() -> None:
    asked = DESCRIBED["paths"]["/v1/chat/completions"]["post"]["responses"]
    assert {"200", "400", "401", "404", "413", "429", "431", "500", "502", "503", "504", "4XX", "5XX"} == set(asked)
    assert "upstream_unreachable" in asked["502"]["description"]
    assert (
        "403" not in asked
        and "403" in describe_api(list_routes(), keys_required=False)["paths"]["/"]["get"]["responses"]
    )


USER = {"role": "user", "content": "hi"}
GOOD: dict[str, dict[str, Any]] = {
    "openai_chat": {k: v for k, v in ASK.items() if k != "model"}
    | {"temperature": 0.5, "stop": ["a"], "tool_choice": "auto"},
    "openai_responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
    "anthropic_messages": {
        "messages": [USER],
        "system": [{"type": "text", "text": "x"}],
        "tool_choice": {"type": "none"},
    },
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"topK": 1}},
    "ollama": {"messages": [USER], "options": {"seed": 1}, "stream": False},
}
BAD: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        *({"messages": None}, {"messages": []}, {"messages": ["x"]}, {"messages": [USER | {"role": "x"}]}),
        *({"messages": [USER | {"content": 1}]}, {"messages": [USER | {"content": [1]}]}, {"tools": {}}, {"n": 2}),
        *({"temperature": "1"}, {"stop": 1}, {"tool_choice": "x"}, {"tool_choice": 1}, {"max_tokens": True}),
        {"messages": [USER | {"role": "assistant", "tool_calls": "x"}]},
    ],
    "openai_responses": [
        *({"input": None}, {"input": []}, {"input": [1]}, {"input": 1}, {"tools": 1}, {"tool_choice": "x"}),
        *({"temperature": "1"}, {"instructions": 1}, {"top_p": []}, {"max_output_tokens": "9"}),
    ],
    "anthropic_messages": [
        *(
            {"messages": []},
            {"messages": [1]},
            {"messages": [USER | {"role": "x"}]},
            {"messages": [USER | {"content": 1}]},
        ),
        *({"messages": [USER | {"content": ["x"]}]}, {"system": 1}, {"tools": 1}, {"tool_choice": {"type": "x"}}),
        *({"top_k": "1"}, {"stop_sequences": [1]}),
    ],
    "gemini": [
        *({"contents": None}, {"contents": [1]}, {"contents": [{"role": "x"}]}, {"contents": [{"parts": "x"}]}),
        *({"systemInstruction": 1}, {"tools": 1}, {"generationConfig": {"temperature": "1"}}),
        {"generationConfig": {"candidateCount": 2}},
    ],
    "ollama": [
        *(
            {"messages": []},
            {"messages": [1]},
            {"messages": [USER | {"role": "x"}]},
            {"messages": [USER | {"content": []}]},
        ),
        *({"messages": [USER | {"images": [1]}]}, {"options": [1]}, {"options": {"seed": "1"}}, {"tools": 1}),
        {"messages": [USER | {"role": "assistant", "tool_calls": [{"function": {"name": " "}}]}]},
    ],
}


@pytest.mark.parametrize("wire", WIRES)
def test_requests_that_a_schema_excludes_are_refused(wire: str) -> None:
    """What the schema of a wire insists on, its decoder insists on, and the other way round."""
    schema = jsonschema_rs.validator_for(load_schemas(wire).request)
    decode = client_wires()[wire].decode_request
    assert schema.is_valid(GOOD[wire])
    decode(json.dumps(GOOD[wire]).encode(), {})
    for change in BAD[wire]:
        body = GOOD[wire] | change
        assert not schema.is_valid(body), change
        with pytest.raises(RequestError):
            decode(json.dumps(body).encode(), {})


@pytest.mark.parametrize("wire", WIRES)
def test_errors_have_the_form_that_is_described(wire: str) -> None:
    validator = jsonschema_rs.validator_for(load_schemas(wire).error)
    for error in (RequestError("x", "messages[0]"), UpstreamResponseError("x", 529, "y", "z"), InternalError("x")):
        validator.validate(json.loads(client_wires()[wire].encode_error(error)))
