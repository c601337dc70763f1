"""Encodes a request for its upstream: as the client's own bytes, with native tools, or with tools as text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from toolglot.clients import toolsets
from toolglot.clients.xml.argument_escaping import GUARDED_TOOLS
from toolglot.clients.xml.session import XmlSession
from toolglot.config.rollout import EDITING, RECOVERY
from toolglot.config.settings import REFUSE
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolChoice
from toolglot.gateway.capabilities.constraints import constrain
from toolglot.gateway.capabilities.profiles import (
    NEEDS_EXAMPLES,
    NEEDS_GUIDANCE,
    REASONING_RETURNED,
    SIGNED_CALLS,
    STREAM_ONLY,
    Rule,
)
from toolglot.gateway.capabilities.workarounds import adapt_reasoning, restrict_tools
from toolglot.gateway.prompt_stability import (
    SMALL_PROMPT,
    append_lines,
    measure_prompt,
    pin_system_prompt,
    remove_from_body,
)
from toolglot.gateway.recovery.annotations import Annotation, annotate, find_last_turn
from toolglot.gateway.recovery.attempts import AnswerDefect, DefectKind, Step
from toolglot.gateway.recovery.edit_hints import find_edit_hints
from toolglot.gateway.recovery.failed_calls import find_failures
from toolglot.gateway.recovery.history import HealedHistory, heal_history
from toolglot.gateway.recovery.loop_guard import find_loops
from toolglot.gateway.recovery.retry_messages import append_messages, make_retry_messages
from toolglot.gateway.routing import NATIVE, RELAY, TEXT
from toolglot.gateway.sessions.kept_reasoning import Keeping, find_turn, restore
from toolglot.gateway.sessions.recognition import make_chat_turn
from toolglot.prompting.conversation import PromptedConversation, render_as_text
from toolglot.prompting.example_turns import render_with_examples
from toolglot.prompting.few_shot import render_for_small_model
from toolglot.prompting.output_format import state_output_format
from toolglot.wires.translation import offers_calls, rename_tools
from toolglot.wires.vendor_fields import restore_request

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange

PAST_ROLES: Final = ("assistant", "tool")
FORMATS: Final = ("json_object", "json_schema")
OTHER_DIALECT: Final = "hermes"
SECOND_DIALECT: Final = "qwen3_coder"
"""The dialects that a model is asked to use if it cannot write its own."""


def encode(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The request for the upstream: the client's own bytes, wherever that is possible."""
    mode = exchange.route.tool_mode
    if exchange.same_wire and exchange.client_state.owner:
        body = _check_ids(exchange, body)
    if mode is not RELAY:
        exchange.mapping = _find_mapping(exchange, conversation) if exchange.route.model.editing else None
        guard = exchange.settings.clients.guard
        if guard and any(tool.name in GUARDED_TOOLS for tool in conversation.tools):
            exchange.guards = guard
    if mode is TEXT or exchange.upstream_wire.chat is not None:
        return encode_as_text(exchange, conversation, body)
    if exchange.same_wire and (mode is RELAY or (exchange.xml_session is None and exchange.mapping is None)):
        return _adapt_body(exchange, conversation, body)
    return _encode_natively(exchange, conversation)


def _check_ids(exchange: Exchange, body: bytes) -> bytes:
    """The body, if this client may use its ids. Raises: RequestError if it may not."""
    if not exchange.client_state.is_known or exchange.settings.server.unknown_ids != REFUSE:
        return body
    return exchange.client_state.check_ids(body, exchange.wire.references)


def _find_mapping(exchange: Exchange, conversation: Conversation) -> toolsets.ToolMapping | None:
    """The mapping from the client's tools to those that the model was trained on, if the settings ask for one."""
    wanted, session = exchange.route.model.editing, exchange.xml_session
    if not exchange.experiment.runs(EDITING):
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


