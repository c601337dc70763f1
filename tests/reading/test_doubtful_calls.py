"""Calls that are shown rather than meant: text if the answer goes on behind them, calls if it ends there."""

from __future__ import annotations

import random
import re

import pytest
from support.rows import in_one_test

import toolglot
from toolglot.core.events import CallEnded, Event, TextDelta
from toolglot.dialects.spec import Dialect
from toolglot.reading.example_detection import announces_example, is_doubtful
from toolglot.reading.plugins import known_dialects

TOOLS = [
    {
        "name": "run",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    }
]
WRITTEN = {
    "hermes": '<tool_call>\n{"name": "run", "arguments": {"command": "rm -r build"}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=run>\n<parameter=command>\nrm -r build\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>run\n<arg_key>command</arg_key>\n<arg_value>rm -r build</arg_value>\n</tool_call>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>"
    '{"command": "rm -r build"}<|tool_call_end|><|tool_calls_section_end|>',
    "anthropic": '<function_calls>\n<invoke name="run">\n<parameter name="command">rm -r build</parameter>\n</invoke>\n'
    "</function_calls>",
    "harmony": '<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"command": "rm -r build"}<|call|>',
    "mistral_args": '[TOOL_CALLS]run[ARGS]{"command": "rm -r build"}',
    "roo_xml": "<run>\n<command>rm -r build</command>\n</run>",
    "fenced_json": '```json\n{"name": "run", "arguments": {"command": "rm -r build"}}\n```',
}
SPECIAL_MARK = re.compile(r"<[^\s<>]{0,40}[|｜:]|<start_function_call>|\[[A-Z]+_|\]<\]|<<<")
UNMARKED = ("roo_xml", "fenced_json")
SPECIAL = ("kimi_k2", "harmony", "mistral_args")
"""Dialects whose marks are special tokens."""
ARGUMENTS = '{"command":"rm -r build"}'

REFUSED = (
    "I did not run this:",
    "Never write the following yourself:",
    "Do not run this:",
    "You must never call it like this:",
    "Führe das nicht aus:",
    "No ejecutes esto:",
    "N'exécutez pas cette commande:",
    "Не выполняйте это:",
    "不要执行下面的命令：",
    "これは実行しないでください：",
)
"""Sentences that say that the call behind them is not made: it stays text wherever it stands."""

SHOWN = (
    "My previous call failed. I had written",
    "What went wrong: the assistant sent",
    "The last message had this text:",
    "If you confirm, I will run this:",
    "With your permission I'll run the following:",
    "Then I would call it:",
    "Should I run this?",
    "I decided against running",
    "The model emits a block like",
    "What the server received was this:",
    "This is how it formats its calls:",
    "Expected output:",
    "Here is the JSON you asked for:",
    "During the review someone pasted",
    "A malicious page may include:",
    "Assuming you approve, I will run this:",
    "Jemand hat das in die Vorlage kopiert:",
    "Una página puede contener:",
    "Страница может содержать:",
    "昨天的记录中有这一行：",
    "ページには次が含まれる可能性があります：",
    "Mein Aufruf ist gescheitert. Ich hatte Folgendes geschrieben:",
    "Wenn du zustimmst, würde ich Folgendes aufrufen:",
    "Soll ich das ausführen?",
    "Im Handbuch steht:",
    "Mi llamada anterior falló. Había escrito:",
    "Si estás de acuerdo, ejecutaría:",
    "¿Ejecuto esto?",
    "El modelo emite un bloque como este:",
    "Мой вызов не удался. Я написал:",
    "Если вы согласны, я бы вызвал:",
    "Выполнить это?",
    "Модель выводит такой блок:",
    "我之前的调用失败了。当时我写的是：",
    "如果你同意，我会调用：",
    "要我执行这个吗？",
    "模型会输出如下内容：",
    "前回は失敗しました。私は次のように書きました：",
    "よろしければ、次を実行します：",
    "これを実行しますか？",
    "モデルは次のようなブロックを出力します：",
    "The assistant answers with a block like the following.",
    "The test feeds this string to the parser:",
    "A client that gets",
    "Unit test:",
    "As documented in the README:",
    "The broken template renders:",
    "The comment reads:",
    "Prompt injection found in issue 12:",
    "I already executed the following:",
    "Paste this into the console:",
    "Snippet from the chat log:",
    "I'll show the format:",
    'The commit message says "handle',
    "Hier ist das Format, das es verwendet:",
    "Die Testdatei beginnt mit:",
    "La documentación muestra:",
    "Le journal contient :",
    "Voici à quoi ressemble un appel :",
    "В логе было:",
    "Так выглядит вызов:",
    "日志里有：",
    "ログにはこうあります：",
    "문서에는 이것이 있습니다:",
)
"""Sentences about a call that was, would be or must not be made."""

