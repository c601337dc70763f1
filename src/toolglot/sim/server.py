"""HTTP server of the simulated model: chat completions, models, health."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiohttp import web

from toolglot.core.errors import ClientError
from toolglot.sim.faults import Interruption
from toolglot.sim.options import SimOptions
from toolglot.sim.response_plan import FINGERPRINT, MODEL, SIM_HEADERS, ResponsePlan
from toolglot.sim.simulation import DEFAULT_WIRE, RecordedRequest, RequestLog, Simulation

SIMULATION = web.AppKey("simulation", Simulation)
REQUEST_LOG = web.AppKey("request_log", RequestLog)
BODY_LIMIT = 64 * 1024 * 1024
STREAM_METHOD = "streamGenerateContent"
PATHS = {
    "/v1/messages": "anthropic_messages",
    "/v1/responses": "openai_responses",
    "/v1beta/models/{model}:{method}": "gemini",
    "/api/chat": "ollama",
}
"""The addresses of other wires."""


def make_app(options: SimOptions | None = None) -> web.Application:
    """Build the app of one simulation; ``app[REQUEST_LOG]`` has the requests it received."""
    simulation = Simulation(options)
    app = web.Application(client_max_size=BODY_LIMIT)
    app[SIMULATION] = simulation
    app[REQUEST_LOG] = simulation.record
    for prefix in ("", "/v1"):
        app.router.add_post(f"{prefix}/chat/completions", answer_chat)
        app.router.add_get(f"{prefix}/models", list_models)
        app.router.add_get(f"{prefix}/models/{{model}}", show_model)
    for path, wire in PATHS.items():
        app.router.add_post(path, partial(answer_chat, wire=wire))
    app.router.add_get("/health", show_health)
    return app


@asynccontextmanager
async def running(app: web.Application, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve an app inside the context and yield its address, such as ``http://127.0.0.1:40123``.

    Port 0 takes a free port. Raises: ``OSError`` if the address cannot be bound.
    """
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound_host, bound_port = runner.addresses[0][:2]
        shown = f"[{bound_host}]" if ":" in bound_host else bound_host
        yield f"http://{shown}:{bound_port}"
    finally:
        await runner.cleanup()


async def answer_chat(request: web.Request, wire: str = DEFAULT_WIRE) -> web.StreamResponse:
    simulation = request.app[SIMULATION]
    raw = await request.read()
    began = simulation.options.clock()
    seen = RecordedRequest(request.path, request.headers.copy(), None, began, size=len(raw))
    simulation.record.add(seen)
    try:
        seen.body = json.loads(raw)
        if request.match_info.get("method") == STREAM_METHOD:
            seen.body["stream"] = True
        plan = simulation.plan(seen.body, len(raw), request.headers, seen, wire)
    except ValueError as error:
        return _refuse(seen, f"the request body is not JSON: {error}")
    except ClientError as error:
        return _refuse(seen, error.message)
    try:
        return await _execute(plan, request, seen, simulation.options.hang)
    except (asyncio.CancelledError, ConnectionError):
        seen.outcome = "abandoned"
        raise
    finally:
        seen.ended = simulation.options.clock()


async def _execute(plan: ResponsePlan, request: web.Request, seen: RecordedRequest, hang: float) -> web.StreamResponse:
    """Carry out the plan: wait, send, interrupt."""
    if plan.latency:
        await asyncio.sleep(plan.latency)
    response = web.StreamResponse(status=plan.status, headers=plan.headers)
    if not plan.streamed:
        response.content_length = plan.size
    if plan.before is not None:
        await _interrupt(plan.before, request, hang)
    else:
        await response.prepare(request)
        await _send(plan, response, request, seen, hang)
    closing = request.transport is None or request.transport.is_closing()
    seen.outcome = "dropped" if closing else "complete"
    return response


async def _send(
    plan: ResponsePlan, response: web.StreamResponse, request: web.Request, seen: RecordedRequest, hang: float
) -> None:
    clock = asyncio.get_running_loop().time
    due = clock()
    for number, step in enumerate(plan.steps):
        if number:
            due += plan.pace
            await asyncio.sleep(max(0.0, due - clock()))
            await asyncio.sleep(0)  # let a client in the same event loop read, so that writes do not arrive joined
        if isinstance(step, Interruption):
            await _interrupt(step, request, hang)
            return
        await response.write(step)
        seen.sent += len(step)


async def _interrupt(signal: Interruption, request: web.Request, hang: float) -> None:
    """Hang until the client gives up, or at once, then close the connection."""
    if signal is Interruption.HANG:
        await asyncio.sleep(hang)
    if request.transport is not None:
        request.transport.close()


async def list_models(request: web.Request) -> web.Response:
    return _json({"object": "list", "data": [_model(MODEL)]})


async def show_model(request: web.Request) -> web.Response:
    return _json(_model(request.match_info["model"]))


async def show_health(request: web.Request) -> web.Response:
    return _json({"status": "ok", "simulated": True})


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": FINGERPRINT}


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers=SIM_HEADERS)


def _refuse(seen: RecordedRequest, message: str) -> web.Response:
    seen.outcome = "refused"
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return _json({"error": error}, 400)
