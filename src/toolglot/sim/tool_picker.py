"""Pick an offered tool for a question, by rules instead of a model.

*Strategy.* Three rules, in this order. A question may spell out calls (``call read with {"filePath": "a"}``). It may
show an intent, such as ``write "X" to FILE`` or ``run COMMAND``, which yields facts and the tools that serve it. Or it
may share words with the name and description of a tool. A question that matches no tool gets a text answer, and so does
a result, whose first line is quoted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from toolglot.core.conversation import Tool
from toolglot.sim.answer import Answer, SimCall
from toolglot.sim.argument_filler import QUOTED, extract_facts, fill_arguments, kind_of, split_words
from toolglot.sim.request import SimRequest

QUOTE_LENGTH = 200
OUTPUT = "Output:"
TAG = re.compile(r"</?[\w-]+>")
DECODER = json.JSONDecoder()
CLIENT_CONTEXT = re.compile(r"<(?P<tag>[a-z]+[_-][a-z_-]+)>.*?</(?P=tag)>", re.S)
"""Context that clients add to a user message: reminders, environment details."""

CALL_BY_NAME = re.compile(
    r"\b(?:call|use|invoke)\s+(?:the\s+)?(?:tool\s+)?[`\"']?(?P<name>[\w.:-]+)[`\"']?[^{}\n]*?(?=\{)"
)

_QUOTE = r"\"[^\"]*\"|'[^']*'|`[^`]+`|“[^”]*”|```.*?```"
_PATH = rf"(?:{_QUOTE}|[~\w./\\@-]*[\w/])"
_FILE = rf"(?:{_QUOTE}|[~\w./\\@-]*(?:\.[A-Za-z]\w*|/[\w@.-]+|file\b))"
_THE = r"(?:(?:the|a|an|my|this|new)\s+)*"
_HERE = r"(?:current|this|working)\s+(?:working\s+)?(?:directory|folder)"


@dataclass(frozen=True, slots=True)
class Intent:
    """A purpose that a pattern detects. ``tools`` are words in the names of tools that serve it, best first; ``shell``
    is the command to run if only a shell tool is offered."""

    name: str
    pattern: re.Pattern[str]
    tools: tuple[str, ...]
    shell: str = ""


def _intent(name: str, pattern: str, tools: str, shell: str = "") -> Intent:
    return Intent(name, re.compile(pattern, re.I | re.S), tuple(tools.split()), shell)


SHELL_WORDS = "bash shell run execute exec command terminal cmd powershell"
WRITE_WORDS = "write create save put add insert"
INTENTS = (
    _intent(
        "edit",
        rf"\b(?:replace|change)\s+(?P<old>{_QUOTE})\s+(?:with|to|by|into)\s+(?P<new>{_QUOTE})\s+in\s+{_THE}(?:file\s+)?(?P<path>{_PATH})",
        "edit replace str update patch modify",
    ),
    _intent(
        "write",
        rf"\b(?:write|put|save|add)\s+{_THE}(?:text\s+|content\s+|line\s+)?(?P<content>{_QUOTE})\s+(?:in|to|into)\s+{_THE}(?:file\s+)?"
        rf"(?:called\s+|named\s+)?(?P<path>{_PATH})",
        WRITE_WORDS,
        "printf %s {content} > {path}",
    ),
    _intent(
        "write",
        rf"\b(?:create|make|write|add)\s+{_THE}file\s+(?:called\s+|named\s+|at\s+)?(?P<path>{_PATH})\s+"
        rf"(?:with|containing|that\s+contains|that\s+says|saying)\s+{_THE}(?:contents?|text)?\s*:?\s*(?P<content>{_QUOTE}|.+)",
        WRITE_WORDS,
        "printf %s {content} > {path}",
    ),
    _intent(
        "write",
        rf"\b(?:write|put|save)\s+(?P<content>.+)\s+(?:in|to|into)\s+{_THE}(?:file\s+)?(?:called\s+|named\s+)?(?P<path>{_FILE})",
        WRITE_WORDS,
        "printf %s {content} > {path}",
    ),
    _intent(
        "list",
        rf"\b(?:list|show|what|which)\s+(?:me\s+)?(?:all\s+|are\s+)*{_THE}(?:files|contents|entries|directory)\b"
        rf"(?:.*?\b(?:in|of|under|inside)\s+(?!{_THE}{_HERE}){_THE}(?:directory\s+|folder\s+)?(?P<path>{_PATH}))?",
        "list ls dir directory tree",
        "ls {path}",
    ),
    _intent(
        "read",
        rf"\b(?:read|open|show|cat|display|view|print|look\s+at|check|what(?:'s|’s|\s+is|\s+does)|contents?\s+of)\s+"
        rf"(?:me\s+)?(?:in\s+|of\s+)*{_THE}(?:contents?\s+of\s+)?{_THE}(?:file\s+)?(?P<path>{_FILE})",
        "read open view cat show get",
        "cat {path}",
    ),
    _intent(
        "install",
        rf"\binstall\s+{_THE}(?:npm\s+)?(?P<package>[\w@/.-]+)(?:\s+(?:npm\s+)?package)",
        SHELL_WORDS,
        "npm install {package}",
    ),
    _intent(
        "fetch",
        r"\b(?:fetch|open|get|browse|download|visit|read|show|look\s+at)\b.*?(?P<url>https?://[^\s\"'`<>)]+)",
        "fetch browse url web download http",
        "curl -sL {url}",
    ),
    _intent(
        "search",
        rf"\b(?:search(?:\s+for)?|grep(?:\s+for)?|look\s+for|find)\s+(?P<pattern>{_QUOTE})"
        rf"(?:.*?\b(?:in|under|inside)\s+{_THE}(?P<path>{_PATH}))?",
        "grep search find",
        "grep -rn {pattern} .",
    ),
    _intent(
        "run",
        rf"\b(?:run|execute|exec)\s+{_THE}(?:shell\s+|bash\s+)?(?:command\s*)?:?\s*"
        rf"(?P<command>{_QUOTE}|.+?)(?=\s+(?:to|and|so|then)\s+(?:check|see|verify|find|tell|show|report|give|then|that)\b|[.?!]?\s*\Z|\n)",
        SHELL_WORDS,
        "{command}",
    ),
)
"""All intents. The earliest match in the question wins; at the same position, the first one listed."""

STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can could do does for from get give have how i in is it its me my of on or please "
        "show tell that the then this to use used using was what when where which who will with would you your",
    )
)
NEVER_INVENTED = {"path", "command", "url", "old", "new", "place"}
"""Kinds of parameters that are never made up for a tool chosen by shared words."""

SHORT_WORD = 3
"""Words up to this length end many names by coincidence."""

NARROW = frozenset(re.findall(r"\w+", "agent agents image images mcp notebook resource resources skill tool tools"))
"""Words in the names of tools that serve an intent only for such things: ``view_image`` reads no text file."""

MINIMUM_SCORE = 3.0
"""The overlap that selects a tool: one word of its name, or three of its description."""


def pick_answer(asked: SimRequest) -> Answer:
    """The answer to a request."""
    if asked.result is not None:
        return Answer(f"Done. The tool said: {quote(asked.result)}")
    if not asked.tools or asked.choice == "none":
        return Answer(f"This is a simulated model. You said: {quote(asked.question)}")
    calls = find_calls(asked.question, asked.tools, asked.folder)
    if not calls and asked.choice != "auto":
        forced = [tool for tool in asked.tools if tool.name == asked.choice] or list(asked.tools)
        calls = (make_call(_rank(asked.question, forced)[0][1], asked.question, {}),)
    if not calls:
        return Answer(f"This is a simulated model, and no tool fits. You said: {quote(asked.question)}")
    return Answer(f"I'll use the {calls[0].name} tool.", calls)


def quote(text: str) -> str:
    """The first line of content, as inline code, so that the reader finds no call in it. Tags and what Codex writes
    before the output of a command are left out."""
    lines = [line.strip() for line in text.splitlines()]
    output = lines[lines.index(OUTPUT) + 1 :] if OUTPUT in lines else lines
    content = [line for line in (*output, *lines) if line and not TAG.fullmatch(line)]
    line = next(iter((*content, *filter(None, lines))), "")
    return "`" + line[:QUOTE_LENGTH].replace("`", "'") + "`" if line else "nothing"


def find_calls(question: str, tools: Sequence[Tool], folder: str = "") -> tuple[SimCall, ...]:
    """The calls that a question asks for; none if no tool fits. Paths that must be absolute begin with ``folder``."""
    question = _unwrap(CLIENT_CONTEXT.sub("", question).strip())
    if spelled := _spelled_calls(question, tools):
        return spelled
    found = _call_for_intent(question, tools)
    if found is None:
        found = _call_for_words(question, tools)
    return (_complete_paths(found, tools, folder),) if found else ()


def _complete_paths(call: SimCall, tools: Sequence[Tool], folder: str) -> SimCall:
    """The call with the working folder before the paths that the tool wants absolute."""
    tool = next(tool for tool in tools if tool.name == call.name)
    arguments = json.loads(call.arguments)
    for name, schema in tool.parameters.get("properties", {}).items() if folder else ():
        path = arguments.get(name)
        described = str(schema.get("description", "")) if isinstance(schema, Mapping) else ""
        if isinstance(path, str) and kind_of(name) == "path" and "absolute" in described.lower():
            arguments[name] = str(PurePosixPath(folder, path))
    return replace(call, arguments=json.dumps(arguments, ensure_ascii=False))


def _unwrap(question: str) -> str:
    """Decode the question; some clients send it as a JSON string."""
    try:
        literal = json.loads(question) if question.startswith('"') else question
    except ValueError:
        return question
    return literal if isinstance(literal, str) else question


def make_call(tool: Tool, question: str, named: Mapping[str, str]) -> SimCall:
    arguments = fill_arguments(tool, extract_facts(question, named))
    return SimCall(tool.name, json.dumps(arguments, ensure_ascii=False))


def _spelled_calls(question: str, tools: Sequence[Tool]) -> tuple[SimCall, ...]:
    """Calls that the question spells out with JSON arguments."""
    names = {tool.name for tool in tools}
    calls: list[SimCall] = []
    for found in CALL_BY_NAME.finditer(question):
        try:
            _, end = DECODER.raw_decode(question, found.end())
        except ValueError:
            continue
        if found["name"] in names:
            calls.append(SimCall(found["name"], question[found.end() : end]))
    return tuple(calls)


# By intent


def _call_for_intent(question: str, tools: Sequence[Tool]) -> SimCall | None:
    matches = [(intent, found) for intent in INTENTS if (found := intent.pattern.search(question))]
    for intent, found in sorted(matches, key=lambda match: match[1].start()):
        named = {kind: _unquote(value) for kind, value in found.groupdict().items() if value}
        if intent.shell:
            named.setdefault("path", ".")
            named["command"] = intent.shell.format_map(_Quoted(named))
        wide = [tool for tool in tools if not NARROW & ({*split_words(tool.name)} - {*split_words(question)})]
        if (tool := _pick(intent.tools, named, wide)) is not None:
            return make_call(tool, question, named)
        if intent.shell and (shell := _pick(tuple(SHELL_WORDS.split()), named, tools)):
            return make_call(shell, question, named)
    return None


class _Quoted(dict[str, str]):
    """Values quoted for a shell, except for a whole command."""

    def __getitem__(self, key: str) -> str:
        value = self.get(key, "")
        return value if key == "command" or not value else shlex.quote(value)


def _pick(words: tuple[str, ...], named: Mapping[str, str], tools: Sequence[Tool]) -> Tool | None:
    """The tool whose name serves an intent best; its parameters must take at least one of the facts."""
    best: tuple[float, Tool] | None = None
    for tool in tools:
        ranks = [rank for rank, word in enumerate(words) if _is_named(tool, word)]
        kinds = {kind_of(name) for name in tool.parameters.get("properties", {})}
        fit = len(kinds & named.keys()) - 0.1 * len(split_words(tool.name))
        if not ranks or (kinds and not kinds & named.keys()):
            continue
        score = fit - 0.2 * min(ranks)
        if best is None or score > best[0]:
            best = (score, tool)
    return best[1] if best else None


def _is_named(tool: Tool, word: str) -> bool:
    """Whether the name contains the word, or ends with it if written as one word: ``webfetch``, but not ``input``."""
    return word in split_words(tool.name) or (len(word) > SHORT_WORD and tool.name.endswith(word))


def _unquote(text: str) -> str:
    if fenced := re.fullmatch(r"```[^\n`]*\n(.*?)\n?```", text, re.S):
        return fenced[1]
    quoted = QUOTED.fullmatch(text)
    return next((group for group in quoted.groups() if group is not None), "") if quoted else text.strip()


# By words


def _call_for_words(question: str, tools: Sequence[Tool]) -> SimCall | None:
    """Call the tool that shares the most words with the question, unless an important argument would be made up."""
    score, tool = _rank(question, tools)[0]
    facts = extract_facts(question, {})
    arguments = fill_arguments(tool, facts)
    if score < MINIMUM_SCORE or any(kind_of(name) in NEVER_INVENTED for name in facts.invented):
        return None
    return SimCall(tool.name, json.dumps(arguments, ensure_ascii=False))


def _rank(question: str, tools: Sequence[Tool]) -> list[tuple[float, Tool]]:
    """Score tools by the words they share with the question, best first."""
    words = {_stem(word) for word in split_words(question)} - STOPWORDS
    ranked = [(_overlap(words, tool), tool) for tool in tools]
    return sorted(ranked, key=lambda entry: -entry[0])


def _overlap(words: set[str], tool: Tool) -> float:
    named = {_stem(word) for word in split_words(tool.name)} - STOPWORDS
    described = {_stem(word) for word in split_words(tool.description[:300])} - STOPWORDS
    parameters = {_stem(word) for name in tool.parameters.get("properties", {}) for word in split_words(name)}
    return 3.0 * len(words & named) + len(words & (described - named)) + 0.5 * len(words & (parameters - named))


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word
