"""The parts of the texts that clients are shown for an error."""

from __future__ import annotations

import re
from dataclasses import dataclass

TEXT = re.compile(
    r"""(?xs) (?P<message>.*?) (?: [ ]\(upstream[ ]'(?P<upstream>[^']*)'[ ]at[ ](?P<address>[^\s,)]+)
    (?:,[ ]status[ ](?P<status>\d+))? \) )? [ ]Next[ ]\((?P<actor>client|operator|upstream)\):[ ](?P<step>.+)
    [ ]\[toolglot[ ]errors[ ](?P<code>[a-z_]+)\] \Z"""
)


@dataclass(frozen=True)
class ErrorText:
    message: str
    upstream: str
    address: str
    status: str
    actor: str
    step: str
    code: str


def parse_text(text: str) -> ErrorText:
    """Parse the text of an error: what failed, where, who acts next, what to do, and the entry of the guide."""
    found = TEXT.fullmatch(text)
    assert found is not None, f"not the text of an error for a client: {text!r}"
    return ErrorText(**{name: value or "" for name, value in found.groupdict().items()})


def what_failed(text: str) -> str:
    return parse_text(text).message
