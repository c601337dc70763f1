"""Requests of commands to a running gateway, sent as a client would send them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from email.message import Message as Headers
from http.client import HTTPException
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import toolglot
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import Settings
from toolglot.config.references import References
from toolglot.config.value_types import SECRET
from toolglot.core.errors import UsageError

if TYPE_CHECKING:
    from toolglot.core.events import Event

HEALTH_TIMEOUT: Final = 3.0
CALL_TIMEOUT: Final = 300.0
MAX_TOKENS: Final = 300
LISTED: Final = 20
QUESTION: Final = "What is the weather in Paris? Use the tool get_weather."
WEATHER: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTest:
    """What one request with a tool showed. ``call`` is the call that was made, ``problem`` what failed; or empty."""

    model: str
    wire: str
    mode: str = ""
    dialect: str = ""
    call: str = ""
    text: str = ""
    problem: str = ""

    def describe(self) -> str:
        if self.problem:
            return f"the test call failed: {self.problem}"
        how = f"{self.model} over {self.wire}, mode {self.mode}" + (f", dialect {self.dialect}" if self.dialect else "")
        return f"{how}: called {self.call}" if self.call else f"{how}: answered without a call: {self.text[:80]!r}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"called": bool(self.call)}


class GatewayContact:
    """A running gateway, by its address (without ``/v1``) and a client key, which may be empty. ``program`` is the name
    that its records have for the requests."""

    def __init__(self, address: str, key: str = "", program: str = "toolglot") -> None:
        self.address = address.rstrip("/").removesuffix("/v1")
        self.key = key
        self.program = f"{program}/{toolglot.__version__}"
        self._opener = build_opener(ProxyHandler({}))

    def is_running(self) -> bool:
        """Whether a gateway answers at the address. Raises: UsageError if something else does."""
        try:
            status, _, body = self._send("/health", timeout=HEALTH_TIMEOUT)
        except OSError:
            return False
        except (HTTPException, ValueError) as error:
            raise UsageError(f"{self.address} is not the address of a gateway: {error}") from None
        if status != 200 or _member(body, "name") != "toolglot":
            raise UsageError(f"another server answers at {self.address}: give the gateway's address with --url")
        return True

    def list_models(self) -> list[str]:
        """The models that the gateway lists. Raises: UsageError."""
        listed = _member(self._get("/v1/models")[1], "data")
        return [one["id"] for one in listed or () if isinstance(one, dict) and isinstance(one.get("id"), str)]

    def require_access(self) -> None:
        """Raise UsageError if the gateway refuses the client key. Its upstream is not asked."""
        self._get("/metrics")

    def fetch(self, path: str) -> bytes:
        """The body at a path. Raises: UsageError if the gateway does not answer, or with an error."""
        status, body = self._get(path)
        if status != 200:
            raise UsageError(f"the gateway at {self.address} answered {path} with status {status}")
        return body

    def exchange_json(self, path: str, body: object = None) -> Any:
        """The JSON at a path of the console's API; with a body it is a POST. Raises: UsageError with its message."""
        sent = None if body is None else json.dumps(body).encode()
        headers = {"x-toolglot-console": "1"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        try:
            status, _, received = self._send(path, sent, headers, CALL_TIMEOUT)
        except (OSError, HTTPException) as error:
            raise UsageError(f"the gateway at {self.address} did not answer: {error}") from None
        if status != 200:
            refusal = _member(received, "error") or {}
            raise UsageError(f"the gateway at {self.address} answered: {refusal.get('message') or f'status {status}'}")
        return json.loads(received)

    def _get(self, path: str) -> tuple[int, bytes]:
        """The status and body at a path. Raises: UsageError without an answer or the right key."""
        try:
            status, _, body = self._send(path)
        except (OSError, HTTPException) as error:
            raise UsageError(f"the gateway at {self.address} did not answer: {error}") from None
        if status == 401:
            how = "refuses this client key" if self.key else "needs a client key"
            remedy = "set TOOLGLOT_KEY or give --key ('toolglot key' makes one)"
            raise UsageError(f"the gateway at {self.address} {how}: {remedy}")
        return status, body

    def test_call(self, wire_name: str, model: str) -> CallTest:
        """Send one streamed request with a tool, over the wire that a client uses. Costs one answer of the model."""
        from toolglot.core.conversation import Conversation, Message, Sampling, Text, Tool
        from toolglot.core.errors import ToolglotError
        from toolglot.wires import client_wires

        wire, ids = client_wires()[wire_name], count(1)
        tool = Tool("get_weather", "Get the current weather of a city", WEATHER)
        sampling = Sampling(max_tokens=MAX_TOKENS, temperature=0)
        conversation = Conversation(model, (Message("user", (Text(QUESTION),)),), (tool,), sampling=sampling)
        found: dict[str, Any] = {"model": model, "wire": wire.name}
        try:
            body = wire.encode_request(conversation, stream=True, wants_usage=False)
            headers = dict(wire.authorize(self.key)) if self.key else {}
            path = wire.base_path + wire.locate(model, stream=True)
            status, answered, received = self._send(path, body, headers, CALL_TIMEOUT)
            found |= {"mode": answered.get("x-toolglot-mode", ""), "dialect": answered.get("x-toolglot-dialect", "")}
            if status != 200:
                raise wire.decode_error(status, received)
            decoder = wire.open_decoder(lambda: str(next(ids)))
            events = [*decoder.feed(received), *decoder.close()]
        except (OSError, HTTPException) as error:
            return CallTest(**found, problem=str(error))
        except ToolglotError as error:
            return CallTest(**found, problem=error.message)
        return CallTest(**found, **read_answer(events))

    def _send(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, timeout: float = 30.0
    ) -> tuple[int, Headers, bytes]:
        bearer = {"Authorization": f"Bearer {self.key}"} if self.key and headers is None else {}
        named = {"Content-Type": "application/json", "User-Agent": self.program}
        sent = {**named, **bearer, **(headers or {})}
        request = Request(self.address + path, body, sent)
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return response.status, response.headers, response.read()
        except HTTPError as error:
            with error:
                return error.code, error.headers, error.read()


def read_answer(events: Sequence[Event]) -> dict[str, str]:
    """The complete calls, the text and the failure of an answer, as fields of a ``CallTest``."""
    from toolglot.core.events import CallArguments, CallEnded, CallStarted, Failed, TextDelta

    calls: dict[int, list[str]] = {}
    ended, text, problem = [], "", ""
    for event in events:
        match event:
            case CallStarted():
                calls[event.index] = [event.name, ""]
            case CallArguments():
                calls[event.index][1] += event.fragment
            case CallEnded():
                ended.append(event.index)
            case TextDelta():
                text += event.text
            case Failed():
                problem = event.message
    return {"call": ", ".join("{}({})".format(*calls[index]) for index in ended), "text": text, "problem": problem}


def _member(body: bytes, name: str) -> Any:
    try:
        return json.loads(body)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def find_key(given: str | None) -> str:
    """The client key that a command presents: ``given`` as an option, else that of TOOLGLOT_KEY, or of the file that
    TOOLGLOT_KEY_FILE names. It may be empty. Raises: UsageError if the file cannot be used."""
    references = References(os.environ)
    origin, raw = ("--key", given) if given else references.find_variable(KEY_VARIABLE, SECRET)
    key: str = references.fill_in(raw, SECRET, origin)
    return key


def find_address(given: str | None, settings: Settings) -> str:
    """The address of the gateway: the one that is given, else the one that the settings make it listen on."""
    if given:
        return given if "://" in given else f"http://{given}"
    host = settings.server.host
    shown = "127.0.0.1" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{settings.server.port}"


def choose_model(given: str | None, listed: list[str]) -> str:
    """The model that is given, else the only one of the gateway. Raises: UsageError if there are several, or none."""
    if given:
        return given
    if len(listed) == 1:
        return listed[0]
    if not listed:
        raise UsageError(
            "the gateway lists no models, as if its upstream were down: its log says what it found at the start."
            " Start the upstream, or give a model with --model"
        )
    raise UsageError(f"choose a model with --model; {name_models(listed)}")


def name_models(listed: list[str]) -> str:
    """The models that there are, as the end of a sentence."""
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"there are: {', '.join(listed[:LISTED])}{more}"
