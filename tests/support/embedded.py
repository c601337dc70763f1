"""The embedded model for tests that need a real one; they are skipped where it is not installed."""

from __future__ import annotations

import importlib.util
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from toolglot.cli.embedded import MODELS_FOLDER
from toolglot.server.upstream.embedded import RUNTIME, EmbeddedModel, start
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS, PackagedWeights
from toolglot.server.upstream.weights import find_cache_folder, find_kept_weights

KEY = "key-of-the-embedded-model"


def find_weights() -> Path | None:
    """The file of the default model, if it was installed or downloaded."""
    weights = KNOWN_MODELS[DEFAULT_MODEL].weights
    assert isinstance(weights, PackagedWeights)
    return find_kept_weights(weights, find_cache_folder("", os.environ) / MODELS_FOLDER)


def reason_to_skip() -> str:
    if importlib.util.find_spec(RUNTIME) is None:
        return f"{RUNTIME} is not installed"
    return "" if find_weights() else "the weights of the embedded model are not installed"


needs_model = pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "the embedded model is there")


def start_model(**options: Any) -> EmbeddedModel:
    """The default model, with the key ``KEY``."""
    weights = find_weights()
    assert weights is not None
    return start(weights, **{"api_key": KEY, **options})


def ask(base_url: str, messages: list[dict[str, Any]], **settings: Any) -> str:
    """The answer of the model at this address, always the same."""
    asked = {"messages": messages, "temperature": 0, "max_tokens": 64} | settings
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])