def encode_as_text(
    exchange: Exchange, conversation: Conversation, body: bytes = b"", more: tuple[Message, ...] = (), tool: str = ""
) -> bytes:
    """The request with tools and calls as text. The prompt of an XML client has them as text already, so it goes on
    unchanged unless its tools are mapped to others or the upstream needs examples. ``more`` are messages that are text
    already. ``tool`` is the one that the model is held to, where the upstream can do that."""
    session, route = exchange.xml_session, exchange.route
    if session is not None and not route.upstream.coached and exchange.mapping is None:
        annotated = _annotate_xml(exchange, session, conversation)
        if body and exchange.same_wire and not route.extra and annotated is conversation:
            return _adapt_model(exchange, conversation, body)
        return _encode_for_wire(exchange, _append(annotated, more))
    conversation = _heal(exchange, session.to_native(conversation) if session else conversation)
    if route.tool_mode is RELAY:  # past calls are rendered, no tools are taught
        conversation = replace(conversation, tools=(), choice=ToolChoice())
    changed_lines = ""
    if conversation.messages and conversation.messages[0].role == "system":
        conversation, changed_lines = pin_system_prompt(exchange, conversation)
    prompted = exchange.prompted = _render_prompt(exchange, conversation)
    exchange.recorder.notes += prompted.notes
    exchange.tools, exchange.names = _list_readable(exchange, prompted.tools), prompted.names
    if tool:
        rule, wire = _find_rule(exchange), exchange.upstream_wire
        prompted = constrain(prompted, rule, wire, route.dialect, tool=tool) or prompted
    written = append_lines(prompted.conversation, changed_lines) if changed_lines else prompted.conversation
    return _encode_for_wire(exchange, _append(written, more))


def encode_retry(exchange: Exchange, conversation: Conversation, defect: AnswerDefect, step: Step) -> bytes:
    """The request that asks the model again, because its answer was defective. Where the upstream can hold the model to
    a call of the tool that it meant, it does. An unknown tool may have been a mistake for words, and a value that is
    not listed may have no counterpart."""
    native = exchange.route.tool_mode is NATIVE
    changes = step is Step.DIALECT and exchange.xml_session is None and not exchange.rejects_leaks
    if changes or (native and defect.kind is DefectKind.UNPARSED):
        _change_dialect(exchange)
    route, native = exchange.route, exchange.route.tool_mode is NATIVE
    if step is Step.ONE_TOOL and exchange.xml_session is None and not (native and defect.needs_no_call):
        conversation = _offer_one(conversation, exchange.names.get(defect.tool, defect.tool), native)
    defect = _name_as_prompted(defect, exchange.names)
    meant = defect.tool if _can_be_held(defect) else ""
    break_character = exchange.prompted.break_character if exchange.prompted else ""
    more = make_retry_messages(defect, exchange.tools, None if native else route.dialect, break_character)
    if not native or exchange.upstream_wire.chat is not None:
        return encode_as_text(exchange, conversation, more=more, tool=meant)
    return _encode_native_retry(exchange, _append(conversation, more), meant)


def _can_be_held(defect: AnswerDefect) -> bool:
    """Whether the model can be held to one call of the tool that it meant."""
    is_wrong = defect.kind in (DefectKind.REJECTED, DefectKind.INVALID)
    return is_wrong and not defect.interrupted and not defect.needs_no_call


def _encode_native_retry(exchange: Exchange, conversation: Conversation, meant: str) -> bytes:
    """The request that asks a model with native tools again. ``meant`` is the tool that it is held to, if any."""
    route = exchange.route
    if meant:
        given = _find_rule(exchange), exchange.upstream_wire, route.dialect
        conversation = constrain(conversation, *given, tool=exchange.names.get(meant, meant)) or conversation
    if exchange.same_wire and exchange.xml_session is None and exchange.mapping is None:
        healed = _heal(exchange, _restore_reasoning(exchange, conversation))
        encoded = _encode_for_wire(exchange, _apply_workarounds(exchange, healed))
        return _restore_fields(exchange, encoded, exchange.recovery.body) if exchange.recovery else encoded
    return _encode_natively(exchange, conversation)


def _change_dialect(exchange: Exchange) -> None:
    """Use another dialect from now on, or text instead of native tools."""
    route = exchange.route
    other = OTHER_DIALECT if route.dialect != OTHER_DIALECT else SECOND_DIALECT
    dialect = route.dialect if route.tool_mode is NATIVE else other
    exchange.route = replace(route, tool_mode=TEXT, dialect=dialect)
    exchange.recorder.mode, exchange.recorder.dialect = str(TEXT), dialect


def _name_as_prompted(defect: AnswerDefect, names: Mapping[str, str]) -> AnswerDefect:
    """The defect with tools named as the model knows them."""
    prompted = {name: own for own, name in names.items()}
    renamed = (replace(event, tool=prompted.get(event.tool or "", event.tool)) for event in defect.rejected)
    return replace(defect, rejected=tuple(renamed)) if prompted else defect


def _append(conversation: Conversation, more: tuple[Message, ...]) -> Conversation:
    return replace(conversation, messages=append_messages(conversation.messages, more)) if more else conversation


def _offer_one(conversation: Conversation, name: str, native: bool) -> Conversation:
    """The conversation with one tool to choose from, if the client offers it."""
    tools = tuple(tool for tool in conversation.tools if tool.name == name)
    if not tools:
        return conversation
    return replace(conversation, choice=ToolChoice.one(name)) if native else replace(conversation, tools=tools)


