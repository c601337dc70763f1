"""The section ``[console]``: the web console of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

from toolglot.config.keys import KeyHash
from toolglot.config.value_types import BOOL, KEYS, setting


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The web console at `/console`."""

    enabled: bool = setting(BOOL, "serve the console; `false`: there is nothing at `/console`", True, flag="console")
    read_only: bool = setting(
        BOOL, "the console shows and changes nothing: no replay, no deletion, no change of the rollout", False
    )
    keys: tuple[KeyHash, ...] = setting(
        KEYS,
        "client keys with the admin scope (`toolglot key --admin`): they open the console, which shows the sessions of"
        " all clients, and are client keys as well",
        (),
        flag="admin_keys",
    )
