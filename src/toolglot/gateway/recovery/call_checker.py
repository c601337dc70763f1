"""Checks complete calls against the tools that the client offers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from toolglot.core.conversation import Tool
from toolglot.core.events import Defect, Reason
from toolglot.core.schema.validation import find_argument_defects

MAX_LISTED: Final = 20


class ToolCallChecker:
    """``tools`` are those on offer, by the names that the client knows; ``others`` are further names that may be
    called. ``check_rendering`` finds why a call cannot be rendered for an XML client."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        others: Collection[str] = (),
        check_rendering: Callable[[str, str], tuple[Defect, ...]] | None = None,
    ) -> None:
        self.tools = tools
        self.others = others
        self.check_rendering = check_rendering

    def knows(self, name: str) -> bool:
        return name in self.tools or name in self.others

    def find_defects(self, name: str, arguments: str) -> tuple[Defect, ...]:
        """What is wrong with a complete call; empty if nothing is."""
        tool = self.tools.get(name)
        if tool is not None:
            defects = find_argument_defects(tool, arguments)
            return self.check_rendering(name, arguments) if self.check_rendering and not defects else defects
        if name in self.others:
            return ()
        known = ", ".join([*self.tools][:MAX_LISTED])
        return (Defect(reason=Reason.UNKNOWN_TOOL, where="tool", found=repr(name), expected=f"one of {known}"),)