def _render_prompt(exchange: Exchange, conversation: Conversation) -> PromptedConversation:
    route = exchange.route
    if conversation.extra or conversation.sampling.json_object or conversation.sampling.json_schema:
        conversation = _state_format(exchange, conversation)
    if route.upstream.coached:
        return render_for_small_model(conversation, route.dialect)
    if _has_quirk(exchange, NEEDS_EXAMPLES):
        return render_for_small_model(conversation, route.dialect, detailed=True, parallel=route.parallel)
    render = render_with_examples if _has_quirk(exchange, NEEDS_GUIDANCE) else render_as_text
    prompted = render(conversation, route.dialect, parallel=route.parallel)
    if conversation.choice.mode != "required":
        return prompted
    wire, rule = exchange.upstream_wire, _find_rule(exchange)
    return constrain(prompted, rule, wire, route.dialect, parallel=route.parallel) or prompted


def _state_format(exchange: Exchange, conversation: Conversation, *, with_tools: bool = True) -> Conversation:
    """The conversation with the client's JSON format in the prompt, where that applies."""
    fields = exchange.upstream_wire.format_fields if exchange.same_wire else ()
    stated, notes = state_output_format(conversation, fields, with_tools=with_tools)
    exchange.recorder.notes += notes
    return stated


def list_carried(exchange: Exchange, conversation: Conversation) -> Collection[str]:
    """The fields of a request that reach the model, though the wire of the upstream may not have all of them."""
    wire = exchange.upstream_wire
    as_text = exchange.route.tool_mode is TEXT or (wire.chat is not None and exchange.route.tool_mode is not RELAY)
    return {*wire.carries, *FORMATS} if as_text and offers_calls(conversation) else wire.carries


def _has_quirk(exchange: Exchange, quirk: str) -> bool:
    """Whether the profile of the model has a quirk."""
    rule = exchange.route.rule
    return rule is not None and quirk in rule.quirks


def _encode_natively(exchange: Exchange, conversation: Conversation) -> bytes:
    conversation = _restore_reasoning(exchange, conversation)
    sampling = conversation.sampling
    if (sampling.json_object or sampling.json_schema) and not exchange.same_wire:
        named = replace(conversation, model=exchange.route.model.model)
        if not exchange.upstream_wire.enforces_format(named):
            conversation = _state_format(exchange, conversation, with_tools=False)
    if exchange.xml_session is not None and exchange.route.tool_mode is not RELAY:
        conversation = exchange.xml_session.to_native(conversation)
    conversation = _apply_workarounds(exchange, _heal(exchange, conversation))
    conversation, exchange.names = rename_tools(conversation, exchange.upstream_wire.tool_name_pattern)
    exchange.tools = _list_readable(exchange, conversation.tools)
    return _encode_for_wire(exchange, conversation)


