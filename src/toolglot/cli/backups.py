"""Backups of files that belong to other programs, so that what was set in them can be taken back.

Strategy. Next to a changed file are ``<name>.toolglot-backup`` with its former bytes, if it existed, and
``<name>.toolglot-setup``, a note with the digest of what was written and with each value that was set. A file that
was not changed since gets its former bytes back. In one that its client or a person has changed, each value that is
still the one that was set becomes what it was before, and everything else stays.

Only regular files are read and written. If the file or a folder above it is a link, as programs that manage dotfiles
make them, what it points to is changed, provided that both belong to the user. Links at the names of backup and note
are refused, and so is a backup without a note: it may be the only copy of what was there before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from toolglot.clients.file_editing import ChangeList, find_changes, parse_text, revert_text
from toolglot.clients.setting_paths import show_path
from toolglot.core.errors import UsageError
from toolglot.core.regular_files import find_links, read_regular, replace_file

BACKUP: Final = ".toolglot-backup"
NOTE: Final = ".toolglot-setup"
MAX_FILE: Final = 64 << 20
"""Bytes of a file above which it is not edited."""
RESTORED, REMOVED, TAKEN_BACK = "restored", "removed", "taken back"
EMPTY: Final = ("", "{}")


class SetupNote(msgspec.Struct, kw_only=True):
    """What is known of a changed file: the digest of what was written, whether there was a file before and its digest,
    the folders that were made, the address that was set, and each value. ``target`` is the file that was written:
    the changed one, or what it was a link to."""

    sha256: str
    target: str = ""
    existed: bool = True
    backup_sha256: str = ""
    folders: tuple[str, ...] = ()
    address: str = ""
    changes: ChangeList = ChangeList()


@dataclass(slots=True)
class Undo:
    """What is to be done with one file: its new content, or none if it is removed. ``kept`` are settings that others
    have changed since, ``remarks`` what a person should know."""

    path: Path
    state: str
    content: bytes | None = None
    kept: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class BackedUpFile:
    """A file that is changed once or more, and from which the changes can be taken back. ``kind`` is its format."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.backup = path.with_name(path.name + BACKUP)
        self.note_path = path.with_name(path.name + NOTE)

    def read(self) -> str:
        """The text without what an earlier setup wrote. Raises: UsageError, OSError."""
        note = self._read_note()
        if note is None:
            return self._decode(self._content() or b"")
        content = self._plan(note).content
        return self._decode(content or b"")

    def write(
        self, base: str, text: str, address: str, volatile: Collection[str] = (), defaults: Collection[str] = ()
    ) -> bool:
        """Write a text if that changes the values of the file, with a backup of the text that it was made from.

        Parameters: ``volatile`` are keys that the client itself keeps up to date, ``defaults`` those that a new file
        needs. Returns: whether the file was changed. Raises: UsageError, OSError.
        """
        note, content = self._read_note(), self._content()
        if content == text.encode():
            return False
        with suppress(UsageError, ValueError):
            if note is not None and content and self._parse(content) == parse_text(text, self.kind):
                return False
        existed = bool(base.strip()) or (note.existed if note else content is not None)
        former = base.encode()
        needed = () if existed else defaults
        changes = find_changes(parse_text(base, self.kind), parse_text(text, self.kind), volatile, needed)
        self.check_places()
        target = self.find_target()
        earlier = {path: self._read_own(path) for path in (self.backup, self.note_path)}
        folders = note.folders if note else self._make_folders()
        written = SetupNote(
            sha256=_digest(text.encode()),
            target=str(target),
            existed=existed,
            backup_sha256=_digest(former) if existed else "",
            folders=folders,
            address=address,
            changes=changes,
        )
        try:
            self._put(self.backup, former if existed else None)
            self._put(self.note_path, msgspec.json.encode(written))
            self._put(target, text.encode())
        except OSError:
            for path, data in earlier.items():
                with suppress(OSError):
                    self._put(path, data)
            if note is None:
                _remove_empty(folders)
            raise
        return True

    # Taking back

    def plan_undo(self, force: bool = False) -> Undo | None:
        """What would take the changes back; nothing is changed yet. None: there are none.

        Parameters: ``force`` restores the former bytes whatever others have changed since. Raises: UsageError if that
        cannot be done, OSError.
        """
        if force and self._read_own(self.note_path) is not None:
            plan = self._plan_force()
        elif (note := self._read_note()) is not None:
            plan = self._plan(note)
        else:
            return None
        self.check_owner()
        return plan

    def undo(self, plan: Undo) -> None:
        """Do what was planned, and remove the backup. One that is damaged stays."""
        note: SetupNote | None = None
        with suppress(UsageError):
            note = self._read_note()
        backup = self._read_own(self.backup)
        damaged = backup is not None and note is not None and note.existed and self._is_damaged(note)
        if plan.content != self._content():
            self._put(self.find_target(), plan.content)
        if damaged and plan.state == TAKEN_BACK:
            plan.remarks.append(f"{self.backup} is left there")
        else:
            self._put(self.backup, None)
        self._put(self.note_path, None)
        _remove_empty(folder for folder in (note.folders if note else ()) if Path(folder) in self.path.parents)

    def _plan(self, note: SetupNote) -> Undo:
        content, former = self._content(), self._read_backup(note)
        if not note.existed and self.path.is_symlink():
            raise UsageError(f"{self.path} is a link now, which setup did not make: {self._edit}")
        if content is None and (former is not None or not note.existed):
            gone = "it had been deleted since the setup"
            return Undo(self.path, RESTORED if note.existed else REMOVED, former, remarks=[gone])
        if content is None:
            raise UsageError(
                f"{self.path} and {self.backup} are gone: there is nothing left to restore. {self._forget}"
            )
        if _digest(content) == note.sha256:
            if not note.existed:
                return Undo(self.path, REMOVED)
            if former is not None:
                return Undo(self.path, RESTORED, former)
        return self._plan_revert(note, content)

    def _plan_revert(self, note: SetupNote, content: bytes) -> Undo:
        """Take back each value that is still the one that was set."""
        if not note.changes.changes:
            raise UsageError(
                f"{self.path} was changed since, and {self.note_path} does not say which settings are toolglot's:"
                f" {self._by_hand(note)}"
            )
        try:
            text, kept = revert_text(self._decode(content), note.changes, self.kind)
        except ValueError as error:
            names = ", ".join(show_path(change.path) for change in note.changes.changes)
            raise UsageError(
                f"{self.path} was changed since and cannot be edited: {error}. Correct it, or {self._by_hand(note)}."
                f" Settings of toolglot are: {names}"
            ) from None
        plan = Undo(self.path, TAKEN_BACK, text.encode(), [show_path(path) for path in kept])
        if not note.existed and text.strip() in EMPTY:
            return Undo(self.path, REMOVED)
        if self._is_damaged(note):
            how = "missing" if self._read_own(self.backup) is None else "changed since"
            plan.remarks.append(f"its backup is {how}, so settings were taken back one by one")
        befores = [change.before for change in note.changes.changes]
        if note.address and note.address in text and not any(note.address in str(before) for before in befores):
            plan.remarks.append(f"it still names {note.address}, at a place where setup did not write it")
        return plan

    def _plan_force(self) -> Undo:
        try:
            note = self._read_note()
        except UsageError:
            note = None
        if self.path.is_symlink() and (note is None or note.target != str(self.find_target())):
            raise UsageError(
                f"{self.path} is a link to {self.find_target()}, through which setup did not write, so --force does not"
                f" follow it: move the file back to {self.path} first"
            )
        self._content()
        backup = self._read_own(self.backup)
        if backup is not None:
            return Undo(self.path, RESTORED, backup)
        if note is None or note.existed:
            raise UsageError(f"there is no backup {self.backup} to restore: undo without --force, or {self._edit}")
        return Undo(self.path, REMOVED)

    def _by_hand(self, note: SetupNote | None) -> str:
        forced = "give --force, which restores "
        if self.backup.is_file():
            return f"{self._edit}, or {forced}{self.backup}"
        return f"{self._edit}, or {forced}that there was no file" if note and not note.existed else self._edit

    @property
    def _edit(self) -> str:
        return (
            f"remove the settings for toolglot by hand ('toolglot setup CLIENT --print' shows them) and {self._forget}"
        )

    @property
    def _forget(self) -> str:
        return f"delete {self.note_path}"

    # Files

    def _read_note(self) -> SetupNote | None:
        """The note, if there is one. Raises: UsageError if it is damaged."""
        written = self._read_own(self.note_path)
        try:
            return None if written is None else msgspec.json.decode(written, type=SetupNote)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UsageError(
                f"{self.note_path} is damaged, so it is not known what setup wrote to {self.path}:"
                f" {self._by_hand(None)}"
            ) from None

    def _read_backup(self, note: SetupNote) -> bytes | None:
        """The former bytes; None if there was no file, or the backup is missing or damaged."""
        return None if not note.existed or self._is_damaged(note) else self._read_own(self.backup)

    def _is_damaged(self, note: SetupNote) -> bool:
        if not note.existed:
            return False
        backup = self._read_own(self.backup)
        return backup is None or _digest(backup) != note.backup_sha256

    def find_target(self) -> Path:
        """The file that is changed: what the path points to if it is a link. Raises: UsageError if it leads nowhere."""
        if not self.path.is_symlink():
            return self.path
        try:
            return Path(os.path.realpath(self.path, strict=True))
        except OSError as error:
            reason = f"a link that leads nowhere ({error.strerror})"
            raise UsageError(f"{self.path} is {reason}: correct or remove it") from None

    def check_places(self) -> None:
        """Raise UsageError or OSError if the file, its backup or its note may not be written. Nothing is written."""
        self.check_owner()
        note, backup = self._read_own(self.note_path), self._read_own(self.backup)
        if note is None and backup is not None and backup != self._content():
            raise UsageError(
                f"{self.backup} is there and {self.note_path} is not, so it may be the only copy of an earlier"
                f" {self.path.name}: move it to {self.path} to restore it, or move it away to keep {self.path.name}"
            )

    def check_owner(self) -> None:
        """Raise UsageError if the file belongs to another user, or a link in its path is not to be followed; root may
        change files of others. A path below the home folder is checked from there on."""
        if os.name != "posix":
            return
        target, own = self.find_target(), os.geteuid()
        path, home = Path.cwd() / self.path, Path.home()
        is_inside = path.is_relative_to(home)
        start, base = (home.resolve(), home) if is_inside else (Path(path.anchor), Path(path.anchor))
        trusted = {own} if own or not home.exists() else {own, home.stat().st_uid}
        for link in find_links(path.relative_to(base), start):
            owners = link.lstat().st_uid, link.stat().st_uid
            of_system = not link.is_relative_to(home.resolve()) and owners[0] == 0 and owners[1] in (0, own)
            if not (of_system or (owners[0] == owners[1] and owners[0] in trusted)):
                raise _refuse_owner(f"{link}, a link to {link.resolve()},")
        if own and target.exists() and target.stat().st_uid != own:
            raise _refuse_owner(str(self.path))

    def _content(self) -> bytes | None:
        try:
            return read_regular(self.find_target(), MAX_FILE, follow=False)
        except FileNotFoundError:
            return None

    def _read_own(self, path: Path) -> bytes | None:
        """The content of the backup or the note; None if there is none. Raises: UsageError if something else has its
        name, OSError."""
        if path.is_symlink():
            raise UsageError(f"{path} is a link, which setup did not make: move it away")
        try:
            return read_regular(path, MAX_FILE, follow=False)
        except FileNotFoundError:
            return None

    def _parse(self, content: bytes) -> object:
        return parse_text(self._decode(content), self.kind)

    def _decode(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise UsageError(f"{self.path} cannot be edited: it is not UTF-8") from None

    def _make_folders(self) -> tuple[str, ...]:
        """Make the folder of the file. Returns: what was made, innermost first."""
        missing = [folder for folder in self.path.parents if not folder.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return tuple(str(folder) for folder in missing)

    def _put(self, path: Path, data: bytes | None) -> None:
        """Replace a file at once, with the permissions that the configured file has; None removes it."""
        if data is None:
            path.unlink(missing_ok=True)
            return
        replace_file(path, data, like=self.path.stat() if self.path.exists() else None)


def _refuse_owner(shown: str) -> UsageError:
    return UsageError(
        f"{shown} belongs to another user: change the settings where they are managed"
        " ('toolglot setup CLIENT --print' shows them)"
    )


def _remove_empty(folders: Iterable[str]) -> None:
    """Remove folders, innermost first, that hold nothing."""
    for folder in folders:
        with suppress(OSError):
            Path(folder).rmdir()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
