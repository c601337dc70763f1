"""Recognising conversations: what counts as the same message, and that nothing else does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.rows import in_one_test

from toolglot.core.conversation import Image, Message, Reasoning, Text, ToolCall, ToolResult
from toolglot.core.identity import canonical_json, hash_call
from toolglot.gateway.sessions.chain import Chain, make_chain, split_context

SECRET = b"s" * 32


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def answer(text: str = "", *calls: ToolCall) -> Message:
    return Message("assistant", (*((Text(text),) if text else ()), *calls))


def result(call_id: str, text: str, name: str = "", error: bool = False) -> Message:
    return Message("tool", (ToolResult(call_id, name, (Text(text),), error),))


def chain(*dialog: Message, secret: bytes = SECRET, scope: str = "") -> Chain:
    return make_chain(dialog, secret, scope)


CALL = ToolCall("call_1", "read", '{"path": "a.txt", "limit": 1}')
DIALOG = (user("Read a.txt"), answer("I will.", CALL), result("call_1", "hello"), user("And now?"))


@pytest.mark.parametrize(
    ("at", "sent_back"),
    [
        (0, user("Read a.txt\n")),
        (0, Message("user", (Text("Read "), Text("a.txt")))),
        (1, answer("I will.\n\n", CALL)),
        (1, answer("\n\nI will.", CALL)),
        (1, answer("I will.", replace(CALL, arguments='{"limit":1.0,"path":"\\u0061.txt"}'))),
        (1, Message("assistant", (Reasoning("hm"), Text("I will."), CALL))),
        (2, result("call_1", "hello\r\n", "read")),
    ],
)
def test_what_clients_change_does_not_count(at: int, sent_back: Message) -> None:
    changed = (*DIALOG[:at], sent_back, *DIALOG[at + 1 :])
    assert chain(*changed) == chain(*DIALOG)


def test_ids_do_not_count() -> None:
    renamed = (DIALOG[0], answer("I will.", replace(CALL, id="toolu_9")), result("toolu_9", "hello"), DIALOG[3])
    assert chain(*renamed) == chain(*DIALOG)


@in_one_test(
    "changed",
    [
        (user("Read b.txt"), *DIALOG[1:]),
        (user("  Read a.txt"), *DIALOG[1:]),
        (DIALOG[0], answer("I will", CALL), *DIALOG[2:]),
        (DIALOG[0], answer("I will.", replace(CALL, name="write")), *DIALOG[2:]),
        (DIALOG[0], answer("I will.", replace(CALL, arguments='{"path": "a.txt", "limit": "1"}')), *DIALOG[2:]),
        (*DIALOG[:2], result("call_1", "hello", error=True), DIALOG[3]),
        (*DIALOG[:2], result("call_1", "[pruned]"), DIALOG[3]),
        (*DIALOG[:2], Message("tool", (ToolResult("call_1", "", (Text("hello"), Image(url="x"))),)), DIALOG[3]),
        (*DIALOG[:2], user("hello"), DIALOG[3]),
        (*DIALOG[:2], DIALOG[3]),
        (*DIALOG[2:], *DIALOG[:2]),
        (*DIALOG[:3], Message("user", (Text("And now?"), Image(url="https://x/y.png")))),
    ],
)
def test_everything_else_counts(changed: tuple[Message, ...]) -> None:
    assert chain(*changed).end != chain(*DIALOG).end


def test_results_of_parallel_calls_belong_to_their_calls() -> None:
    one, two = ToolCall("1", "read", "{}"), ToolCall("2", "read", "{}")
    straight = (answer("", one, two), result("1", "a"), result("2", "b"))
    crossed = (answer("", one, two), result("2", "a"), result("1", "b"))
    assert chain(*straight).end != chain(*crossed).end


def test_prefixes_have_the_same_keys() -> None:
    whole = chain(*DIALOG)
    for end in range(len(DIALOG) + 1):
        assert chain(*DIALOG[:end]).keys == whole.keys[: end + 1]
    assert len(set(whole.keys)) == len(whole.keys)


def test_an_answer_extends_a_chain() -> None:
    key, digest = chain(DIALOG[0]).extend(DIALOG[1])
    longer = chain(*DIALOG[:2])
    assert key == longer.end
    assert longer.answers == {1: digest}


def test_keys_differ_by_secret_and_scope() -> None:
    same = {chain(*DIALOG).end, chain(*DIALOG, secret=b"t" * 32).end, chain(*DIALOG, scope="other").end}
    assert len(same) == 3


def test_the_context_is_split_off() -> None:
    system, late = Message("system", (Text("Be brief."),)), Message("system", (Text("Stop."),))
    assert split_context([system, *DIALOG, late]) == ([system], [*DIALOG, late])
    assert split_context([system]) == ([system], [])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_the_format_of_json_does_not_count(value: object) -> None:
    plain = json.dumps(value)
    spaced = json.dumps(value, indent=2, ensure_ascii=False)
    assert canonical_json(plain) == canonical_json(spaced)


@given(json_values, json_values)
def test_different_values_stay_different(one: object, other: object) -> None:
    if canonical_json(json.dumps(one)) == canonical_json(json.dumps(other)):
        assert one == other


@pytest.mark.parametrize(
    ("given", "rewritten"),
    [
        ('{"b": 1.0, "a": 10e-1}', '{"a":1,"b":1}'),
        ('{"a": -0, "b": -0.0, "c": 1e21}', '{"a":0,"b":0,"c":1e+21}'),
        ('{"a": 9007199254740993, "b": 1e400}', '{"a":9007199254740992,"b":null}'),
        ('{"a": "\\u00e9\\/\\ud83d\\ude00", "2": 1, "10": 2}', '{"2":1,"10":2,"a":"é/😀"}'),
        (' {"a": 1, "a": 2} ', '{"a":2}'),
        ("", "{}"),
        ("null", "{}"),
    ],
)
def test_arguments_that_javascript_writes_anew_are_the_same(given: str, rewritten: str) -> None:
    assert hash_call("f", given) == hash_call("f", rewritten)


def test_arguments_of_another_type_are_different() -> None:
    values = ["1", '"1"', "true", "null", '""', "[]", "{}", "0", "false", "[1]", "9007199254740991"]
    assert len({hash_call("f", f'{{"a":{value}}}') for value in values}) == len(values)


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', "[" * 100_000, "1e999", '"\\ud800"', "NaN"])
def test_any_text_has_a_canonical_form(text: str) -> None:
    assert isinstance(canonical_json(text), bytes)


parts = st.text(max_size=6)
dialogs = st.lists(
    st.one_of(
        st.builds(user, parts),
        st.builds(answer, parts.filter(bool)),
        st.builds(lambda n, a: answer("", ToolCall("1", n or "f", a)), st.sampled_from(["f", "g"]), parts),
        st.builds(lambda t, e: result("1", t, error=e), parts, st.booleans()),
    ),
    max_size=4,
)


def canonical(dialog: list[Message]) -> object:
    """An independent description of what counts."""
    described: list[object] = []
    calls: dict[str, str] = {}
    for message in dialog:
        texts = message.text.replace("\r\n", "\n").rstrip()
        shown = texts.lstrip() if message.role == "assistant" else texts
        described.append((message.role, shown))
        for part in message.parts:
            if isinstance(part, ToolCall):
                described.append(("call", part.name, canonical_json(part.arguments)))
                calls[part.id] = part.name
            if isinstance(part, ToolResult):
                content = "".join(one.text for one in part.content if isinstance(one, Text))
                named = calls.get(part.call_id)
                described.append((named, part.error, content.replace("\r\n", "\n").rstrip()))
    return described


@given(dialogs, dialogs)
def test_two_dialogs_have_one_key_only_if_they_are_the_same(one: list[Message], other: list[Message]) -> None:
    assert (chain(*one).end == chain(*other).end) == (canonical(one) == canonical(other))
