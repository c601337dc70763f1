"""What a wire is: a JSON protocol, both directions of it.

A wire reads requests into a ``Conversation`` and writes them, reads replies into events and writes them. Each room of
``wires/`` is one wire; nothing outside of it knows its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Image, Text, ToolResult
from toolglot.core.errors import RequestError, ToolglotError, UpstreamResponseError
from toolglot.core.events import Event, Failed


class ClientRequest(Struct, frozen=True):
    """A request as a client put it.

    ``notes`` tell what was mended on the way in. ``memory`` is what its wire needs to know again to write the answer.
    ``stream_type`` is the content type of the stream that the client wants, if it is not the usual one of its wire.
    ``bond`` is the error to raise unless an upstream of the same wire is asked in the client's own words: the request
    speaks of something that only such a one can know. ``kept``: the client may refer to the answer later; then ``keep``
    is told its id and its items, if somebody listens. ``modelled`` are the settings of ``Conversation.extra`` that the
    conversation says in its own words too, so that another wire is told of them; dots lead into objects. ``retold`` are
    tools that the client knows as something else than a function of that name.
    """

    conversation: Conversation
    stream: bool = False
    wants_usage: bool = False
    notes: tuple[str, ...] = ()
    memory: Mapping[str, Any] = {}
    stream_type: str = ""
    bond: RequestError | None = None
    kept: bool = False
    keep: Callable[[str, list[dict[str, Any]]], None] | None = None
    modelled: frozenset[str] = frozenset()
    retold: frozenset[str] = frozenset()


class ResponseIdentity(Struct, frozen=True):
    """Who answers, as far as the client is told: a token unique to this answer, its time and the model's name."""

    id: str
    created: int
    model: str


class Extra(Struct, frozen=True):
    """Something else a wire answers, without asking a model: from the body, and from the names of the models if those
    are needed."""

    method: str
    path: str
    answer: Callable[[bytes, Sequence[str]], bytes]
    needs_models: bool = False


class Marks(Struct, frozen=True):
    """What to look for in the bytes of a stream that nobody reads. A find only says that the event is worth reading.

    ``word`` is in nearly every event. ``may_say``: it may hold text or a call. ``may_end``: it may end the answer, give
    a reason to, or be an error; this is asked of every piece, so it has to be quick. ``closing`` are the last events of
    a stream, where they are missing behind a reason to finish. ``final``: such a reason is the end, and nothing goes on
    with the answer behind it.
    """

    word: bytes
    may_say: Callable[[bytes], object]
    may_end: Callable[[bytes], object]
    closing: bytes = b""
    final: bool = False


class Whole(Struct, frozen=True):
    """A whole reply as it was read. ``tidy``: nothing about it is unusual, so it may pass as it is, unless the client
    wants a call of one of the ``functions`` told in another way (``ClientRequest.retold``). ``answer``: the id and the
    items of an answer that was not kept where it was made."""

    events: list[Event]
    tidy: bool = False
    functions: frozenset[str] = frozenset()
    answer: tuple[str, list[dict[str, Any]]] | None = None


