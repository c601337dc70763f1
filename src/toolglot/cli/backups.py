"""Backups of files that belong to other programs: what they held before, so that it can be restored exactly.

Next to a changed file are ``<name>.toolglot-backup`` with its former bytes, if it existed, and
``<name>.toolglot-setup`` with the digest of what was written, so that changes by others are noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

from toolglot.core.errors import UsageError

BACKUP: Final = ".toolglot-backup"
NOTE: Final = ".toolglot-setup"
PRIVATE: Final = 0o600
"""New files can hold a key."""


class BackedUpFile:
    """A file that is changed once or more, and restored to what it was before the first change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.backup = path.with_name(path.name + BACKUP)
        self.note_path = path.with_name(path.name + NOTE)

    def read(self) -> bytes:
        """The bytes to start from: those of the backup if the file is as it was written, else those of the file."""
        if self.note_path.exists() and not self._is_edited(self._read_note()):
            return self.backup.read_bytes() if self.backup.exists() else b""
        return self.path.read_bytes() if self.path.exists() else b""

    def write(self, data: bytes) -> bool:
        """Write the file if that changes it, with a backup of what was there before the first change.

        Returns: whether it was changed.
        """
        if self.path.exists() and self.path.read_bytes() == data:
            return False
        if self.note_path.exists():
            note = self._read_note()
            note["edited"] = self._is_edited(note)
        else:
            note = {"edited": False, "folders": self._make_folders()}
            if self.path.exists():
                self._put(self.backup, self.path.read_bytes())
        note["sha256"] = _digest(data)
        self._put(self.note_path, json.dumps(note).encode())
        self._put(self.path, data)
        return True

    def restore(self, force: bool = False) -> bool:
        """Restore the former bytes and remove the backup.

        Returns: False if there is nothing to restore. Raises: UsageError if others have changed the file since, unless
        it is forced.
        """
        if not self.note_path.exists():
            return False
        if not force:
            self.require_unedited()
        note = self._read_note()
        if self.backup.exists():
            self._put(self.path, self.backup.read_bytes())
            self.backup.unlink()
        else:
            self.path.unlink(missing_ok=True)
        self.note_path.unlink()
        for folder in note.get("folders", ()):
            if Path(folder).is_dir() and not any(Path(folder).iterdir()):
                Path(folder).rmdir()
        return True

    def require_unedited(self) -> None:
        """Raise UsageError if others have changed the file since it was written."""
        if self.note_path.exists() and self._is_edited(self._read_note()):
            former = self.backup if self.backup.exists() else "that there was no file"
            raise UsageError(
                f"{self.path} was changed since: remove the settings for toolglot by hand, or give --force, which"
                f" restores {former}"
            )

    def _read_note(self) -> dict[str, Any]:
        try:
            note = json.loads(self.note_path.read_bytes())
        except ValueError:
            note = None
        return note if isinstance(note, dict) else {"edited": True}

    def _is_edited(self, note: dict[str, Any]) -> bool:
        current = _digest(self.path.read_bytes()) if self.path.exists() else ""
        return bool(note.get("edited")) or current != note.get("sha256")

    def _make_folders(self) -> list[str]:
        """Make the folder of the file. Returns: what was made, innermost first."""
        missing = [folder for folder in self.path.parents if not folder.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return [str(folder) for folder in missing]

    def _put(self, path: Path, data: bytes) -> None:
        """Replace a file at once, with the permissions that the configured file has. A link stays a link."""
        mode = self.path.stat().st_mode & 0o777 if self.path.exists() else PRIVATE
        target = path.resolve()
        fresh = target.with_name(f"{target.name}.toolglot-new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
            file.write(data)
        fresh.chmod(mode)
        fresh.replace(target)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
