"""Servers for the pages of a browser: an upstream that counts, an observed gateway, a site that serves the page.

All of it runs on loopback, in the test's own process, so that what reached each of them can be compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from aiohttp import web
from support.loopback import running_loop

from toolglot.config import load
from toolglot.server.app import Gateway
from toolglot.server.http_request import Request, Response
from toolglot.server.lifecycle import listening
from toolglot.sim.server import running

PAGE = (Path(__file__).parent / "page.html").read_text("utf-8")
SECRET = "planted-4711"
"""Part of every answer of the upstream."""
NAME = "evil.example"
"""The name of a foreign site, which leads to this machine in the browser."""
SEEN_SECONDS = 5.0
POLICIES = {
    "": {},
    "no-referrer": {"Referrer-Policy": "no-referrer"},
    "sandbox": {"Content-Security-Policy": "sandbox allow-scripts allow-forms allow-popups"},
}


@dataclass(frozen=True)
class PageRequest:
    """A request that reached the gateway."""

    way: str
    method: str
    origin: str
    status: int


@dataclass
class WayResult:
    """What the page reported about one way, and the requests to the upstream by then."""

    read: str
    failed: str
    asked: list[str]


@dataclass
class Journal:
    """What happened, as each of the servers saw it."""

    asked: list[str] = field(default_factory=list)
    requests: list[PageRequest] = field(default_factory=list)
    results: dict[str, WayResult] = field(default_factory=dict)
    finished: threading.Event = field(default_factory=threading.Event)

    def of(self, way: str) -> list[PageRequest]:
        return [page_request for page_request in self.requests if page_request.way == way]

    @property
    def reaching(self) -> set[str]:
        """The ways by which the upstream was asked."""
        return {way for way, received in self.results.items() if received.asked}

    @property
    def read(self) -> dict[str, str]:
        """What the page could read, by way."""
        return {way: received.read for way, received in self.results.items() if received.read}

    @property
    def statuses(self) -> set[int]:
        """How the gateway answered the page; a browser asks for the icon of a window by itself."""
        return {page_request.status for page_request in self.requests if page_request.way}


@dataclass(frozen=True)
class Sites:
    """Ports on loopback. The one of ``rebound`` serves the page first, and leads to the gateway from then on."""

    gateway: int
    page: int
    rebound: int
    journal: Journal

    def address(self, host: str, target: str = "", policy: str = "", key: str = "") -> str:
        """Where the page is found that tries to use the gateway by the name ``target``; its own if there is none."""
        own = f"http://{host}:{self.page if target else self.rebound}"
        aim = f"http://{target}:{self.gateway}" if target else own
        report = f"http://127.0.0.1:{self.page}/results"
        return f"{own}/page?{urlencode({'target': aim, 'report': report, 'key': key, 'policy': policy})}"


def make_upstream(journal: Journal) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        journal.asked.append(f"{request.method} {request.path}")
        if request.method == "GET":
            return web.json_response({"object": "list", "data": [{"id": "sim"}, {"id": SECRET}]})
        text = {"role": "assistant", "content": f"It is {SECRET}."}
        return web.json_response({"id": "x", "choices": [{"index": 0, "message": text, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def make_site(journal: Journal) -> web.Application:
    """The site that serves the page and redirects requests; the page reports to it what it could read."""
    done = 0

    async def show(request: web.Request) -> web.Response:
        response = web.Response(text=PAGE, content_type="text/html", headers=POLICIES[request.query["policy"]])
        response.force_close()
        return response

    async def bounce(request: web.Request) -> web.Response:
        headers = {"Location": request.query["to"], "Access-Control-Allow-Origin": "*"}
        return web.Response(status=int(request.query["status"]), headers=headers)

    async def take_result(request: web.Request) -> web.Response:
        nonlocal done
        payload: dict[str, Any] = json.loads(await request.text())
        way = payload["way"]
        if way:
            await wait_for_request(journal, way)
            journal.results[way] = WayResult(payload["read"] or "", payload["failed"], journal.asked[done:])
            done = len(journal.asked)
        else:
            journal.finished.set()
        return web.Response(headers={"Access-Control-Allow-Origin": "*"})

    app = web.Application()
    app.router.add_get("/page", show)
    app.router.add_route("*", "/bounce", bounce)
    app.router.add_post("/results", take_result)
    return app


async def wait_for_request(journal: Journal, way: str) -> None:
    """Beacons and the like are on their way when the page goes on."""
    for _ in range(int(SEEN_SECONDS / 0.02)):
        if journal.of(way):
            return
        await asyncio.sleep(0.02)


def watch_gateway(journal: Journal, patch: pytest.MonkeyPatch) -> None:
    """Note every request that reaches a gateway, and how it was answered."""
    answer = Gateway.answer

    async def watched(gateway: Gateway, request: Request) -> Response | None:
        response = await answer(gateway, request)
        way, origin = request.query.get("way", ""), request.headers.get("origin", "")
        journal.requests.append(PageRequest(way, request.method, origin, response.status if response else 200))
        return response

    patch.setattr(Gateway, "answer", watched)


@asynccontextmanager
async def rebinding(site: int, gateway: int) -> AsyncIterator[int]:
    """A port that is the site's for the page, and the gateway's for everything else: a name that has been rebound.

    To the browser it is one origin, to the gateway a request with a foreign name.
    """

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readline()
        port = site if first.startswith(b"GET /page?") else gateway
        onward, back = await asyncio.open_connection("127.0.0.1", port)
        back.write(first)
        await asyncio.gather(pipe(reader, back), pipe(onward, writer))

    async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(65536):
                sink.write(piece)
                await sink.drain()
        sink.close()

    server = await asyncio.start_server(lead, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextmanager
def running_sites(patch: pytest.MonkeyPatch, **settings: Any) -> Iterator[Sites]:
    journal = Journal()
    watch_gateway(journal, patch)
    with running_loop() as loop, ExitStack() as stack:
        upstream = stack.enter_context(loop.entered(running(make_upstream(journal))))
        given = {"port": 0, "state_dir": "none", "base_url": f"{upstream}/v1", **settings}
        gateway = port_of(stack.enter_context(loop.entered(listening(load(given, {})))))
        site = port_of(stack.enter_context(loop.entered(running(make_site(journal)))))
        rebound = stack.enter_context(loop.entered(rebinding(site, gateway)))
        yield Sites(gateway, site, rebound, journal)


def port_of(address: str) -> int:
    return urlsplit(address).port or 0
