"""Turns of a weak model through a gateway, seeded, on every client wire; and a judge that knows what each one meant.

*Strategy.* Every turn is a conversation of its own whose question has a unique number. The simulated model logs what it
meant and which defect it made; the client side is read by decoders that share no code with toolglot. So a judge can tell
what the client would have run from what was meant, and how many requests it took.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, product
from random import Random
from typing import Any, Final

from faults.cells import exchange
from faults.client_readers import Outcome, read_answer
from faults.wire_data import ROOTS, WIRES, make_request

from support.xmlprompts import write_roo
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.sim.simulation import RecordedRequest
from toolglot.sim.weak_model import MARK, Attempt

DIALECTS: Final = (
    "hermes", "qwen3_coder", "glm45", "deepseek_v31", "dsml_v4", "kimi_k2", "minimax_m2", "anthropic", "harmony", "gemma4",
    "mistral_args", "llama3_json", "pythonic", "lfm2", "functools", "fenced_json", "roo_xml",
)  # fmt: skip
"""How models behind the gateway write in text mode; each is also the name of a model."""
XML_CLIENT: Final = "roo-3.29"
NATIVES: Final = tuple(f"native-{wire}" for wire in WIRES)
"""Models that call natively, by the wire of their upstream."""
XML_TEXT: Final = "xml"
"""The model that an XML client has in text mode: it writes as the client's prompt says."""
TIME_LIMIT: Final = 60.0
AT_ONCE: Final = 8
TASK: Final = re.compile(r"Task (\d+):")
PLAIN_SHARE: Final = 0.15
"""Turns that want words and no call; an XML client always wants a call."""

Call = tuple[str, Any]