class ResponseDecoder(Protocol):
    """Reads a streamed reply, piece by piece. ``over``: it has said itself that this was all."""

    @property
    def over(self) -> bool: ...

    def feed(self, piece: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The connection is over. An answer that did not end by itself has failed."""
        ...


class ResponseEncoder(Protocol):
    """Writes a streamed reply, event by event."""

    def write(self, events: Sequence[Event]) -> bytes: ...

    def beat(self) -> bytes:
        """An event that says nothing and keeps the client waiting."""
        ...


class Interject(Protocol):
    def __call__(self, failure: Failed | None, *, begun: bool) -> bytes: ...


class Wire(Protocol):
    """Both directions of a protocol.

    ``ROUTES`` are the paths at which clients ask; parts in braces are named. ``STREAM_TYPE`` is the content type of a
    streamed answer, ``MARKS`` what is looked for where one is passed on as it is.

    What a wire need not have stands in ``USUAL``: ``EXTRAS``, ``Extra`` answers; ``ROOT``, the path of an upstream that
    has none in its address; ``HOME``, below which only its clients look for anything; ``TOOL_NAMES``, an expression for
    the names it allows; ``CARRIED``, headers of a client that an upstream of the same wire needs to see;
    ``expand_request(body, find, limit)``, which puts earlier answers in the place of references to them; ``SEALS``, if
    its models prove their reasoning; ``CARRIES_SEALS``, if its clients hand thoughts and proofs of any wire back;
    ``THOUGHT_FIELDS``, names that the field for thoughts of earlier turns may have, if servers do not agree on one; and
    ``interject``, which makes a sign of life or a failure inside a stream that is passed on, where its own writer would
    disturb that. ``SUCCESSES`` are the reasons to finish that its clients take for the end of a whole answer.
    ``WHOLE_CALLS``: nothing of a call is sent before all of it is known.
    Healthy native answers pass as they are if the reader of streams tells what ``passage.TidyReader`` lists and the
    writer has ``resume(place)``. A reader may have ``answer``: the id and the items of an answer that was not kept
    where it was made.
    """

    NAME: str
    ROUTES: tuple[str, ...]
    STREAM_TYPE: str
    MARKS: Marks
    EXTRAS: tuple[Extra, ...]
    ROOT: str
    HOME: str
    TOOL_NAMES: str | None
    CARRIED: tuple[str, ...]
    SEALS: bool
    CARRIES_SEALS: bool
    THOUGHT_FIELDS: tuple[str, ...]
    SUCCESSES: tuple[str, ...]
    WHOLE_CALLS: bool
    expand_request: Callable[[bytes, Callable[[str], tuple[bytes, bytes] | None], int], bytes] | None
    interject: Interject | None

    def decode_request(self, body: bytes, path: Mapping[str, str]) -> ClientRequest:
        """What a client asks; ``path`` are the named parts of the path it asked at."""
        ...

    def encode_request(self, conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes: ...

    def adapt_request(self, body: bytes, model: str, *, without_tools: bool) -> bytes:
        """A client's request as it is, but for the model's name and, if so wished, for everything about tools."""
        ...

    def locate(self, model: str, *, stream: bool) -> str:
        """Where an upstream is asked, below its address."""
        ...

    def authorize(self, key: str) -> Mapping[str, str]:
        """The headers that present a key to an upstream."""
        ...

    def read_stream(self, new_id: Callable[[], str]) -> ResponseDecoder: ...

    def read_reply(self, body: bytes, new_id: Callable[[], str]) -> Whole: ...

    def decode_reply(self, body: bytes, new_id: Callable[[], str]) -> list[Event]:
        """The events of a whole reply."""
        ...

    def write_stream(self, answerer: ResponseIdentity, asked: ClientRequest) -> ResponseEncoder: ...

    def encode_reply(self, events: Iterable[Event], answerer: ResponseIdentity, asked: ClientRequest) -> bytes: ...

    def decode_error(self, status: int, body: bytes) -> UpstreamResponseError: ...

    def encode_error(self, error: ToolglotError) -> bytes: ...


SUCCESSES: Final = ("stop", "tool_calls")

USUAL: Final[Mapping[str, Any]] = {
    "EXTRAS": (),
    "ROOT": "/v1",
    "HOME": "",
    "TOOL_NAMES": None,
    "CARRIED": (),
    "SEALS": False,
    "CARRIES_SEALS": False,
    "THOUGHT_FIELDS": (),
    "SUCCESSES": SUCCESSES,
    "WHOLE_CALLS": False,
    "expand_request": None,
    "interject": None,
}
"""What a wire has that does not say otherwise. It is given that when it is loaded, for to ask a module for what it has
not takes longer than most steps of a request."""

ERROR_NOTE = "[The tool reported an error]\n"
"""Stands in front of a result on wires that have no flag for errors."""


def write_error(result: ToolResult) -> ToolResult:
    """The result as a wire without a flag for errors can tell it."""
    if not result.error:
        return result
    return replace(result, content=_note(result.content), error=False)


def _note(content: tuple[Text | Image, ...]) -> tuple[Text | Image, ...]:
    first = content[0] if content else None
    if isinstance(first, Text):
        return (Text(ERROR_NOTE + first.text), *content[1:])
    return (Text(ERROR_NOTE), *content)


def read_error(result: ToolResult) -> ToolResult:
    """The result with its flag again, where the note stands in front of it."""
    first = result.content[0] if result.content else None
    if not isinstance(first, Text) or not first.text.startswith(ERROR_NOTE):
        return result
    rest = first.text.removeprefix(ERROR_NOTE)
    return replace(result, content=((Text(rest),) if rest else ()) + result.content[1:], error=True)
