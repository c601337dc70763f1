"""Who may ask the gateway: clients with a key; without keys, this machine only."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from toolglot.config import ClientKeys, is_loopback, owner_of
from toolglot.config.keys import NO_OWNER
from toolglot.core.errors import AuthenticationError, OriginError
from toolglot.server.http_request import Request


class Access:
    """Checks requests, and names the owner of what they store."""

    def __init__(self, keys: ClientKeys) -> None:
        self.keys = keys

    def check(self, request: Request) -> None:
        """Raise AuthenticationError if the gateway has client keys and the request presents none of them, OriginError
        if it has none and a web page may have sent the request."""
        if not self.keys.required:
            self.check_origin(request)
        elif not self.keys.admit(request.key):
            raise AuthenticationError("No valid API key was presented." if request.key else "An API key is needed.")

    def check_origin(self, request: Request) -> None:
        """Raise OriginError if the gateway has no client keys and a web page may have sent the request."""
        if not self.keys.required:
            given = request.headers.get
            check_origin(given("host", ""), given("origin", ""), given("sec-fetch-site", ""))

    def owner(self, request: Request) -> bytes:
        """The owner of what a request with access stores."""
        return owner_of(request.key) if self.keys.required else NO_OWNER

    def visible_owner(self, request: Request) -> bytes | None:
        """The owner whose rows a request may see; None for all."""
        return self.owner(request) if self.keys.required else None


def find_key(request: Request) -> str:
    """The key that a client presents: in the header of any wire, or in the query."""
    headers = request.headers
    if key := headers.get("x-api-key") or headers.get("x-goog-api-key"):
        return key
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else "") or request.query.get("key", "")


@lru_cache(maxsize=256)
def check_origin(host: str, origin: str, site: str) -> None:
    """Refuse requests that a web page may have sent to a gateway without client keys.

    Parameters: ``host``, ``origin`` and ``site`` are the headers Host, Origin and Sec-Fetch-Site; each may be empty.
    For a page of another site the browser sends its ``origin`` or, for images, scripts, frames and links, a ``site`` of
    "cross-site"; for a name that resolves to this machine (DNS rebinding), that name as ``host``.
    Raises: OriginError if host or origin is not a loopback address, or a request without origin is cross-site.
    """
    foreign = not origin and site == "cross-site"
    for address in (f"//{host}" if host else "", origin):
        try:
            named = urlsplit(address).hostname or ""
        except ValueError:
            named = ""
        foreign |= bool(address) and not is_loopback(named)
    if foreign:
        raise OriginError(
            "This gateway has no client keys, so it serves only requests to a loopback address such as 127.0.0.1,"
            " and none from web pages of other sites. Make a key with 'toolglot key' to allow others."
        )