MEANT = (
    "The previous attempt failed, so I try again:",
    "Retrying the earlier step:",
    "Let me run this:",
    "I'll run the following command:",
    "Running the tests:",
    "I did not find it. Let me search again:",
    "The file does not exist yet, so I create it:",
    "The output shows two failures:",
    "The previous output was cut. I run it again:",
    "The next step is:",
    "This could be a bug. I'll check:",
    "The model is saved. Time to build:",
    "Done with the parser.\n\n---",
    "Ich führe Folgendes aus:",
    "Die Datei existiert noch nicht, ich lege sie an:",
    "Dieser Test schlägt fehl, also baue ich neu:",
    "Ejecuto lo siguiente:",
    "El archivo no existe, lo creo:",
    "Выполняю следующее:",
    "Файла ещё нет, создаю:",
    "之前的输出被截断了，我重新运行：",
    "文件不存在，所以先创建它：",
    "次を実行します：",
    "ファイルがありませんので作成します：",
    "Fix for the failing test:",
    "Here is the new file:",
    "The template needs a new block:",
    "And the header file:",
    "Step 2: send the request:",
    "运行测试：",
    "Mise à jour du fichier :",
)
"""Sentences of models that mean the call behind them, with words of the others."""

PREFIXES = (
    "The old form (",
    'The string "',
    "旧格式「",
    "The last message was\n\n    ",
    "The log:\n2026-11-17 10:02:11 DEBUG output: ",
    "[10:02:11] model: ",
    "The file:\n2 | ",
    "Found:\nsrc/prompt.txt:12:",
    "The change:\n+",
    "The source:\n// ",
    "| push | ",
    "<example>\n",
    '<div class="x">\n',
    'prompt = """Use tools.\n',
    "Use ",
    "- Bad: ",
    "Assistant: ",
)
"""What precedes a call in a quotation, a listing, a document or the middle of a sentence."""


def read_in_pieces(text: str, seed: int) -> tuple[str, int]:
    """The text and the number of calls of an answer that arrives in pieces."""
    rng, reader, events, start = random.Random(seed), toolglot.Reader(TOOLS), list[Event](), 0
    while start < len(text):
        size = rng.choice((1, 2, 5, 20))
        events += reader.feed(text[start : start + size])
        start += size
    events += reader.close()
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    return shown, sum(isinstance(event, CallEnded) for event in events)


@pytest.mark.parametrize("way", WRITTEN)
def test_a_call_that_is_shown_is_text_if_the_answer_goes_on(way: str) -> None:
    for seed, introduction in enumerate(SHOWN):
        text = f"{introduction}\n\n{WRITTEN[way]}\n\nThat is all."
        reading = toolglot.read(text, TOOLS)
        assert (reading.calls, reading.text) == ([], text), introduction
        assert read_in_pieces(text, seed) == (text, 0)


@pytest.mark.parametrize("way", WRITTEN)
def test_a_refused_call_is_text_at_the_end_too(way: str) -> None:
    for introduction in REFUSED:
        for behind in ("", "\n\nThat is all."):
            text = f"{introduction}\n\n{WRITTEN[way]}{behind}"
            reading = toolglot.read(text, TOOLS)
            assert (reading.calls, reading.text) == ([], text), introduction


