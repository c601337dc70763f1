"""Detects near misses: text that was meant as a call but cannot be read as one. They are counted or rejected.

A failed block is a near miss if more than its name looks like a call to a known tool: a JSON object, an argument with
its assignment sign, an element inside the tool's element. Prose that only mentions a tool, links and tool definitions
are not. A block whose marks alone announce a call (``<tool_call>`` on a new line, a ``tool_code`` fence) and that holds
an unreadable object is a near miss too, and so is a Python call with a keyword if the answer is nothing else.
"""

from __future__ import annotations

import re

from toolglot.core.events import Defect
from toolglot.core.schema.toolset import CompiledTool
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.spec import Commitment, Wrap
from toolglot.reading.dialect_index import ELEMENTS, Header

MAX_ELEMENT = 2048
"""How many characters to wait for the closing tag of an element."""

_ARGUMENT = re.compile(r"=\s*\Z|\{")
"""What distinguishes a call from a mention: the sign after an argument's key, or an object."""
_DEFINITION = re.compile(r'"(?:description|parameters|input_?schema|properties|type|strict)"\s*:\s*\Z', re.IGNORECASE)
"""Keys that identify a tool definition, which is no call."""
_TOOL_FENCE = re.compile(r"[`~]{3,}[ \t]*tool")
_CLOSERS = re.compile(r"""[\s\]`"';]*""")
_CHILD = re.compile(r"\s*<(?P<key>[A-Za-z_][\w.-]*)>")
_PARTIAL_CHILD = re.compile(r"\s*(?:<(?:[A-Za-z_][\w.-]{0,80})?)?\Z")
_CHILDREN = re.compile(r"<([A-Za-z_][\w.-]*)>(?:(?!</\1>).)*</\1>\s*", re.DOTALL)


def is_near_miss(block: CallBlock, wrap: Wrap | None, header: Header, read: str, following: str) -> bool:
    """Whether a failed block was meant as a call.

    ``read`` is its text as far as it was read, ``following`` the text that has arrived after it.
    """
    if block.known_tool is None:
        marked = wrap is not None and wrap.commitment is Commitment.MARKED
        return "{" in read and ((marked and block.at_line) or _TOOL_FENCE.match(read) is not None)
    if header in ELEMENTS:
        return following.lstrip()[:1] == "<" or (block.at_line and following[:1] == "\n")
    return _ARGUMENT.search(read) is not None and _DEFINITION.search(read) is None


def is_python_call(read: str) -> bool:
    """Whether a failed block is a Python call with a keyword. It is meant as a call only if the answer holds nothing
    else."""
    opened = read.find("(")
    return opened >= 0 and read.endswith((")", ")'", ')"')) and "=" in read[opened:]


def skip_closers(text: str, at: int) -> int:
    """The end of the whitespace and closing marks at this position."""
    found = _CLOSERS.match(text, at)
    return found.end() if found is not None else at


def match_child(text: str, at: int) -> re.Match[str] | None:
    """The opening tag of a child element at this position, after optional whitespace."""
    return _CHILD.match(text, at)


def may_begin_child(text: str, at: int) -> bool:
    """Whether more text may complete such a tag."""
    return _PARTIAL_CHILD.match(text, at) is not None


def holds_elements(body: str) -> bool:
    """Whether a text consists of elements."""
    return bool(_list_elements(body))


def _list_elements(body: str) -> list[str]:
    """The names of the elements that a text consists of; none if it holds anything else."""
    keys: list[str] = []
    at = len(body) - len(body.lstrip())
    while (child := _CHILDREN.match(body, at)) is not None:
        keys.append(child[1])
        at = child.end()
    return keys if at == len(body) else []


def find_defects(tool: CompiledTool, body: str) -> tuple[Defect, ...]:
    """The defects of a tool's element that holds only elements; none if it holds anything else."""
    keys = _list_elements(body)
    if not keys:
        return ()
    return (*tool.missing(dict.fromkeys(keys)), *tool.undeclared(keys))
