"""A dry run: a second delivery of the same response that reports to its own recorder.

*Strategy.* To the client a dry run looks like a transformation that is off. The second delivery's findings become part
of the record. An error in it is logged and has no other effect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from toolglot.core.events import Event
from toolglot.gateway.delivery_plan import EventDelivery
from toolglot.wires.protocol import ResponseDecoder

LOG = logging.getLogger("toolglot.rollout")
BROKEN: Final = "rehearsal_failed"


class DryRun:
    """A delivery whose result is only recorded. It gets the events of a response, or its bytes if these are relayed."""

    def __init__(self, delivery: EventDelivery, decoder: ResponseDecoder) -> None:
        self.delivery = delivery
        self.decoder = decoder
        self.broken = False

    def observe(self, events: Iterable[Event]) -> None:
        self.attempt(lambda: events)

    def feed(self, chunk: bytes) -> None:
        self.attempt(lambda: self.decoder.feed(chunk))

    def close(self) -> None:
        self.attempt(self.decoder.close)

    def attempt(self, read: Callable[[], Iterable[Event]]) -> None:
        """Deliver these events. After the first exception, which is logged, do nothing."""
        if self.broken:
            return
        recorder = self.delivery.recorder
        try:
            events = list(read())
            recorder.keep_model_text(events)
            recorder.keep_delivered(self.delivery.deliver(events))
        except Exception:
            self.broken, recorder.error = True, BROKEN
            LOG.exception("the dry run of request %s failed", recorder.request_id)