def test_other_words_of_refusal_refuse_nothing() -> None:
    for introduction in (
        "I don't use the cache, so I run this:",
        "It did not work. I try this:",
        "Don't worry, I run it now:",
        "I won't guess. Let me look:",
        "Das läuft nicht, ich rufe es noch einmal auf:",
    ):
        assert len(toolglot.read(f"{introduction}\n\n{WRITTEN['hermes']}", TOOLS).calls) == 1, introduction


@pytest.mark.parametrize("way", WRITTEN)
def test_a_doubtful_call_counts_at_the_end(way: str) -> None:
    for introduction in SHOWN:
        if way in UNMARKED and announces_example(f"{introduction}\n\n"):
            continue
        reading = toolglot.read(f"{introduction}\n\n{WRITTEN[way]}\n", TOOLS)
        assert [call.arguments for call in reading.calls] == [ARGUMENTS], introduction
        assert reading.text.strip() == introduction


@pytest.mark.parametrize("way", WRITTEN)
def test_a_call_that_is_meant_counts_whatever_follows(way: str) -> None:
    for seed, introduction in enumerate(MEANT):
        text = f"{introduction}\n\n{WRITTEN[way]}\n\nI will report the result."
        reading = toolglot.read(text, TOOLS)
        assert [call.arguments for call in reading.calls] == [ARGUMENTS], introduction
        assert read_in_pieces(text, seed) == (reading.text, 1)


@pytest.mark.parametrize("way", [way for way in WRITTEN if way != "fenced_json"])
def test_a_call_in_a_listing_or_a_sentence_is_text_if_the_answer_goes_on(way: str) -> None:
    written = WRITTEN[way].replace("\n", "")
    for prefix in PREFIXES:
        if prefix == "Use " and way in SPECIAL:  # the marks are no part of the sentence
            continue
        text = f"{prefix}{written} and more.\nSo it goes."
        reading = toolglot.read(text, TOOLS)
        assert (reading.calls, reading.text) == ([], text), prefix


