"""Clients that read tool calls in XML from the text of an answer: Roo, Kilo and Cline."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import cast

from toolglot.clients.xml import profiles
from toolglot.clients.xml.client import XmlClient


@cache
def all_clients() -> Mapping[str, XmlClient]:
    """All client profiles by name."""
    modules = (import_module(f"{profiles.__name__}.{found.name}") for found in pkgutil.iter_modules(profiles.__path__))
    return {client.name: client for module in modules for client in cast("tuple[XmlClient, ...]", module.CLIENTS)}
