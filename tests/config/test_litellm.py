"""A LiteLLM ``config.yaml``: what is taken from it, what is left out and noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolglot.config import admit, load
from toolglot.config.litellm import split_provider
from toolglot.core.errors import UsageError

KEY = "sk-test-0123456789abcdef"

PROXY = """
model_list:
  - model_name: coder
    litellm_params:
      model: hosted_vllm/Qwen/Qwen3-Coder-30B
      api_base: http://vllm:8000/v1
      api_key: os.environ/VLLM_KEY
      timeout: 30
      extra_headers: {x-team: tools}
      rpm: 6
  - model_name: coder
    litellm_params: {model: openai/other, api_base: http://other}
  - model_name: tiny
    litellm_params: {model: ollama_chat/smollm2, api_base: "http://localhost:11434"}
  - model_name: claude
    litellm_params: {model: anthropic/claude-x, api_key: os.environ/ANTHROPIC_API_KEY}
  - model_name: plain
    litellm_params: {model: gpt-x}
  - model_name: azure
    litellm_params: {model: azure/gpt-x, api_base: http://az, api_version: "2024-02-01", api_key: os.environ/AZ}
  - model_name: vectors
    litellm_params: {model: openai/embedder, api_base: http://e}
    model_info: {mode: embedding}
  - model_name: "groq/*"
    litellm_params: {model: "groq/*"}
litellm_settings: {drop_params: true}
general_settings: {master_key: os.environ/MASTER, database_url: "postgresql://x"}
environment_variables: {VLLM_KEY: sk-from-file}
"""


def litellm(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_litellm_file_is_read_as_it_is(tmp_path: Path) -> None:
    environ = {"MASTER": KEY, "OPENAI_API_KEY": "sk-open", "GROQ_API_KEY": "gsk"}
    settings = load({}, environ, litellm(tmp_path, PROXY))
    assert [model.name for model in settings.models] == ["coder", "tiny", "plain", "azure", "groq/*"]
    coder, vllm = settings.model_for("coder")
    assert (coder.model, coder.dialect) == ("Qwen/Qwen3-Coder-30B", "qwen3_coder")
    assert (vllm.base_url, vllm.api_key.reveal(), vllm.read_timeout) == ("http://vllm:8000/v1", "sk-from-file", 30.0)
    assert vllm.headers == {"x-team": "tools"}
    tiny, ollama = settings.model_for("tiny")
    assert (tiny.model, ollama.endpoint("/models")) == ("smollm2", "http://localhost:11434/v1/models")
    plain, openai = settings.model_for("plain")
    assert (plain.model, openai.base_url, openai.api_key.reveal()) == ("gpt-x", "https://api.openai.com/v1", "sk-open")
    star, groq = settings.model_for("groq/llama-3")
    assert (star.model, groq.api_key.reveal()) == ("llama-3", "gsk")
    assert settings.model_for("azure")[1].api_key.reveal() == ""
    assert admit(settings.server.keys, KEY)
    assert settings.sources["server.keys"].endswith("config.yaml")


def test_unsupported_settings_of_a_litellm_file_are_noted(tmp_path: Path) -> None:
    path = litellm(tmp_path, PROXY)
    notes = [note.removeprefix(f"{path}: ") for note in load({}, {"MASTER": KEY}, path).notes]
    assert notes == [
        "model_list number 1 (coder): ignored: rpm",
        "model_list number 2 (coder) is left out: an earlier entry has the same model_name, and there is no load balancing here",
        "model_list number 4 (claude) is left out: it has no api_base, and anthropic/ is not asked without one",
        "model_list number 6 (azure): azure/ is asked as an OpenAI-compatible server at its api_base",
        "model_list number 6 (azure): ignored: api_version",
        "model_list number 6 (azure) has no key: the environment variable AZ is not set",
        "model_list number 7 (vectors) is left out: its mode is embedding",
        "ignored: general_settings.database_url, litellm_settings",
    ]


def test_a_missing_master_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"general_settings.master_key .* MASTER, which is not set"):
        load({}, {}, litellm(tmp_path, PROXY))


def test_the_usual_variable_for_the_master_key_counts(tmp_path: Path) -> None:
    path = litellm(tmp_path, "model_list: [{model_name: a, litellm_params: {model: a, api_base: 'http://a'}}]")
    assert admit(load({}, {"LITELLM_MASTER_KEY": KEY}, path).server.keys, KEY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not YAML"),
        ("a: 1", "needs a model_list"),
        ("- 1", "needs a model_list"),
        ("model_list: {a: 1}", "model_list must be a list"),
        ("model_list: [1]", "number 1 needs a model_name"),
        ("model_list: [{model_name: a}]", "number 1 needs a model_name and litellm_params"),
        ("model_list: [{model_name: a, litellm_params: {model: bedrock/x}}]", "no model in model_list can be used"),
        ("model_list: [{model_name: a, litellm_params: {model: a, api_base: nowhere}}]", "base_url is 'nowhere'"),
        ("model_list: [1]\ngeneral_settings: 3", "general_settings must be a mapping"),
        ("model_list: [1]\nkey: 'sk-secret", "not YAML"),
    ],
)
def test_a_bad_litellm_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = litellm(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load({}, {}, path)
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert "sk-secret" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai/facebook/opt-125m", "openai", "facebook/opt-125m"),
        ("facebook/opt-125m", "openai", "facebook/opt-125m"),
        ("gpt-x", "openai", "gpt-x"),
        ("ollama/llama3", "ollama", "llama3"),
        ("bedrock/x.y", "bedrock", "x.y"),
    ],
)
def test_prefixes_of_providers(name: str, provider: str, model: str) -> None:
    assert split_provider(name) == (provider, model)
