"""Learned failures of native tools: which models of which upstreams, on what evidence, and until when.

Strategy. A learned failure means that tools have to be text for one model of one upstream. It is recorded at once when
the upstream refuses tools or cannot parse its own model's calls, and after the second time in a row when calls arrive
as text. After a cool-down it expires, and native tools are tried again. Failures are few, so they are all in memory.
With a store they are also in the store (``use_store``). Without one they are in one small JSON file, which is replaced
atomically; entries of other processes are merged first, the newer ones win.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import asdict

from toolglot.gateway.capabilities.profiles import REASONING_MISSING

FILE_NAME: Final = "learned.json"
MEMORY_ONLY: Final = "none"
LEAKED: Final = "leaked"
LEAKS: Final = 2
"""Answers in a row with calls as text after which tools are sent as text."""

EVIDENCE_LENGTH: Final = 300
PINNED: Final = "pinned"
PIN_SECONDS: Final = 100 * 365 * 86_400.0
"""How long a pinned failure lasts: for ever, in practice."""
RELOAD_SECONDS: Final = 2.0
"""Seconds between two checks of the file for changes."""

MAX_ENTRIES: Final = 1000
LOG = logging.getLogger("toolglot.experience")
Key: TypeAlias = tuple[str, str]


class LearnedFailure(Struct, frozen=True):
    """Native tools do not work with this model of this upstream. Times are seconds since 1970."""

    address: str
    model: str
    kind: str
    evidence: str
    learned: float
    expires: float

    @property
    def is_pinned(self) -> bool:
        return self.expires - self.learned > PIN_SECONDS / 2

    def explain(self, now: float) -> str:
        if self.is_pinned:
            return f"pinned: {self.kind} ({self.evidence}); tools are text until that is forgotten"
        left = max(0.0, self.expires - now) / 60
        if self.kind == REASONING_MISSING:
            return f"learned: reasoning of earlier turns is sent back ({self.evidence}); for {left:.0f} min"
        return f"learned: {self.kind} ({self.evidence}); native tools are tried again in {left:.0f} min"


def find_folder(setting: str, environ: Mapping[str, str]) -> Path | None:
    """The state folder: the setting, else the XDG state directory; None to keep state in memory only."""
    if setting == MEMORY_ONLY:
        return None
    if setting:
        return Path(setting)
    home = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or str(Path.home()), ".local", "state")
    return Path(home) / "toolglot"


class LearnedFailures:
    """All learned failures. They expire after ``cool_down`` seconds; without a folder they end with the process."""

    def __init__(self, folder: Path | None = None, cool_down: float = 3600.0) -> None:
        self.path = folder / FILE_NAME if folder else None
        self.cool_down = cool_down
        self.failures: dict[Key, LearnedFailure] = {}
        self._leaks: dict[Key, int] = {}
        self._last_check = float("-inf")
        self._stamp: tuple[int, int] | None = None
        self._on_learn: Callable[[LearnedFailure], None] | None = None
        self._on_forget: Callable[[Key], None] | None = None

    def use_store(self, on_learn: Callable[[LearnedFailure], None], on_forget: Callable[[Key], None]) -> Path | None:
        """From now on failures are in the store, not in a file. ``on_learn`` is called with each new one, in any
        thread, ``on_forget`` with the address and model of one that is forgotten. Returns the file, whose failures are
        in memory now, if there is one."""
        self._read()
        path, self.path = self.path, None
        self._on_learn, self._on_forget = on_learn, on_forget
        return path

    def replace_all(self, failures: Iterable[LearnedFailure]) -> None:
        self.failures = {(one.address, one.model): one for one in failures}

    def recall(self, address: str, model: str, now: float) -> LearnedFailure | None:
        """The unexpired failure of this model, if any."""
        self._refresh(now)
        failure = self.failures.get(_key(address, model))
        return failure if failure is not None and failure.expires > now else None

    def recall_all(self, now: float) -> list[LearnedFailure]:
        self._refresh(now)
        return [failure for failure in self.failures.values() if failure.expires > now]

    def learn(self, address: str, model: str, kind: str, evidence: str, now: float) -> LearnedFailure:
        key = _key(address, model)
        failure = LearnedFailure(*key, kind, " ".join(evidence.split())[:EVIDENCE_LENGTH], now, now + self.cool_down)
        self._read()
        return self._save(failure)

    def _save(self, failure: LearnedFailure) -> LearnedFailure:
        key = failure.address, failure.model
        self._leaks.pop(key, None)
        self.failures[key] = failure
        self._write(failure.learned)
        if self._on_learn is not None:
            self._on_learn(failure)
        return failure

    def pin(self, address: str, model: str, now: float) -> LearnedFailure:
        """Send tools as text to this model until it is forgotten; what was learned before stays as the evidence."""
        known = self.failures.get(_key(address, model))
        kind, evidence = (known.kind, known.evidence) if known is not None else (PINNED, "set by hand")
        return self._save(LearnedFailure(*_key(address, model), kind, evidence, now, now + PIN_SECONDS))

    def forget(self, address: str, model: str, now: float) -> bool:
        """Forget what was learned of this model, so that native tools are tried again. Returns whether there was
        anything."""
        key = _key(address, model)
        self._leaks.pop(key, None)
        found = self.failures.pop(key, None) is not None
        self._write(now)
        if found and self._on_forget is not None:
            self._on_forget(key)
        return found

    def count_leak(self, address: str, model: str, dialect: str, now: float) -> LearnedFailure | None:
        """Count calls that arrived as text from a model with native tools. Returns the failure if one is recorded."""
        key = _key(address, model)
        leaks = self._leaks[key] = self._leaks.pop(key, 0) + 1
        if len(self._leaks) > MAX_ENTRIES:
            del self._leaks[next(iter(self._leaks))]
        if leaks < LEAKS:
            return None
        return self.learn(address, model, LEAKED, f"calls came as text ({dialect}) {leaks} times in a row", now)

    def count_success(self, address: str, model: str) -> None:
        """Reset the count of leaks: a native call arrived."""
        if self._leaks:
            self._leaks.pop(_key(address, model), None)

    # -- the file ------------------------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Reload the file if another process has changed it."""
        if self.path is None or 0 <= now - self._last_check < RELOAD_SECONDS:
            return
        self._last_check = now
        try:
            seen = self.path.stat()
        except OSError:
            return
        if self._stamp != (seen.st_mtime_ns, seen.st_ino):
            self._stamp = (seen.st_mtime_ns, seen.st_ino)
            self._read()

    def _read(self) -> None:
        if self.path is None:
            return
        try:
            content = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return
        for failure in _decode(content):
            known = self.failures.get((failure.address, failure.model))
            if known is None or known.learned < failure.learned:
                self.failures[failure.address, failure.model] = failure

    def _write(self, now: float) -> None:
        kept = sorted((one for one in self.failures.values() if one.expires > now), key=lambda one: one.learned)[
            -MAX_ENTRIES:
        ]
        self.failures = {(one.address, one.model): one for one in kept}
        if self.path is None:
            return
        temporary = self.path.with_name(f"{FILE_NAME}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({"lessons": [asdict(one) for one in kept]}, indent=1) + "\n", "utf-8")
            temporary.replace(self.path)
        except OSError as error:
            LOG.warning("learned failures cannot be saved to %s: %s", self.path, error.strerror)


def _key(address: str, model: str) -> Key:
    """The address without user name, password and query, and the model."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), model


def _decode(content: object) -> Iterable[LearnedFailure]:
    """The failures in a file; invalid entries are skipped."""
    listed = content.get("lessons") if isinstance(content, dict) else None
    for one in listed if isinstance(listed, list) else ():
        try:
            texts = [one[name] for name in ("address", "model", "kind", "evidence")]
            times = [float(one[name]) for name in ("learned", "expires")]
        except (KeyError, TypeError, ValueError):
            continue
        if all(isinstance(text, str) for text in texts):
            yield LearnedFailure(*texts, *times)