def _function(name: str, description: str, properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    schema = {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip
    return {"name": name, "description": description, "parameters": schema}


STRING: Final = {"type": "string"}
FUNCTIONS: Final = (
    _function(
        "write_note",
        "Write a note to disk.",
        {
            "path": STRING,
            "text": STRING,
            "lines": {"type": "integer"},
            "priority": {"type": "string", "enum": ["low", "normal", "high"]},
            "tags": {"type": "array", "items": STRING},
        },
        "path", "text", "lines", "priority",
    ),
    _function("read_file", "Read a file.", {"path": STRING, "limit": {"type": "integer"}}, "path", "limit"),
    _function("run_command", "Run a command.", {"command": STRING, "shell": {"type": "string", "enum": ["sh", "zsh"]}}, "command"),
)  # fmt: skip
SCHEMAS: Final = {function["name"]: function["parameters"] for function in FUNCTIONS}
TEXTS: Final = (
    'say "hi" & <b>go</b>',
    "line one\nline two",
    "naïve ☕ 日本",
    "a = [1, 2]; b = {3: 4}",
    "C:\\dir\\x",
    "plain",
)


@dataclass(frozen=True)
class Lane:
    """One way through the gateway: a client wire, streamed or whole, and a model; ``xml`` for a client that reads XML."""

    wire: str
    stream: bool
    model: str
    xml: bool = False

    @property
    def name(self) -> str:
        client = "xml" if self.xml else self.wire
        return f"{client}, {'stream' if self.stream else 'whole'}, {'native' if self.model in NATIVES else 'text'}"


@dataclass
class Turn:
    """One turn: what was asked and meant, what the client got, and what the model did."""

    number: int
    lane: Lane
    question: str
    meant: list[Call] = field(default_factory=list)
    outcome: Outcome = field(default_factory=lambda: Outcome("endless"))
    seconds: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def defect(self) -> str:
        """The class of the first answer."""
        return self.attempts[0].defect if self.attempts else "never asked"

    @property
    def extra(self) -> int:
        return max(0, len(self.attempts) - 1)


# -- asking ------------------------------------------------------------------------------------------------------------


def list_lanes() -> Iterator[Lane]:
    """Every client wire, streamed and whole, text and native, and the XML client, for ever."""
    dialects, natives = cycle(DIALECTS), cycle(NATIVES)
    for wire, stream, native in cycle(product((*WIRES, "xml"), (True, False), (False, True))):
        if wire == "xml":
            yield Lane("openai_chat", stream, next(natives) if native else XML_TEXT, xml=True)
        else:
            yield Lane(wire, stream, next(natives) if native else next(dialects))


def plan_turns(count: int, seed: int) -> list[Turn]:
    """So many turns, the same for the same seed."""
    return [
        make_turn(number, lane, Random(f"{seed} {number}")) for number, lane in enumerate(islice(list_lanes(), count))
    ]


def make_turn(number: int, lane: Lane, random: Random) -> Turn:
    if not lane.xml and random.random() < PLAIN_SHARE:
        return Turn(number, lane, f"Task {number}: what do you think of rainy mornings?")
    unique = f"{random.choice(TEXTS)} #{number}#"
    arguments: dict[str, Any]
    if lane.xml:
        name, arguments = (
            "write_to_file",
            {"path": f"src/{number}.txt", "content": unique, "line_count": 1 + unique.count("\n")},
        )
    else:
        name = random.choice(list(SCHEMAS))
        examples: dict[str, dict[str, Any]] = {
            "write_note": {"path": f"notes/{number}.md", "text": unique, "lines": number % 90, "priority": "high", "tags": ["a", f"t{number}"]},
            "read_file": {"path": f"src/{number}.py", "limit": 10 + number % 90},
            "run_command": {"command": f"echo {unique}", "shell": "sh"},
        }  # fmt: skip
        arguments = examples[name]
    question = f"Task {number}: call {name} with {json.dumps(arguments, ensure_ascii=False)}"
    return Turn(number, lane, question, [(name, arguments)])


def write_request(turn: Turn) -> tuple[str, dict[str, Any]]:
    lane = turn.lane
    path, body = make_request(
        lane.wire, lane.model, stream=lane.stream, tools=not lane.xml, question=turn.question, functions=FUNCTIONS
    )
    if lane.xml:
        body["messages"].insert(0, {"role": "system", "content": ROO_PROMPT})
    return path, body


ROO_PROMPT: Final = write_roo()


def configure(address: str) -> str:
    """A file with a model for each dialect, one for each wire that calls natively, and one for the XML client."""
    models = {dialect: ("openai_chat", f'mode = "text"\ndialect = "{dialect}"\nmodel = "sim"') for dialect in DIALECTS}
    models |= {f"native-{wire}": (wire, 'mode = "native"\nmodel = "sim"') for wire in WIRES}
    models[XML_TEXT] = ("openai_chat", 'mode = "text"\nmodel = "sim:roo_xml"')
    upstreams = [
        f'[[upstream]]\nname = "{wire}"\nwire = "{wire}"\nbase_url = "{address}{ROOTS[wire]}"\n' for wire in WIRES
    ]
    return "\n".join(
        [
            *upstreams,
            *(f'[[model]]\nname = "{name}"\nupstream = "{wire}"\n{how}\n' for name, (wire, how) in models.items()),
        ]
    )


async def ask(turn: Turn, port: int) -> None:
    path, body = write_request(turn)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(TIME_LIMIT):
            status, received, complete = await exchange(port, path, json.dumps(body).encode(), f"turn-{turn.number}")
        turn.outcome = read_answer(turn.lane.wire, status, received, stream=turn.lane.stream, complete=complete)
    except TimeoutError:
        turn.outcome = Outcome("endless")
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        turn.outcome = Outcome("cut", why=repr(error))
    turn.seconds = time.perf_counter() - began


async def ask_all(turns: Sequence[Turn], port: int, at_once: int = AT_ONCE) -> None:
    """Ask for all turns, some at a time."""
    todo = iter(turns)

    async def work() -> None:
        for turn in todo:
            await ask(turn, port)

    await asyncio.gather(*(work() for _ in range(at_once)))


def attach(turns: Iterable[Turn], requests: Iterable[RecordedRequest]) -> int:
    """Give every turn the attempts of its requests; returns how many requests belong to none."""
    known = {turn.number: turn for turn in turns}
    strays = 0
    for request in requests:
        found = TASK.search(request.attempt.turn.text) if request.attempt else None
        if found is None or request.attempt is None:
            strays += 1
        else:
            known[int(found[1])].attempts.append(request.attempt)
    return strays


# -- judging -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """``success``: exactly what was meant. ``wrong``: a call was complete that was not meant and that a client would
    run. ``invalid``: a call that a client would refuse, for its name or its arguments. ``half``: an answer that failed
    had declared a call complete that was not meant. ``duplicated`` and ``foreign``: characters of marks."""

    success: bool
    wrong: bool = False
    invalid: bool = False
    half: bool = False
    duplicated: int = 0
    foreign: int = 0
    why: str = ""


def judge(turn: Turn) -> Verdict:
    if not turn.attempts:
        return Verdict(False, why=f"the model was never asked: {turn.outcome}")
    out, meant = turn.outcome, turn.meant
    calls = read_xml(out.text) if turn.lane.xml else list(out.calls)
    closed = [] if turn.lane.xml else [call for call in map(_parse, out.closed) if call is not None]
    if turn.lane.xml:
        meant = [(name, _as_xml(arguments)) for name, arguments in meant]
    finished = calls if out.end == "ok" else []
    others = [call for call in finished if call not in meant] + finished[len(meant) :]
    early = [call for call in closed if call not in meant and call not in finished]
    marks = Counter(found[0] for found in MARK.finditer(out.text))
    duplicated = sum((count - 1) * len(mark) for mark, count in marks.items())
    own = turn.attempts[0].turn.id
    foreign = sum(len(mark) for mark in marks if not mark.startswith(own))
    return Verdict(
        success=out.end == "ok" and calls == meant and not duplicated and not foreign and _has_text(turn),
        wrong=any(is_valid(call, turn.lane.xml) for call in (*others, *early)),
        invalid=any(not is_valid(call, turn.lane.xml) for call in others),
        half=bool(early),
        duplicated=duplicated,
        foreign=foreign,
        why=f"{out.end} {out.status} {out.why} {calls} {out.text!r}",
    )


def _has_text(turn: Turn) -> bool:
    """Whether no text was lost: of a clean answer all of it; words must be those of the last answer."""
    if turn.lane.xml and turn.meant:
        return True
    if turn.defect and turn.meant:
        return True
    return turn.outcome.text.strip() == turn.attempts[-1].answer.text.strip()


def _parse(call: tuple[str, str]) -> Call | None:
    try:
        return call[0], json.loads(call[1] or "{}")
    except ValueError:
        return None


def read_xml(text: str) -> list[Call]:
    """The calls that an XML client would run, by the port of its own parser. It counts lines by itself."""
    blocks = all_clients()[XML_CLIENT].read(text, "sim")
    calls = [block for block in blocks if isinstance(block, XmlCallBlock) and not block.partial]
    return [(call.name, _as_xml(call.params)) for call in calls]


def _as_xml(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in ("line_count", "id")}


def is_valid(call: Call, xml: bool) -> bool:
    """Whether a client would run a call: it knows the tool, and the arguments have the declared types and names."""
    name, arguments = call
    if xml:
        return name == "write_to_file" and {"path", "content"} <= set(arguments)
    schema = SCHEMAS.get(name)
    if schema is None or not isinstance(arguments, dict):
        return False
    properties = schema["properties"]
    return (
        set(schema["required"]) <= set(arguments) <= set(properties)
        and all(isinstance(arguments[key], TYPES[properties[key]["type"]]) for key in arguments)
        and all(arguments[key] in properties[key].get("enum", [arguments[key]]) for key in arguments)
    )


TYPES: Final = {"string": str, "integer": int, "array": list}


# -- figures -----------------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """Sums over turns."""

    turns: int = 0
    successes: int = 0
    defects: int = 0
    extra: int = 0
    extra_clean: int = 0
    wrong: int = 0
    invalid: int = 0
    half: int = 0
    duplicated: int = 0
    foreign: int = 0

    @property
    def success(self) -> float:
        return self.successes / self.turns if self.turns else 0.0

    @property
    def extra_per_defect(self) -> float:
        return self.extra / self.defects if self.defects else 0.0

    def add(self, turn: Turn, verdict: Verdict) -> None:
        self.turns += 1
        self.successes += verdict.success
        self.defects += bool(turn.defect)
        self.extra += turn.extra if turn.defect else 0
        self.extra_clean += 0 if turn.defect else turn.extra
        self.wrong += verdict.wrong
        self.invalid += verdict.invalid
        self.half += verdict.half
        self.duplicated += verdict.duplicated
        self.foreign += verdict.foreign


def sum_up(turns: Iterable[Turn]) -> Figures:
    figures = Figures()
    for turn in turns:
        figures.add(turn, judge(turn))
    return figures


def describe(turn: Turn, verdict: Verdict) -> str:
    """A line about a turn, for a person who looks for the cause."""
    return f"{turn.number} [{turn.lane.name}, {turn.lane.model}] {turn.defect or 'clean'}, {turn.extra} extra: {verdict.why[:400]}"
