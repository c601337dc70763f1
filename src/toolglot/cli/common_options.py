"""Options that configure the gateway, shared by all commands that load its settings."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from toolglot.config import MODES, LiveReload, Settings, find_file, load
from toolglot.config.references import Secrets


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command. None has a default: environment, file and built-in defaults fill the gaps."""
    server = parser.add_argument_group("listen address")
    server.add_argument("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    server.add_argument("--port", metavar="N", help="port to listen on; 0 takes a free port (default: 8484)")
    server.add_argument("--workers", metavar="N", help="processes that share the port (default: 1)")
    add_upstream_options(parser)


def add_upstream_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose upstream and model."""
    upstream = parser.add_argument_group("upstream and model")
    upstream.add_argument("--config", metavar="FILE", help="settings file: toolglot.toml or a LiteLLM config.yaml")
    upstream.add_argument(
        "--embedded",
        metavar="MODEL",
        help="model to run here: smollm2, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b, or the path of a .gguf file",
    )
    upstream.add_argument("--base-url", metavar="URL", help="base URL of an OpenAI-compatible server")
    upstream.add_argument(
        "--api-key", metavar="KEY", help="API key of that server; visible in the process list, unlike TOOLGLOT_API_KEY"
    )
    upstream.add_argument("--model", metavar="NAME", help="model to request, whatever model the client names")
    upstream.add_argument("--dialect", metavar="D", help="dialect for models that take tools as text")
    upstream.add_argument("--profiles", metavar="FILE", help="profiles that take precedence over the built-in ones")
    upstream.add_argument(
        "--state-dir", metavar="DIR", help="directory for learned capabilities; 'none' keeps them in memory only"
    )
    upstream.add_argument("--mode", metavar="|".join(MODES), help="how tools are passed to the model (default: auto)")


def load_settings(
    arguments: argparse.Namespace, secrets: Secrets | None = None, *, needs_secrets: bool = True
) -> Settings:
    """Load the settings from options, environment and file. ``secrets`` are files that were read before. Without
    ``needs_secrets`` no upstream is contacted, and those of upstreams may be missing.

    Raises: ``UsageError`` for an invalid setting.
    """
    path = find_settings_file(arguments)
    return load(vars(arguments), os.environ, path, secrets=secrets, needs_secrets=needs_secrets)


def find_settings_file(arguments: argparse.Namespace) -> Path | None:
    return find_file(vars(arguments), os.environ, Path())


def watch_settings_file(arguments: argparse.Namespace, settings: Settings, secrets: Secrets) -> LiveReload | None:
    """A live reload of the settings file, or None without a file. ``secrets`` are the files that were read at the
    start: they stay what they are, even if they are gone."""
    path = find_settings_file(arguments)
    return LiveReload(path, lambda: load_settings(arguments, secrets), settings) if path else None
