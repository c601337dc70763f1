"""The settings of upstreams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from toolglot.config.keys import Secret
from toolglot.config.value_types import ADDRESS, BOOL, COOKIES, HEADERS, SECONDS, SECRET, TEXT, choice, setting
from toolglot.core.errors import UpstreamPlace
from toolglot.core.redaction import redact
from toolglot.wires import all_wires, wire_names

WIRES: Final = wire_names()
DEFAULT_DIALECT: Final = "roo_xml"
SECRET_LENGTH: Final = 8
NO_SECRET: Final = Secret()
PROBE: Final = r"""{"text": "</a>]]>```\n\"'\\{[(<|", "values": [1, {"a": null}]}"""
"""Arguments that not every dialect can write."""


@dataclass(frozen=True)
class Upstream:
    """A server that answers requests: address, key, wire and timeouts; for a stateful one, how its chats are used."""

    name: str = setting(TEXT, "name by which models refer to it", "default")
    base_url: str = setting(
        ADDRESS,
        "base URL, up to `/chat/completions`; a URL without a path gets `/v1`, for ollama `/api`, for qwen_web none",
        "",
    )
    api_key: Secret = setting(SECRET, "API key that is sent to it", NO_SECRET)
    cookies: Secret = setting(COOKIES, "cookies that are sent to it", NO_SECRET)
    wire: str = setting(choice(*WIRES), "its protocol", "openai_chat")
    coached: bool = setting(
        BOOL,
        "for a very small model behind llama.cpp: add examples to the prompt, and enforce calls by a grammar",
        False,
    )
    headers: Mapping[str, str] = setting(HEADERS, "additional request headers", {})
    connect_timeout: float = setting(SECONDS, "time to establish a connection", 10.0)
    read_timeout: float = setting(SECONDS, "time without data from it after which a request fails", 600.0)
    accept_terms: bool = setting(
        BOOL, "for `qwen_web`: you accept what docs/QWEN_WEB.md says; without it the start is refused", False
    )
    chaining: str = setting(
        choice("auto", "off"),
        "for `qwen_web`: `auto`: a conversation continues its chat; `off`: every request starts a new chat",
        "auto",
    )
    branch_mode: str = setting(
        choice("reseed", "tree"),
        "for `qwen_web`: a conversation that goes on from an earlier message: `reseed`: in a new chat; `tree`: in the"
        " same chat, from that message",
        "reseed",
    )
    chat_ttl_seconds: float = setting(
        SECONDS, "for `qwen_web`: time without a request after which a chat is not continued", 86_400.0
    )
    delete_chats: bool = setting(BOOL, "for `qwen_web`: delete such chats in the account", False)

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Texts to redact: its key, its cookies, and long values in its headers and its URL."""
        texts = [value.split()[-1] for value in self.headers.values() if value.strip()]
        cookies = (self.cookies.reveal(), *(value for name, value in self.headers.items() if name.lower() == "cookie"))
        texts += [text for cookie in cookies for text in (cookie, *_cookie_values(cookie))]
        parts = urlsplit(self.base_url)
        texts += [parts.username or "", parts.password or "", *(value for _, value in parse_qsl(parts.query))]
        texts += [unquote(text) for text in texts if "%" in text]
        return tuple(text for text in (self.api_key.reveal(), *texts) if len(text) >= SECRET_LENGTH)

    @cached_property
    def address(self) -> str:
        """The base URL for messages: without login, query and anything that looks like a secret."""
        parts = urlsplit(self.base_url)
        return redact(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), self.secrets)

    @cached_property
    def place(self) -> UpstreamPlace:
        """How messages name it."""
        return UpstreamPlace(self.name, self.address)

    @cached_property
    def key_headers(self) -> Mapping[str, str]:
        """The headers that present its key; empty if it has none."""
        return all_wires()[self.wire].authorize(self.api_key.reveal()) if self.api_key else {}

    @cached_property
    def takes_client_key(self) -> bool:
        """Whether it may be sent the client's key: it has neither a key nor cookies."""
        return not (self.api_key or self.cookies)

    @cached_property
    def own_headers(self) -> Mapping[str, str]:
        """The headers of every request to it besides its key: its cookies, and those of the settings."""
        return {**({"Cookie": self.cookies.reveal()} if self.cookies else {}), **self.headers}

    def takes_dialect(self, dialect: str) -> bool:
        """Whether calls in this dialect reach the gateway: the upstream does not take their marks for its own."""
        marks = all_wires()[self.wire].intercepted_marks
        return not marks or not any(mark in _write_probe(dialect) for mark in marks)

    def known_dialect(self, *names: str) -> str:
        """The dialect known for the first of these model names, if the upstream takes it, or the default."""
        known = known_dialect(*names)
        return known if self.takes_dialect(known) else DEFAULT_DIALECT

    def endpoint(self, path: str, root: str = "/v1") -> str:
        """The URL of an endpoint, such as ``/chat/completions``."""
        return extend_url(self.base_url, root, path)


@lru_cache(maxsize=1024)
def extend_url(address: str, root: str, path: str) -> str:
    """The URL of an endpoint below a base URL; ``root`` is the path of a base URL that has none."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=(parts.path or root) + path))


def _cookie_values(cookies: str) -> Iterator[str]:
    for cookie in cookies.split(";"):
        value = cookie.partition("=")[2].strip()
        yield value
        yield value.strip('"')


@lru_cache(maxsize=1024)
def known_dialect(*names: str) -> str:
    """The dialect known for the first of these model names, or the default."""
    from toolglot.reading.reader import dialect_index  # not needed to load settings

    return next(filter(None, map(dialect_index().resolve_hint, names)), DEFAULT_DIALECT)


@cache
def _write_probe(dialect: str) -> str:
    """A call that shows the marks of a dialect, and those of the dialect that stands in where it cannot write a
    call."""
    from toolglot.prompting.call_writer import write_call  # not needed to load settings

    return write_call(dialect, "probe", PROBE)
