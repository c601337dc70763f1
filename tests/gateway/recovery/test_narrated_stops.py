"""Narrated stops: recall per language, few false alarms, forms of the end, hostile texts, and requests for action.

``natural_endings.jsonl`` has endings as models write them, ``narrated_stops.jsonl`` endings that were collected to be hard,
``wanted_actions.jsonl`` conversations. The words were corrected on three quarters of the hard endings, so passing is no
measure of unseen answers.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.rows import in_one_test

from toolglot.core.conversation import Message, Part, Role, Text, ToolCall, ToolResult
from toolglot.gateway.recovery import narrated_stops, phrase_lists
from toolglot.gateway.recovery.narrated_stops import REQUEST_SIZE, TAIL_SIZE, announces_action, wants_action
from toolglot.gateway.recovery.phrase_lists import find_languages, fold, load_language, load_signs

DATA = Path(__file__).resolve().parents[2] / "data"
FOLDER = Path(phrase_lists.__file__).with_name("languages")
MAIN_LANGUAGES = ("en", "zh", "es", "hi", "ar", "pt", "ru", "ja", "de", "fr")
LANGUAGES = (*MAIN_LANGUAGES, "ko", "it", "id", "bn", "tr", "vi", "pl")
FLAGS = {"spaceless", "free_order", "indian"}
LISTS = {
    *("leads", "joins", "opens", "says", "acts", "subject", "doing", "gerunds", "excluded", "now", "steps", "ends"),
    *("plain_ends", "others", "prefix", "before", "never", "asks", "waits", "why", "cites", "plans"),
    *("polite", "things", "states", "tells", "orders", "forbids", "agrees"),
}
ANNOUNCEMENT = "Let me check the config."
LINES = "print(1)\n" * 500


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


NATURAL = read_lines("natural_endings.jsonl")
HARD = read_lines("narrated_stops.jsonl")
CONVERSATIONS = read_lines("wanted_actions.jsonl")


def make_message(role: Role, text: str, *calls: str) -> Message:
    if role == "tool":
        return Message("tool", (ToolResult("call_1", "read_file", (Text(text),)),))
    parts: list[Part] = [Text(text)] if text else []
    return Message(role, (*parts, *(ToolCall("call_1", "read_file") for _ in calls)))


def make_messages(items: list[list[Any]]) -> tuple[Message, ...]:
    return tuple(make_message(*item) for item in items)


def test_data_is_large_enough() -> None:
    counts = Counter((row["language"], row["kind"] == "announcement") for row in HARD)
    for language in MAIN_LANGUAGES:
        assert counts[language, True] >= 33
        assert counts[language, False] >= 66
    for rows in (HARD, NATURAL):
        assert {row["language"] for row in rows} == set(LANGUAGES)
        assert len({row["text"] for row in rows}) == len(rows)


@in_one_test("language", LANGUAGES)
def test_announcements_of_models_are_found(language: str) -> None:
    texts = [row["text"] for row in NATURAL if row["language"] == language and row["announces"]]
    missed = [text for text in texts if not announces_action(text)]
    assert len(missed) <= max(1, len(texts) // 10), missed


def test_ordinary_endings_are_no_announcements() -> None:
    false = [row["text"] for row in NATURAL if not row["announces"] and announces_action(row["text"])]
    assert len(false) <= 2, false


@in_one_test("language", LANGUAGES)
def test_most_hard_announcements_are_found(language: str) -> None:
    texts = [row["text"] for row in HARD if row["language"] == language and row["kind"] == "announcement"]
    missed = [text for text in texts if not announces_action(text)]
    assert len(missed) <= 0.12 * len(texts), missed


@in_one_test("language", LANGUAGES)
def test_few_hard_endings_are_taken_for_announcements(language: str) -> None:
    texts = [row["text"] for row in HARD if row["language"] == language and row["kind"] != "announcement"]
    false = [text for text in texts if announces_action(text)]
    assert len(false) <= 0.18 * len(texts), false


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


@pytest.mark.parametrize("wants", [True, False])
def test_conversations_that_want_action(wants: bool) -> None:
    rows = [make_messages(row["messages"]) for row in CONVERSATIONS if row["wants"] == wants]
    wrong = [messages[-1:] for messages in rows if wants_action(messages) != wants]
    assert len(wrong) <= 0.03 * len(rows), wrong


@in_one_test(
    "text",
    [
        "Run the tests and tell me what fails.",
        "Führe die Tests aus und sag mir, was fehlschlägt.",
        "Ejecuta las pruebas y dime qué falla.",
        "Запусти тесты и скажи, что падает.",
        "Lance les tests et dis-moi ce qui échoue.",
        "Rode os testes e me diga o que falha.",
        "テストを実行して、何が失敗するか教えてください。",
        "运行测试，然后告诉我哪些失败了。",
    ],
)
def test_a_request_for_action_and_for_an_answer_wants_action(text: str) -> None:
    assert wants_action((Message("user", (Text(text),)),))


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


@in_one_test("language", LANGUAGES)
def test_lists_are_known_and_compile(language: str) -> None:
    lists = load_language(language).lists
    assert lists.keys() <= FLAGS | LISTS
    for name in (*LISTS, "clause"):
        getattr(load_language(language), name)
    assert not {
        name for name in lists.keys() & LISTS if fold(str(lists[name])) != str(lists[name]).lower() != lists[name]
    }


def test_every_language_is_recognised() -> None:
    assert {name for kind in ("scripts", "words") for names in load_signs(kind).values() for name in names} == set(
        LANGUAGES
    )
    assert {path.stem for path in FOLDER.glob("*.toml")} == {*LANGUAGES, "languages"}
    other = [row["text"] for row in NATURAL if load_language(row["language"]) not in find_languages(fold(row["text"]))]
    assert len(other) <= 0.02 * len(NATURAL), other


def test_only_the_language_of_the_text_is_read() -> None:
    load_language.cache_clear()
    assert announces_action("Der Test schlägt fehl. Ich sehe mir jetzt die Konfiguration an.")
    assert load_language.cache_info().currsize == 1


def test_words_stay_few() -> None:
    """A person who knows a language must be able to review its file."""
    assert sum(path.stat().st_size for path in FOLDER.glob("*.toml")) <= 41_000
    assert max(len(line) for path in FOLDER.glob("*.toml") for line in path.read_text("utf-8").splitlines()) <= 140
    modules = (narrated_stops.__file__, phrase_lists.__file__)
    assert sum(len(Path(name).read_text("utf-8").splitlines()) for name in modules) < 400


@in_one_test("language", LANGUAGES)
def test_repeated_words_are_read(language: str) -> None:
    """A search in such a text could take long."""
    lists = load_language(language).lists
    for name in ("leads", "opens", "says"):
        words = str(lists.get(name, "")).translate({ord(sign): None for sign in "*()."}).split(",")
        for word in words[:5]:
            announces_action(f"{word} " * TAIL_SIZE)
