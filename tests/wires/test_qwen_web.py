"""The Qwen web chat: its streams, the calls that it intercepts, its errors and its chats. All values are invented."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import count, pairwise, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_order import check_order
from support.rows import in_one_test

from toolglot.core.errors import InternalError, ToolglotError, UpstreamResponseError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.wires import all_wires, client_wires, wire_names
from toolglot.wires.protocol import ChatFault, ChatProtocol
from toolglot.wires.qwen_web.deltas import DeltaReader
from toolglot.wires.translation import CACHED, REASONED, find_count

WIRE = all_wires()["qwen_web"]
assert WIRE.chat is not None
CHAT: ChatProtocol = WIRE.chat
CREATED = {"response.created": {"chat_id": "c-1", "parent_id": "u-1", "response_id": "a-1", "response_index": "0"}}
FINISHED = {"choices": [{"delta": {"content": "", "role": "assistant", "status": "finished", "phase": "answer"}}]}
USAGE = {
    "input_tokens": 33,
    "output_tokens": 7,
    "total_tokens": 40,
    "output_tokens_details": {"text_tokens": 3, "reasoning_tokens": 4},
    "cached_tokens": 12,
}


def say(content: str = "", phase: str | None = "answer", **more: Any) -> dict[str, Any]:
    """One frame of the assistant; other fields of the delta by name."""
    delta = {"role": "assistant", "content": content, "status": "typing", **more}
    return {"choices": [{"delta": delta if phase is None else delta | {"phase": phase}}], "response_id": "a-1"}


def write_stream(frames: Iterable[Any], gap: str = "\n\n") -> bytes:
    written = (
        frame if isinstance(frame, str) else "data: " + json.dumps(frame, ensure_ascii=False) for frame in frames
    )
    return "".join(line + gap for line in written).encode()


def new_ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"call_{next(numbers)}"


def decode(pieces: Iterable[bytes]) -> list[Event]:
    decoder, events = WIRE.open_decoder(new_ids()), list[Event]()
    for piece in pieces:
        events += decoder.feed(piece)
    events += decoder.close()
    assert decoder.over
    check_order(events)
    return list(merge_deltas(events))


def read(*frames: Any, gap: str = "\n\n") -> list[Event]:
    return decode([write_stream(frames, gap)])


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return say(function_call={"name": name, "arguments": arguments}, extra={"display_position": "answer"}, **more)


def refuse(name: str) -> dict[str, Any]:
    delta = {"role": "function", "name": name, "content": f"Tool {name} does not exists.", "phase": "answer"}
    return {"choices": [{"delta": delta}], "response_id": "a-1"}


# -- streams -----------------------------------------------------------------------------------------------------------

RECORDED = (
    "event: ping",
    "data: " + json.dumps(CREATED) + " ",
    say("Zuerst ", "think"),
    say("schauen… 🧐", "think", status="typing"),
    say("", "think", status="finished"),
    {"response.info": {"alive": True}},
    say("Größe:\u2028", usage=None) | {"usage": {"input_tokens": 33, "output_tokens": 1}},
    say(' 3 "kB"\r\n', None),
    say("\\u00e9 🎉"),
    FINISHED | {"usage": USAGE},
    "data: [DONE]",
)
EXPECTED: list[Event] = [
    Started("a-1"),
    ReasoningDelta("Zuerst schauen… 🧐"),
    TextDelta('Größe:\u2028 3 "kB"\r\n\\u00e9 🎉'),
    Finished("stop", Usage(input_tokens=33, output_tokens=7, total_tokens=40)),
]


def test_every_split_of_a_stream_gives_the_same_events() -> None:
    for gap in ("\n\n", "\n", "\r\n\r\n", "\r\n"):
        stream = write_stream(RECORDED, gap)
        assert decode([stream]) == EXPECTED
        for at in range(1, len(stream)):
            assert decode([stream[:at], stream[at:]]) == EXPECTED, (gap, at)
        assert decode(bytes([byte]) for byte in stream) == EXPECTED


def test_a_whole_response_is_decoded_like_a_stream() -> None:
    decoded = WIRE.decode_response(write_stream(RECORDED), new_ids())
    assert list(merge_deltas(decoded.events)) == EXPECTED and not decoded.tidy


def test_the_last_usage_wins_with_its_reasoning_and_cached_tokens() -> None:
    last = read(CREATED, say("a") | {"usage": {"input_tokens": 1}}, say("b") | {"usage": USAGE}, FINISHED)[-1]
    assert isinstance(last, Finished) and last.usage is not None
    assert last.usage.counts == (33, 7, 40)
    assert (find_count(last.usage.reported, REASONED), find_count(last.usage.reported, CACHED)) == (4, 12)


@pytest.mark.parametrize("phase", ["think", "thinking_summary", "web_search", "code_interpreter", "image_gen"])
def test_a_phase_other_than_answer_does_not_end_the_answer(phase: str) -> None:
    events = read(CREATED, say("", phase, status="finished"), say("Hi."), FINISHED)
    assert events == [Started("a-1"), TextDelta("Hi."), Finished("stop")]


@pytest.mark.parametrize(
    "end",
    [
        FINISHED,
        "data: [DONE]",
        {"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]},
        {"response.stopped": {"response_id": "a-1"}},
    ],
)
def test_each_kind_of_end(end: Any) -> None:
    assert read(CREATED, say("Hi."), end, say("late")) == [Started("a-1"), TextDelta("Hi."), Finished("stop")]


def test_a_length_limit_is_reported() -> None:
    assert read(CREATED, {"choices": [{"delta": {"content": "x"}, "finish_reason": "length"}]})[-1] == Finished(
        "length"
    )


def test_an_answer_without_a_finish_is_unfinished() -> None:
    *before, failed = read(CREATED, say("Hal"))
    assert before == [Started("a-1"), TextDelta("Hal")]
    assert isinstance(failed, Failed) and failed.kind == "upstream_closed"


def test_of_two_responses_only_the_first_counts() -> None:
    other = {"response.created": CREATED["response.created"] | {"response_id": "a-2", "response_index": "1"}}
    foreign = [frame | {"response_id": "a-2"} for frame in (say("Other."), FINISHED)]
    error = {"error": {"code": "Internal_Server_Error", "details": "x"}, "response_id": "a-2"}
    loose = {key: value for key, value in say(" two").items() if key != "response_id"}
    events = read(CREATED, other, say("One"), *foreign, error, loose, FINISHED)
    assert events == [Started("a-1"), TextDelta("One two"), Finished("stop")]


def test_frames_of_a_response_that_was_never_announced_are_ignored() -> None:
    events = read(CREATED, say("One"), say("Other.") | {"response_id": "a-9"}, FINISHED)
    assert events == [Started("a-1"), TextDelta("One"), Finished("stop")]


def test_a_byte_order_mark_and_old_line_ends() -> None:
    stream = b"\xef\xbb\xbf" + write_stream((CREATED, say("Hi."), FINISHED), "\r")
    for pieces in ([stream], [stream[:2], stream[2:]]):
        assert decode(pieces) == [Started("a-1"), TextDelta("Hi."), Finished("stop")]


def test_only_the_new_part_of_a_summary_is_reasoning() -> None:
    def summary(titles: list[str], thoughts: list[str]) -> dict[str, Any]:
        extra = {"summary_title": {"content": titles}, "summary_thought": {"content": thoughts}}
        return say("", "thinking_summary", extra=extra)

    events = read(
        CREATED,
        summary(["Plan"], []),
        summary(["Plan"], ["I look at"]),
        summary(["Plan"], ["I look at the file."]),
        summary(["Plan", "Check"], ["I look at the file.", "It fits."]),
        summary(["Plan", "Check"], ["I look at the file.", "It fits."]),
        say("", "thinking_summary", status="finished"),
        say("Done."),
        FINISHED,
    )
    thought = "Plan\nI look at the file.\n\nCheck\nIt fits."
    assert events == [Started("a-1"), ReasoningDelta(thought), TextDelta("Done."), Finished("stop")]


def test_frames_of_unexpected_shape_are_skipped() -> None:
    odd: list[Any] = [
        {"choices": []}, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"usage": 3}, {},
        {"choices": [{"delta": {"content": None, "phase": None}}]}, ": comment", "id: 7", "data:", "data: null",
        {"choices": [{"delta": {"phase": "thinking_summary", "extra": {"summary_title": {"content": [1, None]}}}}]},
        say(function_call="x"), say(function_call={"name": None, "arguments": None}),
    ]  # fmt: skip
    assert read(CREATED, *odd, say("Hi."), FINISHED) == [Started("a-1"), TextDelta("Hi."), Finished("stop")]


@given(st.lists(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["choices", "delta", "content", "phase", "function_call", "name", "arguments", "error", "code", "data", "success", "response.created", "response_id", "role", "extra", "usage"]), inner, max_size=4), max_leaves=8), max_size=6))  # fmt: skip
def test_no_frame_raises(frames: list[Any]) -> None:
    decode([write_stream([CREATED, *frames])])
    WIRE.decode_error(400, json.dumps(frames[:1]).encode())
    CHAT.read_error(json.dumps(frames[0] if frames else None).encode())
    CHAT.read_models(json.dumps({"data": frames}).encode())


@given(st.binary(max_size=60))
def test_no_bytes_raise(data: bytes) -> None:
    decode([data])
    CHAT.read_error(data)


# -- pieces and snapshots ----------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=12))
def test_pieces_are_joined(pieces: list[str]) -> None:
    """Unless they look exactly like snapshots: each begins with all of the one before, and grows twice."""
    reader = DeltaReader()
    shown = "".join([*map(reader.feed, pieces), reader.close()])
    chain = list(takewhile(lambda pair: pair[1].startswith(pair[0]), pairwise(pieces)))
    growths = sum(len(later) > len(earlier) for earlier, later in chain)
    if growths < 2 or len(set(chain[-1][1])) < 2:
        assert shown == "".join(pieces)


@given(st.text(min_size=20), st.lists(st.integers(1, 19), min_size=3, unique=True))
def test_snapshots_are_not_repeated(text: str, cuts: list[int]) -> None:
    if len(set(text[: min(cuts)])) < 2:
        text = "ab" + text
    reader = DeltaReader()
    shown = [reader.feed(text[:cut]) for cut in (*sorted(cuts), len(text), len(text))]
    assert "".join((*shown, reader.close())) == text


def test_cumulative_content_of_an_answer_is_not_repeated() -> None:
    words = ["The", "The file", "The file has", "The file has 3 lines.", "The file has 3 lines."]
    for phase, kind in (("answer", TextDelta), ("think", ReasoningDelta)):
        events = read(CREATED, *(say(text, phase) for text in words), say("ok"), FINISHED)
        assert kind(words[-1] + ("ok" if phase == "answer" else "")) in events


@pytest.mark.parametrize("pieces", [("=", "==", "====", "\nx"), ("ha", "ha", "!"), ("\n", "\n\n", "x"), ("a", "ab")])
def test_pieces_that_repeat_by_chance_are_kept(pieces: tuple[str, ...]) -> None:
    assert TextDelta("".join(pieces)) in read(CREATED, *map(say, pieces), FINISHED)


# -- intercepted calls -------------------------------------------------------------------------------------------------


def list_calls(events: Iterable[Event]) -> list[tuple[str, Any]]:
    """Name and arguments of each complete call."""
    events = list(events)
    names = {event.index: event.name for event in events if isinstance(event, CallStarted)}
    given = {event.index: event.fragment for event in events if isinstance(event, CallArguments)}
    return [(names[end.index], json.loads(given[end.index])) for end in events if isinstance(end, CallEnded)]


def test_intercepted_calls_are_calls_and_the_apology_is_dropped() -> None:
    first, second = '{"path": "a.txt"}', '{"path": "b.txt"}'
    frames = (
        CREATED,
        say("I read both."),
        call("read", ""),
        *(call("read", first[:at]) for at in range(3, len(first), 5)),
        call("read", first),
        call("read", first),
        call("read", ""),
        call("read", second),
        call("read", second),
        refuse("read"),
        refuse("read"),
        say("I am sorry, "),
        say("I have no tools."),
        FINISHED,
    )
    events = read(*frames)
    assert events[:2] == [Started("a-1"), TextDelta("I read both.")]
    assert list_calls(events) == [("read", {"path": "a.txt"}), ("read", {"path": "b.txt"})]
    assert events[-1] == Finished("tool_calls")
    assert not any("sorry" in event.text or "exists" in event.text for event in events if isinstance(event, TextDelta))

    decoder = WIRE.open_decoder(new_ids())
    for frame in frames[:-3]:
        decoder.feed(write_stream([frame]))
        assert not decoder.over
    decoder.feed(write_stream([frames[-3]]))
    assert decoder.over, "the server stops reading at the first words of the apology"


def test_a_call_is_sent_as_soon_as_the_next_one_begins() -> None:
    decoder = WIRE.open_decoder(new_ids())
    assert not list_calls(decoder.feed(write_stream([CREATED, call("ls", ""), call("ls", "{}")])))
    assert list_calls(decoder.feed(write_stream([call("pwd", "")]))) == [("ls", {})]


@pytest.mark.parametrize(
    ("snapshots", "calls"),
    [
        ([("a", '{"x":1}'), ("b", '{"x":1}')], [("a", {"x": 1}), ("b", {"x": 1})]),
        ([("a", '{"x":1}'), ("a", '{"x":2}')], [("a", {"x": 1}), ("a", {"x": 2})]),
        ([("a", '{"x":1}'), ("a", ""), ("a", '{"x":1}')], [("a", {"x": 1}), ("a", {"x": 1})]),
        ([("a", "{"), ("a", '{"x"'), ("a", '{"x":1}'), ("a", '{"x":1}')], [("a", {"x": 1})]),
        ([("a", ""), ("a", "")], [("a", {})]),
        ([("a", {"x": [1, "\u2028"]})], [("a", {"x": [1, "\u2028"]})]),
        ([("a", '{"x":1'), ("", '{"x":12}')], [("a", {"x": 12})]),
    ],
)
def test_where_a_call_ends(snapshots: list[tuple[str, Any]], calls: list[tuple[str, Any]]) -> None:
    for end in ((FINISHED,), (refuse("a"), FINISHED), (refuse("a"), refuse("a"), say("Sorry."), FINISHED)):
        assert list_calls(read(CREATED, *(call(*one) for one in snapshots), *end)) == calls


def test_text_that_is_held_back_comes_before_a_call() -> None:
    """The second piece repeats the first, so it might be a snapshot."""
    events = read(CREATED, say("ha", "think"), say("ha", "think"), say("ho"), say("ho"), call("ls", "{}"), refuse("ls"))
    assert events[:3] == [Started("a-1"), ReasoningDelta("haha"), TextDelta("hoho")]
    assert list_calls(events) == [("ls", {})]


def test_tools_of_the_platform_are_never_calls() -> None:
    events = read(
        CREATED,
        say(
            "", "bash", function_call={"name": "bash", "arguments": '{"command": "ls"}'}, function_id="round_0_call_9f"
        ),
        say("", "answer", function_call={"name": "bash", "arguments": "{}"}, function_id="round_0_call_9e"),
        say("", "bash", role="function", name="bash", function_id="round_0_call_9f", extra={"tool_result": [1]}),
        say("results", "web_search", extra={"web_search_info": [{"title": "x"}]}, status="finished"),
        say("Found."),
        FINISHED,
    )
    assert events == [Started("a-1"), TextDelta("Found."), Finished("stop")]


@pytest.mark.parametrize("arguments", ['["a"]', '"a"', "7", "not json"])
def test_arguments_that_are_no_object_are_rejected(arguments: str) -> None:
    events = read(CREATED, call("read", arguments), refuse("read"), FINISHED)
    [rejected] = [event for event in events if isinstance(event, CallRejected)]
    assert rejected.reason is Reason.MALFORMED and not list_calls(events)


def test_a_cut_call_is_not_complete() -> None:
    events = read(CREATED, call("read", '{"path": "a'), FINISHED)
    assert not list_calls(events) and events[-1] == Finished("length")
    events = read(CREATED, call("read", '{"path": "a'))
    assert not list_calls(events) and isinstance(events[-1], Failed)


def test_a_call_that_starts_again_is_another_one() -> None:
    events = read(CREATED, call("read", '{"path"'), call("read", ""), call("read", '{"path": "a"}'), FINISHED)
    assert list_calls(events) == [("read", {"path": "a"})]
    assert [event.reason for event in events if isinstance(event, CallRejected)] == [Reason.TRUNCATED]


def test_words_between_the_results_are_dropped() -> None:
    calls = (call("a", "{}"), call("b", "{}"), refuse("a"), say("Hm."), refuse("b"), say("Sorry."), FINISHED)
    events = read(CREATED, *calls)
    assert list_calls(events) == [("a", {}), ("b", {})]
    assert not any(isinstance(event, TextDelta) for event in events) and events[-1] == Finished("tool_calls")


def test_answered_calls_need_no_further_end() -> None:
    assert read(CREATED, call("ls", "{}"), refuse("ls"))[-1] == Finished("tool_calls")
    assert isinstance(read(CREATED, call("ls", "{}"))[-1], Failed), "a second call may have been cut off"


def test_a_refused_call_that_the_model_repeats_is_made_once() -> None:
    again = (call("ls", "{}"), refuse("ls"), call("ls", ""), call("ls", "{}"), refuse("ls"), say("Sorry."))
    assert list_calls(read(CREATED, *again)) == [("ls", {})]


def test_thoughts_about_a_refused_call_end_the_answer() -> None:
    events = read(CREATED, call("ls", "{}"), refuse("ls"), say("It does not exist?", "think"), FINISHED)
    assert list_calls(events) == [("ls", {})] and events[-1] == Finished("tool_calls")
    assert not any(isinstance(event, ReasoningDelta) for event in events)


# -- errors ------------------------------------------------------------------------------------------------------------


def failure(code: str = "", details: str = "", **more: Any) -> dict[str, Any]:
    return {"success": False, "request_id": "r", "data": {"code": code, "details": details, **more}}


RISK = {"ret": ["FAIL_SYS_USER_VALIDATE", "RGV587_ERROR::SM::x"], "data": {"url": "https://x/punish?action=captcha"}}
RISK_PAGE = '<!doctype html><html><script>var a = "aliyun_waf_aa"</script></html>'
NONE, GONE, BUSY, TRANSIENT = ChatFault.NONE, ChatFault.GONE, ChatFault.BUSY, ChatFault.TRANSIENT
ERRORS: list[tuple[Any, int, str, ChatFault, str]] = [
    (failure("RateLimited", "You've reached the upper limit for today's usage.", template="{{num}} hours", num=6), 429, "quota_exhausted", NONE, "21600"),
    (failure("RateLimited", "limit"), 429, "quota_exhausted", NONE, ""),
    (failure("ParallelLimited", "x"), 429, "rate_limited", NONE, "5"),
    (failure("Too_Many_Requests", "x"), 429, "rate_limited", NONE, "5"),
    (failure("quotaLimited", "x"), 429, "quota_exhausted", NONE, ""),
    (failure("ExceedLimit", "x"), 429, "quota_exhausted", NONE, ""),
    (failure("quota_exhausted", "x"), 429, "quota_exhausted", NONE, ""),
    (failure("Bad_Request", "Allocated quota exceeded, please increase"), 429, "quota_exhausted", NONE, ""),
    (failure("Bad_Request", "Invalid input too many messages."), 502, "too_many_messages", NONE, ""),
    (failure("Bad_Request", "Invalid input chat parent_id a-9 is not exist."), 404, "parent_not_found", GONE, ""),
    (failure("PARENT_NOT_FOUND", ""), 404, "parent_not_found", GONE, ""),
    (failure("Not_Found", "x"), 404, "chat_not_found", GONE, ""),
    (failure("CHAT_NOT_FOUND", "This chat has been deleted."), 404, "chat_not_found", GONE, ""),
    (failure("Bad_Request", "The chat is in progress!"), 503, "chat_in_progress", BUSY, "5"),
    (failure("Unauthorized", ""), 401, "upstream_unauthorized", NONE, ""),
    (failure("unauthorized", "Token has expired"), 401, "upstream_unauthorized", NONE, ""),
    (failure("Bad_Request", "Token has expired, please log in again."), 401, "upstream_unauthorized", NONE, ""),
    (failure("ContextLengthExceeded", "x"), 400, "context_length_exceeded", NONE, ""),
    (failure("Internal_Server_Error", "x"), 502, "upstream_internal_error", TRANSIENT, ""),
    (failure("Bad_Request", "An internal error occurred."), 502, "upstream_internal_error", TRANSIENT, ""),
    (RISK, 503, "upstream_blocked", ChatFault.BLOCKED, "900"),
    (failure("New_Thing", "Something new."), 502, "New_Thing", NONE, ""),
]  # fmt: skip
ASKED_FOR_ERRORS = in_one_test(("body", "status", "code", "fault", "wait"), ERRORS)


def check(error: ToolglotError | None, status: int, code: str, fault: ChatFault, wait: str) -> None:
    assert isinstance(error, UpstreamResponseError) and error.message
    assert (error.status, error.code, error.headers.get("Retry-After", "")) == (status, code, wait)
    assert CHAT.classify(error) is fault


@ASKED_FOR_ERRORS
def test_an_error_with_status_200(body: Any, status: int, code: str, fault: ChatFault, wait: str) -> None:
    for written in (json.dumps(body), json.dumps(body, indent=2), "\n " + json.dumps(body)):
        check(CHAT.read_error(written.encode()), status, code, fault, wait)
        [failed] = decode([written.encode()])
        assert isinstance(failed, Failed) and failed.kind == code
        with pytest.raises(UpstreamResponseError) as caught:
            CHAT.read_chat_id(written.encode())
        check(caught.value, status, code, fault, wait)


@ASKED_FOR_ERRORS
def test_an_error_with_its_own_status(body: Any, status: int, code: str, fault: ChatFault, wait: str) -> None:
    check(WIRE.decode_error(400, json.dumps(body).encode()), status, code, fault, wait)


@ASKED_FOR_ERRORS
def test_an_error_inside_the_stream(body: Any, status: int, code: str, fault: ChatFault, wait: str) -> None:
    frames = [body] if "ret" in body else [body, {"error": body["data"], "response_id": "a-1"}]
    for frame in frames:
        for before in ([], [CREATED], [CREATED, say("Some")]):
            *_, failed = read(*before, frame, say("more"), FINISHED)
            assert isinstance(failed, Failed) and failed.kind == code
            reported = ToolglotError(failed.message)
            reported.code = failed.kind
            assert CHAT.classify(reported) is fault


def test_a_page_of_the_risk_check_blocks_the_upstream() -> None:
    for body in (RISK_PAGE.encode(), b"\n\n" + RISK_PAGE.encode()):
        check(CHAT.read_error(body), 503, "upstream_blocked", ChatFault.BLOCKED, "900")
        check(WIRE.decode_error(403, body), 503, "upstream_blocked", ChatFault.BLOCKED, "900")
        [failed] = decode([body[:9], body[9:]])
        assert isinstance(failed, Failed) and failed.kind == "upstream_blocked"


def test_another_page_is_no_answer() -> None:
    check(CHAT.read_error(b"<html>Hello</html>"), 502, "upstream_invalid", NONE, "")
    check(WIRE.decode_error(504, b"<html>Hello</html>"), 504, "upstream_refused", NONE, "")
    [failed] = decode([b'{"success": true, "data": {}}'])
    assert isinstance(failed, Failed) and failed.kind == "upstream_invalid"


def test_a_status_alone_has_a_meaning() -> None:
    check(WIRE.decode_error(401, b""), 401, "upstream_unauthorized", NONE, "")
    check(WIRE.decode_error(429, b"slow down"), 429, "rate_limited", NONE, "5")
    check(WIRE.decode_error(500, b"{}"), 500, "upstream_internal_error", TRANSIENT, "")


def test_an_empty_body_is_an_error_that_may_pass() -> None:
    check(CHAT.read_error(b"\n"), 502, "empty_answer", TRANSIENT, "")
    [failed] = decode([b"\n \n"])
    assert isinstance(failed, Failed) and failed.kind == "empty_answer"


def test_a_stream_and_a_success_are_no_errors() -> None:
    assert CHAT.read_error(write_stream(RECORDED)) is None
    assert CHAT.read_error(b'{"success": true, "data": {"id": "c-1"}}') is None


def test_every_error_of_the_documentation_exists() -> None:
    for _, status, code, _, _ in ERRORS:
        if code != "New_Thing":
            error = next(CHAT.read_error(json.dumps(body).encode()) for body, _, known, _, _ in ERRORS if known == code)
            assert error is not None and error.status == status


# -- chats -------------------------------------------------------------------------------------------------------------


def test_no_client_can_use_this_wire() -> None:
    assert "qwen_web" in wire_names() and "qwen_web" not in client_wires()
    assert set(client_wires()) == set(wire_names()) - {"qwen_web"}
    with pytest.raises(InternalError):
        WIRE.decode_request(b"{}", {})


def test_the_calls_besides_completions() -> None:
    made = CHAT.create("qwen3.7-plus", 1790000000.25)
    assert (made.method, made.path) == ("POST", "/api/v2/chats/new")
    assert json.loads(made.body) == {
        "title": "New Chat",
        "models": ["qwen3.7-plus"],
        "chat_mode": "normal",
        "chat_type": "t2t",
        "timestamp": 1790000000250,
        "chatId": "",
        "project_id": "",
    }
    assert CHAT.read_chat_id(b'{"success":true,"request_id":"r-1","data":{"id":"c-1"}}') == "c-1"
    stopped, deleted = CHAT.stop("c-1", "a-1"), CHAT.delete("c/1")
    assert (stopped.path, json.loads(stopped.body)) == (
        "/api/v2/chat/completions/stop",
        {"chat_id": "c-1", "response_id": "a-1"},
    )
    assert (deleted.method, deleted.path) == ("DELETE", "/api/v2/chats/c%2F1")
    assert CHAT.locate("c-1") == "/api/v2/chat/completions?chat_id=c-1"


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"", b'{"success":true,"data":{}}', b'{"success":true,"data":{"id":7}}']
)
def test_an_answer_without_a_chat_is_an_error(body: bytes) -> None:
    with pytest.raises(UpstreamResponseError):
        CHAT.read_chat_id(body)


def test_models_in_either_form() -> None:
    item = {"id": "qwen3-max", "name": "Qwen3-Max", "info": {"is_active": True, "meta": {"max_context_length": 262144}}}
    gone = {"id": "old", "info": {"is_active": False}}
    for listed in ({"data": [item, gone, {}, 3]}, {"success": True, "data": {"data": [item, gone]}}):
        [model] = CHAT.read_models(json.dumps(listed).encode())
        assert (model["id"], model["object"], model["context_length"]) == ("qwen3-max", "model", 262144)


def test_the_headers_are_those_of_the_protocol_and_no_others() -> None:
    headers = CHAT.headers("c-1", lambda: "fresh", 1790212954.0)
    assert {name.lower() for name in headers} == {
        "accept", "source", "version", "x-request-id", "timezone", "x-accel-buffering", "origin", "referer",
    }  # fmt: skip
    assert headers["timezone"] == "Thu Sep 24 2026 01:22:34 GMT+0000"
    assert headers["Referer"] == "https://chat.qwen.ai/c/c-1" and headers["x-request-id"] == "fresh"
    assert WIRE.authorize("key") == {"Authorization": "Bearer key"}
