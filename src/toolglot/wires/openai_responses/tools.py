"""Tools on the Responses wire, and the choice among them.

    {"type": "function", "name": "read", "description": "...", "parameters": {...}, "strict": false}
    {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "..."}}
    {"type": "namespace", "name": "agents", "description": "...", "tools": [{"type": "function", ...}]}

Strategy. Other wires have only functions with flat names. A custom tool, which takes raw text, becomes a function with
one string parameter ``input``; a tool in a namespace is called ``namespace__name``. A ``ToolTable`` records both, so
that the response uses the client's form again. Tools that a server would run are skipped with a note, because agents
offer them to every server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, get_args

from toolglot.core.conversation import Mode, Tool, ToolChoice, Tools
from toolglot.core.errors import RequestError
from toolglot.wires.json_fields import check_choice, dicts_in, text_at
from toolglot.wires.translation import table_at

INPUT = "input"
JOINT = "__"


def flatten_name(namespace: str, name: str) -> str:
    return f"{namespace}{JOINT}{name}" if namespace else name


class ToolTable:
    """The tools of one request, and notes on the skipped ones."""

    def __init__(self, begun: ToolTable | None = None) -> None:
        self.notes: list[str] = list(begun.notes) if begun else []
        self.tools: dict[str, Tool] = dict(begun.tools) if begun else {}
        self.custom: set[str] = set(begun.custom) if begun else set()
        self.namespaces: dict[str, tuple[str, str]] = dict(begun.namespaces) if begun else {}

    @cached_property
    def offered(self) -> Tools:
        return Tools(self.tools.values())

    def memory(self) -> dict[str, Any]:
        """What the encoder of the response needs (``ClientRequest.memory``)."""
        return {"custom": frozenset(self.custom), "namespaces": self.namespaces}

    def add(self, listed: object, where: str, namespace: str = "") -> None:
        """Add the usable tools; the others are skipped with a note."""
        if listed is None:
            return
        if not isinstance(listed, list):
            raise RequestError(f"{where} must be a list.", where)
        for at, entry in enumerate(listed):
            if isinstance(entry, dict) and entry.get("type") == "namespace" and not namespace:
                self.add(entry.get("tools"), f"{where}[{at}].tools", text_at(entry, "name"))
                continue
            problem = self.problem_with(entry, namespace)
            if problem:
                self.notes.append(f"{where}[{at}] skipped: {problem}")
            else:
                self.place(entry, namespace)

    def problem_with(self, entry: object, namespace: str) -> str:
        if not isinstance(entry, dict):
            return "not an object"
        if entry.get("type", "function") not in ("function", "custom"):
            return f"not a function but {entry.get('type')!r}"
        name = text_at(entry, "name")
        if not name.strip():
            return "no name"
        parameters = entry.get("parameters")
        if parameters is not None and not isinstance(parameters, dict):
            return "its parameters are no JSON Schema"
        flat = flatten_name(namespace, name)
        return f"a second tool named {flat}" if flat in self.tools else ""

    def place(self, entry: Mapping[str, Any], namespace: str) -> None:
        name = flatten_name(namespace, entry["name"])
        if namespace:
            self.namespaces[name] = (namespace, entry["name"])
        parameters = table_at(entry, "parameters")
        if entry.get("type") == "custom":
            self.custom.add(name)
            parameters = _describe_input(table_at(entry, "format"))
        self.tools[name] = Tool(name, text_at(entry, "description"), parameters)


def collect_tools(listed: object) -> ToolTable:
    """Collect the tools of the ``tools`` field. Items with further tools extend a copy of it."""
    table = ToolTable()
    table.add(listed, "tools")
    return table


def _describe_input(form: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool that takes raw text. Other wires cannot enforce a grammar, but can show it."""
    encoded = {"type": "string", "description": "The raw text for the tool."}
    grammar = form.get("grammar") if isinstance(form.get("grammar"), dict) else form
    if isinstance(grammar, dict) and text_at(grammar, "definition"):
        syntax = text_at(grammar, "syntax") or "its"
        encoded["description"] += f" It follows this {syntax} grammar:\n{grammar['definition']}"
    return {"type": "object", "properties": {INPUT: encoded}, "required": [INPUT], "additionalProperties": False}


# -- the choice --------------------------------------------------------------------------------------------------------


MODES: Mapping[str, Mode] = {mode: mode for mode in get_args(Mode)}


def decode_choice(choice: object, tools: Mapping[str, Tool]) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    if isinstance(choice, str):
        if choice not in MODES:
            raise RequestError(f"tool_choice cannot be {choice!r}.", "tool_choice")
        decoded = ToolChoice(MODES[choice])
    elif not isinstance(choice, dict):
        raise RequestError("tool_choice must be a word or an object.", "tool_choice")
    elif choice.get("type") == "allowed_tools":
        decoded = ToolChoice("required" if choice.get("mode") == "required" else "auto", _names_of(choice, tools))
    else:
        decoded = ToolChoice.one(_name_of(choice))
    return check_choice(decoded, tools.values())


def _names_of(choice: Mapping[str, Any], tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """The allowed tools; tools that a server would run are not offered."""
    names = dict.fromkeys(name for entry in dicts_in(choice.get("tools")) for name in _expand(entry, tools))
    if not names:
        raise RequestError("tool_choice allows no tool that can be used here.", "tool_choice")
    return tuple(names)


def _expand(entry: Mapping[str, Any], tools: Mapping[str, Tool]) -> Iterator[str]:
    if entry.get("type") == "namespace":
        yield from (name for name in tools if name.startswith(text_at(entry, "name") + JOINT))
    elif entry.get("type", "function") in ("function", "custom"):
        yield _name_of(entry)


def _name_of(entry: Mapping[str, Any]) -> str:
    name = text_at(entry, "name")
    if not name:
        raise RequestError(f"tool_choice cannot be a tool of type {entry.get('type')!r} here.", "tool_choice")
    return flatten_name(text_at(entry, "namespace"), name)


# -- encoding ----------------------------------------------------------------------------------------------------------


def encode_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": tool.strict,
        }
        for tool in tools
    ]


def encode_choice(choice: ToolChoice) -> dict[str, Any]:
    named: list[dict[str, Any]] = [{"type": "function", "name": name} for name in choice.only]
    if len(named) == 1 and choice.mode == "required":
        return {"tool_choice": named[0]}
    if named:
        return {"tool_choice": {"type": "allowed_tools", "mode": choice.mode, "tools": named}}
    return {} if choice.mode == "auto" else {"tool_choice": choice.mode}
