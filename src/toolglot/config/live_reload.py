"""Reloads the rollout when the settings file changes; it is the only section that may change at run time.

An invalid or missing file leaves the settings unchanged, with one warning in the log.
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
    """Watches one file. ``load`` reads all settings again; ``settings`` are those in use."""

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

    def check(self) -> bool:
        """Reload the rollout if the file has changed. Returns whether the rollout differs."""
        state = self._state()
        if state == self.seen:
            return False
        self.seen = state
        try:
            fresh = self.load()
        except UsageError as error:
            LOG.warning("the changed settings file is invalid; the old settings remain in use: %s", error.message)
            return False
        self._warn_of_fixed(fresh)
        before, after = self.settings.rollout_now, fresh.rollout.as_rollout()
        changes = before.compare(after)
        for change in changes:
            LOG.warning("rollout of %s", change)
        if changes:
            self.settings.live.change(after)
        return bool(changes)

    def _warn_of_fixed(self, fresh: Settings) -> None:
        """Warn of changes that need a restart."""
        changed = [name for name in FIXED if getattr(fresh, name) != getattr(self.settings, name)]
        if changed:
            LOG.warning("changes of %s in %s take effect after a restart", ", ".join(changed), self.path)
