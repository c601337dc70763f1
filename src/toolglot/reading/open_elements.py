"""Finds calls that were begun in the text as elements and are still open: what stands inside them is no call.

Strategy. An element of a tool that is not on offer, or whose parameters the tool does not have, is text. A file in it
may quote calls, which must not be made. So when a call begins, the text since the last one is searched for tags at the
beginning of a line or right behind another tag; those without a closing tag are open. An open element is a call if
elements open its content, one of them is open too and holds text, and its name is that of a tool or like one. An
element that is named after a tool on offer is a call as soon as it holds text. Each character is searched once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

_TOKEN = re.compile(
    r"(?:^|(?<=\n))[ \t]*(?P<fence>```+|~~~+)|(?P<open>(?:^|(?<=[\n>]))[ \t]*)?"
    r"<(?P<close>/)?(?P<name>[A-Za-z][\w.-]*)(?:\s[^<>\n]{0,200})?(?<!/)>"
)
_LIKE_TOOL = re.compile(r"[a-z0-9][_-][a-z]|[a-z][A-Z]")
"""Names of several words, as those of tools are."""
_AROUND_CALLS = re.compile(
    r"tool|call|func|action|invoke|answer|respon|assist|message|think|reason|plan|output|final", re.IGNORECASE
)
"""Parts of the names of elements that models put around calls that they mean."""
_MAX_OPEN = 16


def is_like_tool(name: str) -> bool:
    """Whether an element's name is like that of a tool, and not that of an element around calls."""
    return _LIKE_TOOL.search(name) is not None and _AROUND_CALLS.search(name) is None


class _Element(Struct, eq=False):
    """An open element. ``is_fresh``: nothing follows its tag so far."""

    name: str
    is_fresh: bool = True
    begins_with_element: bool = False
    has_text: bool = False


class OpenElements(Struct, eq=False):
    """The elements that are open at the end of the visible text.

    ``take_new`` returns the text since it was called last, ``find_tool`` the tool of a name.
    """

    take_new: Callable[[], str]
    find_tool: Callable[[str], object | None]
    elements: list[_Element] = []
    fence: str = ""

    def clear(self) -> None:
        """Begin anew: no element of the text so far is open."""
        self.take_new()
        self.elements.clear()
        self.fence = ""

    def hold_call(self) -> bool:
        """Whether the text ends inside a call that is written as an element."""
        text = self.take_new()
        if self.elements or "<" in text:
            self._search(text)
        return any(self._is_call(element, at) for at, element in enumerate(self.elements))

    def _search(self, text: str) -> None:
        end = 0
        for token in _TOKEN.finditer(text):
            if token["fence"]:
                self._pass_fence(token["fence"])
            elif not self.fence:
                self._pass_text(text[end : token.start()])
                end = token.end()
                self._pass_tag(token)
        if not self.fence:
            self._pass_text(text[end:])

    def _is_call(self, element: _Element, at: int) -> bool:
        if self.find_tool(element.name) is not None:
            return element.has_text
        if not is_like_tool(element.name):
            return False
        return element.begins_with_element and at + 1 < len(self.elements) and self.elements[at + 1].has_text

    def _pass_fence(self, ticks: str) -> None:
        if not self.fence:
            self.fence = ticks
            self._pass_text(ticks)
        elif ticks.startswith(self.fence):
            self.fence = ""

    def _pass_text(self, text: str) -> None:
        if self.elements and not text.isspace() and text:
            for element in self.elements:
                element.is_fresh, element.has_text = False, True

    def _pass_tag(self, token: re.Match[str]) -> None:
        name, elements = token["name"], self.elements
        if token["close"]:
            names = [element.name for element in elements]
            if name in names:
                del elements[len(names) - 1 - names[::-1].index(name) :]
        elif token["open"] is not None and len(elements) < _MAX_OPEN:
            if elements and elements[-1].is_fresh:
                elements[-1].begins_with_element = True
                elements[-1].is_fresh = False
            elements.append(_Element(name))
        elif elements:
            self._pass_text(token[0])
