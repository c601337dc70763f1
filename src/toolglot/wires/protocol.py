"""The interface of a wire: one JSON protocol, both directions.

A wire decodes requests into a ``Conversation`` and encodes them, decodes responses into events and encodes them. Each
package of ``wires/`` is one wire and exports one ``WIRE = Wire(...)``; no other module knows its field names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NoReturn, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Image, Message, Sampling, Text, Tool, ToolResult
from toolglot.core.errors import InternalError, RequestError, ToolglotError, UpstreamResponseError
from toolglot.core.events import Event, Failed
from toolglot.wires.chunk_pattern import ChunkPattern
from toolglot.wires.id_references import ReferenceFields
from toolglot.wires.vendor_fields import Level


class ClientRequest(Struct, frozen=True, kw_only=True):
    """A decoded request of a client.

    ``notes`` list what was repaired or skipped while decoding. ``memory`` holds what the wire needs to encode the
    response. ``stream_type`` is the content type of the requested stream, if it is not the default of the wire.
    ``same_wire_only`` is the error to raise unless the request goes unchanged to an upstream of the same wire: it
    refers to something that only such an upstream can know. ``may_be_referenced``: a later request may refer to the
    response; ``on_complete``, if set, is called with its id and items. ``modelled`` are the settings of
    ``Conversation.extra`` that ``Conversation`` also models, so that they reach other wires; dots lead into objects.
    ``special_tools`` are tools that the client does not know as a function of that name (custom tools, namespaces).
    ``is_older_form``: the request uses fields that upstreams of the same wire may not know any more, so neither its
    bytes nor those of the response pass unchanged.
    """

    conversation: Conversation
    stream: bool = False
    wants_usage: bool = False
    notes: tuple[str, ...] = ()
    memory: Mapping[str, Any] = {}
    stream_type: str = ""
    same_wire_only: RequestError | None = None
    may_be_referenced: bool = False
    on_complete: Callable[[str, list[dict[str, Any]]], None] | None = None
    modelled: frozenset[str] = frozenset()
    special_tools: frozenset[str] = frozenset()
    is_older_form: bool = False


class ResponseIdentity(Struct, frozen=True):
    """Identity of a response as the client sees it: a unique token, the creation time and the model name."""

    id: str
    created: int
    model: str


class ExtraEndpoint(Struct, frozen=True):
    """An endpoint that needs no model call. ``answer`` gets the body, and the model names if ``needs_models``."""

    method: str
    path: str
    answer: Callable[[bytes, Sequence[str]], bytes]
    needs_models: bool = False


class StreamPatterns(Struct, frozen=True, kw_only=True):
    """Byte patterns of a relayed stream, which is searched and not parsed. A match means: this event must be decoded.

    ``common`` is in nearly every event. ``may_have_content``: the event may hold text or a call. ``may_end``: it may
    end the response, give a finish reason or ids to refer to, or be an error; it is called for every chunk and must be
    fast. ``terminator`` is appended if the stream stops after a finish reason without it. ``finish_is_final``: no
    content follows a finish reason. ``may_be_recorded``: the events may hold calls or usage, for the record.
    """

    common: bytes
    may_have_content: Callable[[bytes], object]
    may_end: Callable[[bytes], object]
    terminator: bytes = b""
    finish_is_final: bool = False
    may_be_recorded: Callable[[bytes], object] = bool


class HandedOut(Struct, frozen=True):
    """What a later request may refer to: the id and items of a response that the upstream does not store, and ``ids``
    of what it does store."""

    response: tuple[str, list[dict[str, Any]]] | None = None
    ids: tuple[str, ...] = ()


class DecodedResponse(Struct, frozen=True):
    """A decoded non-streamed response.

    ``tidy``: nothing about it is unusual, so its bytes may pass unchanged, unless it calls one of ``functions`` that
    the client knows in another form (``ClientRequest.special_tools``).
    """

    events: list[Event]
    tidy: bool = False
    functions: frozenset[str] = frozenset()
    handed_out: HandedOut | None = None


class ResponseDecoder(Protocol):
    """Decodes a streamed response chunk by chunk.

    ``over``: the upstream has ended the response. ``tidy``: nothing unusual so far, so the bytes may pass unchanged.
    ``between``: the last chunk ended at an event boundary and no finish reason is pending. ``place``: an immutable
    position after the last whole event, from which the encoder of the wire can resume. ``finish_reason``: the raw
    finish reason so far (empty: none yet); None on wires whose last event carries it. ``handed_out``: see there.
    ``read_text``: a fast path, None while there is none: returns the text of the next chunk if it is nothing but a
    piece of text, else an empty string, and the chunk has to be fed.
    """

    @property
    def over(self) -> bool: ...

    @property
    def tidy(self) -> bool: ...

    @property
    def between(self) -> bool: ...

    @property
    def place(self) -> Any: ...

    @property
    def finish_reason(self) -> str | None: ...

    @property
    def handed_out(self) -> HandedOut | None: ...

    @property
    def read_text(self) -> Callable[[bytes], str] | None: ...

    def feed(self, piece: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """End of the connection. A response that has not ended by itself fails."""
        ...

    def measure(self, pieces: Sequence[bytes]) -> int:
        """How many bytes of ``pieces``, the last ones fed, are whole events after which an encoder can resume; 0 if
        the last piece did not complete an event."""
        ...


class ToolAwareDecoder:
    """A decoder of a wire whose servers may send the name of a call in pieces. ``tools``: those that were offered.

    A base class, because to check whether an object fits a protocol takes as long as decoding several events."""

    tools: tuple[Tool, ...] = ()


class ResponseEncoder(Protocol):
    """Encodes a streamed response event by event."""

    def write(self, events: Sequence[Event]) -> bytes: ...

    def heartbeat(self) -> bytes:
        """An event without content that keeps the client from timing out."""
        ...

    def resume(self, place: Any) -> None:
        """Continue a response whose beginning was passed through unchanged, from ``ResponseDecoder.place``."""
        ...


class HeadedEncoder:
    """An encoder of a wire whose events all repeat some fields of the answer. A base class, as above."""

    def keep_constant(self, fields: Mapping[str, Any]) -> None:
        """Add these fields to all further events."""
        raise NotImplementedError

    def infer_pattern(self, chunk: bytes, payload: Mapping[str, Any], fields: Iterable[str]) -> ChunkPattern | None:
        """The pattern of further chunks with a text and other values of these fields; None if the chunk has more."""
        raise NotImplementedError

    def add_values(self, written: bytes, values: tuple[bytes, ...]) -> bytes:
        """Add the other values of the chunk that was read last by the pattern to the text that was written for it."""
        raise NotImplementedError


NewId = Callable[[], str]


class EncodeRequest(Protocol):
    def __call__(self, conversation: Conversation, /, *, stream: bool, wants_usage: bool) -> bytes: ...


class ChatPosition(Struct, frozen=True, kw_only=True):
    """Where the next message of a chat goes: behind ``parent``, which is empty for the first message. ``fresh_id``
    makes unique ids; ``now`` is in seconds."""

    chat_id: str
    parent: str
    fresh_id: NewId
    now: float


class ChatCall(Struct, frozen=True, kw_only=True):
    """A request to a stateful upstream besides its completions."""

    method: str
    path: str
    body: bytes = b""


class ChatFault(StrEnum):
    """What the error of a stateful upstream means for its chat."""

    NONE = ""
    GONE = "gone"
    """The chat, or the message to follow, does not exist: start a new chat."""
    BUSY = "busy"
    """The chat is still being answered: wait, then start a new chat."""
    BLOCKED = "blocked"
    """The upstream suspects automated use: stop asking it for a while."""
    TRANSIENT = "transient"
    """Trying once more may help."""


class ChatProtocol(Struct, frozen=True, kw_only=True):
    """How a stateful upstream is used: it holds each conversation as a chat, and a request adds one message to it.

    ``create(model, now)`` is the call that makes a chat; ``read_chat_id`` reads its answer. ``Wire.encode_request``
    encodes the first message of a chat, ``encode_tail`` the messages that follow the chat's last answer; a system
    message before them replaces the instructions of the chat. ``place(body, position)`` completes either.
    ``locate(chat_id)`` is the path of completions. ``stop`` ends an answer in progress; ``delete`` deletes a chat.
    ``list_models`` are the calls that may list the models, ``check_key`` asks for the account of the key.
    ``classify`` says what an error means; ``restore_error`` makes the error of a ``Failed`` event. ``read_error(body)``
    is the error in an answer with status 200, if it is one. The id of an answer is that of the decoder's ``Started``
    event.
    """

    create: Callable[[str, float], ChatCall]
    read_chat_id: Callable[[bytes], str]
    encode_tail: EncodeRequest
    place: Callable[[bytes, ChatPosition], bytes]
    locate: Callable[[str], str]
    stop: Callable[[str, str], ChatCall]
    delete: Callable[[str], ChatCall]
    list_models: tuple[ChatCall, ...]
    check_key: ChatCall
    read_models: Callable[[bytes], list[dict[str, Any]]]
    read_error: Callable[[bytes], UpstreamResponseError | None]
    restore_error: Callable[[Failed], ToolglotError]
    classify: Callable[[ToolglotError], ChatFault]
    headers: Callable[[str, NewId, float], Mapping[str, str]]
    """Headers of every request besides those for the key: ``headers(chat_id, fresh_id, now)``."""


class AdaptRequest(Protocol):
    def __call__(self, body: bytes, model: str, /, *, without_tools: bool) -> bytes: ...


class Locate(Protocol):
    def __call__(self, model: str, /, *, stream: bool) -> str: ...


class Interject(Protocol):
    def __call__(self, failure: Failed | None, /, *, begun: bool) -> bytes: ...


CARRIED_FIELDS: Final = (
    *(name for name in Conversation.__struct_fields__ if name != "sampling"),
    *Sampling.__struct_fields__,
)
"""The fields of a request, with the sampling parameters one by one.

