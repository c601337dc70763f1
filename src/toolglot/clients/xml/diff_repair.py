"""Repair the head of diffs for Roo's ``apply_diff`` where it would search for the wrong text.

    <<<<<<< SEARCH
    :start_line:18
    -------
    old
    =======
    new
    >>>>>>> REPLACE

The two lines after the opening mark are optional in Roo. With a small error they are not refused but become part of the
search text, which is then not found. Only these lines are repaired, and only where they are unambiguous: right after
the opening mark, and the separator only after a line number.
"""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"(?P<mark>^<<<<<<< SEARCH>?[ \t]*\r?\n)"
    r"(?P<key>:start_line)(?P<sign>[:=][ \t]*)(?P<line>[0-9]+)(?P<gap>[ \t]*(?:\r?\n)?)"
    r"(?P<bar>-------(?!-))?(?P<rest>[^\r\n]*)",
    re.MULTILINE,
)
START_LINE, RUN_ON = "start_line_sign", "separator_run_on"


def repair_diff(diff: str) -> tuple[str, tuple[str, ...]]:
    """The repaired diff, and the names of the repairs."""
    repairs: dict[str, None] = {}

    def repair(found: re.Match[str]) -> str:
        mark, line, gap, bar, rest = (found[name] or "" for name in ("mark", "line", "gap", "bar", "rest"))
        end = "\r\n" if mark.endswith("\r\n") else "\n"
        if not bar and not gap.endswith("\n"):
            return found[0]  # not a line number
        sign = found["sign"]
        if sign.startswith("="):
            repairs[START_LINE] = None
            sign = ":"
        if not gap.endswith("\n"):
            repairs[RUN_ON] = None
            gap = end
        if bar and rest.strip():
            repairs[RUN_ON] = None
            rest = end + rest
        return f"{mark}:start_line{sign}{line}{gap}{bar}{rest}"

    return _HEAD.sub(repair, diff), tuple(repairs)
