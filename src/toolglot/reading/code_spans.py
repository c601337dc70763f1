"""Tracks open Markdown code, fences and inline, in an answer. Calls inside code are examples."""

from __future__ import annotations

_MARKS = ("<", "[", "{")


class CodeSpans:
    """The code fences and the inline code that are open."""

    __slots__ = ("_begins_with_mark", "fences", "inline")

    def __init__(self) -> None:
        self.fences: list[str] = []
        self.inline = ""
        self._begins_with_mark = False

    def pass_fence(self, ticks: str, label: str) -> None:
        """Process a fence: with a label it opens, also inside another one; without a label it closes the open one."""
        if not self.fences or (label and not label.isspace()):
            self.fences.append(ticks)
        elif ticks.startswith(self.fences[-1]):
            self.fences.pop()

    def pass_ticks(self, ticks: str, following: str) -> None:
        """Process backticks: inline code is closed by as many as opened it."""
        if not self.fences and ticks[0] == "`":
            self.inline = "" if self.inline == ticks else self.inline or ticks
            self._begins_with_mark = following in _MARKS

    def end_line(self, paragraph: bool) -> None:
        """End inline code with its line, unless it began with a mark and the paragraph goes on."""
        if paragraph or not self._begins_with_mark:
            self.inline = ""

    def clear(self) -> None:
        self.fences.clear()
        self.inline = ""
