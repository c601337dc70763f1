"""A PostgreSQL server for the tests that take ``postgres_server`` or ``postgres_url``."""

from __future__ import annotations

from support.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
