"""Configuration from the command line, the environment and one file.

    settings = load({"port": 9000}, os.environ, find_file({}, os.environ, Path.cwd()))
    model, upstream = settings.model_for("qwen3-coder")

Precedence: command line, then environment, then file, then defaults.
"""

from __future__ import annotations

from toolglot.config.embedded_settings import EmbeddedSettings
from toolglot.config.keys import ClientKeys, KeyHash, Secret, admit, make_key, owner_of
from toolglot.config.live_reload import LiveReload
from toolglot.config.loader import check_binding, find_file, is_loopback, load, make_settings
from toolglot.config.prompt_settings import PromptSettings
from toolglot.config.recovery_settings import RecoverySettings
from toolglot.config.settings import (
    MODES,
    USUAL_TOOLS,
    LimitSettings,
    ModelSettings,
    ReadingSettings,
    ServerSettings,
    Settings,
    ToolCallingSettings,
)
from toolglot.config.store_settings import StoreSettings, StoreUrl
from toolglot.config.upstreams import DEFAULT_DIALECT, SECRET_LENGTH, Upstream

__all__ = [
    "DEFAULT_DIALECT",
    "MODES",
    "SECRET_LENGTH",
    "USUAL_TOOLS",
    "ClientKeys",
    "EmbeddedSettings",
    "KeyHash",
    "LimitSettings",
    "LiveReload",
    "ModelSettings",
    "PromptSettings",
    "ReadingSettings",
    "RecoverySettings",
    "Secret",
    "ServerSettings",
    "Settings",
    "StoreSettings",
    "StoreUrl",
    "ToolCallingSettings",
    "Upstream",
    "admit",
    "check_binding",
    "find_file",
    "is_loopback",
    "load",
    "make_key",
    "make_settings",
    "owner_of",
]
