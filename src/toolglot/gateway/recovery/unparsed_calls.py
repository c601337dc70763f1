"""Calls in the errors of servers that could not parse what their model wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolglot.core.events import CallRejected, Event, Failed, Finished, TextDelta
from toolglot.core.schema.toolset import compile_tools
from toolglot.gateway.capabilities.profiles import UNPARSED
from toolglot.reading.reader import read

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange


def read_failure(exchange: Exchange, failure: Failed) -> list[Event] | None:
    """The events of the calls in the error of a server that could not parse what its model wrote, which end with
    ``Finished``; if they cannot be read either, only those that are rejected. None: the error means something else."""
    profiles = exchange.context.capabilities.profiles
    if profiles.classify_error(f"{failure.kind} {failure.message}") != UNPARSED:
        return None
    written = profiles.find_generation(failure.message)
    tools = compile_tools(exchange.tools, ())
    reading = read(written, tools, unknown_tools="reject") if written else None
    if reading is None or not reading.calls or reading.rejected or reading.text.strip():
        return [event for event in reading.events if isinstance(event, CallRejected)] if reading is not None else []
    exchange.recorder.notes.append("the call was read from the error of the upstream, which could not parse it")
    return [TextDelta(written), Finished("stop")]
