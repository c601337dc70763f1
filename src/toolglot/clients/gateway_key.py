"""The names of a client's key: settings and server need them, and none of what is known about agents."""

from __future__ import annotations

from typing import Final

KEY_VARIABLE: Final = "TOOLGLOT_KEY"
NO_KEY: Final = "none"
"""What clients present to a gateway without client keys; most refuse an empty key."""
