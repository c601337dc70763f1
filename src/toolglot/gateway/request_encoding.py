"""Encodes a request for its upstream: as the client's own bytes, with native tools, or with tools as text."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolglot.clients import toolsets
from toolglot.clients.xml.argument_escaping import GUARDED_TOOLS
from toolglot.config.rollout import EDITING
from toolglot.core.conversation import Conversation, Tool, ToolChoice
from toolglot.gateway.capabilities.profiles import REASONING_RETURNED, SIGNED_CALLS, STREAM_ONLY, Rule
from toolglot.gateway.capabilities.workarounds import adapt_reasoning, enforce_call, restrict_tools
from toolglot.gateway.prompt_stability import append_lines, measure_prompt, pin_system_prompt, remove_from_body
from toolglot.gateway.routing import NATIVE, RELAY, TEXT
from toolglot.gateway.sessions.kept_reasoning import Keeping, find_turn, restore
from toolglot.gateway.sessions.recognition import make_chat_turn
from toolglot.gateway.tool_results import match_results
from toolglot.prompting.conversation import PromptedConversation, render_as_text
from toolglot.prompting.few_shot import render_for_small_model
from toolglot.wires.translation import rename_tools

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange


def encode(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The request for the upstream: the client's own bytes, wherever that is possible."""
    mode = exchange.route.tool_mode
    if mode is not RELAY:
        exchange.mapping = _find_mapping(exchange, conversation)
        guard = exchange.settings.clients.guard
        if guard and any(tool.name in GUARDED_TOOLS for tool in conversation.tools):
            exchange.guards = guard
    if mode is TEXT or exchange.upstream_wire.chat is not None:
        return encode_as_text(exchange, conversation, body)
    if exchange.same_wire and (mode is RELAY or (exchange.xml_session is None and exchange.mapping is None)):
        return _adapt_body(exchange, conversation, body)
    return _encode_natively(exchange, conversation)


def _find_mapping(exchange: Exchange, conversation: Conversation) -> toolsets.ToolMapping | None:
    """The mapping from the client's tools to those that the model was trained on, if the settings ask for one."""
    wanted, session = exchange.route.model.editing, exchange.xml_session
    if not wanted or not exchange.experiment.runs(EDITING):
        return None
    tools = conversation.tools if session is None else session.offered
    mapping = toolsets.find_mapping(
        tools,
        wanted,
        only=conversation.choice.only,
        parallel=not exchange.route.single,
        model_name=conversation.model,
        check=session.check_call if session else None,
    )
    if mapping is None and tools:
        exchange.recorder.notes.append(f"the client's tools have no counterparts in {wanted} and stay as they are")
    return mapping


def encode_as_text(exchange: Exchange, conversation: Conversation, body: bytes = b"") -> bytes:
    """The request with tools and calls as text. The prompt of an XML client has them as text already, so it goes on
    unchanged unless its tools are mapped to others or the upstream needs examples."""
    session, route = exchange.xml_session, exchange.route
    if session is not None and not route.upstream.coached and exchange.mapping is None:
        if body and exchange.same_wire and not route.extra:
            return _adapt_model(exchange, conversation, body)
        return _encode_for_wire(exchange, conversation)
    conversation = _match_results(exchange, session.to_native(conversation) if session else conversation)
    if route.tool_mode is RELAY:  # past calls are rendered, no tools are taught
        conversation = replace(conversation, tools=(), choice=ToolChoice())
    conversation, changed_lines = pin_system_prompt(exchange, conversation)
    prompted = exchange.prompted = _render_prompt(exchange, conversation)
    exchange.recorder.notes += prompted.notes
    exchange.tools, exchange.names = _list_readable(exchange, prompted.tools), prompted.names
    return _encode_for_wire(exchange, append_lines(prompted.conversation, changed_lines))


def _render_prompt(exchange: Exchange, conversation: Conversation) -> PromptedConversation:
    route = exchange.route
    if route.upstream.coached:
        return render_for_small_model(conversation, route.dialect)
    prompted = render_as_text(conversation, route.dialect, parallel=route.parallel)
    if conversation.choice.mode == "required" and exchange.upstream_wire.reasoning_fields:
        return enforce_call(prompted, _find_rule(exchange), route.dialect, parallel=route.parallel)
    return prompted


def _encode_natively(exchange: Exchange, conversation: Conversation) -> bytes:
    conversation = _restore_reasoning(exchange, conversation)
    if exchange.xml_session is not None and exchange.route.tool_mode is not RELAY:
        conversation = exchange.xml_session.to_native(conversation)
    conversation = _apply_workarounds(exchange, _match_results(exchange, conversation))
    conversation, exchange.names = rename_tools(conversation, exchange.upstream_wire.tool_name_pattern)
    exchange.tools = _list_readable(exchange, conversation.tools)
    return _encode_for_wire(exchange, conversation)


