"""``toolglot explain`` and ``toolglot probe``: what they print, and that no secret is in it."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded import KEY as MODEL_KEY
from support.embedded import needs_model, start_model
from support.gateway import ASK
from support.loopback import Loop, Sim, running_loop, running_sim
from support.xmlprompts import write_cline, write_roo

from toolglot.cli.main import main
from toolglot.gateway.capabilities.learned import LearnedFailures
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.server.upstream.embedded import EmbeddedModel

KEY = "sk-test-0123456789abcdef"
GROQ = "https://api.groq.com/openai/v1"


@pytest.fixture(autouse=True)
def no_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "TOOLGLOT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(ASK | {"stream": True}), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture
def sim(loop: Loop) -> Iterator[Sim]:
    with running_sim(loop) as sim:
        yield sim


@pytest.fixture(scope="module")
def local() -> Iterator[EmbeddedModel]:
    with start_model() as local:
        yield local


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["explain", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_first_message_of_a_web_chat_is_explained(
    capsys: pytest.CaptureFixture[str], request_file: str, tmp_path: Path
) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_text(
        '[[upstream]]\nname = "q"\nwire = "qwen_web"\naccept_terms = true\napi_key = "the-secret-token"\n'
        'base_url = "http://127.0.0.1:1"\n'
    )
    output = explain(capsys, request_file, "--config", str(file), "--state-dir", "none")
    assert output["tier"] == "text" and any("begins a new one" in note for note in output["notes"])
    assert output["request"]["url"].startswith("http://127.0.0.1:1/api/v2/chat/completions")
    [message] = output["request"]["body"]["messages"]
    assert "<read>" in message["content"] and message["role"] == "user"
    assert "the-secret-token" not in json.dumps(output)


@pytest.mark.parametrize(("model", "suggested"), [("claude-sonnet-5", True), ("gpt-9", False)])
def test_a_mapping_that_would_help_is_suggested(
    model: str, suggested: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names = {"file_path": {"type": "string"}, "old_string": {"type": "string"}, "new_string": {"type": "string"}}
    tool = {"name": "edit", "parameters": {"type": "object", "properties": names, "required": list(names)}}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(ASK | {"model": model, "tools": [{"type": "function", "function": tool}]}))
    notes = explain(capsys, str(path), "--base-url", GROQ)["notes"]
    assert any('set editing = "anthropic"' in note for note in notes) == suggested


def test_a_route_is_explained(capsys: pytest.CaptureFixture[str], request_file: str) -> None:
    assert main(["explain", request_file, "--base-url", GROQ, "--api-key", KEY]) == 0
    output = capsys.readouterr().out
    head, _, sent = output.partition("\nPOST ")
    rows = {line[:9].strip(): line[10:] for line in head.splitlines()}
    assert rows["tier"] == "native (mode auto)"
    assert rows["why"].startswith("rule ") and "(Groq), for address api.groq.com" in rows["why"]
    assert rows["upstream"] == f"default, {GROQ} (openai_chat)"
    assert "reasoning reasoning" in rows["profile"]
    assert sent.startswith(f"{GROQ}/chat/completions\n") and "Authorization: ***\n" in sent
    assert json.loads(sent.partition("\n\n")[2])["tools"] == ASK["tools"]
    assert KEY not in output


@pytest.mark.parametrize(("wire", "address"), [("ollama", "/api/chat"), ("gemini", "/v1beta/models/m:generateContent")])
def test_the_address_is_the_one_that_is_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wire: str, address: str
) -> None:
    settings, request = tmp_path / "toolglot.toml", tmp_path / "request.json"
    received = f"[[upstream]]\nname='u'\nbase_url='http://127.0.0.1:1'\nwire='{wire}'\n"
    settings.write_text(f"{received}[[model]]\nname='m'\nupstream='u'\n", encoding="utf-8")
    request.write_text(json.dumps(ASK | {"model": "m"}), encoding="utf-8")
    assert explain(capsys, str(request), "--config", str(settings))["request"]["url"] == f"http://127.0.0.1:1{address}"


def test_explain_lists_mapped_tools(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings, request = tmp_path / "toolglot.toml", tmp_path / "request.json"
    settings.write_text(
        f"[[upstream]]\nname='g'\nbase_url='{GROQ}'\n[[model]]\nname='*'\nupstream='g'\nediting='anthropic'\n",
        encoding="utf-8",
    )
    keys = {"read_file": ["path", "offset", "limit"], "apply_diff": ["path", "diff"], "read": ["filePath"]}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"properties": {key: {} for key in listed}}}}
        for name, listed in keys.items()
    ]
    request.write_text(json.dumps(ASK | {"tools": tools}), encoding="utf-8")
    assert main(["explain", str(request), "--config", str(settings)]) == 0
    output = capsys.readouterr().out
    assert "\nmapping   roo as anthropic: apply_diff, read_file as str_replace_based_edit_tool\n" in output
    request.write_text(
        json.dumps(ASK | {"tools": [{"type": "function", "function": {"name": "look"}}]}), encoding="utf-8"
    )
    answer = explain(capsys, str(request), "--config", str(settings))
    assert answer["mapping"] is None
    assert answer["notes"] == ["the client's tools have no counterparts in anthropic and stay as they are"]


@pytest.mark.parametrize("mode", ["text", "native"])
def test_explain_lists_mapped_tools_of_an_xml_client(
    mode: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings, request = tmp_path / "toolglot.toml", tmp_path / "request.json"
    settings.write_text(
        f"[[upstream]]\nname='g'\nbase_url='{GROQ}'\n[[model]]\nname='*'\nediting='opencode'\nmode='{mode}'\n",
        encoding="utf-8",
    )
    messages = [{"role": "system", "content": write_roo()}, {"role": "user", "content": "<task>\nGo.\n</task>"}]
    request.write_text(json.dumps({"model": "m", "messages": messages}), encoding="utf-8")
    assert main(["explain", str(request), "--config", str(settings)]) == 0
    output = capsys.readouterr().out
    assert "\nclient    roo-3.29, takes calls as XML; 16 tools are documented in its prompt\n" in output
    assert (
        "\nmapping   roo as opencode: list_files, read_file as read; write_to_file as write; apply_diff as edit\n"
        in output
    )


def test_no_server_is_asked_without_the_option(capsys: pytest.CaptureFixture[str], request_file: str, sim: Sim) -> None:
    output = explain(capsys, request_file, "--base-url", sim.base_url, "--model", "qwen3-coder")
    assert output["notes"][0] == "the server was not asked what it can do; --ask asks it"
    assert (output["tier"], output["dialect"], output["upstream"]["model"]) == ("text", "qwen3_coder", "qwen3-coder")
    assert (
        "tools" not in output["request"]["body"] and "<function" in output["request"]["body"]["messages"][0]["content"]
    )
    assert output["profile"]["native"] is False and "(nothing is known)" in output["profile"]["rule"]
    output = explain(capsys, request_file, "--base-url", sim.base_url, "--ask")
    assert output["notes"][0] == "the server was asked what it can do"
    assert sim.total == 0


@pytest.mark.parametrize(
    ("arguments", "tier", "why"),
    [
        (("--mode", "native"), "native", "the mode native is set"),
        (("--mode", "text"), "text", "the mode text is set"),
        (("--mode", "off"), "relay", "tool calling is off"),
    ],
)
def test_a_mode_that_is_set_explains_itself(
    capsys: pytest.CaptureFixture[str], request_file: str, arguments: tuple[str, ...], tier: str, why: str
) -> None:
    output = explain(capsys, request_file, "--base-url", GROQ, *arguments)
    assert (output["tier"], output["why"], output["profile"]) == (tier, why, None)


def test_a_request_from_standard_input_without_tools(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY}"}]}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
    output = explain(capsys, "--base-url", "http://me:secret@h/v1")
    assert (output["tier"], output["why"]) == ("relay", "nothing in the request concerns tools")
    assert KEY not in json.dumps(output) and "secret" not in json.dumps(output)


def test_the_editing_option_is_explained(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Read the file a"}]}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
    assert explain(capsys, "--base-url", "http://h/v1")["why"].endswith("(auto_detect)")


@pytest.mark.parametrize(
    ("named", "rule"), [("0.5b", "llama.cpp, Qwen2.5-Coder 0.5B"), ("1.5b", "llama.cpp, Qwen2.5-Coder 1.5B")]
)
def test_an_embedded_model_is_explained_without_starting_it(
    named: str, rule: str, capsys: pytest.CaptureFixture[str], request_file: str
) -> None:
    output = explain(capsys, request_file, "--embedded", f"qwen2.5-coder-{named}")
    assert output["upstream"]["name"] == "embedded" and f"({rule})" in output["why"]


def test_without_an_upstream_the_embedded_model_is_used(capsys: pytest.CaptureFixture[str], request_file: str) -> None:
    output = explain(capsys, request_file)
    assert (output["upstream"]["name"], output["tier"], output["why"]) == (
        "embedded",
        "text",
        "the upstream is coached",
    )
    assert "grammar" in output["request"]["body"]


def test_what_was_learned_is_shown(capsys: pytest.CaptureFixture[str], request_file: str, tmp_path: Path) -> None:
    assert main(["explain", "--learned"]) == 0
    assert capsys.readouterr().out == "nothing was learned\n"
    LearnedFailures(tmp_path / "state" / "toolglot").learn(
        GROQ, "sim", "refused", "400: sim does not support tools", 9e12
    )
    output = explain(capsys, request_file, "--base-url", GROQ)
    assert output["tier"] == "text" and output["why"].startswith("learned: refused (400: sim does not support tools)")
    assert output["learned"]["kind"] == "refused" and "(Groq)" in output["profile"]["rule"]
    assert [one["model"] for one in explain(capsys, "--learned")] == ["sim"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.json"], "cannot read nowhere.json"),
        (["--wire", "morse"], "there is no wire 'morse'; wires are anthropic_messages"),
        (["--profiles", "nowhere.toml"], "cannot read the profiles in nowhere.toml"),
    ],
)
def test_a_usage_error_is_one_line(
    capsys: pytest.CaptureFixture[str], request_file: str, arguments: list[str], problem: str
) -> None:
    given = arguments if arguments[0].endswith(".json") else [request_file, *arguments]
    assert main(["explain", "--base-url", GROQ, *given]) == 2
    assert problem in capsys.readouterr().err


# probe


def probe(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, str], Any]:
    assert main(["probe", "--json", *arguments]) == 0
    output = json.loads(capsys.readouterr().out)
    return {one["name"]: one["result"] for one in output["findings"]}, tomllib.loads(output["profile"])["rule"][0]


def test_a_server_with_tools_is_found_out(capsys: pytest.CaptureFixture[str], sim: Sim, tmp_path: Path) -> None:
    found, rule = probe(capsys, "--base-url", sim.base_url)
    assert found.pop("profile") == "text" and set(found.values()) == {"yes"}, found
    assert (rule["native"], rule["parallel"], rule["model"]) == (True, True, ["sim"])
    path = tmp_path / "my.toml"
    assert main(["probe", "--base-url", sim.base_url, "--model", "sim"]) == 0
    path.write_text(capsys.readouterr().out.partition("\n\n")[2].partition("\n\n")[2], encoding="utf-8")
    assert load_profiles(str(path)).find(sim.base_url, "sim").name == "probed: sim"


@pytest.mark.parametrize(
    ("model", "results", "native", "dialect"),
    [
        ("sim:no_tools_400", {"native call": "failed", "text, hermes": "yes", "text, roo_xml": "yes"}, False, "hermes"),
        ("sim:hermes", {"native call": "no", "native, required": "no", "text, hermes": "yes"}, False, "hermes"),
        ("sim:http_500", {"models": "yes", "native call": "failed", "text, roo_xml, streamed": "failed"}, False, None),
        ("sim:parse_error", {"native call": "failed", "native, streamed": "failed"}, False, "hermes"),
        ("sim:empty_answer", {"native call": "failed", "text, hermes": "failed"}, False, None),
    ],
)
def test_one_without_is_too(
    capsys: pytest.CaptureFixture[str], sim: Sim, model: str, results: dict[str, str], native: bool, dialect: str | None
) -> None:
    found, rule = probe(capsys, "--base-url", sim.base_url, "--model", model)
    assert {name: found[name] for name in results} == results
    assert (rule["native"], rule.get("dialect")) == (native, dialect)


def test_probe_needs_a_server_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe"]) == 2
    assert "give --base-url" in capsys.readouterr().err
    assert main(["probe", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--api-key", KEY]) == 2
    output = capsys.readouterr().out
    assert "cannot be reached" in output and KEY not in output


@needs_model
def test_a_real_server_reports_a_template_without_tools(
    capsys: pytest.CaptureFixture[str], request_file: str, local: EmbeddedModel
) -> None:
    output = explain(capsys, request_file, "--base-url", local.base_url, "--api-key", MODEL_KEY, "--ask")
    assert output["tier"] == "text" and "llama.cpp, a template without tools" in output["why"]


@needs_model
def test_a_real_server_is_probed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, local: EmbeddedModel
) -> None:
    monkeypatch.setattr("toolglot.server.upstream.probe.MAX_TOKENS", 60)  # it talks until the limit
    found, rule = probe(capsys, "--base-url", local.base_url, "--api-key", MODEL_KEY)
    assert (found["models"], found["profile"], found["native call"]) == ("yes", "text", "no")
    assert "failed" not in found.values()
    assert (rule["native"], rule["structured"], rule["model"]) == (False, "grammar", ["smollm2-135m"])


def test_an_xml_client_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "request.json"
    messages = [{"role": "system", "content": write_cline()}, {"role": "user", "content": "Go"}]
    path.write_text(json.dumps({"model": "m", "messages": messages}), encoding="utf-8")
    assert main(["explain", "--base-url", GROQ, "--mode", "native", str(path)]) == 0
    output = capsys.readouterr().out
    assert "client    cline-legacy, takes calls as XML; 12 tools are documented in its prompt" in output
    assert '"name": "mcp--weather--get_forecast"' in output


@pytest.mark.parametrize(
    ("stage", "why"), [("off", "reading is off by the rollout"), ("shadow", "reading is in a dry run by the rollout")]
)
def test_the_rollout_is_explained(
    capsys: pytest.CaptureFixture[str], request_file: str, monkeypatch: pytest.MonkeyPatch, stage: str, why: str
) -> None:
    monkeypatch.setenv("TOOLGLOT_ROLLOUT_READING", stage)
    output = explain(capsys, request_file, "--base-url", GROQ, "--mode", "text")
    assert (output["tier"], output["why"]) == ("relay", why)
    assert output["request"]["body"]["tools"] == ASK["tools"]
