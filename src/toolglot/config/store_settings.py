"""The section ``[store]``: where state is kept, which bodies, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from toolglot.config.keys import MASK, Secret
from toolglot.config.value_types import BYTES, ValueType, choice, number, setting

NO_STORE: Final = "none"
SQLITE: Final = "sqlite:"
POSTGRES: Final = ("postgresql://", "postgres://")
BODIES_OFF: Final = "off"
BODIES_OF_FAILURES: Final = "failures"
BODIES_ALL: Final = "all"


class StoreUrl(Secret):
    """The URL of a store. It is shown without user name, password and query."""

    __slots__ = ()

    @property
    def is_none(self) -> bool:
        return self.reveal() == NO_STORE

    @property
    def sqlite_path(self) -> str:
        """The path of a SQLite file, possibly relative to the state folder; empty for other stores."""
        url = self.reveal()
        return url.removeprefix(SQLITE) if url.startswith(SQLITE) else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts to redact: the password, as written and decoded, and the values of the query."""
        if self.is_none or self.sqlite_path:
            return ()
        parts = urlsplit(self.reveal())
        texts = [parts.password or "", *(value for name, value in parse_qsl(parts.query) if "pass" in name.lower())]
        return tuple(dict.fromkeys(text for raw in texts for text in (raw, unquote(raw)) if text))

    def __repr__(self) -> str:
        url = self.reveal()
        if self.is_none or self.sqlite_path:
            return url
        scheme, _, rest = url.partition("://")
        user, _, place = rest.partition("?")[0].rpartition("@")
        return f"{scheme}://{MASK + '@' if user else ''}{place}{'?' + MASK if '?' in rest else ''}"


def _read_url(raw: object) -> StoreUrl:
    if not isinstance(raw, str):
        raise TypeError(type(raw).__name__)
    url = raw.strip()
    path = url.removeprefix(SQLITE) if url.startswith(SQLITE) else ""
    if url.lower() == NO_STORE:
        return StoreUrl(NO_STORE)
    if url.startswith(POSTGRES):
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        if len(parts.path) > 1 and not parts.fragment and "@" not in parts.path:
            return StoreUrl(url)
    elif path.strip("/") and path.isprintable() and not (path.startswith("//") and path[2:3] != "/") and path[0] != ":":
        return StoreUrl(url)
    raise ValueError("store URL")


STORE_URL: Final = ValueType(
    "none, sqlite: and the path of a file, or postgresql://user:password@host/database (special characters of the"
    " password percent-encoded)",
    _read_url,
    secret=True,
    schema={"type": "string"},
)
DAYS: Final = number(0, 36_500, " of days")
DEFAULT_URL: Final = StoreUrl("sqlite:toolglot.db")


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store: records of requests, sessions, and what survives a restart."""

    url: StoreUrl = setting(
        STORE_URL,
        "`sqlite:` and a file, relative to `server.state_dir`; `postgresql://user:password@host/database`, which"
        " several hosts can share; `none`: everything is in memory only",
        DEFAULT_URL,
    )
    bodies: str = setting(
        choice(BODIES_OFF, BODIES_OF_FAILURES, BODIES_ALL),
        "bodies that are stored with a record, keys redacted: client's request, upstream's request, the model's own"
        " text, answer; `failures`: only if the request failed, or a call was repaired, rejected or missed",
        BODIES_OFF,
    )
    max_body_bytes: int = setting(BYTES, "size to which each stored body is truncated", 1 << 20)
    keep_records_days: float = setting(DAYS, "age at which records are deleted; 0: never", 30.0)
    keep_sessions_days: float = setting(DAYS, "time without use after which a session is deleted; 0: never", 30.0)
    max_bytes: int = setting(BYTES, "size of the store above which the oldest records are deleted", 1 << 30)
