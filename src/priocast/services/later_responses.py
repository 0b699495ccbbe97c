"""Responses that can wait: those for the other recipients of a message.

The sender needs a response for its receipt. The other recipients need it only to know that they do not have
to transmit the message themselves, and for that they wait much longer. Where each recipient of a packet costs
a frame of its own, these responses wait a moment: the message reaches everybody before them, and those of
several messages travel together. Whoever transmits a message, on behalf of its sender, is answered at once.
"""

from priocast.services.outputs import Multicast

_DELAY_MAX_NS = 2_000_000


class LaterResponses:
    """The responses that wait; `deadline` is when they are transmitted."""

    def __init__(self, response_ns: int) -> None:
        self._delay_ns = min(_DELAY_MAX_NS, response_ns // 8)
        self._waiting: list[Multicast] = []
        self.deadline: int | None = None

    def add(self, response: Multicast, now: int) -> None:
        """A response waits, not for longer than the first one."""
        self._waiting.append(response)
        if self.deadline is None:
            self.deadline = now + self._delay_ns

    def on_tick(self, now: int) -> list[Multicast]:
        """The responses, if their time has come."""
        return [] if self.deadline is None or now < self.deadline else self.take()

    def take(self) -> list[Multicast]:
        """All responses that wait: nothing is gained by waiting for longer."""
        self.deadline = None
        due, self._waiting = self._waiting, []
        return due
