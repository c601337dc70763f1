"""Tool results that the model makes up after its own call. They are dropped and reported."""

from __future__ import annotations

from toolglot.core.events import CallRejected, Defect, Reason
from toolglot.dialects.partial_call import RAW_LIMIT
from toolglot.dialects.patterns import Mark
from toolglot.dialects.scanner import Source, Steps

_DEFECT = Defect(
    reason=Reason.FABRICATED_RESULT,
    where="answer",
    found="a tool result written by the model",
    expected="the call alone",
)


def has_content(source: Source, opener: Mark) -> Steps[bool]:
    """Whether text follows the opening mark of the result here, or the answer was cut there."""
    found = opener.match(source.text, source.pos)
    gap = yield from source.find_nonblank(found.end() - source.pos if found is not None else 0)
    return source.truncated or source.pos + gap < len(source.text)


def drop_to_end(source: Source, opener: Mark) -> Steps[CallRejected | None]:
    """Consume the result here and the rest of the answer, which depends on it; None if the result is empty."""
    start = source.here
    found = opener.match(source.text, source.pos)
    size = found.end() - source.pos if found is not None else 0
    pieces: list[str] = []
    kept = 0
    while True:
        piece = source.text[source.pos :]
        if kept < RAW_LIMIT:
            pieces.append(piece)
            kept += len(piece)
        source.pos = len(source.text)
        if source.final:
            break
        yield
    raw = "".join(pieces)[:RAW_LIMIT]
    if not raw[size:].strip():
        return None
    return CallRejected(raw, _DEFECT.reason, None, (_DEFECT,), span=(start, source.here))
