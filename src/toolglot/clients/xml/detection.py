"""Detect a client that takes tool calls as XML in text, and its version.

Strategy. A request with tools comes from a native client, whatever its headers claim. In all others the prompt decides.
Only sentences that teach the call format identify an XML client, because headers and names stay the same when a client
switches to native tools; and only together with the matching tool section and a known tool of the client in it. Some of
those sentences identify the family; version headers, and then the documented tools, choose the profile. Text that the
user added to the prompt is ignored. The prompt is looked for in system messages and at the very beginning of the first
message, whatever its role, because some models get no system message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import PromptLayout
from toolglot.clients.xml.prompt_parser import CACHED_PROMPTS, parse_prompt, split_user_instructions
from toolglot.core.conversation import Conversation, Text

AUTO, OFF = "auto", "off"
KILO, CLINE = "kilo-4.145", "cline-legacy"
LOOKED_AT: Final = 1 << 20


NATIVE_PHRASES: Final = ("Use the provider-native tool-calling mechanism",)
"""Sentences of the same clients in native mode."""

USER_AGENTS: Final = (
    ("kilo", re.compile(r"Kilo-?Code/(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", re.I)),
    ("roo", re.compile(r"Roo-?Code/(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", re.I)),
    ("cline", re.compile(r"Cline/(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", re.I)),
)
"""``User-Agent`` patterns with the version."""
X_TITLES: Final = {"roo code": "roo", "kilo code": "kilo", "cline": "cline"}
ROLE_SENTENCES: Final = {"You are Kilo Code,": "kilo", "You are Roo,": "roo", "You are Cline,": "cline"}
ROLE_PREFIX: Final = "You are "
"""How prompts begin, unless the user gave the client another role."""
ROO_VERSIONS: Final = (
    ((3, 36, 5), "roo-3.36"),
    ((3, 36, 0), "roo-3.36.0"),
    ((3, 35, 4), "roo-3.35.4"),
    ((3, 35, 0), "roo-3.35"),
    ((3, 32, 0), "roo-3.32"),
    ((3, 29, 4), "roo-3.30"),
    ((0, 0, 0), "roo-3.29"),
)
"""The first version of each profile, the newest first."""
ROO_TOOLS: Final = (
    ("## search_and_replace", "roo-3.29"),
    ("- line_count:", "roo-3.35"),
    ("## insert_content", "roo-3.35.4"),
    ("## list_code_definition_names", "roo-3.36.0"),
    ("", "roo-3.36"),
)
"""What only older prompts of Roo document, oldest first. Of versions that document the same, the last one knows all
tags of the others."""
Version = tuple[int, int, int]


class DetectedClient(Struct, frozen=True):
    """The client profile and the position of its prompt: message and part."""

    profile: str
    at: tuple[int, int] | None = None


def detect_client(
    conversation: Conversation, headers: Mapping[str, str] | None = None, setting: str = AUTO
) -> DetectedClient | None:
    """Detect the XML client of a request; None for a native one. ``setting`` is ``auto``, ``off`` or a profile to
    assume."""
    if setting == OFF or conversation.tools:
        return None
    for at, text, certain in _candidate_prompts(conversation):
        family = _detect_family(text)
        if family and (certain or setting != AUTO or parse_client_headers(headers or {})[0]):
            profile = (
                setting if setting != AUTO else _choose_profile(family, split_user_instructions(text)[0], headers or {})
            )
            return DetectedClient(profile, at)
    return None if setting == AUTO else DetectedClient(setting)


def _candidate_prompts(conversation: Conversation) -> Iterator[tuple[tuple[int, int], str, bool]]:
    """Texts that may be prompts, and whether they are certainly no quotations. A user may quote a prompt after other
    text, unless the headers name a client that may be given any role."""
    for number, message in enumerate(conversation.messages):
        instructed = message.role == "system"
        if number and not instructed:
            continue
        for place, part in enumerate(message.parts if instructed else message.parts[:1]):
            if isinstance(part, Text) and len(part.text) <= LOOKED_AT:
                yield (number, place), part.text, instructed or part.text.lstrip().startswith(ROLE_PREFIX)


def _detect_family(text: str) -> str:
    """The client family whose prompt this is, or an empty string. Most texts contain none of the sentences."""
    for phrase in _teaching_phrases():
        if phrase in text:
            return _match_layouts(text)
    return ""


@cache
def _teaching_phrases() -> frozenset[str]:
    """All sentences that teach calls. Each is within one line."""
    return frozenset(
        phrase for client in all_clients().values() for layout in client.layouts for phrase in layout.markers
    )


@lru_cache(maxsize=CACHED_PROMPTS)
def _match_layouts(text: str) -> str:
    prompt_text = split_user_instructions(text)[0]
    if any(phrase in prompt_text for phrase in NATIVE_PHRASES):
        return ""
    taught = (
        client.name.partition("-")[0]
        for client in all_clients().values()
        for layout in client.layouts
        if any(phrase in prompt_text for phrase in layout.markers) and _documents_tools(text, client, layout)
    )
    return next(taught, "")


def _documents_tools(text: str, client: XmlClient, layout: PromptLayout) -> bool:
    """Whether the text has the tool section of a layout, with tools of the client."""
    prompt = parse_prompt(text)
    return layout.section in prompt.sections and any(client.find_tool(document.name) for document in prompt.documents)


def _choose_profile(family: str, text: str, headers: Mapping[str, str]) -> str:
    """Choose the profile of a family, by headers first. Kilo has the prompts of Roo; only its name differs."""
    named, version = parse_client_headers(headers)
    if family == "cline":
        return CLINE
    client = named or next((name for phrase, name in ROLE_SENTENCES.items() if phrase in text), "")
    if client == "kilo":
        return KILO
    if named == "roo" and version:
        return next(profile for first, profile in ROO_VERSIONS if version >= first)
    return next(profile for tool, profile in ROO_TOOLS if tool in text)


def parse_client_headers(headers: Mapping[str, str]) -> tuple[str, Version | None]:
    """The family that the headers name, and its version if they contain one."""
    values = {name.lower(): value for name, value in headers.items()}
    for family, pattern in USER_AGENTS:
        if found := pattern.search(values.get("user-agent", "")):
            return family, (int(found[1]), int(found[2]), int(found[3] or 0))
    if "x-kilocode-version" in values:
        return "kilo", None
    return X_TITLES.get(values.get("x-title", "").strip().lower(), ""), None
