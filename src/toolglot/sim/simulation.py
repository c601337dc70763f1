"""The simulated model without a network: turns a request into a response plan."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any

from toolglot.sim.answer import NATIVE, Answer, RenderedAnswer, SimCall
from toolglot.sim.damage import CALL_FAULTS, JSON_FAULTS, MARK_FAULTS, damage_json
from toolglot.sim.defects import PlannedAnswer, write_text
from toolglot.sim.faults import NATIVE_FAULTS, Refusal
from toolglot.sim.options import AUTO, SimOptions, options_for_request
from toolglot.sim.prompt_reading import detect_dialect
from toolglot.sim.request import SimRequest, parse_request
from toolglot.sim.response_plan import (
    AnswerIdentity,
    ResponsePlan,
    count_usage,
    find_refusal,
    plan_answer,
    plan_no_response,
    plan_refusal,
)
from toolglot.sim.script import ScriptCursor
from toolglot.sim.served_wires import SERVED_WIRES, plan_served, refuse_served
from toolglot.sim.tool_picker import pick_answer
from toolglot.sim.weak_model import Attempt, WeakModel

DEFAULT_WIRE = "openai_chat"


@dataclass(slots=True)
class RecordedRequest:
    """A request that was received, and its outcome. Times come from the clock in the options; ``size`` and ``sent`` are
    the bytes of the request body and of the response.

    ``outcome`` is ``open``, then ``complete``, ``dropped`` (by the server), ``abandoned`` (by the client) or
    ``refused`` (an invalid request or an unknown option).
    """

    path: str
    headers: Mapping[str, str]
    body: Any
    began: float
    options: SimOptions | None = None
    outcome: str = "open"
    method: str = "POST"
    size: int = 0
    sent: int = 0
    ended: float | None = None
    attempt: Attempt | None = None
    """What the weak model made of it."""


@dataclass(slots=True)
class RequestLog:
    """The latest requests, oldest first."""

    requests: deque[RecordedRequest] = field(default_factory=deque)
    total: int = 0

    def add(self, seen: RecordedRequest) -> None:
        self.total += 1
        self.requests.append(seen)

    @property
    def bodies(self) -> list[Any]:
        return [seen.body for seen in self.requests]

    @property
    def last(self) -> RecordedRequest:
        return self.requests[-1]


class Simulation:
    """A simulated model: plans a response for each request."""

    def __init__(self, options: SimOptions | None = None) -> None:
        self.options = options or SimOptions()
        self.record = RequestLog(deque(maxlen=self.options.keep))
        self._prompter = ScriptCursor(self.options.script)
        self._session = f"{int(self.options.clock() * 1000):x}"
        self._numbers = count(1)
        self._weak = WeakModel(self.options) if self.options.defects else None

    def plan(
        self,
        body: Any,
        size: int,
        headers: Mapping[str, str],
        seen: RecordedRequest | None = None,
        wire: str = DEFAULT_WIRE,
    ) -> ResponsePlan:
        """Plan the response to one request.

        Parameters: ``body`` is the decoded JSON, ``size`` its length in bytes, ``seen`` the log entry to complete,
        ``wire`` the wire of the request.

        Raises: ``ClientError`` for an invalid request or option.
        """
        served = SERVED_WIRES.get(wire)
        asked = parse_request(served.decode(body) if served and isinstance(body, Mapping) else body)
        scripted = self._prompter.next(asked.question, bool(asked.tools), asked.result is not None)
        options = options_for_request(self.options, asked.model, headers, scripted.options)
        if not asked.native:
            options = replace(options, faults=tuple(one for one in options.faults if one not in NATIVE_FAULTS))
        if seen is not None:
            seen.options = options
        if silence := plan_no_response(options.faults):
            return silence
        answer = find_refusal(options.faults) or self._answer(asked, scripted.answer, options, seen, wire)
        if isinstance(answer, Refusal):
            return plan_refusal(refuse_served(served, answer) if served else answer, options)
        identity = AnswerIdentity(self._session, next(self._numbers), int(self.options.clock()))
        if served:
            return plan_served(served, answer, identity, options, stream=asked.stream)
        usage = count_usage(size, answer)
        return plan_answer(answer, identity, usage, options, stream=asked.stream, wants_usage=asked.wants_usage)

    def _answer(
        self, asked: SimRequest, scripted: Answer | None, options: SimOptions, seen: RecordedRequest | None, wire: str
    ) -> RenderedAnswer | Refusal:
        """The answer, spoiled if the model is weak and this turn is defective."""
        answer = scripted or pick_answer(asked)
        if self._weak is None:
            return render_answer(answer, asked, options)
        attempt = self._weak.attempt(asked, answer)
        if seen is not None:
            seen.attempt = attempt
        rendered = render_answer(attempt.answer, asked, options)
        if not attempt.defective:
            return rendered
        planned = plan_defect(rendered, attempt, asked, options, self._weak.draw(attempt), wire)
        return self._weak.spoil(attempt, planned) or rendered


def render_answer(answer: Answer, asked: SimRequest, options: SimOptions) -> RenderedAnswer:
    """Render an answer with native calls or in a dialect, and apply the faults."""
    faults = options.faults
    if "empty_answer" in faults:
        return RenderedAnswer(finish=answer.finish)
    calls = _change_calls(answer.calls, faults)
    plain = RenderedAnswer(answer.text, reasoning=answer.reasoning, finish=answer.finish)
    dialect = _choose_dialect(asked, options.dialect)
    if not calls:
        rendered = plain
    elif dialect == NATIVE:
        rendered = replace(plain, calls=_damage_native(calls, faults))
    else:
        lead = f"{answer.text}\n\n" if answer.text else ""
        written = _damage_written(write_text(calls, dialect, asked.tools), faults)
        rendered = replace(plain, text=lead, written=written)
    return rendered.limit(asked.limit) if asked.limit else rendered


def plan_defect(
    rendered: RenderedAnswer, attempt: Attempt, asked: SimRequest, options: SimOptions, random: Random, wire: str
) -> PlannedAnswer | None:
    """What a weak model spoils; None if the answer has no calls."""
    calls = attempt.answer.calls
    if not calls:
        return None
    return PlannedAnswer(
        clean=rendered,
        calls=calls,
        tools=asked.tools,
        tool=next((tool for tool in asked.tools if tool.name == calls[0].name), None),
        dialect=_choose_dialect(asked, options.dialect),
        stream=asked.stream,
        random=random,
        wire=wire,
    )


def _choose_dialect(asked: SimRequest, dialect: str) -> str:
    if dialect != AUTO:
        return dialect
    return NATIVE if asked.native or not asked.prompt else detect_dialect(asked.prompt)


def _change_calls(calls: tuple[SimCall, ...], faults: Iterable[str]) -> tuple[SimCall, ...]:
    for fault in faults:
        if fault in CALL_FAULTS:
            calls = tuple(CALL_FAULTS[fault](call) for call in calls)
    return calls


def _damage_native(calls: tuple[SimCall, ...], faults: Iterable[str]) -> tuple[SimCall, ...]:
    for fault in faults:
        if fault in JSON_FAULTS:
            calls = tuple(replace(call, arguments=JSON_FAULTS[fault](call.arguments)) for call in calls)
    return calls


def _damage_written(written: str, faults: Iterable[str]) -> str:
    for fault in faults:
        if fault in JSON_FAULTS:
            written = damage_json(written, JSON_FAULTS[fault])
        elif fault in MARK_FAULTS:
            written = MARK_FAULTS[fault](written)
    return written
