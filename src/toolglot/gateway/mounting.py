"""What the server and the parts that it serves under a path of their own, such as the console, know of each other.

The server passes ``GatewayInterface`` to the part and adds its routes. Neither imports the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from toolglot.config import ClientKeys, Settings
from toolglot.gateway.context import Source
from toolglot.gateway.key_guesses import GuessLimit
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.telemetry.log import Telemetry

JSON_TYPE: Final = "application/json"


class Response(Struct, frozen=True):
    """A response with a complete body."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON_TYPE


class HttpRequest(Protocol):
    """A request, and the response to it if that is a stream. Header names are lower case."""

    method: str
    path: str
    path_params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    key: str

    @property
    def peer(self) -> str:
        """The address of the client, or of the proxy before the gateway; empty if it has none."""
        ...

    @property
    def is_blocked(self) -> bool:
        """Whether the client reads too slowly."""
        ...

    async def read(self) -> bytes:
        """The complete body."""
        ...

    def begin(self, headers: Mapping[str, str], content_type: str) -> None:
        """Start a streamed response."""
        ...

    def write(self, data: bytes) -> bool:
        """Send a chunk. Returns whether the caller should await ``drain``."""
        ...

    def end(self, data: bytes = b"") -> None: ...

    async def drain(self) -> None: ...


class ReplayRequest(Struct, frozen=True, kw_only=True):
    """A recorded request to be sent again. Empty fields, and None, leave a setting as it is."""

    record: str
    """The id of the record."""
    session: str
    owner: bytes
    wire: str
    body: bytes
    model: str
    stream: bool
    agent: str = ""
    mode: str = ""
    dialect: str = ""
    recovery: Mapping[str, int | bool | str] = {}
    """Fields of ``[recovery]``."""


Handler: TypeAlias = Callable[[HttpRequest], Awaitable[Response | None]]
Route: TypeAlias = tuple[str, str, Handler]
"""Method, path and handler. A handler may raise any ``ToolglotError``, which is sent as JSON."""


class GatewayInterface(Struct, frozen=True, kw_only=True, eq=False):
    """What a mounted part may use of a gateway.

    ``guesses`` limits wrong keys at the part. ``check_origin`` raises OriginError if the gateway has no client keys and
    a web page of another site may have sent the request. ``replay`` sends a recorded request through the gateway and
    returns the request id of the answer.
    """

    settings: Settings
    telemetry: Telemetry
    keys: ClientKeys
    guesses: GuessLimit
    capabilities: Capabilities
    source: Source
    check_origin: Callable[[HttpRequest], None]
    replay: Callable[[ReplayRequest], Awaitable[str]]
    delete_session: Callable[[str], Awaitable[bool]]
    is_draining: Callable[[], bool]


class MountedPart(Protocol):
    """A part of the gateway that has its own paths. They need no client key unless the part checks one."""

    def routes(self) -> Iterable[Route]: ...


Mount: TypeAlias = Callable[[GatewayInterface], MountedPart]
