"""The options that set the gateway up, for every command that needs its settings."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from toolglot.config import MODES, LiveReload, Settings, find_file, load


def add_gateway_options(parser: argparse.ArgumentParser) -> None:
    """Give a command the options. None has a default, so that one not given leaves the choice to the environment."""
    server = parser.add_argument_group("where to listen")
    server.add_argument("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    server.add_argument("--port", metavar="N", help="port to listen on; 0 takes a free one (default: 8484)")
    upstream = parser.add_argument_group("which model to ask")
    upstream.add_argument("--config", metavar="FILE", help="a toolglot.toml, or a LiteLLM config.yaml")
    upstream.add_argument("--base-url", metavar="URL", help="address of an OpenAI-compatible server")
    upstream.add_argument("--api-key", metavar="KEY", help="its key; other users may see it here, TOOLGLOT_API_KEY not")
    upstream.add_argument("--model", metavar="NAME", help="the model to ask it for, whatever clients name")
    upstream.add_argument("--dialect", metavar="D", help="the dialect that models are taught")
    upstream.add_argument("--profiles", metavar="FILE", help="profiles that come before those of toolglot")
    upstream.add_argument("--state-dir", metavar="DIR", help="where to keep what was learned; none: only in memory")
    upstream.add_argument("--mode", metavar="|".join(MODES), help="how tools reach the model (default: auto)")


def load_settings(arguments: argparse.Namespace) -> Settings:
    """The settings from the parsed options, the environment and the file."""
    return load(vars(arguments), os.environ, find_settings_file(arguments))


def find_settings_file(arguments: argparse.Namespace) -> Path | None:
    return find_file(vars(arguments), os.environ, Path())


def watch_settings_file(arguments: argparse.Namespace, settings: Settings) -> LiveReload | None:
    """Somebody to look after the settings file, if there is one."""
    path = find_settings_file(arguments)
    return LiveReload(path, lambda: load_settings(arguments), settings) if path else None
