"""A settings file that is read again when it changes, for the one part that may change while the gateway runs.

Contents that cannot be used leave everything as it was, and so does a file that is gone; the log says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from toolglot.config.settings import SECTIONS, Settings
from toolglot.core.errors import UsageError

LOG = logging.getLogger("toolglot.rollout")
LIVE = "rollout"
FIXED = (*(section for section in SECTIONS if section != LIVE), "upstreams", "models")


class LiveReload:
    """Looks after one file. ``load`` reads all settings anew; ``settings`` are those that the gateway runs with."""

    def __init__(self, path: Path, load: Callable[[], Settings], settings: Settings) -> None:
        self.path = path
        self.load = load
        self.settings = settings
        self.seen = self._state()

    def _state(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def look(self) -> bool:
        """Bring the rollout up to date; whether something has changed in it."""
        state = self._state()
        if state == self.seen:
            return False
        self.seen = state
        try:
            fresh = self.load()
        except UsageError as error:
            LOG.warning("the settings have changed and cannot be used, so the old ones hold: %s", error.message)
            return False
        self._tell_fixed(fresh)
        before, after = self.settings.rollout_now, fresh.rollout.as_rollout()
        changes = before.compare(after)
        for change in changes:
            LOG.warning("rollout of %s", change)
        self.settings.live.rollout = after
        return bool(changes)

    def _tell_fixed(self, fresh: Settings) -> None:
        changed = [name for name in FIXED if getattr(fresh, name) != getattr(self.settings, name)]
        if changed:
            LOG.warning("changes of %s in %s count after a restart", ", ".join(changed), self.path)
