"""The result of a check."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

FINE: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


class Finding(Struct, frozen=True):
    """One result: what was checked, how serious it is, what was found, and a command or setting that corrects it."""

    check: str
    severity: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.text}  ->  {self.remedy}" if self.remedy else self.text
