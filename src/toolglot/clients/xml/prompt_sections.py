"""Parse the tool documentation in the prompts of XML clients.

Layout A, most prompts: one ``## name`` for each tool, with labels and bullets.

    ## list_files
    Description: List what is in a directory.
    Parameters:
    - path: (required) Where to look.
    - recursive: (optional) Whether to go down.
    Usage:
    <list_files> ... </list_files>

Layout B, prompts for small models: one bold name for each tool.

    **list_files** — List a directory. Params: path, recursive (optional).

Strategy. Layout is the only evidence, so only text at the margin counts: a bullet deeper than the first one belongs to
the parameter above it, and an unindented line that is no bullet ends the list. Everything else except XML examples is
the description, because it explains diff formats and the like. What a prompt does not state (a flag, a type) stays
open; the client profile knows more.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import Struct

from toolglot.core.lenient_json import parse

_NAME: Final = r"[A-Za-z_][\w.\-]*"
_HEADING_A: Final = re.compile(rf"^## ({_NAME})[ \t]*$", re.M)
_HEADING_B: Final = re.compile(rf"^\*\*({_NAME})\*\*[ \t]*[—–:-][ \t]*", re.M)
_LABEL: Final = re.compile(
    r"^(?:\*\*)?(?P<kind>Required |Optional )?(?P<what>Parameters|Params?|Description|Usage|Arguments)"
    r":(?:\*\*)?[ \t]*(?P<rest>.*)$"
)
_BULLET: Final = re.compile(
    r"^(?P<indent>[ \t]*)(?:[-*]|\d+\.)[ \t]+(?:\*\*|`)?(?P<name>[A-Za-z_]\w*)(?:\*\*|`)?"
    r"(?:[ \t]*\((?P<early>[^()]*)\))?:[ \t]*(?:\((?P<late>[^()]*)\))?[ \t]*(?P<text>.*)$"
)
_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object")
_FLAG: Final = re.compile(r"\b(required|optional)\b", re.I)
_INLINE: Final = re.compile(r"\bParams?:[ \t]*")
_INLINE_NAME: Final = re.compile(r"[ \t]*`?([A-Za-z_]\w*)`?[ \t]*(?:\(([^()]*)\))?[ \t]*([,.]|$|\n)?")
_SERVER: Final = re.compile(r"^## (.+)$", re.M)
_SCHEMA: Final = re.compile(r"^[ \t]+Input Schema:\s*", re.M)
_SERVER_TOOL: Final = re.compile(r"(?:\A\s*|\n[ \t]*\n)- ([^\s:]+):?[ \t]*")
_NEXT_TOOL: Final = re.compile(r"\s*- ([^\s:]+):?[ \t]*")
"""After a schema; elsewhere a bullet right below a line of text is part of a description."""
_FENCE: Final = re.compile(r"^```[^`\n]*$", re.M)
_EMPTY_LABEL: Final = re.compile(r"\*{0,2}(?:Usage|Examples?)[^\n]{0,80}:\*{0,2}")
_TAG: Final = re.compile(r"<(\w+)>")
_LAST_LABEL: Final = re.compile(r"(?:(?<=\n)|\A)[^\n<]{0,120}:\*{0,2}\s*\Z")
"""The label right in front of an example."""
_BEFORE: Final = re.compile(r"(?:[^\n<]*:)?[*\s]*")
"""An example begins a line or follows a label; a tag within a sentence is only mentioned."""
MAX_EXAMPLE_LENGTH: Final = 10_000
AVAILABLE_TOOLS: Final = re.compile(r"^### Available Tools[ \t]*$", re.M)


class DocumentedParameter(Struct, frozen=True):
    """A documented parameter. ``required`` is None and ``type`` empty where the prompt does not state them."""

    name: str
    required: bool | None = None
    description: str = ""
    type: str = ""


class DocumentedTool(Struct, frozen=True):
    """A documented tool. ``parameters`` is None if the prompt lists none, and empty if it states that there are
    none."""

    name: str
    description: str = ""
    parameters: tuple[DocumentedParameter, ...] | None = None
    example_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool of an MCP server that the client is connected to, with the schema of the server."""

    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)


# -- layout A ----------------------------------------------------------------------------------------------------------


