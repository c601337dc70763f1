"""Values that refer to something else: ``env:NAME`` to an environment variable, a secret ``file:PATH`` to a file.

A secret that a variable ``NAME`` may hold can also be in a file that the variable ``NAME_FILE`` names, as is usual in
containers.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from toolglot.config.value_types import COOKIES, HEADER, HEADERS, KEYS, SECRET, ValueType
from toolglot.core.errors import UsageError
from toolglot.core.regular_files import open_regular

REFERENCES: Final = ("env:", "os.environ/")
FILE: Final = "file:"
FILE_SUFFIX: Final = "_FILE"
MAX_SECRET: Final = 64 << 10
"""Bytes of a file above which it is not taken for a secret."""
Secrets: TypeAlias = dict[tuple[Path, ValueType], str]
"""What was read from files, each of which is read once; of client keys, only their hashes."""
STAND_IN: Final = "unknown=unknown"
"""Stands for a secret of an upstream that is not known here."""
OF_UPSTREAMS: Final = (SECRET, COOKIES, HEADER)

FLAWS: Final = (
    (re.compile("\ufeff"), "has a byte order mark"),
    (re.compile("\0"), "has a NUL character"),
    (re.compile(r"[^\s,;][^\S\r\n]+[^\s,]"), "has white space inside"),
    (re.compile(r"[^\s,]\s+[^\s,]"), "has several lines"),
)
"""What is likely to be wrong with a secret that cannot be used."""


class References:
    """Replaces references by what they refer to. ``notes`` are what the user should know about the files, ``secrets``
    what was read from them. Without ``needs_secrets`` those of upstreams may be unknown: no upstream is contacted."""

    def __init__(
        self,
        environ: Mapping[str, str],
        notes: list[str] | None = None,
        secrets: Secrets | None = None,
        needs_secrets: bool = True,
    ) -> None:
        self.needs_secrets = needs_secrets
        self.environ = environ
        self.notes: list[str] = [] if notes is None else notes
        self.secrets: Secrets = {} if secrets is None else secrets

    def extend(self, more: Mapping[str, str]) -> References:
        """The same with more variables."""
        return References({**self.environ, **more}, self.notes, self.secrets, self.needs_secrets)

    def find_variable(self, name: str, kind: ValueType) -> tuple[str, str]:
        """The variable that gives a value, and the value, maybe another reference: ``NAME`` or, for a secret,
        ``NAME_FILE``. Two empty texts if neither is set. Raises: UsageError if both are."""
        other = name + FILE_SUFFIX
        given, path = self.environ.get(name, ""), self.environ.get(other, "").strip() if kind.secret else ""
        if given.strip() and path:
            raise UsageError(f"{name} and {other} are both set: give only one of them")
        return (other, FILE + path) if path else (name, given) if given.strip() else ("", "")

    def fill_in(self, raw: Any, kind: ValueType, place: str, folder: Path | None = None) -> Any:
        """The value with references replaced; paths are relative to ``folder``. Raises: UsageError if a variable is not
        set, or a file cannot be used."""
        if isinstance(raw, list | tuple):
            return [self.fill_in(item, kind, place, folder) for item in raw]
        if isinstance(raw, dict):
            one = HEADER if kind is HEADERS else kind
            return {key: self.fill_in(item, one, f"{place}.{key}", folder) for key, item in raw.items()}
        try:
            return self._look_up(raw, kind, place, folder or Path())
        except UsageError:
            if self.needs_secrets or kind not in OF_UPSTREAMS:
                raise
            return STAND_IN

    def _look_up(self, raw: Any, kind: ValueType, place: str, folder: Path) -> Any:
        variable = refers_to(raw)
        if variable:
            _, raw = self.find_variable(variable, kind)
            if not raw:
                raise UsageError(f"{place} is read from the environment variable {variable}, which is not set")
        if not kind.secret or not isinstance(raw, str) or FILE not in raw:
            return raw
        parts = raw.split(",") if kind is KEYS else [raw]
        return ",".join(self._read(part, kind, place, folder) for part in parts)

    def _read(self, text: str, kind: ValueType, place: str, folder: Path) -> str:
        """The content of a secret's file, without the white space around it; any other text as it is.

        No message has a colon behind the place or the path: what follows ``api_key:`` is masked in the log.
        """
        named = text.strip()
        if not named.startswith(FILE):
            return text
        path = folder / Path(named.removeprefix(FILE).strip()).expanduser()
        place = f"{place} refers to {path}, which"
        if (path, kind) not in self.secrets:
            secret = self._read_file(path, place)
            try:
                value = kind.parse(secret)
            except ValueError:
                flaw = next((reason for pattern, reason in FLAWS if pattern.search(secret)), "cannot be used")
                raise UsageError(f"{place} {flaw}; it must be {kind.accepts}") from None
            self.secrets[path, kind] = ",".join(map(str, value)) if kind is KEYS else secret
        return self.secrets[path, kind]

    def _read_file(self, path: Path, place: str) -> str:
        try:
            with open_regular(path) as (file, state):
                data = file.read(MAX_SECRET + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", "") or "that is not a path"
            raise UsageError(f"{place} cannot be read: {reason}") from None
        self._check_state(state, path, place)
        if len(data) > MAX_SECRET:
            raise UsageError(f"{place} is too large: it has more than {MAX_SECRET} bytes")
        try:
            secret = data.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise UsageError(f"{place} is not text") from None
        if not secret:
            raise UsageError(f"{place} is empty")
        return secret

    def _check_state(self, state: os.stat_result, path: Path, place: str) -> None:
        """Refuse a file that everyone may change. Others may read the files that containers mount, as they belong to
        another user; a file that belongs to this user need not be so."""
        if os.name != "posix":
            return
        if state.st_mode & stat.S_IWOTH:
            raise UsageError(f"{place} every user can change: run chmod o-w {path}")
        if state.st_mode & stat.S_IROTH and state.st_uid == os.geteuid() != 0:
            note = f"{place} every user of this machine can read; chmod 600 prevents it"
            self.notes += [note] if note not in self.notes else []


def refers_to(raw: object) -> str:
    """The environment variable that a value refers to, or an empty text."""
    if not isinstance(raw, str):
        return ""
    return next((raw.removeprefix(mark).strip() for mark in REFERENCES if raw.startswith(mark)), "")
