"""Reads the common part of a LiteLLM ``config.yaml``.

``model_list`` becomes upstreams and models, ``general_settings.master_key`` a client key. Whatever has no counterpart
is ignored with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolglot.config.file import FileSetting, read_bytes
from toolglot.config.references import References, refers_to
from toolglot.config.settings import FIELDS, ModelSettings
from toolglot.config.upstreams import Upstream
from toolglot.config.value_types import KEYS, SECRET
from toolglot.core.errors import UsageError

ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "deepseek": "https://api.deepseek.com/v1",
    "fireworks_ai": "https://api.fireworks.ai/inference/v1",
    "groq": "https://api.groq.com/openai/v1",
    "llamafile": "http://127.0.0.1:8080/v1",
    "mistral": "https://api.mistral.ai/v1",
    "moonshot": "https://api.moonshot.ai/v1",
    "nvidia_nim": "https://integrate.api.nvidia.com/v1",
    "ollama": "http://localhost:11434",
    "ollama_chat": "http://localhost:11434",
    "openrouter": "https://openrouter.ai/api/v1",
    "perplexity": "https://api.perplexity.ai",
    "sambanova": "https://api.sambanova.ai/v1",
    "together_ai": "https://api.together.xyz/v1",
    "xai": "https://api.x.ai/v1",
    "custom_openai": "",
    "dashscope": "",
    "hosted_vllm": "",
    "litellm_proxy": "",
    "lm_studio": "",
    "openai_like": "",
    "vllm": "",
}
"""Model name prefixes of providers with the chat wire, and their addresses if there is no ``api_base``."""

FOREIGN = frozenset(
    (
        *("anthropic", "azure", "azure_ai", "azure_text", "bedrock", "cohere", "cohere_chat", "databricks", "gemini"),
        *("huggingface", "palm", "predibase", "replicate", "sagemaker", "sagemaker_chat", "text-completion-openai"),
        *("vertex_ai", "vertex_ai_beta", "watsonx"),
    )
)
"""Model name prefixes of providers with another wire; usable only with an ``api_base`` that has the chat wire."""

TAKEN = frozenset({"model", "api_base", "base_url", "api_key", "timeout", "extra_headers"})
CHATTING = ("chat", "completion", "responses")
SHAPES = {"model_list": list, "general_settings": dict, "environment_variables": dict}


def read_litellm(path: Path, outer: References) -> FileSetting:
    document = _parse(path)
    general = document["general_settings"]
    own = {name: str(value) for name, value in document["environment_variables"].items()}
    references = outer.extend(own)
    found = FileSetting()
    for number, entry in enumerate(document["model_list"], 1):
        _take_entry(found, entry, f"{path}: model_list number {number}", references)
    if not found.models:
        raise UsageError(f"{path}: no model in model_list can be used; {'; '.join(found.notes) or 'it is empty'}")
    master = general.get("master_key") or references.find_variable("LITELLM_MASTER_KEY", KEYS)[1]
    if master:
        place = f"{path}: general_settings.master_key"
        found.values["server.keys"] = [references.fill_in(master, KEYS, place, path.parent)]
    ignored = [
        *(document.keys() - SHAPES.keys()),
        *(f"general_settings.{name}" for name in general.keys() - {"master_key"}),
    ]
    if ignored:
        found.notes.append(f"{path}: ignored: {', '.join(sorted(ignored))}")
    return found


def _parse(path: Path) -> dict[str, Any]:
    """The document, with every section that is read present."""
    import yaml  # imported only here: it is slow to load

    try:
        document = yaml.safe_load(read_bytes(path))
    except yaml.MarkedYAMLError as error:
        # The full message shows the line, which may contain a key.
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UsageError(f"{path}:{line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not YAML") from error
    if not isinstance(document, dict) or not document.get("model_list"):
        raise UsageError(f"{path}: a YAML file is read as a LiteLLM config.yaml and needs a model_list")
    for name, shape in SHAPES.items():
        document[name] = document.get(name) or shape()
        if not isinstance(document[name], shape):
            raise UsageError(f"{path}: {name} must be a {'list' if shape is list else 'mapping'}")
    return document


def _take_entry(found: FileSetting, entry: Any, place: str, references: References) -> None:
    match entry:
        case {"model_name": str(name), "litellm_params": {"model": str(full_name)} as params}:
            pass
        case _:
            raise UsageError(f"{place} needs a model_name and litellm_params with a model")
    place = f"{place} ({name})"
    provider, model = split_provider(full_name)
    reason = _reason_against(found, entry, provider)
    if reason:
        found.notes.append(f"{place} is left out: {reason}")
        return
    if provider in FOREIGN:
        found.notes.append(f"{place}: {provider}/ is asked as an OpenAI-compatible server at its api_base")
    ignored = [key for key in params if key not in TAKEN]
    if ignored:
        found.notes.append(f"{place}: ignored: {', '.join(ignored)}")
    raw = {
        "base_url": _address(params) or ADDRESSES[provider],
        "api_key": _key(found, params, provider, place, references),
        "read_timeout": params.get("timeout"),
        "headers": params.get("extra_headers"),
    }
    kinds = {name: FIELDS["upstream"][name].kind for name in raw}
    values = {
        name: kinds[name].read(references.fill_in(value, kinds[name], f"{place} {name}"), f"{place} {name}")
        for name, value in raw.items()
        if value
    }
    found.upstreams.append(Upstream(name=name, **values))
    found.models.append(ModelSettings(name=name, upstream=name, model=model))


def _reason_against(found: FileSetting, entry: Mapping[str, Any], provider: str) -> str:
    if any(model.name == entry["model_name"] for model in found.models):
        return "an earlier entry has the same model_name, and there is no load balancing here"
    info = entry.get("model_info")
    mode = info.get("mode", "chat") if isinstance(info, dict) else "chat"
    if mode not in CHATTING:
        return f"its mode is {mode}"
    if not _address(entry["litellm_params"]) and not ADDRESSES.get(provider):
        return f"it has no api_base, and {provider}/ is not asked without one"
    return ""


def _address(params: Mapping[str, Any]) -> Any:
    return params.get("api_base") or params.get("base_url")


def _key(found: FileSetting, params: Mapping[str, Any], provider: str, place: str, references: References) -> Any:
    """The key of an entry; the provider's environment variable is used only for the provider's own address."""
    usual = "" if _address(params) else references.find_variable(f"{provider.upper()}_API_KEY", SECRET)[1]
    key = params.get("api_key") or usual
    variable = refers_to(key)
    if variable and not any(references.find_variable(variable, SECRET)):
        found.notes.append(f"{place} has no key: the environment variable {variable} is not set")
        return ""
    return key


def split_provider(model: str) -> tuple[str, str]:
    """The provider that a model name begins with, and the name without it."""
    provider, slash, rest = model.partition("/")
    known = bool(slash) and (provider in ADDRESSES or provider in FOREIGN)
    return (provider, rest) if known else ("openai", model)