def _adapt_body(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The client's own bytes, unless they lack reasoning, the history is broken, recovery has something to tell the
    model, or the upstream does not support the tool choice."""
    route = exchange.route
    if route.tool_mode is NATIVE:
        restored = _heal_if_broken(exchange, _restore_reasoning(exchange, conversation))
        narrowed = restrict_tools(restored, _find_rule(exchange)) if restored.choice != ToolChoice() else restored
        if narrowed is not conversation:
            encoded = _encode_for_wire(exchange, _apply_workarounds(exchange, narrowed))
            return _restore_fields(exchange, encoded, body)
    if _needs_stream(exchange) or exchange.client_request.is_older_form:
        return _encode_for_wire(exchange, conversation)
    return _adapt_model(exchange, conversation, body)


def _restore_fields(exchange: Exchange, encoded: bytes, body: bytes) -> bytes:
    """The request with the fields of the client's body that only their wire knows."""
    older = exchange.client_request.is_older_form
    return encoded if older else restore_request(encoded, body, exchange.wire.known_request)


def _adapt_model(exchange: Exchange, conversation: Conversation, body: bytes) -> bytes:
    """The client's own bytes with the upstream's name of the model. Usually the client uses the same name, and the body
    is not parsed again; but it may lack the default model, and half a surrogate pair is repaired."""
    model, stripped = exchange.route.model.model, not exchange.settings.tool_calling.enabled
    if exchange.volatile_lines:
        body = remove_from_body(exchange, body)
    if len(body) >= SMALL_PROMPT:
        measure_prompt(exchange, conversation)
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


# -- healing and annotating the history --------------------------------------------------------------------------------


def _heal(exchange: Exchange, conversation: Conversation) -> Conversation:
    """The conversation with a healed history, what recovery tells the model, and mapped tools if there is a mapping."""
    if _has_past(conversation):
        healed = _heal_messages(exchange, conversation)
        exchange.recorder.notes += healed.notes
        messages = annotate(healed.messages, _find_annotations(exchange, healed.messages))
        if messages != conversation.messages:
            conversation = replace(conversation, messages=messages)
    if exchange.mapping:
        conversation = exchange.mapping.map_request(conversation, exchange.recorder.notes)
        exchange.choice = conversation.choice
    return conversation


def _has_past(conversation: Conversation) -> bool:
    """Whether there may be calls and results of earlier turns."""
    return any([message.role in PAST_ROLES for message in conversation.messages])


def _heal_if_broken(exchange: Exchange, conversation: Conversation) -> Conversation:
    """The conversation with a healed history, and with what recovery tells the model now; the same object if the
    client's own bytes will do. A request that refers to stored turns does not show whether these have calls."""
    if exchange.client_request.same_wire_only is not None or not _has_past(conversation):
        return conversation
    healed = _heal_messages(exchange, conversation)
    last = find_last_turn(healed.messages)
    new = [one for one in _find_annotations(exchange, healed.messages) if one.at > last]
    refusal = exchange.upstream_wire.find_refusal(healed.messages)
    if not healed.healings and not new and not refusal:
        return conversation
    exchange.recorder.notes += [*healed.notes, *filter(None, [refusal])]
    return replace(conversation, messages=annotate(healed.messages, new))


def _heal_messages(exchange: Exchange, conversation: Conversation) -> HealedHistory:
    route, form = exchange.route, ""
    if route.tool_mode is NATIVE and exchange.upstream_wire.reasoning_fields:
        profiles = exchange.context.capabilities.profiles
        form = profiles.find_id_form(route.upstream.base_url, route.model.model)
    return heal_history(conversation.messages, form)


def _find_annotations(exchange: Exchange, messages: Sequence[Message]) -> list[Annotation]:
    """What recovery tells the model about repeated and failed calls. New annotations are recorded."""
    recovery = exchange.settings.recovery
    if exchange.route.tool_mode is RELAY:
        return []
    found = [
        *find_loops(messages, recovery.loop_guard),
        *(find_edit_hints(messages) if recovery.edit_hints else ()),
        *(find_failures(messages) if _has_quirk(exchange, NEEDS_GUIDANCE) else ()),
    ]
    if not found or not exchange.experiment.runs(RECOVERY):
        return []
    last = find_last_turn(messages)
    exchange.recorder.notes += [one.note for one in found if one.at > last]
    return found


def _annotate_xml(exchange: Exchange, session: XmlSession, conversation: Conversation) -> Conversation:
    """The prompt of an XML client with what recovery tells the model now, behind the results, which are user text; the
    same object if that is nothing."""
    messages = conversation.messages
    if not messages or messages[-1].role != "user":
        return conversation
    native = session.to_native(conversation).messages
    last = find_last_turn(native)
    text = "".join(f"\n\n{one.text}" for one in _find_annotations(exchange, native) if one.at > last)
    if not text:
        return conversation
    parts = messages[-1].parts
    if parts and isinstance(end := parts[-1], Text):
        parts, text = parts[:-1], end.text + text
    return replace(conversation, messages=(*messages[:-1], Message("user", (*parts, Text(text)))))


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
    """Whether the upstream, whose reasoning is kept, may refuse a request because the client has dropped it."""
    keeping = exchange.keeping
    return not keeping.returned and any(message.calls for message in conversation.messages)


def encode_with_reasoning(exchange: Exchange, conversation: Conversation) -> bool:
    """Encode the request again, with the reasoning that the upstream has missed. Returns False if none is known."""
    restored = _restore_reasoning(exchange, conversation)
    if restored is conversation:
        return False
    exchange.recorder.notes.append("asked again with the reasoning of earlier turns")
    if exchange.same_wire and exchange.xml_session is None and exchange.mapping is None:
        healed = _heal_if_broken(exchange, restored)
        exchange.upstream_body = _encode_for_wire(exchange, _apply_workarounds(exchange, healed))
    else:
        exchange.upstream_body = _encode_natively(exchange, conversation)
    return True


def _encode_for_wire(exchange: Exchange, conversation: Conversation) -> bytes:
    route, client_request = exchange.route, exchange.client_request
    if not exchange.settings.tool_calling.enabled:
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
    if len(encoded) >= SMALL_PROMPT:
        measure_prompt(exchange, conversation)
    return encoded


def _needs_stream(exchange: Exchange) -> bool:
    """Whether the client wants a whole answer and the upstream only streams; then the answer is made of the stream."""
    return not exchange.client_request.stream and STREAM_ONLY in _find_rule(exchange).quirks
