"""Who may open the console: client keys with the admin scope; without client keys, this machine.

*Strategy.* A login exchanges a key for a cookie that proves it without holding it: the time at which it expires, a
random id, and a keyed hash of both. The key of the hash is made of the client key's own hash and of the secrets of the
upstreams, or of a random file in the state folder. So all processes of a gateway accept the cookie, a revoked key ends
all its logins at once, and neither the cookie nor the store alone is enough to make another one. Logging out ends the
login itself (``ended_logins``), not only the cookie of one browser.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from toolglot.config import Settings
from toolglot.config.keys import ClientKeys, KeyHash, admit
from toolglot.console.ended_logins import EndedLogins
from toolglot.core.errors import AuthenticationError, ForbiddenError, OriginError, RequestError
from toolglot.gateway.capabilities.learned import find_folder
from toolglot.gateway.context import Source
from toolglot.gateway.key_guesses import GuessLimit
from toolglot.gateway.mounting import HttpRequest

COOKIE: Final = "toolglot_console"
LOGIN_SECONDS: Final = 12 * 3600
GUARD: Final = "x-toolglot-console"
"""A header that a page of another site cannot send without being asked (CORS); every change needs it."""
SAFE_METHODS: Final = ("GET", "HEAD")
OWN_SITES: Final = ("", "same-origin", "none")
"""Values of Sec-Fetch-Site of requests that the console itself, or a user, has made."""
OTHER_SITE: Final = "The console answers only its own pages."
OPEN_IT: Final = "open /console at the address of the gateway itself."
MAX_KEY: Final = 1000
LOGIN_ID: Final = re.compile("[0-9a-f]{32}")
EXPIRES: Final = re.compile("[0-9]{1,19}")
MAX_FORM: Final = 4096
SECRET_FILE: Final = "console.secret"
_PROCESS_SECRET: Final = token_bytes(32)


def make_secret(settings: Settings) -> bytes:
    """The secret of the cookies. It is made of the keys of the upstreams, which all hosts know; without any, it is a
    random one in the state folder, or of this process."""
    keys = sorted(filter(None, (upstream.api_key.reveal() for upstream in settings.upstreams)))
    random = b"" if keys else load_random(find_folder(settings.server.state_dir, os.environ))
    return sha256("\0".join(["toolglot console", *keys]).encode() + random).digest()


def load_random(folder: Path | None) -> bytes:
    """The random bytes in a file of the state folder; they are made if there are none."""
    if folder is None:
        return _PROCESS_SECRET
    path, own = folder / SECRET_FILE, folder / f"{SECRET_FILE}.{os.getpid()}"
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(token_bytes(32))
            with suppress(FileExistsError):  # another process was faster
                os.link(own, path)
            own.unlink()
        found = path.read_bytes()
    except OSError:
        return _PROCESS_SECRET
    return found if len(found) >= len(_PROCESS_SECRET) else _PROCESS_SECRET


class LoginRequest(msgspec.Struct, forbid_unknown_fields=True):
    key: str


class CookieLogin(NamedTuple):
    """A login that a genuine cookie proves."""

    id: str
    expires: int


class Login:
    """Checks requests and issues cookies."""

    def __init__(
        self, settings: Settings, keys: ClientKeys, guesses: GuessLimit, source: Source, ended: EndedLogins
    ) -> None:
        self._keys = keys
        self._guesses = guesses
        self._now = source.now
        self._ended = ended
        self._secret = make_secret(settings)

    @property
    def required(self) -> bool:
        return self._keys.required

    @property
    def is_possible(self) -> bool:
        """Whether there is a key that opens the console."""
        return not self.required or bool(self._keys.list_admin())

    async def check(self, request: HttpRequest) -> None:
        """Raise AuthenticationError or ForbiddenError if the request may not use the console, RateLimitError if too
        many wrong keys were presented, OriginError if a page of another site may have sent it."""
        check_source(request)
        if await self.admits(request):
            return
        if request.key and self._keys.admit(request.key):
            raise ForbiddenError("This key has no admin scope; make one with 'toolglot key --admin'.")
        raise AuthenticationError("Log in with a client key that has the admin scope ('toolglot key --admin').")

    async def admits(self, request: HttpRequest) -> bool:
        """Whether the request has a valid login or key, or needs none. Raises: RateLimitError."""
        if not self.required:
            return True
        is_known = self._guesses.admit(request.peer, request.key, self._keys.admit)
        if is_known and admit(self._keys.list_admin(), request.key):
            return True
        login = self._find_login(request)
        return login is not None and not await self._ended.has(*login)

    def check_form(self, request: HttpRequest) -> None:
        """Raise OriginError or RequestError before the body is read, if it cannot be that of a login."""
        check_source(request)
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_FORM:
            raise RequestError(f"A login needs a Content-Length of at most {MAX_FORM} bytes.")

    def log_in(self, request: HttpRequest, body: bytes) -> dict[str, str]:
        """The headers that log the client in. Raises: AuthenticationError, ForbiddenError, RateLimitError,
        RequestError."""
        try:
            given = msgspec.json.decode(body, type=LoginRequest).key.strip()
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise RequestError('The body must be {"key": "..."}.') from None
        self._guesses.check(request.peer)
        chosen = [key for key in self._keys.list_admin() if admit([key], given[:MAX_KEY])]
        if not chosen:
            if self._keys.admit(given[:MAX_KEY]):
                raise ForbiddenError("This key has no admin scope; make one with 'toolglot key --admin'.")
            self._guesses.count(request.peer)
            raise AuthenticationError("That is not a valid key.")
        signed = f"{int(self._now()) + LOGIN_SECONDS}.{token_hex(16)}"
        return self._set_cookie(request, f"{signed}.{self._sign(chosen[0], signed)}", LOGIN_SECONDS)

    async def log_out(self, request: HttpRequest) -> tuple[bool, dict[str, str]]:
        """End the login. Returns whether it has ended for all processes, and the headers that remove the cookie."""
        check_source(request)
        login = self._find_login(request)
        ended = login is None or await self._ended.end(*login)
        return ended, self._set_cookie(request, "", 0)

    def _set_cookie(self, request: HttpRequest, value: str, seconds: int) -> dict[str, str]:
        secure = "; Secure" if is_https(request.headers) else ""
        cookie = f"{COOKIE}={value}; Path=/console; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return {"set-cookie": cookie}

    def _find_login(self, request: HttpRequest) -> CookieLogin | None:
        """The login of a cookie that is genuine and has not expired."""
        signed, _, signature = read_cookie(request.headers).rpartition(".")
        expires, _, login = signed.partition(".")
        if not EXPIRES.fullmatch(expires) or not LOGIN_ID.fullmatch(login):
            return None
        if not self._now() < int(expires) <= self._now() + LOGIN_SECONDS + 1:
            return None
        found = False
        for key in self._keys.list_admin():
            found |= hmac.compare_digest(self._sign(key, signed).encode(), signature.encode("utf-8", "replace"))
        return CookieLogin(login, int(expires)) if found else None

    def _sign(self, key: KeyHash, signed: str) -> str:
        return hmac.new(self._secret, b"%b %b" % (key.digest, signed.encode()), "sha256").hexdigest()


def check_source(request: HttpRequest) -> None:
    """Raise OriginError if a page of another site may have sent the request."""
    given = request.headers.get
    if given("sec-fetch-site", "") not in OWN_SITES and not is_navigation(request):
        raise OriginError(OTHER_SITE, step=OPEN_IT)
    if request.method in SAFE_METHODS:
        return
    origin = given("origin", "")
    if origin and urlsplit(origin).netloc != given("host", ""):
        raise OriginError(OTHER_SITE, step=OPEN_IT)
    if given(GUARD, "") != "1":
        raise OriginError(f"Requests that change something need the header {GUARD}: 1.", step="send that header.")


def is_navigation(request: HttpRequest) -> bool:
    """Whether a user follows a link to the page of the console; a strict cookie does not come with it."""
    return request.method == "GET" and request.headers.get("sec-fetch-mode", "") == "navigate"


def is_https(headers: Mapping[str, str]) -> bool:
    """Whether the browser uses HTTPS, which ends at a proxy before the gateway."""
    return headers.get("origin", "").startswith("https://") or headers.get("x-forwarded-proto", "") == "https"


def read_cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
