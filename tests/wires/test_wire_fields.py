"""Each field of ``Sampling`` on each wire: where it is, or that the wire cannot carry it.

A new field fails here once per wire, with the files to edit. CONTRIBUTING.md, *Add a wire field*, explains the steps.
"""

from __future__ import annotations

import json
from typing import Any, Final

from support.rows import in_one_test

from toolglot.core.conversation import Conversation, JsonSchema, Message, Sampling, Text, Tool
from toolglot.wires import all_wires, client_wires
from toolglot.wires.translation import list_not_carried

NOT_CARRIED: Final = ""
"""The wire has no place for the field: nothing of it is sent."""

VALUES: Final[dict[str, Any]] = {
    "max_tokens": 77,
    "temperature": 0.5,
    "top_p": 0.25,
    "top_k": 5,
    "seed": 42,
    "stop": ("END",),
    "parallel_calls": False,
    "effort": "low",
    "json_object": True,
    "json_schema": JsonSchema(
        {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        }
    ),
}
"""A value for each field, other than its default."""

PLACES: Final[dict[str, dict[str, str]]] = {
    "max_tokens": {
        "anthropic_messages": "max_tokens",
        "gemini": "generationConfig.maxOutputTokens",
        "ollama": "options.num_predict",
        "openai_chat": "max_tokens",
        "openai_responses": "max_output_tokens",
    },
    "temperature": {
        "anthropic_messages": "temperature",
        "gemini": "generationConfig.temperature",
        "ollama": "options.temperature",
        "openai_chat": "temperature",
        "openai_responses": "temperature",
    },
    "top_p": {
        "anthropic_messages": "top_p",
        "gemini": "generationConfig.topP",
        "ollama": "options.top_p",
        "openai_chat": "top_p",
        "openai_responses": "top_p",
    },
    "top_k": {
        "anthropic_messages": "top_k",
        "gemini": "generationConfig.topK",
        "ollama": "options.top_k",
        "openai_chat": NOT_CARRIED,
        "openai_responses": NOT_CARRIED,
    },
    "seed": {
        "anthropic_messages": NOT_CARRIED,
        "gemini": "generationConfig.seed",
        "ollama": "options.seed",
        "openai_chat": "seed",
        "openai_responses": NOT_CARRIED,
    },
    "stop": {
        "anthropic_messages": "stop_sequences",
        "gemini": "generationConfig.stopSequences",
        "ollama": "options.stop",
        "openai_chat": "stop",
        "openai_responses": NOT_CARRIED,
    },
    "parallel_calls": {
        "anthropic_messages": "tool_choice.disable_parallel_tool_use",
        "gemini": NOT_CARRIED,
        "ollama": NOT_CARRIED,
        "openai_chat": "parallel_tool_calls",
        "openai_responses": "parallel_tool_calls",
    },
    "effort": {
        "anthropic_messages": "output_config.effort",
        "gemini": "generationConfig.thinkingConfig.thinkingLevel",
        "ollama": "think",
        "openai_chat": "reasoning_effort",
        "openai_responses": "reasoning.effort",
    },
    "json_object": {
        "anthropic_messages": NOT_CARRIED,
        "gemini": "generationConfig.responseMimeType",
        "ollama": "format",
        "openai_chat": "response_format.type",
        "openai_responses": "text.format",
    },
    "json_schema": {
        "anthropic_messages": "output_config.format",
        "gemini": "generationConfig.responseJsonSchema",
        "ollama": "format",
        "openai_chat": "response_format.json_schema",
        "openai_responses": "text.format",
    },
}
"""Where each wire has a field in its request; dots lead into objects."""

ABSENT: Final = object()
TOOL = Tool("read", "Reads a file", {"type": "object", "properties": {"path": {"type": "string"}}})
CASES = [(field, wire) for field in Sampling.__struct_fields__ for wire in client_wires()]


def encode(wire: str, sampling: Sampling) -> bytes:
    conversation = Conversation("m", (Message("user", (Text("go"),)),), (TOOL,), sampling=sampling)
    return all_wires()[wire].encode_request(conversation, stream=False, wants_usage=False)


def find(body: Any, place: str) -> Any:
    for key in place.split("."):
        body = body.get(key, ABSENT) if isinstance(body, dict) else ABSENT
    return body


@in_one_test(("field", "wire"), CASES)
def test_each_wire_carries_the_field_or_declares_that_it_does_not(field: str, wire: str) -> None:
    folder = f"src/toolglot/wires/{wire}"
    assert field in VALUES, f"{field} is new: give it a value in VALUES of {__file__}"
    place = PLACES.get(field, {}).get(wire)
    assert place is not None, (
        f"{field} on {wire}: read it in {folder}/request_decoder.py, write it in {folder}/request_encoder.py and state its"
        " place in PLACES, or state NOT_CARRIED there and what happens in docs/wires.md"
    )
    sampling = Sampling(**{field: VALUES[field]})
    body = encode(wire, sampling)
    if place == NOT_CARRIED:
        assert body == encode(wire, Sampling()), (
            f"{folder}/request_encoder.py writes {field}, but PLACES has NOT_CARRIED"
        )
        return
    assert find(json.loads(body), place) is not ABSENT, f"{folder}/request_encoder.py does not write {field} as {place}"
    request = all_wires()[wire].decode_request(body, {"model": "m"})
    read, expected = getattr(request.conversation.sampling, field), VALUES[field]
    if isinstance(read, JsonSchema):  # some wires require a name
        read, expected = read.schema, expected.schema
    assert read == expected, f"{folder}/request_decoder.py does not read {field} from {place}"
    reported = list_not_carried(request.conversation, request.modelled, Sampling.__struct_fields__)
    assert not reported, (
        f"{folder}/request_decoder.py leaves {reported} in extra, which the client is informed about as not carried: add it to"
        " MODELLED, SAMPLING_FIELDS or SAMPLING_KEYS there, or to ClientRequest.modelled if it is inside an object"
    )


NESTED = [case for case in CASES if "." in PLACES.get(case[0], {}).get(case[1], "")]
NESTED.remove(("parallel_calls", "anthropic_messages"))  # a tool choice has no other keys
NESTED = [
    case for case in NESTED if not PLACES[case[0]][case[1]].startswith("response_format.")
]  # one format, no others


@in_one_test(("field", "wire"), NESTED)
def test_other_keys_of_the_same_object_are_kept(field: str, wire: str) -> None:
    """A client of the same wire sends a field inside an object beside a key that only this wire knows."""
    place, folder = PLACES[field][wire], f"src/toolglot/wires/{wire}"
    body = json.loads(encode(wire, Sampling(**{field: VALUES[field]})))
    holder = find(body, place.rpartition(".")[0])
    holder["anotherKey"] = "kept"
    conversation = all_wires()[wire].decode_request(json.dumps(body).encode(), {"model": "m"}).conversation
    again = json.loads(all_wires()[wire].encode_request(conversation, stream=False, wants_usage=False))
    assert find(again, place) == find(body, place)
    assert find(again, f"{place.rpartition('.')[0]}.anotherKey") == "kept", (
        f"{folder}/request_encoder.py replaces the object of {place} instead of adding to it"
    )


def test_no_field_is_listed_that_is_gone() -> None:
    assert sorted(PLACES) == sorted(VALUES) == sorted(Sampling.__struct_fields__)
