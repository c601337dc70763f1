"""What was learned about native tools: where they do not work, on what evidence, and until when that is believed.

Strategy. A lesson says that tools have to be text for one model of one upstream. It is learned at once when the
upstream refuses tools or cannot read its own model's calls, and after the second time in a row when calls come as text.
It is believed for a while, then native tools are tried again. Lessons are few, so they live in one small file of JSON,
written as a whole and put in place at once; what another process has written is read before, and kept if it is newer.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

FILE_NAME: Final = "learned.json"
MEMORY_ONLY: Final = "none"
LEAKED: Final = "leaked"
LEAKS: Final = 2
"""Answers in a row with calls as text after which tools are text."""

EVIDENCE_LENGTH: Final = 300
FRESH: Final = 2.0
"""Seconds for which the file is not looked at again."""

KEPT: Final = 1000
LOG = logging.getLogger("toolglot.experience")
Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LearnedFailure:
    """Native tools do not work with this model of this upstream. Times are seconds since 1970."""

    address: str
    model: str
    kind: str
    evidence: str
    learned: float
    expires: float

    def explain(self, now: float) -> str:
        left = max(0.0, self.expires - now) / 60
        return f"learned: {self.kind} ({self.evidence}); native tools are tried again in {left:.0f} min"


def find_folder(setting: str, environ: Mapping[str, str]) -> Path | None:
    """The folder for what is to survive a restart: as set, else where the system wants it; none for memory only."""
    if setting == MEMORY_ONLY:
        return None
    if setting:
        return Path(setting)
    home = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or str(Path.home()), ".local", "state")
    return Path(home) / "toolglot"


class LearnedFailures:
    """All lessons. ``cool_down`` is how long one is believed; without a folder they end with the process."""

    def __init__(self, folder: Path | None = None, cool_down: float = 3600.0) -> None:
        self.path = folder / FILE_NAME if folder else None
        self.cool_down = cool_down
        self.lessons: dict[Key, LearnedFailure] = {}
        self._leaks: dict[Key, int] = {}
        self._looked = float("-inf")
        self._stamp: tuple[int, int] | None = None

    def recall(self, address: str, model: str, now: float) -> LearnedFailure | None:
        """What is believed of this model."""
        self._refresh(now)
        lesson = self.lessons.get(_key(address, model))
        return lesson if lesson is not None and lesson.expires > now else None

    def recall_all(self, now: float) -> list[LearnedFailure]:
        self._refresh(now)
        return [lesson for lesson in self.lessons.values() if lesson.expires > now]

    def learn(self, address: str, model: str, kind: str, evidence: str, now: float) -> LearnedFailure:
        key = _key(address, model)
        lesson = LearnedFailure(*key, kind, " ".join(evidence.split())[:EVIDENCE_LENGTH], now, now + self.cool_down)
        self._leaks.pop(key, None)
        self._read()
        self.lessons[key] = lesson
        self._write(now)
        return lesson

    def count_leak(self, address: str, model: str, dialect: str, now: float) -> LearnedFailure | None:
        """Calls came as text from a model that was given tools natively; what that teaches, if it does."""
        key = _key(address, model)
        leaks = self._leaks[key] = self._leaks.pop(key, 0) + 1
        if len(self._leaks) > KEPT:
            del self._leaks[next(iter(self._leaks))]
        if leaks < LEAKS:
            return None
        return self.learn(address, model, LEAKED, f"calls came as text ({dialect}) {leaks} times in a row", now)

    def count_success(self, address: str, model: str) -> None:
        """A call came natively."""
        if self._leaks:
            self._leaks.pop(_key(address, model), None)

    # -- the file ------------------------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Other processes learn too."""
        if self.path is None or 0 <= now - self._looked < FRESH:
            return
        self._looked = now
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
            told = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return
        for lesson in _decode(told):
            known = self.lessons.get((lesson.address, lesson.model))
            if known is None or known.learned < lesson.learned:
                self.lessons[lesson.address, lesson.model] = lesson

    def _write(self, now: float) -> None:
        kept = sorted((one for one in self.lessons.values() if one.expires > now), key=lambda one: one.learned)[-KEPT:]
        self.lessons = {(one.address, one.model): one for one in kept}
        if self.path is None:
            return
        draft = self.path.with_name(f"{FILE_NAME}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps({"lessons": [asdict(one) for one in kept]}, indent=1) + "\n", "utf-8")
            draft.replace(self.path)
        except OSError as error:
            LOG.warning("what was learned could not be kept in %s: %s", self.path, error.strerror)


def _key(address: str, model: str) -> Key:
    """An address without the name, password and query that it may hold, and the model."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), model


def _decode(told: Any) -> Iterable[LearnedFailure]:
    """The lessons in a file; what does not look like one is passed over."""
    listed = told.get("lessons") if isinstance(told, dict) else None
    for one in listed if isinstance(listed, list) else ():
        try:
            words = [one[name] for name in ("address", "model", "kind", "evidence")]
            times = [float(one[name]) for name in ("learned", "expires")]
        except (KeyError, TypeError, ValueError):
            continue
        if all(isinstance(word, str) for word in words):
            yield LearnedFailure(*words, *times)
