"""Scripted answers, which replace the rules of the tool picker.

A script is a TOML file with a list of answers. The first one that matches the request and is not used up is sent; if
none matches, the tool picker answers.

    [[answer]]
    when = "weather"                # a regular expression for the last user message; without it, any request matches
    tools = true                    # only for requests that offer tools (false: only for those that offer none)
    result = true                   # only after a tool result (false: only before one)
    times = 1                       # how often it may be used (default: once without ``when``, else 0); 0: no limit
    text = '''
    I look it up.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo"}}
    '''                             # raw text in any dialect, valid or not; a line break after ''' is not part of it
    repeat = 1                      # repeat the text this many times
    reasoning = "thinking aloud"
    finish = "stop"
    dialect = "hermes"              # this and the following: like the options of the server
    fault = "no_done"               # one name or a list
    chunk = 4                       # likewise chunk_bytes, latency, pace

    [[answer]]
    calls = [{ name = "read", arguments = { filePath = "a.txt" } }]     # written in the dialect; arguments may be text

An entry with neither text nor calls only sets the other options; the tool picker supplies the answer.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolglot.core.errors import UsageError
from toolglot.sim.answer import Answer, SimCall

OPTIONS = {"dialect", "chunk", "chunk_bytes", "latency", "pace"}
FLAGS = {"tools", "result"}
NUMBERS = OPTIONS - {"dialect"} | {"times", "repeat"}
KEYS = OPTIONS | NUMBERS | FLAGS | {"when", "text", "reasoning", "finish", "fault", "calls"}


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """One answer of a script: when it applies, how often (0: no limit), its content and its options."""

    answer: Answer | None = None
    when: str = ""
    tools: bool | None = None
    result: bool | None = None
    times: int = 0
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def matches(self, question: str, offers_tools: bool, has_result: bool) -> bool:
        if self.tools not in (None, offers_tools) or self.result not in (None, has_result):
            return False
        return not self.when or re.search(self.when, question, re.I | re.S) is not None


class ScriptCursor:
    """Selects answers from a script and counts how often each was used."""

    def __init__(self, script: Sequence[ScriptedAnswer]) -> None:
        self._script = script
        self._used = [0] * len(script)

    def next(self, question: str, offers_tools: bool, has_result: bool = False) -> ScriptedAnswer:
        """The answer for this request; an empty one if none matches. ``has_result``: a tool result follows it."""
        for number, scripted in enumerate(self._script):
            is_left = not scripted.times or self._used[number] < scripted.times
            if is_left and scripted.matches(question, offers_tools, has_result):
                self._used[number] += 1
                return scripted
        return ScriptedAnswer()


def load_script(path: str | Path) -> tuple[ScriptedAnswer, ...]:
    """Load a script file.

    Raises: ``UsageError`` that names the defect and its position.
    """
    try:
        document = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the script {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the script {path} is not TOML: {error}") from error
    return parse_script(document)


def parse_script(document: Mapping[str, Any]) -> tuple[ScriptedAnswer, ...]:
    """Parse the decoded TOML of a script. Raises: ``UsageError``."""
    entries = document.get("answer")
    if not isinstance(entries, list) or document.keys() != {"answer"}:
        raise UsageError("a script is a list of answers, each under [[answer]]")
    return tuple(_parse_answer(entry, number) for number, entry in enumerate(entries, 1))


def _parse_answer(entry: Any, number: int) -> ScriptedAnswer:
    where = f"answer {number} of the script"
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where} is not a table")
    if unknown := entry.keys() - KEYS:
        raise UsageError(f"{where}: there is no key {', '.join(sorted(unknown))}; keys are {', '.join(sorted(KEYS))}")
    for key in NUMBERS & entry.keys():
        if not isinstance(entry[key], int | float):
            raise UsageError(f"{where}: {key!r} must be a number")
    for key in FLAGS & entry.keys():
        if not isinstance(entry[key], bool):
            raise UsageError(f"{where}: {key!r} must be true or false")
    when = str(entry.get("when", ""))
    try:
        re.compile(when)
    except re.error as error:
        raise UsageError(f"{where}: 'when' is not a regular expression: {error}") from error
    options = {key: entry[key] for key in OPTIONS & entry.keys()}
    if "fault" in entry:
        faults = entry["fault"]
        options["faults"] = (faults,) if isinstance(faults, str) else tuple(faults)
    has_content = bool({"text", "calls"} & entry.keys())
    return ScriptedAnswer(
        _parse_content(entry, where) if has_content else None,
        when=when,
        tools=entry.get("tools"),
        result=entry.get("result"),
        times=int(entry.get("times", 0 if when else 1)),
        options=options,
    )


def _parse_content(entry: Mapping[str, Any], where: str) -> Answer:
    calls = entry.get("calls", [])
    if not all(isinstance(call, Mapping) and isinstance(call.get("name"), str) for call in calls):
        raise UsageError(f"{where}: 'calls' is a list of tables with a name")
    return Answer(
        text=str(entry.get("text", "")) * int(entry.get("repeat", 1)),
        calls=tuple(SimCall(call["name"], _as_text(call.get("arguments", {}))) for call in calls),
        reasoning=str(entry.get("reasoning", "")),
        finish=str(entry.get("finish", "")),
    )


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