``Wire.carries`` maps each field that the wire transports to a restriction, or to an empty string. A sampling
parameter that is missing there is lost, with a note (``translation.list_not_carried``). The table in the docs is made
of it, too.
"""


def accept_messages(messages: Sequence[Message]) -> str:
    """The default of ``Wire.find_refusal``."""
    return ""


def can_enforce_format(conversation: Conversation) -> bool:
    """The default of ``Wire.enforces_format``."""
    return True


OutputFormat = Callable[[Any], Mapping[str, Any]]
"""Turns a grammar, a structural tag or a schema into fields of a request."""

FindResponse = Callable[[str], tuple[bytes, bytes] | None]
SUCCESS_REASONS: Final = ("stop", "tool_calls")


def refuse_clients(*_: object, **__: object) -> NoReturn:
    """Stands for the functions that only clients need, on a wire that no client can use."""
    raise InternalError("No client can use the wire of this upstream.")


NO_PATTERNS: Final = StreamPatterns(common=b"", may_have_content=refuse_clients, may_end=refuse_clients)


class Wire(Struct, frozen=True, kw_only=True):
    """Both directions of a protocol, as functions and constants.

    Every wire has:
    ``stream_type``: content type of a streamed response. ``carries``: see ``CARRIED_FIELDS``. ``locate``: the path of
    an upstream's endpoint below its base URL. ``authorize(key)``: the headers that present a key to an upstream.
    ``open_decoder``: for one streamed response.

    Wires of clients also have the following; they are the wires with ``routes``:
    ``routes``: paths of the client endpoint; parts in braces are named. ``decode_request(body, path)``: ``path`` holds
    the named parts of the request path. ``adapt_request``: the client's body for another model name, on demand without
    tools. ``open_encoder``: for one streamed response. ``stream_patterns``: what a relayed stream is searched for.

    Optional fields:
    ``extra_endpoints``: further endpoints for clients. ``base_path``: path of an upstream whose URL has none.
    ``own_prefix``: prefix under which errors are encoded in this wire. ``tool_name_pattern``: regular expression for
    allowed tool names. ``forwarded_headers``: client headers for an upstream of the same wire.
    ``list_refused(headers)``: the sampling parameters that an upstream refuses in the version that the headers ask for.
    ``models_sign_reasoning``: its models sign their reasoning. ``client_returns_signatures``: its clients send back
    reasoning and signatures of any wire. ``reasoning_fields``: names of the field for earlier reasoning, if servers do
    not agree on one. ``known_fields``: the fields of an answer that its encoder writes; what else an upstream of the
    same wire sends is put back (``vendor_fields``). ``known_request``: the same for tools and messages of a request.
    ``success_reasons``: finish reasons of a complete response. ``sends_whole_calls``: a call is sent only when all of
    it is known. ``expand_request(body, find, limit)``:
    replaces references to earlier responses. ``references``: the fields of a request with ids of what upstreams store.
    ``interject``: a heartbeat or a failure inside a relayed stream, where the encoder's own would break the client.
    ``chat``: set if upstreams of this wire are stateful; they have no tools of their own, so tools are text.
    ``terms``: what an operator has to accept before such an upstream is used. ``variables``: the environment variables
    of settings of the upstream that are not given. ``intercepted_marks``: marks that the upstream takes for its own if
    the model writes them; dialects with these cannot be used. ``output_formats``: by kind of constraint, the request
    field that holds the model to a grammar, a structural tag or a schema. ``format_fields``: the request fields, with
    dots that lead into objects, in which clients ask for JSON (``Sampling.json_object`` and ``json_schema``).
    ``enforces_format``: whether the upstream can hold the model to the JSON that a conversation asks for; else the
    prompt asks for it. ``find_refusal``: why upstreams refuse messages with a complete history, as a note; "" if they
    do not. What the encoder writes of the messages must be accepted.
    """

    name: str
    stream_type: str
    carries: Mapping[str, str]
    encode_request: EncodeRequest
    locate: Locate
    authorize: Callable[[str], Mapping[str, str]]
    open_decoder: Callable[[NewId], ResponseDecoder]
    decode_response: Callable[[bytes, NewId], DecodedResponse]
    decode_error: Callable[[int, bytes], UpstreamResponseError]
    routes: tuple[str, ...] = ()
    decode_request: Callable[[bytes, Mapping[str, str]], ClientRequest] = refuse_clients
    adapt_request: AdaptRequest = refuse_clients
    open_encoder: Callable[[ResponseIdentity, ClientRequest], ResponseEncoder] = refuse_clients
    encode_response: Callable[[Iterable[Event], ResponseIdentity, ClientRequest], bytes] = refuse_clients
    encode_error: Callable[[ToolglotError], bytes] = refuse_clients
    stream_patterns: StreamPatterns = NO_PATTERNS
    extra_endpoints: tuple[ExtraEndpoint, ...] = ()
    base_path: str = "/v1"
    own_prefix: str = ""
    tool_name_pattern: str | None = None
    forwarded_headers: tuple[str, ...] = ()
    list_refused: Callable[[Mapping[str, str]], Collection[str]] | None = None
    models_sign_reasoning: bool = False
    client_returns_signatures: bool = False
    reasoning_fields: tuple[str, ...] = ()
    known_fields: Level = field(default_factory=dict)
    known_request: Level = field(default_factory=dict)
    success_reasons: tuple[str, ...] = SUCCESS_REASONS
    sends_whole_calls: bool = False
    expand_request: Callable[[bytes, FindResponse, int], bytes] | None = None
    references: ReferenceFields | None = None
    interject: Interject | None = None
    chat: ChatProtocol | None = None
    terms: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    intercepted_marks: tuple[str, ...] = ()
    output_formats: Mapping[str, OutputFormat] = field(default_factory=dict)
    format_fields: tuple[str, ...] = ()
    enforces_format: Callable[[Conversation], bool] = can_enforce_format
    find_refusal: Callable[[Sequence[Message]], str] = accept_messages


ERROR_NOTE = "[The tool reported an error]\n"
"""Prefix of a failed tool result on wires that have no error flag."""


def write_error(result: ToolResult) -> ToolResult:
    """Return the result for a wire without an error flag: the flag becomes a prefix of the text."""
    if not result.error:
        return result
    return replace(result, content=_note(result.content), error=False)


def _note(content: tuple[Text | Image, ...]) -> tuple[Text | Image, ...]:
    first = content[0] if content else None
    if isinstance(first, Text):
        return (Text(ERROR_NOTE + first.text), *content[1:])
    return (Text(ERROR_NOTE), *content)


def read_error(result: ToolResult) -> ToolResult:
    """Undo ``write_error``: turn the prefix back into the flag."""
    first = result.content[0] if result.content else None
    if not isinstance(first, Text) or not first.text.startswith(ERROR_NOTE):
        return result
    rest = first.text.removeprefix(ERROR_NOTE)
    return replace(result, content=((Text(rest),) if rest else ()) + result.content[1:], error=True)