def test_a_doubtful_call_in_an_answer_that_was_cut_is_text() -> None:
    text = f"If you agree, I would run this:\n\n{WRITTEN['hermes']}"
    reader = toolglot.Reader(TOOLS)
    events = [*reader.feed(text), *reader.close(truncated=True)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    assert not any(isinstance(event, CallEnded) for event in events)


def test_a_call_that_is_meant_streams() -> None:
    reader = toolglot.Reader(TOOLS)
    kinds = [type(event).__name__ for event in reader.feed(f"Let me run this:\n\n{WRITTEN['hermes'][:60]}")]
    assert kinds == ["TextDelta", "CallStarted", "CallArguments"]


@in_one_test("name", ["tool_use", "action", "step", "thinking", "answer"])
def test_elements_that_models_put_around_calls_raise_no_doubt(name: str) -> None:
    assert not is_doubtful(f"I read it.\n<{name}>\n")


def test_nothing_before_a_call_raises_no_doubt() -> None:
    assert not any(map(is_doubtful, ("", "\n\n", "    ")))


STATEMENTS = (
    "I don't have that information yet.",
    "I cannot answer this without looking.",
    "You can see the error in the log.",
    "The model writes its config there.",
    "This should not take long.",
    "We could look at the config.",
    "That is what the error says.",
    "Never mind the first error.",
    "As requested.",
    "Ich kann das nicht sehen.",
    "No puedo ver el archivo.",
    "Я не вижу файла.",
    "以下文件需要检查。",
)
"""Sentences that are over: they say nothing about the call behind them."""


@in_one_test("dialect", WRITTEN)
@in_one_test("before", STATEMENTS)
def test_a_call_behind_a_statement_is_meant_although_the_answer_goes_on(before: str, dialect: str) -> None:
    if dialect != "fenced_json":  # in the middle of a text it is an example
        reading = toolglot.read(f"{before}\n\n{WRITTEN[dialect]}\n\nI'll wait for the result.", TOOLS)
        assert [call.arguments for call in reading.calls] == [ARGUMENTS]


@pytest.mark.parametrize("dialect", ["hermes", "roo_xml", "mistral_args"])
def test_code_behind_three_backticks_within_a_line_is_text(dialect: str) -> None:
    answer = f"A parser must read ```xml\n{WRITTEN[dialect]}\n``` as well as plain text."
    for seed in range(3):
        assert read_in_pieces(answer, seed) == (answer, 0)


SPECIAL_DIALECTS = [record for record in known_dialects() if SPECIAL_MARK.match(record.sample)]


@in_one_test("record", SPECIAL_DIALECTS, ids=[record.name for record in SPECIAL_DIALECTS])
def test_special_tokens_in_the_middle_of_a_sentence_are_a_call(record: Dialect) -> None:
    call = record.sample if record.wrap or record.call.close else f"{record.sample}\n"
    tools = [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
    for text in (f"Some text before {call} after", f"Er sagt, {call} und mehr."):
        for chunks in ([text], list(text)):
            reader = toolglot.Reader(tools)
            events = [*(event for chunk in chunks for event in reader.feed(chunk)), *reader.close()]
            assert sum(isinstance(event, CallEnded) for event in events) == 1, text
    for text in (
        f'He wrote "{call}" there.',
        f"For example: {call} after",
        f"How is it? {call} so.",
        f"Use `{call}` here.",
    ):
        assert toolglot.read(text, tools).calls == [], text


@pytest.mark.parametrize("way", SPECIAL)
@pytest.mark.parametrize(
    "answer",
    [
        "¿Debo ejecutar {}?",
        "要不要运行{}？",
        "Do you want me to run {} or not?",
        "May I, {} or `x`? Yes.",
        "هل أنفذ {}؟",
    ],
)
def test_a_call_in_a_question_is_text(answer: str, way: str) -> None:
    text = answer.format(WRITTEN[way])
    for seed in range(5):
        assert read_in_pieces(text, seed) == (text, 0)


@pytest.mark.parametrize("way", SPECIAL)
@pytest.mark.parametrize(
    "answer",
    ["I run {} now. Is that right?", "I run {}\nOk?", "Done. {}?", "I run {}" + " word" * 50 + "?", "I run {} a.b?c"],
)
def test_the_question_must_be_the_sentence_of_the_call(answer: str, way: str) -> None:
    text, behind = answer.format(WRITTEN[way]), answer.partition("{}")[2]
    for seed in range(5):
        rest, calls = read_in_pieces(text, seed)
        assert calls == 1
        assert rest.endswith(behind.strip())


@pytest.mark.parametrize("introduction", ["The test feeds this to the parser:", "Usage:", "Should I run this?"])
def test_a_doubtful_call_that_is_defective_is_rejected_at_the_end(introduction: str) -> None:
    call = '<tool_call>\n{"name": "run", "arguments": {"cmd": 3}}\n</tool_call>'
    assert len(toolglot.read(f"{introduction}\n\n{call}", TOOLS).rejected) == 1
    assert toolglot.read(f"{introduction}\n\n{call}\n\nThat is all.", TOOLS).rejected == []


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize(
    "answer",
    [
        "Should I run {}?",
        "Soll ich {} ausführen?",
        "## Format\n\nCall tools like this:\n\n{}\n\nThe command is required.",
        "assert parse('{}') == expected\nThe test fails.",
        "<tool_response>\n{}\n</tool_response>\nThe file contains a call.",
    ],
)
def test_asked_quoted_and_returned_calls_are_text(answer: str, way: str) -> None:
    text = answer.format(WRITTEN[way])
    for seed in range(3):
        assert read_in_pieces(text, seed)[1] == 0
