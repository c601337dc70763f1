"""The simulated web chat without a network: chats, requests, answers."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolglot.sim.answer import NATIVE, Answer
from toolglot.sim.options import AUTO, options_for_request, parse_headers
from toolglot.sim.qwen_web.chats import Chat, ChatMessage, SeenMessage
from toolglot.sim.qwen_web.errors import ERRORS, PAGES, ChatError, RequestRefusedError, parent_missing, refuse_input
from toolglot.sim.qwen_web.faults import COMPLETION, DEGENERATE, find_error, route_of
from toolglot.sim.qwen_web.model import read_context
from toolglot.sim.qwen_web.options import ChatSimOptions
from toolglot.sim.qwen_web.request import (
    CompletionRequest,
    parse_completion,
    parse_create,
    read_token,
)
from toolglot.sim.qwen_web.stream import (
    StreamIdentity,
    StreamPlan,
    plan_no_response,
    plan_nothing,
    plan_stream,
    plan_whole,
)
from toolglot.sim.script import ScriptCursor, ScriptedAnswer
from toolglot.sim.simulation import RequestLog, render_answer
from toolglot.sim.tool_picker import pick_answer

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class SeenContext:
    """What the model saw for one completion: the visible messages, the new one last."""

    chat_id: str
    message_id: str
    response_id: str
    model: str
    messages: tuple[SeenMessage, ...]

    @property
    def text(self) -> str:
        """All texts, for searching."""
        return "\n\n".join(message.text for message in self.messages)

    def to_json(self) -> dict[str, Any]:
        messages = [{"role": role, "text": text} for role, text in self.messages]
        return {
            "chat_id": self.chat_id,
            "message_id": self.message_id,
            "response_id": self.response_id,
            "model": self.model,
            "messages": messages,
        }


@dataclass(slots=True)
class Generation:
    """An answer in progress. ``sent`` is in bytes."""

    chat: Chat
    request: CompletionRequest
    identity: StreamIdentity
    answer: ChatMessage
    seen: SeenContext
    options: ChatSimOptions
    scripted: Answer | None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    plan: StreamPlan = field(default_factory=StreamPlan)
    sent: int = 0


class ChatSimulation:
    """A simulated account of the web chat.

    ``seen`` has what the model saw, ``violations`` the broken rules, ``refused`` the details of every error, all oldest
    first. ``blocked`` and ``expired`` may be set: every answer is then the risk page or that the token has expired.
    """

    def __init__(self, options: ChatSimOptions | None = None) -> None:
        self.options = options or ChatSimOptions()
        self.chats: dict[str, Chat] = {}
        self.deleted: set[str] = set()
        self.seen: list[SeenContext] = []
        self.violations: list[str] = []
        self.refused: list[str] = []
        self.record = RequestLog(deque(maxlen=self.options.keep))
        self.blocked = False
        self.expired = False
        self._admitted = 0
        self._script = ScriptCursor(self.options.script)
        self._injected: dict[str, deque[tuple[str, ...]]] = defaultdict(deque)
        self._generations: dict[str, Generation] = {}

    def inject(self, *faults: str, times: int = 1) -> None:
        """Add faults to the next requests that they apply to. Raises: ``UsageError`` for an unknown name."""
        replace(self.options, faults=faults)
        for route in dict.fromkeys(map(route_of, faults)):
            affected = tuple(fault for fault in faults if route_of(fault) == route)
            self._injected[route].extend([affected] * times)

    # Access

    def admit(self, headers: Mapping[str, str]) -> None:
        """Count a request and check its token. Raises: ``RequestRefusedError``."""
        self._admitted += 1
        options = self.options
        if self.blocked or (options.waf_after and self._admitted > options.waf_after):
            raise RequestRefusedError(PAGES[options.risk_page])
        token = read_token(headers)
        with_status = "status_errors" in self._server_faults(headers)
        if token != options.token:
            raise RequestRefusedError(ERRORS["unauthorized"], is_violation=not token, with_status=with_status)
        if self.expired or (options.expire_after and self._admitted > options.expire_after):
            raise RequestRefusedError(ERRORS["token_expired"], with_status=with_status)

    def fail(self, route: str, headers: Mapping[str, str], model: str = "") -> None:
        """Apply the faults of a call that is not a completion. Raises: ``RequestRefusedError``."""
        faults = options_for_request(self.options, model, headers, {}).faults + self._take_injected(route)
        _raise_error(faults, route)

    def note(self, refusal: RequestRefusedError) -> None:
        """Record a refused request."""
        self.refused.append(str(refusal))
        if refusal.is_violation:
            self.violations.append(str(refusal))

    def _server_faults(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        """The faults that hold before the model is known."""
        faults: tuple[str, ...] = parse_headers(headers, self.options).get("faults", self.options.faults)
        return faults

    def _take_injected(self, route: str) -> tuple[str, ...]:
        waiting = self._injected[route]
        return waiting.popleft() if waiting else ()

    # Chats

    def create(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Chat:
        """Make a chat. Raises: ``RequestRefusedError``."""
        wanted = parse_create(body)
        self.fail("create", headers, wanted.models[0])
        chat = Chat(self.options.new_id(), wanted.title, wanted.models, wanted.chat_type, int(self.options.clock()))
        self.chats[chat.id] = chat
        return chat

    def find(self, chat_id: str) -> Chat:
        """A chat that exists. Raises: ``RequestRefusedError``."""
        if chat_id in self.deleted:
            raise RequestRefusedError(ERRORS["chat_not_found"])
        if chat_id not in self.chats:
            raise RequestRefusedError(ERRORS["not_found"])
        return self.chats[chat_id]

    def list_chats(self, page: int) -> list[dict[str, Any]]:
        """One page of the chats, the latest first."""
        latest = sorted(reversed(self.chats.values()), key=lambda chat: chat.updated, reverse=True)
        return [chat.summary() for chat in latest[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]]

    def delete(self, chat_id: str) -> None:
        """Delete a chat, as a user of the web page can do at any time. Unknown ids are ignored."""
        if self.chats.pop(chat_id, None):
            self.deleted.add(chat_id)

    def stop(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Stop an answer and unlock its chat. Raises: ``RequestRefusedError``."""
        self.fail("stop", headers)
        chat = self.find(str(body.get("chat_id") or ""))
        response_id = str(body.get("response_id") or "")
        if response_id not in chat.messages or chat.messages[response_id].role != "assistant":
            raise refuse_input("response_id.")
        keeps_lock = "stop_keeps_lock" in self._server_faults(headers)
        if generation := self._generations.get(response_id):
            generation.stopped.set()
            self.end(generation, aborted=keeps_lock)
        if not keeps_lock:
            chat.locked_until = 0

    # Completions

    def begin(self, body: Mapping[str, Any], chat_id: str, headers: Mapping[str, str]) -> Generation:
        """Accept a message and lock its chat.

        Raises: ``RequestRefusedError``, and ``UsageError`` for an unknown option.
        """
        server_faults = self._server_faults(headers)
        request = parse_completion(body, chat_id, accepts_whole="whole_answers" in server_faults)
        chat = self.find(chat_id)
        parent = request.parent
        if parent is not None and parent not in chat.messages:
            raise RequestRefusedError(parent_missing(parent))
        if chat.is_busy(self.options.clock()):
            raise RequestRefusedError(ERRORS["in_progress"], with_status="status_errors" in server_faults)
        visible = (*chat.list_seen(parent, self.options.semantics), SeenMessage(request.role, request.text))
        scripted = self._next_scripted(visible, request.model)
        options = options_for_request(self.options, request.model, headers, scripted.options)
        options = replace(options, faults=options.faults + self._take_injected(COMPLETION))
        if "chat_deleted" in options.faults or 0 < options.delete_after <= chat.completions:
            self.delete(chat_id)
            raise RequestRefusedError(ERRORS["chat_not_found"])
        _raise_error(options.faults, COMPLETION)
        return self._start(chat, request, visible, options, scripted.answer)

    def _next_scripted(self, visible: Sequence[SeenMessage], model: str) -> ScriptedAnswer:
        if not self.options.script:
            return ScriptedAnswer()
        context = read_context(visible, model)
        return self._script.next(context.question, bool(context.tools), context.result is not None)

    def _start(
        self,
        chat: Chat,
        request: CompletionRequest,
        visible: tuple[SeenMessage, ...],
        options: ChatSimOptions,
        scripted: Answer | None,
    ) -> Generation:
        now = int(options.clock())
        user_id = options.new_id() if request.message_id in chat.messages else request.message_id
        chat.add(ChatMessage(user_id, request.role, request.text, request.parent, now))
        answer = chat.add(ChatMessage(options.new_id(), "assistant", "", user_id, now))
        prompt = sum(len(text) for _, text in visible)
        identity = StreamIdentity(chat.id, user_id, answer.id, options.new_id(), prompt)
        seen = SeenContext(chat.id, user_id, answer.id, request.model, visible)
        if request.role == "user":
            self.seen.append(seen)
            del self.seen[: -self.options.keep]
        else:
            self.violations.append(f"role {request.role!r} gets no answer")
        chat.answering = answer.id
        chat.completions += 1
        generation = Generation(chat, request, identity, answer, seen, options, scripted)
        self._generations[answer.id] = generation
        return generation

    async def plan(self, generation: Generation) -> StreamPlan:
        """Make the answer and plan how it is sent."""
        request, options, identity = generation.request, generation.options, generation.identity
        if silence := plan_no_response(options.faults):
            generation.plan = silence
        elif request.role != "user":
            generation.plan = plan_nothing(identity, options)
        else:
            answer = await self._make_answer(generation)
            content = self._write_answer(answer, generation)
            if request.stream:
                generation.plan = plan_stream(
                    content,
                    answer.reasoning,
                    identity,
                    options,
                    thinking=request.thinking,
                    incremental=request.incremental,
                )
            else:
                generation.plan = plan_whole(content, identity, options)
        return generation.plan

    def end(self, generation: Generation, *, aborted: bool) -> None:
        """Store an answer and unlock its chat; one that was aborted goes on in secret, and its chat stays locked."""
        chat, plan = generation.chat, generation.plan
        self._generations.pop(generation.answer.id, None)
        generation.answer.content = plan.text_after(generation.sent) if generation.stopped.is_set() else plan.text
        if chat.answering == generation.answer.id:
            chat.answering = None
            if aborted:
                chat.locked_until = self.options.clock() + generation.options.lock

    async def _make_answer(self, generation: Generation) -> Answer:
        options = generation.options
        for fault in options.faults:
            if fault in DEGENERATE:
                return Answer(DEGENERATE[fault])
        if generation.scripted is not None:
            return generation.scripted
        if options.brain is None:
            return pick_answer(read_context(generation.seen.messages, generation.request.model))
        made = options.brain(generation.seen.messages)
        answer = await made if inspect.isawaitable(made) else made
        return Answer(answer) if isinstance(answer, str) else answer

    def _write_answer(self, answer: Answer, generation: Generation) -> str:
        """The answer as the model writes it, with calls as text; native calls are in the form that is intercepted."""
        if not answer.calls:
            return answer.text
        options, context = generation.options, read_context(generation.seen.messages, generation.request.model)
        if options.dialect == NATIVE or (options.dialect == AUTO and not context.prompt):
            options = replace(options, dialect="hermes")
        return render_answer(answer, context, options).content


def _raise_error(faults: Sequence[str], route: str) -> None:
    if fault := find_error(faults, route, "body", "status"):
        is_error = isinstance(fault.error, ChatError)
        with_status = is_error and (fault.position == "status" or "status_errors" in faults)
        raise RequestRefusedError(fault.error, with_status=with_status)
