"""Records of requests: what is collected, logged and counted, and what never appears."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.parser import text_string_to_metric_families
from support.rows import in_one_test

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
    Usage,
)
from toolglot.core.redaction import make_printable, redact, redact_stream
from toolglot.gateway.telemetry.log import ATOMIC_BYTES, GATHER_SECONDS, Telemetry, gather_lines, log_to
from toolglot.gateway.telemetry.metrics import DURATION_BUCKETS, KNOWN, LABELS, Labels
from toolglot.gateway.telemetry.metrics import Histogram as OwnHistogram
from toolglot.gateway.telemetry.prometheus import render
from toolglot.gateway.telemetry.recorder import BODY_LENGTH, RequestRecorder

KEY = "sk-test-0123456789abcdef"


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("toolglot")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def telemetry(clock: Time) -> Telemetry:
    return Telemetry(now=lambda: 1_700_000_000.25, clock=clock)


ANSWER: tuple[Event, ...] = (
    TextDelta("Looking."),
    CallStarted(0, "call_1", "read_file"),
    CallArguments(0, "{}"),
    CallEnded(0, "hermes", 0.9, ("unquoted_key", "single_quotes")),
    CallRejected("<x>", Reason.TRUNCATED, "write"),
    Finished("tool_calls", Usage(input_tokens=1, output_tokens=2, total_tokens=3)),
)


def run(telemetry: Telemetry, clock: Time) -> RequestRecorder:
    """One request from beginning to end, all of it."""
    recorder = telemetry.begin("req-1", "openai_chat")
    recorder.model, recorder.upstream, recorder.upstream_model = "coder", "vllm", "Qwen3-Coder"
    recorder.mode, recorder.dialect = "text", "qwen3_coder"
    recorder.conversation, recorder.arms["reading"], recorder.complaints = "0a1b2c", "on", ["no_tool"]
    telemetry.stream(recorder)
    clock.seconds += 0.25
    recorder.add_overhead(recorder.began)
    clock.seconds += 0.25
    recorder.count_bytes(bytes(10))
    clock.seconds += 1
    recorder.count_bytes(bytes(20))
    for event in ANSWER:
        recorder.observe(event)
    recorder.notes.append("tool #2 skipped: no name")
    recorder.prompt_bytes, recorder.stable_bytes, recorder.unstable_at = 9000, 70, "system"
    recorder.agent = "claude-cli/2.1 (external, cli)"
    telemetry.finish(recorder, 200)
    return recorder


def samples(telemetry: Telemetry) -> dict[str, float]:
    """Every counted value that is not zero, by name and labels."""
    text = render(telemetry.metrics).decode()
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created") and "le" not in sample.labels
    }


# The record


def test_a_record_describes_the_outcome_of_a_request(telemetry: Telemetry, clock: Time) -> None:
    record = run(telemetry, clock).record
    assert record is not None
    assert json.loads(str(record)) == {
        "request_id": "req-1",
        "time": "2023-11-14T22:13:20.250+00:00",
        "wire": "openai_chat",
        "model": "coder",
        "upstream": "vllm",
        "upstream_model": "Qwen3-Coder",
        "mode": "text",
        "dialect": "qwen3_coder",
        "client": "",
        "stream": True,
        "offered": 0,
        "stripped": 0,
        "status": 200,
        "calls": 1,
        "tools": ["read_file"],
        "read_as": ["hermes"],
        "repairs": ["unquoted_key", "single_quotes"],
        "rejected": ["truncated"],
        "notes": ["tool #2 skipped: no name"],
        "chunks": 2,
        "bytes": 30,
        "first_chunk": 0.5,
        "duration": 1.5,
        "finish": "tool_calls",
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        "error": "",
        "client_gone": False,
        "conversation": "0a1b2c",
        "arms": {"reading": "on"},
        "outcomes": {"reading": {"success": 1, "truncated": 1}},
        "transformed": ["read_file"],
        "confidences": [0.9],
        "complaints": ["no_tool"],
        "would": None,
        "outcome": "ok",
        "fault": "model",
        "attempts": [{"upstream": "vllm", "mode": "text", "dialect": "qwen3_coder", "error": "", "duration": 1.5}],
        "session": "",
        "prompt_bytes": 9000,
        "stable_bytes": 70,
        "unstable_at": "system",
        "agent": "claude-cli/2.1",
        "replay_of": "",
        "overhead": 0.25,
    }


def test_a_request_that_failed_at_once(telemetry: Telemetry) -> None:
    recorder = telemetry.begin("r", "openai_chat")
    recorder.observe(Failed("upstream_timeout", "no answer"))
    recorder.client_gone = True
    record = telemetry.finish(recorder, 504)
    assert (record.status, record.error, record.first_chunk, record.client_gone) == (
        504,
        "upstream_timeout",
        None,
        True,
    )
    assert record.as_line().endswith("504 - - 0.00s  error: upstream_timeout  client gone")


def test_a_request_is_finished_once(telemetry: Telemetry, clock: Time) -> None:
    recorder = run(telemetry, clock)
    before = render(telemetry.metrics)
    clock.seconds += 9
    assert telemetry.finish(recorder, 500) is recorder.record
    assert render(telemetry.metrics) == before


@pytest.mark.parametrize("seconds", [0.0, 0.25, 0.9994999, 0.9999994, 0.9999996, 1_700_000_000.123, 4e9 + 0.0007])
def test_the_time_of_a_record_is_written_to_the_millisecond(seconds: float) -> None:
    received = Telemetry(now=lambda: seconds).begin("r", "w").conclude(200).time
    assert received == datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def test_watches_share_nothing(telemetry: Telemetry) -> None:
    one, other = telemetry.begin("1", "w"), telemetry.begin("2", "w")
    for value in (getattr(one, name) for name in one.__struct_fields__):
        if isinstance(value, list):
            value.append("x")
        elif isinstance(value, dict):
            value["x"] = "x"
    assert (other.tools, other.notes, other.complaints, other.arms, other.outcomes, other.open) == (
        [],
        [],
        [],
        {},
        {},
        {},
    )


def test_what_others_chose_is_cut_short_and_printable(telemetry: Telemetry) -> None:
    recorder = telemetry.begin("id\nforged line\x1b[31m", "openai_chat")
    recorder.model = "m" * 10_000
    recorder.tools.append("a\tb")
    record = telemetry.finish(recorder, 200)
    assert record.request_id == "id?forged line?[31m"
    assert len(record.model) == 200
    assert record.tools == ("a?b",)
    assert make_printable("naïve 名前") == "naïve 名前"


# The log


def test_machines_get_one_line_of_json(telemetry: Telemetry, clock: Time) -> None:
    stream = io.StringIO()
    log_to(stream)
    run(telemetry, clock)
    logging.getLogger("toolglot.server").warning("listening on %s", "127.0.0.1")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["request_id"], first["repairs"]) == ("req-1", ["unquoted_key", "single_quotes"])
    assert (second["level"], second["message"]) == ("warning", "listening on 127.0.0.1")


def test_people_get_a_short_line(telemetry: Telemetry, clock: Time) -> None:
    stream = Terminal()
    log_to(stream)
    run(telemetry, clock)
    logging.getLogger("toolglot").info("ready")
    line, ready = stream.getvalue().splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d 200 coder -> Qwen3-Coder text/qwen3_coder 1\.50s first 0\.50s  calls: read_file"
        r"  repairs: unquoted_key, single_quotes  rejected: truncated  notes: tool #2 skipped: no name  client complains: no_tool"
        r"  prompt changed: system, byte 70 of 9000",
        line,
    )
    assert ready == "ready"


def test_configuring_logging_twice_logs_once(telemetry: Telemetry, clock: Time) -> None:
    log_to(io.StringIO())
    stream = io.StringIO()
    log_to(stream)
    run(telemetry, clock)
    assert len(stream.getvalue().splitlines()) == 1


class Kept(logging.Handler):
    """Another listener."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)


