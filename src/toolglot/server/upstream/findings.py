"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FINE: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result: what was checked, how serious it is, what was found, and a command or setting that corrects it."""

    check: str
    severity: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.text}  ->  {self.remedy}" if self.remedy else self.text