def _adapt_body(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The client's own bytes, unless they lack reasoning or the upstream does not support the tool choice."""
    route = exchange.route
    if route.tool_mode is NATIVE:
        restored = _restore_reasoning(exchange, conversation)
        narrowed = restrict_tools(restored, _find_rule(exchange)) if restored.choice != ToolChoice() else restored
        if narrowed is not conversation:
            return _encode_for_wire(exchange, _apply_workarounds(exchange, narrowed))
    if _needs_stream(exchange):
        return _encode_for_wire(exchange, conversation)
    return _adapt_model(exchange, conversation, body)


def _adapt_model(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The client's own bytes with the upstream's name of the model. Usually the client uses the same name, and the body
    is not parsed again; but it may lack the default model, and half a surrogate pair is repaired."""
    model, stripped = exchange.route.model.model, exchange.route.mode == "off"
    body = remove_from_body(exchange, body)
    measure_prompt(exchange, conversation, len(body))
    same = model == conversation.model != exchange.settings.server.default_model
    intact = same and not stripped and b"\\ud" not in body and b"\\uD" not in body
    return body if intact else exchange.wire.adapt_request(body, model, without_tools=stripped)


def _list_readable(exchange: Exchange, sent: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """The tools with which calls in the response's text are read, if the model was sent these."""
    session = exchange.xml_session
    if session is None:
        return sent
    if exchange.mapping is None:
        return sent if exchange.prompted else session.tools
    return session.add_tools(sent, hidden=exchange.mapping.offered_tools)


def _match_results(exchange: Exchange, conversation: Conversation) -> Conversation:
    """The conversation with every tool result tied to its call, and with mapped tools if there is a mapping."""
    numbers = count(1)  # not random: the same history must give the same prompt
    messages, notes = match_results(conversation.messages, lambda: f"call{next(numbers):05}")
    exchange.recorder.notes += notes
    if messages != conversation.messages:
        conversation = replace(conversation, messages=messages)
    if exchange.mapping:
        conversation = exchange.mapping.map_request(conversation, exchange.recorder.notes)
        exchange.choice = conversation.choice
    return conversation


def _apply_workarounds(exchange: Exchange, conversation: Conversation) -> Conversation:
    """The conversation as this particular server accepts it."""
    rule = _find_rule(exchange)
    if exchange.upstream_wire.reasoning_fields:
        conversation = adapt_reasoning(conversation, rule)
    return restrict_tools(conversation, rule)


def _find_rule(exchange: Exchange) -> Rule:
    route, capabilities = exchange.route, exchange.context.capabilities
    rule = route.rule or capabilities.guess_rule(route.upstream, route.model.model)
    return capabilities.add_learned(rule, route.upstream, route.model.model)


def _restore_reasoning(exchange: Exchange, conversation: Conversation) -> Conversation:
    """Put back reasoning and signatures that the client did not send. They are kept by client key and upstream."""
    keeping = _choose_keeping(exchange)
    if not (keeping.signed or keeping.unsigned):
        return conversation
    exchange.turn_key, exchange.keeping = find_turn(conversation.messages), keeping
    if not (keeping.signed or keeping.returned):  # the upstream has not asked for it so far
        return conversation
    kept = exchange.client_state.open_reasoning(exchange.route.upstream.base_url)
    restored = restore(conversation.messages, kept, keeping)
    return conversation if restored == conversation.messages else replace(conversation, messages=restored)


def _choose_keeping(exchange: Exchange) -> Keeping:
    """Which reasoning is kept. Reasoning that the upstream is not known to want back is kept in memory only: it may
    still refuse the next request for lack of it."""
    wire = exchange.upstream_wire
    quirks = _find_rule(exchange).quirks if wire.reasoning_fields else ()
    signs = wire.models_sign_reasoning and not exchange.same_wire
    if wire.reasoning_fields:  # without an agreed field for signatures only some servers sign
        signs = SIGNED_CALLS in quirks
    return Keeping(
        signed=signs and not exchange.wire.client_returns_signatures,
        unsigned=bool(wire.reasoning_fields) and exchange.route.tool_mode is NATIVE,
        returned=REASONING_RETURNED in quirks,
    )


def may_lack_reasoning(exchange: Exchange, conversation: Conversation) -> bool:
    """Whether the upstream may refuse a request because the client has dropped reasoning that is known here."""
    keeping = exchange.keeping
    return keeping.unsigned and not keeping.returned and any(message.calls for message in conversation.messages)


def encode_with_reasoning(exchange: Exchange, conversation: Conversation) -> bool:
    """Encode the request again, with the reasoning that the upstream has missed. Returns False if none is known."""
    restored = _restore_reasoning(exchange, conversation)
    if restored is conversation:
        return False
    exchange.recorder.notes.append("asked again with the reasoning of earlier turns")
    if exchange.same_wire and exchange.xml_session is None and exchange.mapping is None:
        exchange.upstream_body = _encode_for_wire(exchange, _apply_workarounds(exchange, restored))
    else:
        exchange.upstream_body = _encode_natively(exchange, conversation)
    return True


def _encode_for_wire(exchange: Exchange, conversation: Conversation) -> bytes:
    route, client_request = exchange.route, exchange.client_request
    if route.mode == "off":
        sampling = replace(conversation.sampling, parallel_calls=None)
        conversation = replace(conversation, tools=(), choice=ToolChoice(), sampling=sampling)
    if route.extra or conversation.model != route.model.model:
        extra = {**route.extra, **conversation.extra}
        conversation = replace(conversation, model=route.model.model, extra=extra)
    if exchange.upstream_wire.chat is not None:
        exchange.chat_turn = make_chat_turn(exchange.session_turn, route, exchange.client_state.key, conversation)
        return b""
    forced = _needs_stream(exchange)
    stream, wants_usage = client_request.stream or forced, client_request.wants_usage or forced
    encoded = exchange.upstream_wire.encode_request(conversation, stream=stream, wants_usage=wants_usage)
    measure_prompt(exchange, conversation, len(encoded))
    return encoded


def _needs_stream(exchange: Exchange) -> bool:
    """Whether the client wants a whole answer and the upstream only streams; then the answer is made of the stream."""
    return not exchange.client_request.stream and STREAM_ONLY in _find_rule(exchange).quirks
