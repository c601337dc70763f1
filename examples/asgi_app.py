"""The gateway mounted in a larger ASGI application, beside routes of its own.

    pip install 'toolglot[server]' starlette uvicorn
    toolglot sim
    UPSTREAM=http://127.0.0.1:8099/v1 uvicorn --app-dir examples asgi_app:app --port 8000
    curl http://127.0.0.1:8000/about
    curl http://127.0.0.1:8000/llm/v1/models          # an OpenAI client's base URL: http://127.0.0.1:8000/llm/v1

ASGI servers start and stop only the outermost application, so its lifespan enters the gateway. To serve nothing but the
gateway, give AsgiGateway(...) to the ASGI server itself. Without client keys (client_keys=...) only clients on this
machine are served. Behind uvicorn --workers N, each worker has a gateway of its own.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from toolglot.config import make_settings
from toolglot.server import AsgiGateway

GATEWAY = AsgiGateway(
    make_settings(
        base_url=os.environ.get("UPSTREAM", "http://127.0.0.1:8099/v1"),
        client_keys=os.environ.get("CLIENT_KEYS") or None,
        state_dir="none",
        mode="text",
    )
)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with GATEWAY:
        yield


async def about(_: Request) -> PlainTextResponse:
    return PlainTextResponse("The model is at /llm/v1.\n")


app = Starlette(routes=[Route("/about", about), Mount("/llm", GATEWAY)], lifespan=lifespan)