@pytest.mark.parametrize("name", ["toolglot.requests", "toolglot"])
def test_others_may_listen_besides(telemetry: Telemetry, clock: Time, name: str) -> None:
    stream, kept = io.StringIO(), Kept()
    log_to(stream)
    run(telemetry, clock)
    logger = logging.getLogger(name)
    logger.addHandler(kept)
    try:
        record = run(telemetry, clock).record
    finally:
        logger.removeHandler(kept)
    run(telemetry, clock)
    (received,) = kept.all
    assert (received.name, received.levelno, received.msg, received.getMessage()) == (
        "toolglot.requests",
        logging.INFO,
        record,
        str(record),
    )
    assert stream.getvalue().splitlines()[1] == str(record)
    assert len(stream.getvalue().splitlines()) == 3


def test_a_record_goes_up_to_the_root_if_it_may(
    telemetry: Telemetry, clock: Time, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.StringIO()
    log_to(stream)
    logging.getLogger("toolglot").propagate = True
    with caplog.at_level(logging.INFO):
        record = run(telemetry, clock).record
    assert caplog.messages == [str(record)] == stream.getvalue().splitlines()


def _refuse(record: logging.LogRecord) -> bool:
    return False


@pytest.mark.parametrize("silence", ["level", "handler level", "filter", "handler filter", "propagate", "disable"])
def test_secrets_are_not_logged(
    telemetry: Telemetry, clock: Time, silence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    log_to(stream)
    home, log = logging.getLogger("toolglot"), logging.getLogger("toolglot.requests")
    (lines,) = home.handlers
    match silence:
        case "level":
            log_to(stream, "warning")
        case "handler level":
            lines.setLevel(logging.WARNING)
        case "filter":
            monkeypatch.setattr(log, "filters", [_refuse])
        case "handler filter":
            lines.addFilter(_refuse)
        case "propagate":
            monkeypatch.setattr(log, "propagate", False)
        case _:
            monkeypatch.setattr(log, "disabled", True)
    run(telemetry, clock)
    assert stream.getvalue() == ""


def test_a_stream_that_breaks_breaks_nothing_else(
    telemetry: Telemetry, clock: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    log_to(stream)
    stream.close()
    assert run(telemetry, clock).record
    assert "--- Logging error ---" in capsys.readouterr().err


def test_threads_do_not_mix_their_lines(telemetry: Telemetry, clock: Time, tmp_path: Path) -> None:
    recorder = run(telemetry, clock)
    assert recorder.record is not None
    with open(tmp_path / "log", "w") as file, ThreadPoolExecutor(8) as threads:
        log_to(file)
        for _ in range(400):
            threads.submit(telemetry._log, recorder.record)
    assert (tmp_path / "log").read_text() == f"{recorder.record}\n" * 400


class Writes(io.StringIO):
    """A stream that notes each write."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[str] = []

    def write(self, text: str) -> int:
        self.all.append(text)
        return super().write(text)


def test_lines_that_follow_closely_are_written_together(telemetry: Telemetry, clock: Time) -> None:
    stream, later = Writes(), list[Callable[[], None]]()

    def call_later(seconds: float, function: Callable[[], None]) -> None:
        assert seconds == GATHER_SECONDS
        later.append(function)

    log_to(stream)
    with gather_lines(call_later):
        records = [run(telemetry, clock).record]
        assert stream.all == [f"{records[0]}\n"], "a request that comes alone is logged at once"
        records += [run(telemetry, clock).record for _ in range(20)]
        assert (len(stream.all), len(later)) == (1, 1)
        later.pop()()
        assert 2 < len(stream.all) < 15
        assert max(map(len, stream.all)) <= ATOMIC_BYTES
        records += [run(telemetry, clock).record for _ in range(2)]
        logging.getLogger("toolglot").warning("in between")
        records.append(run(telemetry, clock).record)
        assert stream.all[-1] != f"{records[-1]}\n"
    assert stream.all[-1] == f"{records[-1]}\n", "nothing is left at the end"
    lines = stream.getvalue().splitlines()
    assert json.loads(lines.pop(-2))["message"] == "in between"
    assert lines == list(map(str, records))
    run(telemetry, clock)
    assert len(stream.getvalue().splitlines()) == len(lines) + 2, "at once, outside of the context"


def test_nothing_is_printed_before_logging_is_set_up(
    telemetry: Telemetry, clock: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    run(telemetry, clock)
    assert capsys.readouterr() == ("", "")


def test_bodies_are_logged_on_demand_only_and_redacted(telemetry: Telemetry) -> None:
    stream = io.StringIO()
    log_to(stream)
    body = json.dumps({"messages": ["hello"], "api_key": "abc", "note": f"{KEY} and hunter2"}).encode()
    telemetry.body(telemetry.begin("r", "openai_chat"), "request", body)
    assert stream.getvalue() == ""
    talkative = Telemetry(log_bodies=True, known_secrets=("hunter2", ""))
    talkative.body(talkative.begin("r", "openai_chat"), "request", body)
    logged = json.loads(stream.getvalue())
    assert (logged["request_id"], logged["what"], logged["bytes"]) == ("r", "request", len(body))
    assert json.loads(logged["body"]) == {"messages": ["hello"], "api_key": "***", "note": "*** and ***"}


def test_a_long_body_is_cut(telemetry: Telemetry) -> None:
    stream = io.StringIO()
    log_to(stream)
    talkative = Telemetry(log_bodies=True)
    talkative.body(talkative.begin("r", "w"), "answer", b"x" * 1_000_000)
    logged = json.loads(stream.getvalue())
    assert (logged["bytes"], len(logged["body"])) == (1_000_000, BODY_LENGTH)


@in_one_test(
    ("text", "redacted"),
    [
        (f"Incorrect API key provided: {KEY}.", "Incorrect API key provided: ***."),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ('{"authorization": "Bearer abc"}', '{"authorization": "Bearer ***"}'),
        ('{\\"x-api-key\\": \\"abc\\"}', '{\\"x-api-key\\": \\"***\\"}'),
        ("x-api-key: abc", "x-api-key: ***"),
        ("api_key=abc&model=m", "api_key=***&model=m"),
        ("sent bearer abcdefghijkl", "sent bearer ***"),
        ("http://me:hunter2@host/v1", "http://***host/v1"),
        ("gsk_abcdefghijkl hf_abcdefghijkl ghp_abcdefghijkl", "*** *** ***"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "***"),
        ("a task-specific basic idea, risk-averse, 5 tokens", "a task-specific basic idea, risk-averse, 5 tokens"),
        ("http://host:8000/v1", "http://host:8000/v1"),
    ],
)
def test_what_looks_like_a_key_is_blackened(text: str, redacted: str) -> None:
    assert redact(text) == redacted


def test_a_key_in_any_field_does_not_reach_the_log(telemetry: Telemetry) -> None:
    for terminal in (io.StringIO(), Terminal()):
        log_to(terminal)
        recorder = telemetry.begin(KEY, "openai_chat")
        recorder.model, recorder.error = KEY, f"the upstream sent {KEY}"
        recorder.tools.append(KEY)
        recorder.notes.append(f"Authorization: Bearer {KEY}")
        telemetry.finish(recorder, 200)
        logging.getLogger("toolglot").error("failed with %s", KEY)
        assert "***" in terminal.getvalue()
        assert KEY not in terminal.getvalue()


def test_a_traceback_is_logged_without_keys() -> None:
    stream = io.StringIO()
    log_to(stream)
    try:
        raise ValueError(KEY)
    except ValueError:
        logging.getLogger("toolglot").exception("our own fault")
    logged = json.loads(stream.getvalue())
    assert logged["message"].startswith("our own fault\nTraceback")
    assert KEY not in logged["message"]


# Metrics


def test_records_are_counted(telemetry: Telemetry, clock: Time) -> None:
    for _ in range(2):
        run(telemetry, clock)
    failed = telemetry.begin("r", "openai_chat")
    failed.error, failed.client_gone = "upstream_failed", True
    telemetry.finish(failed, 502)
    assert samples(telemetry) == {
        "toolglot_requests_total dialect=qwen3_coder mode=text status=200": 2,
        "toolglot_requests_total dialect=none mode=none status=502": 1,
        "toolglot_outcomes_total fault=model outcome=ok": 2,
        "toolglot_outcomes_total fault=client outcome=abandoned": 1,
        "toolglot_calls_total dialect=qwen3_coder": 2,
        "toolglot_repairs_total repair=unquoted_key": 2,
        "toolglot_repairs_total repair=single_quotes": 2,
        "toolglot_rejections_total reason=truncated": 2,
        "toolglot_errors_total kind=upstream_failed": 1,
        "toolglot_clients_gone_total": 1,
        "toolglot_first_chunk_seconds_count mode=text": 2,
        "toolglot_first_chunk_seconds_sum mode=text": 1.0,
        "toolglot_overhead_seconds_count mode=text": 2,
        "toolglot_overhead_seconds_sum mode=text": 0.5,
        "toolglot_request_seconds_count mode=text": 2,
        "toolglot_request_seconds_count mode=none": 1,
        "toolglot_request_seconds_sum mode=text": 3.0,
        "toolglot_answers_total arm=on transformation=reading": 2,
        "toolglot_answers_transformed_total arm=on transformation=reading": 2,
        "toolglot_attempts_total arm=on outcome=success transformation=reading": 2,
        "toolglot_attempts_total arm=on outcome=truncated transformation=reading": 2,
        "toolglot_tools_transformed_total arm=on tool=read_file transformation=reading": 2,
        "toolglot_complaints_total arm=on complaint=no_tool transformation=reading": 2,
        "toolglot_confidence_count arm=on transformation=reading": 2,
        "toolglot_confidence_sum arm=on transformation=reading": 1.8,
    }


def test_streams_in_flight_go_up_and_down(telemetry: Telemetry) -> None:
    streams = [telemetry.begin(str(number), "openai_chat") for number in range(3)]
    for recorder in streams:
        telemetry.stream(recorder)
        telemetry.stream(recorder)
    assert samples(telemetry)["toolglot_streams_in_flight"] == 3
    for recorder in streams:
        telemetry.finish(recorder, 200)
    assert "toolglot_streams_in_flight" not in samples(telemetry)


def test_labels_stay_few(telemetry: Telemetry) -> None:
    for number in range(3 * LABELS):
        recorder = telemetry.begin("r", "openai_chat")
        recorder.error = recorder.dialect = f"kind {number}"
        telemetry.finish(recorder, 500)
    counted = samples(telemetry)
    assert counted["toolglot_errors_total kind=other"] == 3 * LABELS
    assert len([name for name in counted if name.startswith("toolglot_requests_total")]) == LABELS + 1
    few = Labels(1)
    assert [few("a"), few("b"), few("a")] == ["a", "other", "a"]


@pytest.mark.parametrize("expected", ["sk-abc", "no code at all", "x" * 80, "429 Too many", "tool\nname"])
def test_labels_that_others_choose_have_known_values_only(telemetry: Telemetry, expected: str) -> None:
    metrics = telemetry.metrics
    metrics.errors[(expected,)].total += 1
    metrics.errors[("rate_limit_exceeded",)].total += 1
    metrics.requests[(999, "relay", "none")].total += 1
    metrics.tools["reading", "on", expected if expected != "sk-abc" else "a b"].total += 1
    counted = samples(telemetry)
    assert counted["toolglot_errors_total kind=other"] == 1
    assert counted["toolglot_errors_total kind=rate_limit_exceeded"] == 1
    assert not [name for name in counted if expected in name or "999" in name]


@pytest.mark.parametrize("created", [True, False])
def test_metrics_are_written_as_prometheus_writes_its_own(
    telemetry: Telemetry, clock: Time, created: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    answered = Counter(
        "toolglot_requests", "Requests answered.", ("status", "mode", "dialect"), registry=registry
    ).labels
    gone = Counter("toolglot_clients_gone", "Requests whose client disconnected before the end.", registry=registry)
    streams = Gauge("toolglot_streams_in_flight", "Streams in flight.", registry=registry)
    lasted = Histogram(
        "toolglot_request_seconds",
        "Time to the end of the answer.",
        ("mode",),
        buckets=DURATION_BUCKETS,
        registry=registry,
    ).labels
    for seconds, mode, dialect in [(0.0, "text", 'a "b"\\'), (0.01, "relay", ""), (0.3, "text", ""), (9e6, "text", "")]:
        recorder = telemetry.begin("r", "openai_chat")
        recorder.mode, recorder.dialect, recorder.client_gone = mode, dialect, seconds == 0.3
        clock.seconds = recorder.began + seconds
        took = telemetry.finish(recorder, 200).duration
        answered(200, mode, dialect or "none").inc()
        gone.inc(recorder.client_gone)
        lasted(mode).observe(took)
    telemetry.stream(telemetry.begin("r", "openai_chat"))
    streams.inc()
    monkeypatch.setattr("prometheus_client.metrics._use_created", created)
    rendered = render(telemetry.metrics), generate_latest(registry)
    ours, theirs = (re.sub(r"(?m)(_created.*) [\d.]+e\+09$", r"\1", text.decode()) for text in rendered)
    sections = {section.split(" ")[0]: section for section in ours.split("# HELP ")}
    wanted = [section for section in theirs.split("# HELP ") if section]
    assert len(wanted) == (7 if created else 4)
    for section in wanted:
        assert sections[section.split(" ")[0]] == section


def test_the_sums_of_a_spread_are_exact() -> None:
    histogram = OwnHistogram(0.5, 1)
    for amount in (0.5, 0.51, 1, 2):
        histogram.add(amount)
    assert [(ending, more.get("le"), number) for ending, more, number in histogram.samples()] == [
        ("_bucket", "0.5", 1),
        ("_bucket", "1.0", 3),
        ("_bucket", "+Inf", 4),
        ("_count", None, 4),
        ("_sum", None, 4.01),
    ]


def test_no_more_is_kept_for_values_than_for_labels(telemetry: Telemetry) -> None:
    metrics = telemetry.metrics
    for number in range(2 * KNOWN):
        metrics.repairs[(f"repair {number}",)].total += 1
    assert len(metrics.repairs) == KNOWN
    assert len(metrics.repairs.children) == LABELS + 1
    assert samples(telemetry)["toolglot_repairs_total repair=other"] == 2 * KNOWN - LABELS


def test_every_telemetry_counts_for_itself(clock: Time) -> None:
    one, other = Telemetry(clock=clock), Telemetry(clock=clock)
    run(one, clock)
    assert samples(one)
    assert samples(other) == {}


# The rollout


def dry_run(telemetry: Telemetry) -> RequestRecorder:
    """A request in a dry run: nothing is delivered, and ``ANSWER`` would have been."""
    recorder = telemetry.begin("req-2", "openai_chat")
    recorder.mode, recorder.arms["rescue"] = "relay", "dry_run"
    beside = recorder.start_dry_run("native")
    for event in ANSWER:
        beside.observe(event)
    telemetry.finish(recorder, 200)
    return recorder


def test_a_dry_run_is_recorded_apart_from_the_delivery(telemetry: Telemetry) -> None:
    record = dry_run(telemetry).record
    assert record is not None
    received = json.loads(str(record))
    assert (received["calls"], received["tools"], received["outcomes"]) == (0, [], {})
    assert received["would"] == {
        "calls": 1,
        "tools": ["read_file"],
        "read_as": ["hermes"],
        "repairs": ["unquoted_key", "single_quotes"],
        "rejected": ["truncated"],
        "confidences": [0.9],
        "outcomes": {"rescue": {"success": 1, "truncated": 1}},
        "error": "",
    }
    assert record.as_line().endswith("200 - relay 0.00s  arms: rescue dry_run  would call: read_file")


def test_a_dry_run_is_counted_as_what_it_would_have_done(telemetry: Telemetry) -> None:
    dry_run(telemetry)
    counted = {name: value for name, value in samples(telemetry).items() if "dry_run" in name}
    assert counted == {
        "toolglot_answers_total arm=dry_run transformation=rescue": 1,
        "toolglot_answers_transformed_total arm=dry_run transformation=rescue": 1,
        "toolglot_attempts_total arm=dry_run outcome=success transformation=rescue": 1,
        "toolglot_attempts_total arm=dry_run outcome=truncated transformation=rescue": 1,
        "toolglot_tools_transformed_total arm=dry_run tool=read_file transformation=rescue": 1,
        "toolglot_confidence_count arm=dry_run transformation=rescue": 1,
        "toolglot_confidence_sum arm=dry_run transformation=rescue": 0.9,
    }
    assert "toolglot_calls_total" not in samples(telemetry)


def test_calls_belong_to_the_transformation_that_made_them(telemetry: Telemetry) -> None:
    recorder = telemetry.begin("r", "openai_chat")
    recorder.mode = "native"
    for index, (name, dialect) in enumerate([("bash", "shell_fence"), ("read", "hermes"), ("native", "")]):
        recorder.observe(CallStarted(index, f"call_{index}", name))
        recorder.observe(CallEnded(index, dialect))
    recorder.observe(CallRejected("x", Reason.LOW_CONFIDENCE, dialect="shell_fence"))
    recorder.observe(CallRejected("x", Reason.FABRICATED_RESULT))
    recorder.count("xml", "unrepresentable")
    assert recorder.outcomes == {
        "shell": {"success": 1, "low_confidence": 1},
        "rescue": {"success": 1},
        "native": {"success": 1, "leaked": 1},
        "xml": {"unrepresentable": 1},
    }
    assert (recorder.calls, recorder.transformed) == (3, ["bash", "read"])


def test_complaints_are_counted_where_nothing_was_transformed(telemetry: Telemetry) -> None:
    recorder = telemetry.begin("r", "openai_chat")
    recorder.complaints = ["no_tool"]
    telemetry.finish(recorder, 200)
    assert samples(telemetry)["toolglot_complaints_total arm=off complaint=no_tool transformation=none"] == 1


STREAMS = {
    "chat": ('data: {"choices":[{"delta":{"content":%s}}]}\n\n', "data: [DONE]\n\n"),
    "blocks": ('event: delta\r\ndata: {"type":"delta","index":1,"delta":{"partial_json":%s}}\r\n\r\n', ""),
    "parts": ('data: {"candidates":[{"content":{"parts":[{"text":%s}]}}]}\n\n', ""),
    "lines": ('{"message":{"content":%s},"done":false}\n', '{"done":true}\n'),
}


@in_one_test("size", [1, 3, 7, 1000])
@in_one_test("form", sorted(STREAMS))
def test_a_key_that_is_spread_over_a_stream_is_blackened(form: str, size: int) -> None:
    event, end = STREAMS[form]
    text = f'Say "{KEY}", then hunter2 and http://me:pass@host/ in Bearer abcdefghijkl now.'
    expected = 'Say "***", then *** and http://***host/ in Bearer *** now.'
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    body = "".join(event % json.dumps(piece) for piece in pieces) + end
    redacted = redact_stream(body, ("hunter2",))
    shown = re.findall(r'"(?:content|partial_json|text)":("(?:[^"\\]|\\.)*")', redacted)
    assert "".join(map(json.loads, shown)) == expected
    assert redacted.count("\n") == body.count("\n") and redacted.endswith(end)


@pytest.mark.parametrize("form", sorted(STREAMS))
def test_a_stream_without_keys_stays_as_it_is(form: str) -> None:
    event, end = STREAMS[form]
    body = "".join(event % json.dumps(piece) for piece in ("Hé", "llo ", '"', "\n")) + end + "data: {cut"
    assert redact_stream(body) == body


def test_a_long_answer_that_leaves_at_once_is_cut_too() -> None:
    stream = io.StringIO()
    log_to(stream)
    talkative = Telemetry(log_bodies=True)
    recorder = talkative.begin("r", "openai_chat")
    recorder.count_bytes(b"x" * 1_000_000)
    talkative.finish(recorder, 200)
    logged = json.loads(stream.getvalue().splitlines()[0])
    assert (logged["what"], logged["bytes"], len(logged["body"])) == ("answer", 1_000_000, BODY_LENGTH)


def test_a_dry_run_of_a_long_answer_shows_its_calls_and_no_half_of_a_key() -> None:
    stream = io.StringIO()
    log_to(stream)
    talkative = Telemetry(log_bodies=True)
    recorder = talkative.begin("r", "openai_chat")
    would = recorder.start_dry_run("text")
    padding = "x" * (BODY_LENGTH // 3 - 5)
    events: list[Event] = [TextDelta(f"{padding} {KEY}"), *(TextDelta("x" * 100_000) for _ in range(9))]
    would.keep_model_text(events)
    would.keep_delivered([*events, CallStarted(0, "c", "read"), CallArguments(0, '{"path":"a"}'), CallEnded(0)])
    talkative.finish(recorder, 200)
    shown = json.loads(json.loads(stream.getvalue().splitlines()[1])["body"])
    assert shown["calls"] == [{"name": "read", "arguments": '{"path":"a"}'}]
    assert shown["original"] == shown["text"] == f"{padding} ***"[: BODY_LENGTH // 3]
