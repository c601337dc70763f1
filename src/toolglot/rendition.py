"""An answer for a client that takes calls as XML: what is delivered to others, written in its way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.clients.rendering import Rendering
from toolglot.delivery import Delivery
from toolglot.events import CallEnded, Event, Failed, Finished

OWN_DIALECT: Final = "roo_xml"
"""What the reader calls the XML of these clients."""


class Rendition:
    """A delivery whose calls become text. As far as the delivery knows it is not streamed: of a call that turns out to
    be none, nothing has left yet."""

    def __init__(self, delivery: Delivery, rendering: Rendering) -> None:
        self.delivery = delivery
        self.rendering = rendering
        delivery.tells_rejected = True

    def deliver(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events of the upstream."""
        told = self.delivery.deliver(events)
        for event in told:
            if type(event) is CallEnded and event.dialect == OWN_DIALECT and event.span:
                self.rendering.written[event.index] = self.delivery.quote(event.span)
        out = self.rendering.write(told)
        if told and isinstance(told[-1], Finished | Failed):
            self.delivery.watch.notes += self.rendering.notes
        return out
