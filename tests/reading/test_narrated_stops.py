"""Narrated stops: recall per language, no false alarms, forms of the end, hostile texts, and requests for action.

``narrated_stops.jsonl`` has endings of answers, ``wanted_actions.jsonl`` conversations. A hash of the text halves the
endings. The phrases were corrected on both halves in the end, so passing is no measure of unseen answers.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from re import _parser
from typing import Any

import pytest
from support.rows import in_one_test

from toolglot.core.conversation import Message, Part, Role, Text, ToolCall, ToolResult
from toolglot.reading import narrated_stops
from toolglot.reading.narrated_stops import REQUEST_SIZE, TAIL_SIZE, announces_action, wants_action

DATA = Path(__file__).resolve().parents[1] / "data"
MAIN_LANGUAGES = ("en", "zh", "es", "hi", "ar", "pt", "ru", "ja", "de", "fr")
LANGUAGES = (*MAIN_LANGUAGES, "ko", "it", "id", "bn", "tr", "vi", "pl")
ANNOUNCEMENT = "Let me check the config."
LINES = "print(1)\n" * 500


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


ENDINGS = read_lines("narrated_stops.jsonl")
CONVERSATIONS = read_lines("wanted_actions.jsonl")


def is_held_out(text: str) -> bool:
    return sha256(text.encode()).digest()[0] % 2 == 1


def make_message(role: Role, text: str, *calls: str) -> Message:
    if role == "tool":
        return Message("tool", (ToolResult("call_1", "read_file", (Text(text),)),))
    parts: list[Part] = [Text(text)] if text else []
    return Message(role, (*parts, *(ToolCall("call_1", "read_file") for _ in calls)))


def make_messages(items: list[list[Any]]) -> tuple[Message, ...]:
    return tuple(make_message(*item) for item in items)


def test_data_is_large_enough() -> None:
    counts = Counter((row["language"], row["kind"] == "announcement") for row in ENDINGS)
    for language in MAIN_LANGUAGES:
        assert counts[language, True] >= 33
        assert counts[language, False] >= 66
    assert {language for language, _ in counts} == set(LANGUAGES)
    assert len({row["text"] for row in ENDINGS}) == len(ENDINGS)


@in_one_test("held_out", [False, True])
@in_one_test("language", LANGUAGES)
def test_announcements_are_found(language: str, held_out: bool) -> None:
    texts = [row["text"] for row in ENDINGS if row["language"] == language and row["kind"] == "announcement"]
    texts = [text for text in texts if is_held_out(text) == held_out]
    missed = [text for text in texts if not announces_action(text)]
    assert len(missed) <= 0.1 * len(texts), missed


@in_one_test("kind", sorted({row["kind"] for row in ENDINGS} - {"announcement"}))
def test_ordinary_endings_are_no_announcements(kind: str) -> None:
    assert [row["text"] for row in ENDINGS if row["kind"] == kind and announces_action(row["text"])] == []


@in_one_test(
    "text",
    [
        ANNOUNCEMENT,
        ANNOUNCEMENT.rstrip("."),
        ANNOUNCEMENT.upper(),
        f"{ANNOUNCEMENT}..",
        "Let me check the config…",
        "Let me check the config:",
        "Let me check the config:\n\n",
        "Let me check the config:\n```",
        "Let me check the config:\n\n```bash\n",
        "Let me check the config:\n- ",
        "Let me check the config:\n1. ",
        "**Let me check the config:**",
        "*Let me check the config.*",
        "### Let me check the config",
        "Let me check the config. 🔍",
        "Let me check the config 👇👇",
        "Let me check `config.toml`:",
        'Let me search for "port" in the config.',
        "I’ll check the config.",
        f"{ANNOUNCEMENT} One moment.",
        f"Why is the port closed? {ANNOUNCEMENT}",
        "Checking the config:",
        "Let me read the error message:",
        f"{ANNOUNCEMENT} This should show which port is used.",
        f"```python\nprint(1)\n```\n\n{ANNOUNCEMENT}",
        f"- one\n- two\n\n{ANNOUNCEMENT}",
        f"{'All of it is fine. ' * 50_000}{ANNOUNCEMENT}",
        f"```python\n{LINES}```\n\n{ANNOUNCEMENT}",
    ],
)
def test_forms_of_the_end(text: str) -> None:
    assert announces_action(text)


@in_one_test(
    "text",
    [
        "",
        " ",
        "\n\n",
        "```",
        "```bash\n",
        "- ",
        "🔍",
        "...",
        "\ud800",
        "\udcff" * 700,
        "?",
        "x" * 1_000_000,
        " " * 1_000_000,
        f"{ANNOUNCEMENT} {'x' * TAIL_SIZE}",
        f"{ANNOUNCEMENT}\n\nThe port is 8080.",
        f"{ANNOUNCEMENT} The port is 8080.",
        "Let me check: the port is 8080.",
        f"```\n{ANNOUNCEMENT}",
        f"```\n{ANNOUNCEMENT}\n```",
        f"```text\n{LINES}```text\n{ANNOUNCEMENT}",
        f"It prints:\n\n    {ANNOUNCEMENT}",
        f"> {ANNOUNCEMENT}",
        f"- {ANNOUNCEMENT}",
        f"3. {ANNOUNCEMENT}",
        f'"{ANNOUNCEMENT}"',
        f"The model wrote “{ANNOUNCEMENT}”",
        f"Translation: {ANNOUNCEMENT}",
        f"Please send me the file. {ANNOUNCEMENT}",
        f"Is port 80 the right one? {ANNOUNCEMENT}",
        f"The new label is: {ANNOUNCEMENT}",
        f"Agent: Thank you for calling. {ANNOUNCEMENT}",
        "Let me check the config?",
        "Hi Tom,\n\nthanks for your mail. I'll check the invoice.\n\nBest, Jo",
        "Subject: invoice\n\nI'll check the invoice.",
    ],
)
def test_other_ends(text: str) -> None:
    assert not announces_action(text)


def test_lone_surrogates_do_not_hide_an_announcement() -> None:
    assert announces_action(f"{ANNOUNCEMENT} \ud83d")


@in_one_test("row", CONVERSATIONS, ids=lambda row: repr(row["messages"][-1:])[:60])
def test_conversations_that_want_action(row: dict[str, Any]) -> None:
    assert wants_action(make_messages(row["messages"])) == row["wants"]


def test_conversations_are_enough() -> None:
    counts = Counter(row["wants"] for row in CONVERSATIONS)
    assert counts[True] >= 40
    assert counts[False] >= 60


@pytest.mark.parametrize("text", ["\ud800", "x" * 1_000_000, "```" * 1000, "<task>" * 1000, "a, " * 5000, "¿" * 5000])
def test_hostile_messages_want_nothing(text: str) -> None:
    assert not wants_action((Message("user", (Text(text),)),))


def test_a_request_at_either_end_of_a_long_message_counts() -> None:
    pasted = "The quick brown fox. " * REQUEST_SIZE
    assert wants_action((Message("user", (Text(f"Fix the failing test.\n{pasted}"),)),))
    assert wants_action((Message("user", (Text(f"{pasted}\nFix the failing test."),)),))
    assert not wants_action((Message("user", (Text(pasted),)),))


def needs_other_script(pattern: object) -> bool:
    """Whether all that a parsed expression matches holds a character of another script than Latin."""
    for operation, value in pattern:  # type: ignore[attr-defined]
        match str(operation):
            case "LITERAL":
                needed = narrated_stops._OTHER_SCRIPT.match(chr(value)) is not None
            case "IN":
                needed = all(
                    str(kind) == "LITERAL" and narrated_stops._OTHER_SCRIPT.match(chr(item)) for kind, item in value
                )
            case "BRANCH":
                needed = all(map(needs_other_script, value[1]))
            case "SUBPATTERN":
                needed = needs_other_script(value[3])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                needed = value[0] > 0 and needs_other_script(value[2])
            case _:
                needed = False
        if needed:
            return True
    return False


def test_phrases_of_other_scripts_cannot_occur_in_latin_text() -> None:
    """They are not searched there."""
    others = [language for language in narrated_stops._LANGUAGES if language not in narrated_stops._LATIN]
    assert len(others) == len(LANGUAGES) - len(narrated_stops._LATIN)
    for language in others:
        for phrases in (language.announcing, language.waiting):
            assert needs_other_script(_parser.parse(phrases.pattern)) or phrases.pattern == "(?!)", phrases.pattern
    assert not needs_other_script(_parser.parse(narrated_stops._LATIN[0].announcing.pattern))
