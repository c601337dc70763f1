"""The section ``[embedded]``: the model that runs on this machine, inside of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

from toolglot.config.value_types import TEXT, integer, setting


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """The model that the gateway runs itself."""

    model: str = setting(
        TEXT,
        "model that the gateway runs itself: `smollm2`, `qwen2.5-coder-0.5b`, `qwen2.5-coder-1.5b` or the path of a"
        " `.gguf` file; it answers to all names that no `[[model]]` has; empty: `smollm2` if no upstream is configured",
        "",
        flag="embedded",
    )
    cache_dir: str = setting(TEXT, "folder of downloaded models; empty: `toolglot` in the XDG cache directory", "")
    context: int = setting(
        integer(0, 1_048_576),
        "tokens of prompt and answer; more takes more memory; 0: what suits the model",
        0,
    )
    threads: int = setting(integer(0, 1024), "threads of the model; 0: half of the processors", 0)
