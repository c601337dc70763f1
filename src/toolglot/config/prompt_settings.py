"""The section ``[prompt]``: prompts that stay the same from turn to turn, so that upstreams can use their caches."""

from __future__ import annotations

from dataclasses import dataclass

from toolglot.clients.volatile_lines import RULE_NAMES
from toolglot.config.value_types import BOOL, setting, subset


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """Stable prompts."""

    stable: bool = setting(
        BOOL,
        "keep prompts equal from turn to turn: lines that a client changes with every request do not break them",
        True,
    )
    unstable: tuple[str, ...] = setting(subset(*RULE_NAMES), "rules of stable prompts that are switched off", ())
