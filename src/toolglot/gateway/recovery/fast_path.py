"""The fast path of a streamed answer: more text, or more arguments of the call in progress.

Strategy. In a long answer nearly every piece of text is more of the same. As long as nothing waits and only sizes are
noted, such a piece needs nothing but the reader: what it reads is what the client receives. A piece that is read as
anything else takes the usual way, which closes the fast path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolglot.core.events import CallArguments, Event, TextDelta
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.recovery.attempt_input import OpenCall

FastPath: TypeAlias = Callable[[str], list[Event]]
"""Delivers a piece of the model's text."""
Check: TypeAlias = Callable[[list[Event]], list[Event]]
"""The usual way: what the client receives of events that were delivered."""


def find_fast_path(
    delivery: Delivery, calls: Mapping[int, OpenCall], texts: list[str], check: Check
) -> FastPath | None:
    """The fast path for what may follow, None if there is none.

    Parameters: ``calls`` are those in progress; ``texts`` collects the model's text.
    """
    noted = delivery.notes_text or delivery.observer is not None
    if delivery.reader is None or delivery.over or noted or CallArguments not in delivery.unchanged:
        return None
    if not calls:
        return _pass_text(delivery, delivery.reader.feed, texts, check) if delivery.has_answer else None
    call, *others = calls.values()
    if others or call.number != call.event.index or call.number not in delivery.argument_bytes:
        return None
    return _pass_arguments(delivery, delivery.reader.feed, call, texts, check)


def _pass_text(delivery: Delivery, feed: FastPath, texts: list[str], check: Check) -> FastPath:
    note = texts.append

    def deliver(text: str) -> list[Event]:
        note(text)
        read = feed(text)
        return read if len(read) == 1 and type(read[0]) is TextDelta else _deliver_other(delivery, read, check)

    return deliver


def _pass_arguments(delivery: Delivery, feed: FastPath, call: OpenCall, texts: list[str], check: Check) -> FastPath:
    note, keep, number = texts.append, call.fragments.append, call.number
    sizes, limit = delivery.argument_bytes, delivery.argument_limit

    def deliver(text: str) -> list[Event]:
        note(text)
        read = feed(text)
        if len(read) != 1 or type(piece := read[0]) is not CallArguments:
            return _deliver_other(delivery, read, check)
        fragment = piece.fragment
        size = sizes[number] + (len(fragment) if fragment.isascii() else len(fragment.encode("utf-8", "surrogatepass")))
        if size > limit:
            return _deliver_other(delivery, read, check)
        sizes[number] = size
        keep(fragment)
        return read

    return deliver


def _deliver_other(delivery: Delivery, read: list[Event], check: Check) -> list[Event]:
    delivered = delivery.deliver_read(read)
    return check(delivered) if delivered else delivered
