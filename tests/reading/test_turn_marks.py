"""Tokens around calls: headers of messages in all their orders, turns between calls, varied marks, odd names and keys.

Each text is read whole, one character at a time and in random pieces. As many texts stay text as become calls.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import chunkings, read_events, squeeze

import toolglot
from toolglot.core.events import Reason
from toolglot.dialects.records import all_dialects
from toolglot.dialects.spec import Commitment


def tool(name: str, **kinds: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    parameters = {"type": "object", "properties": properties, "required": list(kinds)[:1]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("read", path="string", limit="integer"), tool("get_weather", city="string")]
BODY = '{"path": "a.py", "limit": 3}'
CALL = ("read", {"path": "a.py", "limit": 3})


def read(text: str, tools: list[dict[str, Any]] = TOOLS) -> toolglot.Reading:
    whole = read_events([text], tools=tools)
    for name, chunks in chunkings(text, text, rounds=2):
        assert read_events(chunks, tools=tools) == whole, name
    return toolglot.read(text, tools=tools)


def calls_of(reading: toolglot.Reading) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reading.calls]


# -- harmony -----------------------------------------------------------------------------------------------------------

CONSTRAINTS = ("", " <|constrain|>json", "<|constrain|>json", " json", " code")
HEADERS = (
    "{start} to={to}<|channel|>{channel}{constraint}<|message|>",
    "{start}to={to} <|channel|>{channel}{constraint}<|message|>",
    "{start}<|channel|>{channel} to={to}{constraint}<|message|>",
    "{start} to={to}<|constrain|>json<|message|>",
    "{start}<|channel|>{channel}<|constrain|>json to={to}<|message|>",
)


@pytest.mark.parametrize("start", ["", " ", "<|start|>assistant "])
def test_a_message_to_a_tool_that_is_not_on_offer_is_no_text(start: str) -> None:
    text = start + 'to=functions.delete<|channel|>commentary json<|message|>{"path": "a.py"}<|call|>'
    reading = toolglot.read(text, tools=TOOLS, unknown_tools="reject")
    assert (reading.calls, reading.text.strip()) == ([], "")
    assert [rejected.reason for rejected in reading.rejected] == [Reason.UNKNOWN_TOOL]


@in_one_test(("header", "start"), [*product(HEADERS, ("", "<|start|>assistant", "assistant"))])
def test_harmony_headers_in_any_order(header: str, start: str) -> None:
    if header.startswith("{start}to") and start:
        start += " "
    for channel, to, constraint in product(("commentary", "analysis"), ("functions.read", "read"), CONSTRAINTS):
        spelled = header.format(start=start, to=to, channel=channel, constraint=constraint)
        for end in ("<|call|>", "", "<|end|>"):
            reading = toolglot.read(spelled + BODY + end, tools=TOOLS)
            assert calls_of(reading) == [CALL], spelled
            assert (reading.text.strip(), reading.rejected) == ("", []), spelled
    read(spelled + BODY + "<|call|>")


HARMONY = [
    # channel words where the prompt ended in the token before them
    ("analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi.<|return|>", [], "Hi.", "Hm."),
    (f"commentary to=functions.read <|constrain|>json<|message|>{BODY}<|call|>", [CALL], "", ""),
    ("final<|message|>Hi.<|return|>", [], "Hi.", ""),
    # messages are parted, but not twice
    ("<|channel|>commentary<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B", [], "A\n\nB", ""),
    ("<|channel|>commentary<|message|>A\n<|end|><|start|>assistant<|channel|>final<|message|>B", [], "A\nB", ""),
    ("<|channel|>commentary<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>\n\nB", [], "A\n\nB", ""),
    ("<|channel|>commentary<|message|>A<|end|><|start|>assistant<|channel|>final<|message|><|return|>", [], "A", ""),
    ("<|channel|>commentary<|message|><|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", [], "B", ""),
    (
        "<|channel|>commentary<|message|>A<|end|><|start|>assistant to=functions.read<|channel|>commentary"
        f"<|message|>{BODY}<|call|><|start|>assistant<|channel|>final<|message|>B<|return|>",
        [CALL],
        "A\n\nB",
        "",
    ),
]


@in_one_test(("text", "calls", "answer_text", "thought"), HARMONY)
def test_harmony_messages(text: str, calls: list[tuple[str, Any]], answer_text: str, thought: str) -> None:
    reading = read(text)
    assert (calls_of(reading), reading.text, reading.reasoning) == (calls, answer_text, thought)


ENVELOPE = '{"name": "read", "arguments": {"path": "a.py"}}'


@in_one_test("shown", [ENVELOPE, f"[{ENVELOPE}]", f"```json\n{ENVELOPE}\n```", f"Here:\n{ENVELOPE}"])
@in_one_test("constraint", ["", " <|constrain|>json"])
@in_one_test("end", ["<|return|>", ""])
def test_json_for_the_user_is_no_call(shown: str, constraint: str, end: str) -> None:
    reading = read(f"<|start|>assistant<|channel|>final{constraint}<|message|>{shown}{end}")
    assert (reading.calls, reading.text, reading.rejected) == ([], shown, [])


@in_one_test(
    "text",
    [
        "The header to=functions.read<|channel|>commentary is documented.",
        "to=functions.read is a recipient",
        "Write to=functions.read before <|channel|>commentary<|message|>.",
        "`to=functions.read<|channel|>commentary<|message|>{}<|call|>`",
        "commentary is a channel, and final another",
        "final<|message| is cut",
        "analysis to=functions.read tells whom",
        "Send the letter to=functions.nothing<|channel|>commentary<|message|>{}",
    ],
)
def test_words_of_headers_stay_text(text: str) -> None:
    reading = read(text)
    assert (reading.calls, reading.text, reading.rejected) == ([], text, [])


# -- turns -------------------------------------------------------------------------------------------------------------

OWN_TURNS = [
    "<|im_start|>",
    "<|im_start|>\n",
    "<|im_start|>assistant\n",
    "<|im_end|>\n<|im_start|>assistant\n",
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "<|eot|><|header_start|>assistant<|header_end|>\n\n",
    "<end_of_turn>\n<start_of_turn>model\n",
    "<turn|>\n<|turn>model\n",
    "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
    "<｜end▁of▁sentence｜><｜Assistant｜>",
    "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    "<|im_end|><|im_assistant|>assistant<|im_middle|>",
    "[|endofturn|]\n[|assistant|]",
    "<seed:eos><seed:bos>assistant\n",
    "<|end|><|assistant|>\n",
    "<|begin_of_text|>",
]
FOREIGN_TURNS = [
    "<|im_start|>user\n",
    "<|im_end|>\n<|im_start|>tool\n",
    "<|im_start|>environment\n",
    "<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n",
    "<|header_start|>user<|header_end|>\n\n",
    "<end_of_turn>\n<start_of_turn>user\n",
    "<|turn>user\n",
    "<|start_of_role|>tool_response<|end_of_role|>",
    "<｜User｜>",
    "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>",
    "<|im_end|><|im_user|>user<|im_middle|>",
    "</s>[INST] ",
    "[|user|]",
    "<seed:eos><seed:bos>tool\n",
    "<|end|><|user|>\n",
]
HERMES = f"<tool_call>\n{ENVELOPE}\n</tool_call>"
QWEN = "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>"
KIMI = "<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{}<|tool_call_end|>".replace("{}", BODY)
MISTRAL = f"[TOOL_CALLS]read[ARGS]{BODY}"
WRITTEN = [HERMES, QWEN, KIMI, MISTRAL, f"<|python_tag|>{ENVELOPE}"]


@in_one_test(("turn", "call"), [*product(OWN_TURNS, WRITTEN)])
def test_turns_of_the_model_between_calls_mean_nothing(turn: str, call: str) -> None:
    for text in (call + turn + call, call + "\n" + turn + call, turn + call + call, "Look." + turn + call + call):
        reading = read(text)
        assert [name for name, _ in calls_of(reading)] == ["read", "read"], text
        assert (reading.text.strip(), reading.rejected) == ("Look." if text.startswith("Look") else "", []), text


@in_one_test(("turn", "call"), [*product(FOREIGN_TURNS, WRITTEN)])
def test_turns_of_others_are_made_up(turn: str, call: str) -> None:
    reading = read(f"{call}\n{turn}Done.\n{call}")
    assert [name for name, _ in calls_of(reading)] == ["read"]
    assert [rejected.reason for rejected in reading.rejected] == [Reason.FABRICATED_RESULT]
    assert reading.text.strip() == ""


@in_one_test("turn", [*OWN_TURNS, *FOREIGN_TURNS])
def test_turns_without_a_call_are_text(turn: str) -> None:
    for text in (turn, f"{turn}Hello.", f"Hello.{turn}", f"Hello. {turn} is a token.", f"A{turn}B{turn}C\n{turn}"):
        reading = read(text)
        assert (reading.calls, reading.text, reading.rejected) == ([], text, [])


def test_a_python_call_may_end_its_turn() -> None:
    assert calls_of(read('[read(path="a.py", limit=3)]<|eot_id|>')) == [CALL]
    assert read('[read(path="a.py", limit=3)] is a list').calls == []


def test_a_closing_mark_without_its_opener_is_evidence_of_a_call() -> None:
    assert read(f"Look.\n{ENVELOPE}\n</tool_call>\nDone.").text == "Look.\n\nDone."
    assert read(f"Look.\n{ENVELOPE}\n\nDone.").calls == []


# -- marks of wrappers -------------------------------------------------------------------------------------------------

TAGGED = [
    dialect
    for dialect in all_dialects()
    if dialect.wrap and dialect.sample.startswith("<") and dialect.wrap[0].commitment is Commitment.MARKED
    if len(dialect.wrap) > 1 and dialect.wrap[1].repair and dialect.sample[1] not in "|｜"
]
EXPECTED = [("get_weather", {"city": "Oslo"})]


@in_one_test("dialect", TAGGED, ids=lambda dialect: dialect.name)
def test_marks_of_wrappers_may_vary(dialect: Any) -> None:
    opener, rest = dialect.sample.split(">", 1)
    body, closer = rest.rsplit("<", 1) if rest.endswith(">") and "</" in rest else (rest, "")
    closers = [f"<{closer}"[:-1] + end for end in (">", "＞", ' ">', " >")] if closer else [""]
    for attributes, end in product(("", ' type="function"', ' id="call_3" index="0"'), closers):
        text = f"{opener}{attributes}>{body}{end}"
        reading = read(text)
        assert calls_of(reading) == EXPECTED, text
        assert reading.text == "", text


@pytest.mark.parametrize(
    "text",
    [
        f'[TOOL CALL id="3"]\n{ENVELOPE}\n[END TOOL CALL"]',
        f"[TOOL_REQUEST id=3]{ENVELOPE}[END_TOOL_REQUEST ]",
        f'<function=read type="function">{BODY}</function>',
        f"<tool_call＞{ENVELOPE}＜/tool_call＞",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read{BODY}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        f"<｜tool▁calls▁begin｜>read<｜tool▁sep｜>{BODY}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ],
)
def test_other_marks_may_vary(text: str) -> None:
    reading = read(text)
    assert [name for name, _ in calls_of(reading)] == ["read"]
    assert reading.text == ""


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call type="function"> is an opening mark',
        f"＜tool_call＞\n{ENVELOPE}\n＜/tool_call＞",
        '[TOOL CALL id="3"] was logged at noon',
        "[TOOL CALL of the day] <li>one</li>",
        "<function_calls class='x'>\n<p>none</p>\n</function_calls>",
        "`<tool_call type='x'>{}</tool_call>`",
    ],
)
def test_varied_marks_without_a_call_are_text(text: str) -> None:
    reading = read(text)
    assert (reading.calls, reading.text, reading.rejected) == ([], text, [])


# -- names and keys ----------------------------------------------------------------------------------------------------

NAMES = ["запрос", "查天气", "wetter_größe", "मौसम_खोजें", "ค้นหา", "🔍search", "Search Web"]
NAMED = [
    'Action: {name}\nAction Input: {{"city": "Oslo"}}',
    'Action:\n```json\n{{"action": "{name}", "action_input": {{"city": "Oslo"}}}}\n```',
    '```json\n{{"action": {escaped}, "action_input": {{"city": "Oslo"}}}}\n```',
    '{{"name": {escaped}, "arguments": {{"city": "Oslo"}}}}',
    '<tool_call>\n{{"name": "{name}", "arguments": {{"city": "Oslo"}}}}\n</tool_call>',
    '<invoke name="{name}"><parameter name="city">Oslo</parameter></invoke>',
    '<|open|>call tool="{name}" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo'
    "<|close|>argument<|sep|><|close|>call<|sep|>",
]
WORDLIKE = [
    '[TOOL_CALLS]{name}[ARGS]{{"city": "Oslo"}}',
    "<tool_call>\n<function={name}>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>{name}<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>",
    '<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{{"city": "Oslo"}}<|call|>',
    "<{name}>\n<city>Oslo</city>\n</{name}>",
    '[{name}(city="Oslo")]',
    '<|tool_call>call:{name}{{city:<|"|>Oslo<|"|>}}<tool_call|>',
]


@in_one_test(("form", "name"), [*product(NAMED, NAMES)])
def test_names_of_any_script(form: str, name: str) -> None:
    text = form.format(name=name, escaped=json.dumps(name))
    assert calls_of(read(text, [tool(name, city="string")])) == [(name, {"city": "Oslo"})]
    if not form.startswith("<"):
        assert read(text).calls == []


@in_one_test(("form", "name"), [*product(WORDLIKE, NAMES[:5])])
def test_names_of_any_script_as_words(form: str, name: str) -> None:
    assert calls_of(read(form.format(name=name), [tool(name, city="string")])) == [(name, {"city": "Oslo"})]


KEYS = {"first name": "string", "q&a": "string", "max-count": "integer"}
KEYED = [
    '<|tool_call>call:f{first name:<|"|>Ann<|"|>,q&a:<|"|>x<|"|>,max-count:3}<tool_call|>',
    '<|tool_call>call:f{max-count:3, first name : <|"|>Ann<|"|>, "q&a":<|"|>x<|"|>}<tool_call|>',
    "<start_function_call>call:f{first name:<escape>Ann<escape>,q&a:<escape>x<escape>,max-count:3}<end_function_call>",
    '<|open|>call tool="f" index="1"<|sep|><|open|>argument key="first name" type="string"<|sep|>Ann<|close|>argument'
    '<|sep|><|open|>argument key="q&amp;a" type="string"<|sep|>x<|close|>argument<|sep|><|open|>argument '
    'key="max-count" type="number"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|>',
    '<invoke name="f"><parameter name="first name">Ann</parameter><parameter name="q&amp;a">x</parameter>'
    '<parameter name="max-count">3</parameter></invoke>',
    "<function=f>\n<parameter=first name>\nAnn\n</parameter>\n<parameter=q&a>\nx\n</parameter>\n"
    "<parameter=max-count>\n3\n</parameter>\n</function>",
    "<tool_call>f<arg_key>first name</arg_key><arg_value>Ann</arg_value><arg_key>q&a</arg_key><arg_value>x</arg_value>"
    "<arg_key>max-count</arg_key><arg_value>3</arg_value></tool_call>",
]


@pytest.mark.parametrize("text", KEYED)
def test_keys_with_blanks_and_entities(text: str) -> None:
    ((name, arguments),) = calls_of(read(text, [tool("f", **KEYS)]))
    assert (name, arguments) == ("f", {"first name": "Ann", "q&a": "x", "max-count": 3})


def test_words_before_a_colon_are_no_key_of_gemma() -> None:
    text = '<|tool_call>call:read{path:"He said "hi", then left: ok",limit:1}<tool_call|>'
    assert calls_of(read(text)) == [("read", {"path": 'He said "hi", then left: ok', "limit": 1})]


def test_nested_keys_of_gemma_may_hold_blanks() -> None:
    text = '<|tool_call>call:f{data:{first name:<|"|>Ann<|"|>,n:1}}<tool_call|>'
    assert calls_of(read(text, [tool("f", data="object")])) == [("f", {"data": {"first name": "Ann", "n": 1}})]


def test_text_outside_is_whole() -> None:
    reading = read(f"One.<|im_end|>\n<|im_start|>assistant\n{HERMES}\nTwo.<|im_end|>")
    assert squeeze(reading.text) == "One. Two.<|im_end|>"
