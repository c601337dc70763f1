"""Profiles: matching rules, queries to servers, facts in their responses, and errors that mean native tools do not work."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from support.rows import in_one_test

from toolglot.config import load
from toolglot.core.errors import UsageError
from toolglot.gateway.capabilities.profiles import NO_FACTS, Facts, load_profiles

PROFILES = load_profiles()
SERVER = "http://127.0.0.1:8080/v1"

CAPS = {"supports_tools": True, "supports_tool_calls": True, "supports_parallel_tool_calls": True}


def props(**caps: bool) -> dict[str, Any]:
    return {"chat_template": "{{ messages }}", "chat_template_caps": CAPS | caps, "total_slots": 1}


ANSWERS: dict[str, tuple[str, Any, str, bool]] = {
    "props": ("/props", props(), "llama.cpp, a template with tools", True),
    "props, single": ("/props", props(supports_parallel_tool_calls=False), "llama.cpp, a template with tools, one call at a time", True),
    "props, no tools": ("/props", props(supports_tools=False), "llama.cpp, a template without tools", False),
    "props, no calls": ("/props", props(supports_tool_calls=False), "llama.cpp, a template without tools", False),
    "props, old": ("/props", {"chat_template": "x"}, "llama.cpp, a template without tools", False),
    "ollama": ("/api/show", {"capabilities": ["completion", "tools"], "details": {"family": "qwen3"}}, "Ollama, a model with tools", True),
    "ollama, no tools": ("/api/show", {"capabilities": ["completion"], "details": {}}, "Ollama, a model without tools", False),
    "lmstudio": ("/api/v0/models/m", {"id": "m", "compatibility_type": "gguf", "capabilities": ["tool_use"]}, "LM Studio, a model trained for tools", True),
    "lmstudio, no tools": ("/api/v0/models/m", {"id": "m", "compatibility_type": "mlx"}, "LM Studio, a model not trained for tools", False),
    "sglang": ("/get_server_info", {"tp_size": 1, "version": "0.5", "tool_call_parser": "qwen25"}, "SGLang with a tool parser", True),
    "sglang, newer": ("/server_info", {"tp_size": 1, "version": "0.6", "tool_call_parser": "qwen25"}, "SGLang with a tool parser", True),
    "sglang, no parser": ("/get_server_info", {"tp_size": 1, "version": "0.5", "tool_call_parser": None}, "SGLang without a tool parser", False),
    "vllm": ("/version", {"version": "0.12.0"}, "vLLM", True),
    "something else": ("/version", ["0.12.0"], "nothing is known", False),
}  # fmt: skip


def facts_of(path: str, answer: Any, model: str = "m") -> Facts:
    questions = PROFILES.list_queries(SERVER, model)
    assert any(question.url.endswith(path) for question in questions)
    return PROFILES.read_facts(json.dumps(answer).encode() if one.url.endswith(path) else b"" for one in questions)


@in_one_test("case", ANSWERS)
def test_facts_are_read_from_the_answer_of_a_server(case: str) -> None:
    path, answer, name, native = ANSWERS[case]
    assert PROFILES.needs_facts(SERVER, "m")
    rule = PROFILES.find(SERVER, "m", facts_of(path, answer))
    assert (rule.name, rule.native) == (name, native)


def test_questions_go_to_the_root_of_the_server() -> None:
    asked = {
        question.url: question for question in PROFILES.list_queries("http://me:pw@host:1/deep/v1/?a=b", "org/m:1")
    }
    assert all(url.startswith("http://me:pw@host:1/deep/") and "?" not in url for url in asked)
    show = asked["http://me:pw@host:1/deep/api/show"]
    assert (show.method, json.loads(show.body or b"")) == ("POST", {"model": "org/m:1"})
    assert "http://me:pw@host:1/deep/api/v0/models/org%2Fm%3A1" in asked
    assert asked["http://me:pw@host:1/deep/props"].body is None
    assert PROFILES.list_queries("http://host:1", "m")[0].url == "http://host:1/props"


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense", b"[1]", b"null", b"{}", b'{"chat_template_caps": 3}', b"[" * 99_999]
)
def test_an_uninformative_answer_gives_no_facts(answer: bytes) -> None:
    assert PROFILES.read_facts([answer] * len(PROFILES.probes)) == NO_FACTS


@in_one_test(
    ("address", "model", "name", "native"),
    [
        ("https://api.openai.com/v1", "gpt-5", "OpenAI", True),
        ("https://api.openai.com/v1", "o1-mini-2024", "OpenAI, models without tools", False),
        ("https://me.openai.azure.com/openai/v1", "gpt-4o", "Azure", True),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-5", "Anthropic", True),
        ("https://api.anthropic.com/v1", "claude-2.1", "Anthropic, models older than tools", False),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro", "Google", True),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "models/gemma-3-27b-it", "Google, Gemma", False),
        ("https://europe-west4-aiplatform.googleapis.com/v1", "google/gemini-2.5-pro", "Google", True),
        ("https://api.mistral.ai/v1", "devstral-medium", "Mistral", True),
        ("https://api.deepseek.com", "deepseek-chat", "DeepSeek", True),
        ("https://api.groq.com/openai/v1", "llama-3.3-70b", "Groq", True),
        ("https://openrouter.ai/api/v1", "qwen/qwen3-coder", "OpenRouter", True),
        ("https://api.together.xyz/v1", "Qwen/Qwen3", "Together", True),
        ("https://api.fireworks.ai/inference/v1", "accounts/x/models/y", "Fireworks", True),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-max", "DashScope", True),
        ("https://chat.qwen.ai/api", "qwen3-max", "Qwen on the web", False),
        ("https://API.OpenAI.com/v1", "GPT-5", "OpenAI", True),
    ],
)
def test_known_hosts_need_not_be_asked(address: str, model: str, name: str, native: bool) -> None:
    assert not PROFILES.needs_facts(address, model)
    rule = PROFILES.find(address, model)
    assert (rule.name, rule.native) == (name, native)


def test_an_unknown_server_gets_text() -> None:
    rule = PROFILES.find("http://api.openai.com.evil.example/v1", "some-model")
    assert (rule.name, rule.native, rule.number) == ("nothing is known", False, len(PROFILES.rules))


@in_one_test(
    ("model", "name", "native"),
    [
        ("claude-sonnet-4-5", "Claude", True),
        ("anthropic/claude-3.5-sonnet", "Claude", True),
        ("us.anthropic.claude-3-7-sonnet-v1:0", "Claude", True),
        ("claude-2.1", "Claude, older than tools", False),
        ("openai/gpt-5-mini", "GPT", True),
        ("o3-mini", "GPT", True),
        ("gemini-2.5-pro", "Gemini", True),
        ("gpt-oss-20b", "nothing is known", False),
        ("gpt-j-6b", "nothing is known", False),
        ("qwen-distilled-from-claude-3", "nothing is known", False),
        ("gemma-3-27b", "nothing is known", False),
    ],
)
def test_a_model_that_is_known_to_call_natively_starts_native_anywhere(model: str, name: str, native: bool) -> None:
    rule = PROFILES.find("http://gateway.example/v1", model)
    assert (rule.name, rule.native) == (name, native)
    assert PROFILES.needs_facts("http://gateway.example/v1", model)  # facts of the server come first
    received = facts_of(*ANSWERS["ollama"][:2])
    assert "Ollama" in PROFILES.find(SERVER, model, received).name


def test_a_rule_explains_itself() -> None:
    rule = PROFILES.find(SERVER, "m", facts_of(*ANSWERS["ollama"][:2]))
    assert rule.explain() == (
        f"rule {rule.number} of profiles.toml (Ollama, a model with tools), for server ollama, capabilities tools"
    )
    assert PROFILES.find(SERVER, "m").explain().endswith("(nothing is known): tools as text work with any model")


def test_every_rule_can_be_reached() -> None:
    """A rule that stands behind a wider one would never count."""
    for at, rule in enumerate(PROFILES.rules[:-1]):
        for earlier in PROFILES.rules[:at]:
            covered = all(any(fnmatchcase(own, glob) for glob in earlier.address) for own in rule.address)
            wider = not earlier.facts and (not earlier.model or earlier.model == rule.model)
            assert not (covered and wider and rule.address), (rule.name, earlier.name)


@in_one_test(
    ("status", "text", "kind"),
    [
        (400, "api_error registry.ollama.ai/library/gemma3:4b does not support tools", "refused"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', "refused"),
        (404, "No endpoints found that support tool use. To learn more about provider routing", "refused"),
        (500, "tools param requires --jinja flag", "refused"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it", "refused"),
        (500, "Failed to parse input at pos 184: <tool_call>", "unparsed"),
        (500, "Failed to parse tool call arguments as JSON: [json.exception", "unparsed"),
        (500, "error parsing tool call: raw='{', err=unexpected end of JSON input", "unparsed"),
        (400, "tool_use_failed Failed to call a function. Please adjust your prompt.", "unparsed"),
        (None, "Failed to parse input at pos 0", "unparsed"),
        (401, "this key does not support tools", ""),
        (429, "too many requests", ""),
        (400, "This model's maximum context length is 8192 tokens", ""),
        (500, "x" * 5000 + "does not support tools", ""),
    ],
)
def test_errors_are_judged_by_their_text(status: int | None, text: str, kind: str) -> None:
    assert PROFILES.classify_error(text, status) == kind


def test_rules_of_ones_own_come_first(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(
        "[[rule]]\nname = 'mine'\naddress = ['127.0.0.1:8080']\nmodel = ['*coder*']\nnative = true\n"
        "dialect = 'Qwen/Qwen3-Coder'\nquirks = 'choice_ignored, strips_special_tokens'\n"
        "[[trouble]]\nkind = 'refused'\nstatus = [418]\ntexts = ['Teapot']\n",
        encoding="utf-8",
    )
    profiles = load_profiles(str(path))
    rule = profiles.find(SERVER, "org/Qwen3-Coder-30B")
    assert (rule.name, rule.native, rule.dialect, rule.quirks) == (
        "mine",
        True,
        "qwen3_coder",
        ("choice_ignored", "strips_special_tokens"),
    )
    assert rule.explain() == "rule 1 of my.toml (mine), for address 127.0.0.1:8080, model *coder*"
    assert not profiles.needs_facts(SERVER, "coder") and profiles.needs_facts(SERVER, "other")
    assert profiles.find("http://127.0.0.1:8081/v1", "coder").name == "nothing is known"
    assert profiles.classify_error("i am a teapot", 418) == "refused" and profiles.classify_error(
        "does not support tools", 400
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule]]\nname = 'x'", "number 1 needs native"),
        ("[[rule]]\nname = 'x'\nnative = true\nadress = ['a']", "unknown key 'adress'; did you mean address?"),
        ("[[rule]]\nname = 'x'\nnative = 'maybe'", "native is 'maybe'; it must be true or false"),
        ("[[rule]]\nname = 'x'\nnative = true\ndialect = 'klingon'", "it must be a dialect or a model id"),
        ("[[rule]]\nname = 'x'\nnative = true\nfacts = { a = 1 }", "it must be a table of names and texts"),
        ("[[trouble]]\nkind = 'refused'\nstatus = 400\ntexts = []", "it must be a list of numbers"),
        ("[rule]\nname = 'x'", "write [[rule]], with two brackets"),
        ("[[rules]]", "did you mean rule?"),
        ("nonsense", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_profiles(str(path))
    assert problem in caught.value.message and str(path) in caught.value.message


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read the profiles in nowhere"):
        load_profiles("nowhere.toml")


def test_a_file_named_in_the_settings_is_relative_to_them(tmp_path: Path) -> None:
    path = tmp_path / "toolglot.toml"
    path.write_text("[tool_calling]\nprofiles = 'my.toml'", encoding="utf-8")
    assert load({}, {}, path).tool_calling.profiles == str(tmp_path / "my.toml")
    assert load({"profiles": "here.toml"}, {}, path).tool_calling.profiles == "here.toml"