def parse_headed(text: str, known: Collection[str] = ()) -> Iterator[DocumentedTool]:
    """The tools of a section in layout A. An open fence ends at the heading of a known tool."""
    yield from (_parse_tool(name, body) for name, body in _split(text, _HEADING_A, known))


def _split(text: str, heading: re.Pattern[str], known: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Split a section at its headings. A heading inside a fence does not count."""
    found = list(_headings_outside_fences(text, heading, known))
    ends = [match.start() for match in found[1:]]
    for match, end in zip(found, [*ends, len(text)], strict=False):
        yield match[1], text[match.end() : end]


def _headings_outside_fences(text: str, heading: re.Pattern[str], known: Collection[str]) -> Iterator[re.Match[str]]:
    headings = list(heading.finditer(text))
    fences = find_fences(text, [match.start() for match in headings if match[1] in known])
    opened = closed = -1
    for match in headings:
        while closed < match.start() and opened < len(text):
            opened, closed = next(fences, (len(text), len(text)))
        if match.start() < opened:
            yield match


def find_fences(text: str, borders: list[int], since: int = 0) -> Iterator[tuple[int, int]]:
    """Start and end of fences. One that is not closed before the next border is none, unless it opens before
    ``since``."""
    opened = -1
    for fence in _FENCE.finditer(text):
        within = opened < since or bisect_left(borders, opened) == bisect_left(borders, fence.start())
        if opened >= 0 and within:
            yield opened, fence.end()
            opened = -1
        else:
            opened = fence.start()


def _parse_tool(name: str, body: str) -> DocumentedTool:
    body, example_parameters = remove_examples(body, name)
    description: list[str] = []
    parameters: list[DocumentedParameter] | None = None
    lines = body.strip("\n").split("\n")
    at = 0
    while at < len(lines):
        label = _LABEL.match(lines[at])
        if label and label["what"] in ("Parameters", "Params", "Param", "Arguments"):
            listed, at = _parse_bullets(lines, at + 1, _find_required(label["kind"] or ""))
            parameters = (parameters or []) + listed
            if not listed and label["rest"] and not label["rest"].lower().startswith("none"):
                description.append(label["rest"])
            continue
        if label:
            description.append(label["rest"])
        else:
            description.append(lines[at])
        at += 1
    return DocumentedTool(
        name, clean_text("\n".join(description)), None if parameters is None else tuple(parameters), example_parameters
    )


def _parse_bullets(lines: list[str], at: int, flag: bool | None) -> tuple[list[DocumentedParameter], int]:
    """The bullets from here on, and where they end."""
    found: list[tuple[re.Match[str], list[str]]] = []
    while at < len(lines):
        line = lines[at]
        bullet = _BULLET.match(line)
        outer = bullet is not None and (not found or bullet["indent"] == found[0][0]["indent"])
        if bullet and outer:
            found.append((bullet, []))
        elif found and (not line.strip() or line[0].isspace()):
            found[-1][1].append(line)
        elif line.strip():
            break
        at += 1
    return [_make_parameter(bullet, more, flag) for bullet, more in found], at


def _make_parameter(bullet: re.Match[str], more: list[str], flag: bool | None) -> DocumentedParameter:
    notes = f"{bullet['early'] or ''}, {bullet['late'] or ''}"
    text = bullet["text"]
    if bullet["late"] and not (_FLAG.search(bullet["late"]) or _find_type(bullet["late"])):
        text = f"({bullet['late']}) {text}"  # the parentheses belong to the description
    trailing = re.search(r"\(type: (\w+)\)", text)
    if trailing:
        notes += f", {trailing[1]}"
        text = text.replace(trailing[0], "").strip()
    marked = _find_required(notes)
    description = clean_text("\n".join([text, *more]))
    return DocumentedParameter(bullet["name"], flag if marked is None else marked, description, _find_type(notes))


def _find_required(notes: str) -> bool | None:
    found = _FLAG.search(notes)
    return None if found is None else found[1].lower() == "required"


def _find_type(notes: str) -> str:
    words = re.findall(r"\w+", notes.lower())
    return next((kind for kind in _TYPES if kind in words), "")


# -- layout B ----------------------------------------------------------------------------------------------------------


def parse_bold(text: str, known: Collection[str] = ()) -> Iterator[DocumentedTool]:
    """The tools of a section in layout B."""
    for name, body in _split(text, _HEADING_B, known):
        rest, example_parameters = remove_examples(body, name)
        label = _INLINE.search(rest)
        if label is None:
            yield DocumentedTool(name, clean_text(rest), None, example_parameters)
            continue
        parameters, end = _parse_inline(rest, label.end())
        yield DocumentedTool(name, clean_text(rest[: label.start()] + rest[end:]), parameters, example_parameters)


def _parse_inline(text: str, at: int) -> tuple[tuple[DocumentedParameter, ...], int]:
    """The names of a line such as ``path, recursive (optional).``, and where they end."""
    found: list[tuple[str, str]] = []
    while (one := _INLINE_NAME.match(text, at)) is not None and one[3] is not None:
        found.append((one[1], one[2] or ""))
        at = one.end()
        if one[3] != ",":
            break
    all_optional = any("all optional" in notes.lower() for _, notes in found)
    return tuple(_make_inline(name, notes, all_optional) for name, notes in found if name.lower() != "none"), at


def _make_inline(name: str, notes: str, all_optional: bool) -> DocumentedParameter:
    marked = _find_required(notes)
    description = "" if notes.lower() in ("required", "optional", "all optional") else notes
    return DocumentedParameter(name, False if marked is None and all_optional else marked, description)


# -- examples ----------------------------------------------------------------------------------------------------------


def remove_examples(text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Remove examples of a call to this tool; also returns their child elements."""
    opener, closer = f"<{name}>", f"</{name}>"
    kept: list[str] = []
    seen: dict[str, None] = {}
    at = look = end = 0
    while (start := text.find(opener, look)) >= 0:
        look = start + 1
        end = end if end > start else text.find(closer, start)
        if end < 0:
            break
        if _BEFORE.fullmatch(text, text.rfind("\n", 0, start) + 1, start):
            seen.update(dict.fromkeys(_child_tags(text[start + len(opener) : end])))
            kept.append(_LAST_LABEL.sub("", text[at:start]))
            at = look = end + len(closer)
    return "".join([*kept, text[at:]]), tuple(seen)


def _child_tags(text: str) -> Iterator[str]:
    text, at = text[:MAX_EXAMPLE_LENGTH], 0
    while (opened := _TAG.search(text, at)) is not None:
        yield opened[1]
        closed = text.find(f"</{opened[1]}>", opened.end())
        at = closed + len(opened[0]) + 1 if closed >= 0 else opened.end()


def clean_text(text: str) -> str:
    """Strip blank lines at both ends, repeated blank lines, and labels without content."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    while lines and (not lines[-1] or _EMPTY_LABEL.fullmatch(lines[-1])):
        lines.pop()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


# -- MCP servers -------------------------------------------------------------------------------------------------------


def parse_servers(text: str) -> Iterator[ServerTool]:
    """The tools in a section of connected MCP servers; one without a schema takes any object."""
    for heading, body in _split(text, _SERVER):
        server = heading.partition(" (`")[0].strip()
        listed = AVAILABLE_TOOLS.search(body)
        if listed is None:
            continue
        end = body.find("\n### ", listed.end())
        yield from _parse_server(server, body[listed.end() : end if end >= 0 else len(body)])


def _parse_server(server: str, text: str) -> Iterator[ServerTool]:
    """The tools of one server. One without a schema extends to the next tool."""
    schema = _SCHEMA.search(text)
    following = _SERVER_TOOL.search(text)
    while (named := following) is not None:
        following = _SERVER_TOOL.search(text, named.end())
        end = following.start() if following else len(text)
        if schema and schema.start() < named.end():
            schema = _SCHEMA.search(text, named.end())
        if schema and schema.start() < end:
            given, at = _parse_schema(text, schema.end())
            end = schema.start()
            following = _NEXT_TOOL.match(text, at) or _SERVER_TOOL.search(text, at)
        else:
            given = {}
        yield ServerTool(server=server, name=named[1], description=clean_text(text[named.end() : end]), schema=given)


def _parse_schema(text: str, at: int) -> tuple[dict[str, Any], int]:
    """The schema at this position, and where it ends. Empty if it is nested too deeply."""
    try:
        given, end = json.JSONDecoder().raw_decode(text, at)
        parse(text[at:end])
    except (ValueError, RecursionError):
        return {}, at
    return (given if isinstance(given, dict) else {}), end
