"""A weak model: it spoils some of its answers, and corrects them when it is asked to.

*Strategy.* A turn is what stands in a request behind the last turn that ended well: a question or a result. Whether its
first answer is defective, and in which class, follows from the seed and from the texts of the conversation up to there,
so it does not depend on the order of requests. Defective turns are remembered. A request that adds texts to such a turn
is feedback; one with the same texts in another form (a pinned tool, a grammar, tools in the prompt) is another try.
Both are answered well with the probability ``heeds``, feedback only if it names the tool or asks for a call. Then the
turn is over, and further texts begin a new one. Every other request for the turn gets the same defect again.

Every answer carries marks, such as ``1f0c9a77b2.1a``: the turn, the number of the answer and a letter. They show a
judge which texts reached a client, and whether one came twice or from another conversation.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random
from typing import TypeAlias

from toolglot.sim.answer import Answer, RenderedAnswer
from toolglot.sim.defects import DEFECTS, DefectiveAnswer, PlannedAnswer, draw_order, is_spoiled
from toolglot.sim.options import SimOptions
from toolglot.sim.request import SimRequest

KEEP_TURNS = 8192
MARK_LETTERS = "abc"
MARK = re.compile(rf"\b(?P<turn>[0-9a-f]{{10}})\.(?P<number>\d+)[{MARK_LETTERS}]\b")
DEMAND = re.compile(r"tool|function|call", re.I)
"""What feedback has that asks for a call without the name of the tool."""
CHANCE = ("empty_answer",)
"""Classes that the same request may not get a second time."""
UNSTABLE = re.compile(r"[\s\u200b-\u200d\u2060-\u2064\ufeff]+")
"""Characters that a gateway may add or join."""

Form: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Turn:
    """A turn and what a good model answers to it. ``form`` is how it was asked for at first, ``defect`` the class of
    the latest defective answer."""

    id: str
    text: str
    answer: Answer
    form: Form
    attempts: int = 1
    defect: str = ""
    over: bool = False


@dataclass(slots=True)
class Attempt:
    """One answer of the weak model; ``answer`` is what it means, with its marks, ``defect`` its class, or empty."""

    turn: Turn
    number: int
    defective: bool
    defect: str = ""

    @property
    def answer(self) -> Answer:
        marks = " ".join(f"{self.turn.id}.{self.number}{letter}" for letter in MARK_LETTERS)
        return replace(self.turn.answer, text=f"{self.turn.answer.text} {marks}".lstrip())


class WeakModel:
    """Decides which answers are defective, and spoils them. ``options`` has the shares, the seed and the classes."""

    def __init__(self, options: SimOptions) -> None:
        self._options = options
        self._turns: OrderedDict[str, list[Turn]] = OrderedDict()

    def attempt(self, asked: SimRequest, answer: Answer) -> Attempt:
        """The attempt that answers a request; ``answer`` is what a good model would say to it."""
        form = (asked.native, asked.choice, asked.constrained, len(asked.tools))
        found = self._find(asked.inputs)
        if found is None:
            return self._begin(asked, answer, form)
        turn, feedback = found
        turn.attempts += 1
        asked_again = form != turn.form or (
            _asks_for_call(feedback, turn.answer) if feedback else turn.defect in CHANCE
        )
        heeded = asked_again and self._chance(turn.id, turn.attempts).random() < self._options.heeds
        turn.over = turn.over or heeded
        return Attempt(turn, turn.attempts, not heeded)

    def spoil(self, attempt: Attempt, planned: PlannedAnswer | None) -> DefectiveAnswer:
        """Spoil an answer in the class of its turn, which is noted. Without a planned there is no call, only text.

        Returns: the answer, or the error that takes its place; the clean answer if no class applies.
        """
        turn = attempt.turn
        wanted = self._options.classes
        if planned is None:
            names = ["empty_answer"] if not wanted or "empty_answer" in wanted else []
        else:
            names = draw_order(planned.dialect, wanted, self._chance(turn.id, "class"))
        for name in names:
            spoiled = DEFECTS[name](planned) if planned else RenderedAnswer(finish="stop")
            if planned is None or is_spoiled(planned, spoiled):
                turn.defect = attempt.defect = name
                return spoiled
        turn.over = True
        return planned.clean if planned else None

    def draw(self, attempt: Attempt) -> Random:
        """The chance of the details of a defect: the same for every answer of a turn."""
        return self._chance(attempt.turn.id, "details")

    def _begin(self, asked: SimRequest, answer: Answer, form: Form) -> Attempt:
        bucket, text = _locate(asked.inputs)
        turn = Turn(_digest(str(self._options.seed), bucket, text), text, answer, form)
        chance = self._chance(turn.id, turn.attempts)
        pinned = asked.constrained or any(tool.name == asked.choice for tool in asked.tools)
        defective = chance.random() < self._options.defects and not (pinned and chance.random() < self._options.heeds)
        if defective:
            self._turns.setdefault(bucket, []).append(turn)
            while len(self._turns) > KEEP_TURNS:
                self._turns.popitem(last=False)
        return Attempt(turn, 1, defective)

    def _find(self, inputs: Sequence[str]) -> tuple[Turn, str] | None:
        """The defective turn that a conversation is still in, and the texts behind it."""
        for size in range(len(inputs), 0, -1):
            bucket, text = _locate(inputs[:size])
            whole = _normalize(text)
            for turn in self._turns.get(bucket, ()):
                known = _normalize(turn.text)
                if whole.startswith(known):
                    ended = turn.over and size < len(inputs)
                    return None if ended else (turn, "\n".join((whole[len(known) :], *inputs[size:])).strip())
        return None

    def _chance(self, turn: str, purpose: object) -> Random:
        return Random(f"{self._options.seed} {turn} {purpose}")


def _locate(inputs: Sequence[str]) -> tuple[str, str]:
    """Where a turn is kept, by the texts before it and by its first line; and its text."""
    text = inputs[-1] if inputs else ""
    return _digest(*inputs[:-1], text.strip().partition("\n")[0]), text


def _digest(*texts: str) -> str:
    return blake2b("\0".join(map(_normalize, texts)).encode("utf-8", "replace"), digest_size=5).hexdigest()


def _normalize(text: str) -> str:
    return UNSTABLE.sub("", text)


def _asks_for_call(feedback: str, answer: Answer) -> bool:
    """Whether feedback tells a model what to do: it names the tool, or asks for a call. Words need no more than it."""
    return not answer.calls or any(call.name in feedback for call in answer.calls) or bool(DEMAND.search(feedback))
