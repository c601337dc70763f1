"""Colour and progress lines for people at a terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TextIO

GREEN, RED, DIM, BOLD, RESET = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
CLEAR_LINE: Final = "\r\x1b[K"
NO: Final = ("", "0", "false")
BAR_WIDTH: Final = 24
SHOWN_AFTER: Final = 0.5
"""Seconds of work before a progress line appears."""
REDRAWN_EVERY: Final = 0.1
LOGGED_STEPS: Final = 10
"""Lines for the whole work where there is no terminal."""
ESTIMATED_AFTER: Final = 2.0
SHORTEST_LEFT: Final = 5.0
"""Seconds of work before the time left is estimated, and how long that must be to be shown."""


def add_color_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour; auto: on a terminal, and as NO_COLOR and FORCE_COLOR say (default: auto)",
    )


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to colour what goes to the stream. The option decides; else NO_COLOR, FORCE_COLOR, then the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "").lower() not in NO:
        return True
    return _is_terminal(stream)


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours text if ``on``."""

    on: bool

    def __call__(self, text: str, style: str) -> str:
        if not self.on or not text:
            return text
        return "\n".join(f"{style}{line}{RESET}" if line else line for line in text.split("\n"))


class ProgressLine:
    """A line on standard error that shows how far some work is, and is removed at its end.

    Nothing is written unless standard error is a terminal, nor for work that takes less than half a second.

        with ProgressLine("reading", total) as progress:
            progress.advance(100)

    Parameters: ``total`` is the amount of work, or 0 if it is unknown; ``unit`` is bytes or what is counted; ``shown``
    is false if the terminal shows the results of the work meanwhile; ``logged``: where there is no terminal, each tenth
    of the work is a line.
    """

    def __init__(
        self,
        title: str,
        total: int = 0,
        unit: str = "bytes",
        *,
        shown: bool = True,
        logged: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title = title
        self.total = total
        self.unit = unit
        self.stream = sys.stderr if stream is None else stream
        self.clock = clock
        self.done = 0
        self.began, self.first = clock(), -1
        self.next_draw = self.began + SHOWN_AFTER if shown and _is_terminal(self.stream) else float("inf")
        self.drawn = False
        self.logged = logged and not _is_terminal(self.stream)
        self.last_logged = ("", -1)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.drawn:
            self.stream.write(CLEAR_LINE)
            self.stream.flush()

    def advance(self, amount: int) -> None:
        self.done += amount
        if self.next_draw != float("inf") and (now := self.clock()) >= self.next_draw:
            self.next_draw = now + REDRAWN_EVERY
            self.drawn = True
            columns = shutil.get_terminal_size().columns
            self.stream.write(CLEAR_LINE + self.describe()[: max(columns - 1, 0)])
            self.stream.flush()

    def show(self, title: str, done: int, total: int) -> None:
        """Show another step of the work, and how much of it is done. What was done at the first call took no time."""
        self.title, self.total = title, total
        self.first = done if self.first < 0 and total else self.first
        self.advance(done - self.done)
        step = (title, int(done / total * LOGGED_STEPS) if total else 0)
        if self.logged and step != self.last_logged:
            self.last_logged = step
            print(self.describe(), file=self.stream, flush=True)

    def describe(self) -> str:
        """The line: title, bar and percentage if the total is known, the amount, and the time left if it is long."""
        if not self.total:
            return f"{self.title}  {self._amount(self.done)}" if self.done else self.title
        share = min(self.done / self.total, 1.0)
        bar = "#" * int(share * BAR_WIDTH)
        amount = f"{self._amount(self.done)} of {self._amount(self.total)}"
        return f"{self.title}  [{bar:<{BAR_WIDTH}}] {share:4.0%}  {amount}{self._estimate()}"

    def _estimate(self) -> str:
        """The time that is left, once it can be estimated."""
        seconds, done = self.clock() - self.began, self.done - max(self.first, 0)
        if seconds < ESTIMATED_AFTER or done <= 0:
            return ""
        left = (self.total - self.done) * seconds / done
        return f", {left:,.0f} s left" if left >= SHORTEST_LEFT else ""

    def _amount(self, number: int) -> str:
        return f"{number / 1e6:.1f} MB" if self.unit == "bytes" else f"{number:,} {self.unit}"
