"""HTTP server of the simulated web chat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from aiohttp import web

from toolglot.core.errors import ClientError
from toolglot.sim.faults import Interruption
from toolglot.sim.qwen_web.errors import ERRORS, JSON_TYPE, ChatError, RequestRefusedError
from toolglot.sim.qwen_web.models import describe_model
from toolglot.sim.qwen_web.options import ChatSimOptions
from toolglot.sim.qwen_web.request import parse_object
from toolglot.sim.qwen_web.simulation import ChatSimulation, Generation
from toolglot.sim.qwen_web.stream import encode_stopped
from toolglot.sim.response_plan import SIM_HEADERS
from toolglot.sim.server import BODY_LIMIT
from toolglot.sim.simulation import RecordedRequest

SIMULATION = web.AppKey("chat_simulation", ChatSimulation)
SHOWN = 20

Endpoint: TypeAlias = Callable[[ChatSimulation, web.Request, RecordedRequest], Awaitable[web.StreamResponse]]
Receive: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(simulation: ChatSimulation | ChatSimOptions | None = None) -> web.Application:
    """Build the app of one simulation, which ``app[SIMULATION]`` is."""
    if not isinstance(simulation, ChatSimulation):
        simulation = ChatSimulation(simulation)
    app = web.Application(client_max_size=BODY_LIMIT)
    app[SIMULATION] = simulation
    router = app.router
    router.add_post("/api/v2/chats/new", _guard(create_chat))
    router.add_post("/api/v2/chat/completions", _guard(complete))
    router.add_post("/api/v2/chat/completions/stop", _guard(stop_answer))
    router.add_post("/api/v2/chats/batch_delete", _guard(delete_chats))
    router.add_get("/api/v2/chats/", _guard(list_chats))
    router.add_get("/api/v2/chats/{chat_id}", _guard(show_chat))
    router.add_delete("/api/v2/chats/{chat_id}", _guard(delete_chat))
    router.add_get("/api/models", _guard(list_models))
    router.add_get("/api/v2/models/", _guard(list_models))
    router.add_get("/api/v1/auths/", _guard(show_account))
    router.add_get("/sim/seen", show_seen)
    router.add_get("/health", show_health)
    return app


def _guard(endpoint: Endpoint) -> Receive:
    """Record a request, check its token, and send what the endpoint raises as the service reports it."""

    async def receive(request: web.Request) -> web.StreamResponse:
        simulation = request.app[SIMULATION]
        raw = await request.read()
        began = simulation.options.clock()
        seen = RecordedRequest(request.path, request.headers.copy(), None, began, method=request.method, size=len(raw))
        simulation.record.add(seen)
        try:
            simulation.admit(request.headers)
            seen.body = parse_object(raw) if request.method == "POST" else None
            response = await endpoint(simulation, request, seen)
            seen.outcome = "complete" if seen.outcome == "open" else seen.outcome
            return response
        except RequestRefusedError as refusal:
            seen.outcome = "refused"
            simulation.note(refusal)
            return _refuse(simulation, refusal)
        except ClientError as error:
            seen.outcome = "refused"
            return _report(simulation, ChatError("Bad_Request", error.message), 400)
        except (asyncio.CancelledError, ConnectionError):
            seen.outcome = "abandoned"
            raise
        finally:
            seen.ended = simulation.options.clock()

    return receive


# Chats


async def create_chat(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    return _succeed(simulation, {"id": simulation.create(seen.body, request.headers).id})


async def show_chat(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    chat_id = request.match_info["chat_id"]
    if chat_id not in simulation.chats:
        raise RequestRefusedError(ERRORS["not_found"])
    return _succeed(simulation, simulation.chats[chat_id].to_json())


async def list_chats(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    page = request.query.get("page", "1")
    if not page.isdecimal() or not int(page):
        raise ClientError("page must be a number, 1 or more")
    return _succeed(simulation, simulation.list_chats(int(page)))


async def delete_chat(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    simulation.fail("delete", request.headers)
    simulation.find(request.match_info["chat_id"])
    simulation.delete(request.match_info["chat_id"])
    return _succeed(simulation, {"status": True})


async def delete_chats(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    simulation.fail("delete", request.headers)
    ids = seen.body.get("ids")
    if not isinstance(ids, list) or not all(isinstance(chat_id, str) for chat_id in ids):
        raise ClientError("ids must be a list of chat ids")
    for chat_id in ids:
        simulation.delete(chat_id)
    return _succeed(simulation, {"status": True})


async def stop_answer(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    simulation.stop(seen.body, request.headers)
    return _succeed(simulation, {"status": True})


# Completions


async def complete(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    generation = simulation.begin(seen.body, request.query.get("chat_id", ""), request.headers)
    seen.options = generation.options
    aborted = True
    try:
        plan = await simulation.plan(generation)
        await asyncio.sleep(plan.latency)
        response = web.StreamResponse(headers=dict(plan.headers))
        if plan.before is not None:
            await _interrupt(plan.before, request, generation)
            seen.outcome = "dropped"
            return response
        await response.prepare(request)
        aborted = not await _send(simulation, generation, response, request)
        seen.outcome = "dropped" if aborted else "complete"
        return response
    finally:
        seen.sent = generation.sent
        simulation.end(generation, aborted=aborted)


async def _send(
    simulation: ChatSimulation,
    generation: Generation,
    response: web.StreamResponse,
    request: web.Request,
) -> bool:
    """Send the steps of the plan; False if the connection is interrupted."""
    plan = generation.plan
    for number, step in enumerate(plan.steps):
        if number:
            await asyncio.sleep(plan.pace)
        if generation.stopped.is_set():
            break
        if isinstance(step, Interruption):
            await _interrupt(step, request, generation)
            return False
        if plan.final_at is not None and generation.sent + len(step) > plan.final_at:
            simulation.end(generation, aborted=False)
        generation.sent += len(step)
        await response.write(step)
    if generation.stopped.is_set():
        await response.write(encode_stopped(generation.identity))
    return True


async def _interrupt(signal: Interruption, request: web.Request, generation: Generation) -> None:
    """Hang until the answer is stopped or the client gives up, or not at all, then close the connection."""
    if signal is Interruption.HANG:
        with suppress(TimeoutError):
            await asyncio.wait_for(generation.stopped.wait(), generation.options.hang)
    if request.transport is not None:
        request.transport.close()


# Account and models


async def list_models(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    simulation.fail("models", request.headers)
    shape = "flat" if request.path == "/api/models" else "nested"
    if simulation.options.model_list not in ("both", shape):
        return _report(simulation, ERRORS["not_found"], 404)
    created = int(simulation.options.clock())
    models = {"data": [describe_model(name, created) for name in simulation.options.models]}
    return _json(models) if shape == "flat" else _succeed(simulation, models)


async def show_account(simulation: ChatSimulation, request: web.Request, seen: RecordedRequest) -> web.StreamResponse:
    return _json({"id": "sim", "email": "sim@example.invalid", "name": "sim", "role": "user", "token_type": "Bearer"})


# For people


async def show_seen(request: web.Request) -> web.StreamResponse:
    """What the model saw last, newest first; no part of the service."""
    simulation = request.app[SIMULATION]
    limit = request.query.get("limit", str(SHOWN))
    if not limit.isdecimal():
        return _report(simulation, ChatError("Bad_Request", "limit must be a number"), 400)
    latest = [seen.to_json() for seen in simulation.seen[::-1][: int(limit)]]
    return _json({"semantics": simulation.options.semantics, "violations": simulation.violations, "seen": latest})


async def show_health(request: web.Request) -> web.StreamResponse:
    return _json({"status": "ok", "simulated": True})


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.json_response(body, status=status, headers=SIM_HEADERS)


def _succeed(simulation: ChatSimulation, data: Any) -> web.Response:
    return _json({"success": True, "request_id": simulation.options.new_id(), "data": data})


def _report(simulation: ChatSimulation, error: ChatError, status: int) -> web.Response:
    return _json({"success": False, "request_id": simulation.options.new_id(), "data": error.to_json()}, status)


def _refuse(simulation: ChatSimulation, refusal: RequestRefusedError) -> web.Response:
    error = refusal.error
    if isinstance(error, ChatError):
        return _report(simulation, error, error.status if refusal.with_status else 200)
    headers = SIM_HEADERS | {"content-type": error.content_type or JSON_TYPE}
    return web.Response(body=error.body, headers=headers)
