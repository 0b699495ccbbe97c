"""Delta: every recipient delivers a message at the same time, and in the same order (xAMp, Figure 6).

A message carries the time of sending by the common clock. Every recipient delivers it when that clock has
advanced by Δ, the time that the sender stated, and by δ, how far two clocks may be apart. Whatever was sent
earlier has arrived by then, if the network is as fast as the sender assumed. A message that arrives later
is rejected: delivering it would break the order. Among messages that state the same Δ, the order is that of
sending.
"""

from bisect import insort

from priocast.services.packets import ServiceData

_MILLISECOND = 1_000_000
TOO_LATE = "too late"
FROM_THE_FUTURE = "sent in the future"
NO_CLOCK = "clock not synchronised"


class DeltaOrder:
    """The messages that one member delivers at a later time; `precision_ns` is δ."""

    def __init__(self, precision_ns: int) -> None:
        self._precision_ns = precision_ns
        self._held: list[ServiceData] = []

    @property
    def held(self) -> int:
        """How many messages wait for their time."""
        return len(self._held)

    @property
    def next_at(self) -> int | None:
        """The common time at which the next message is delivered."""
        return self.delivery_time(self._held[0]) if self._held else None

    def rejection(self, data: ServiceData, time: int, error: int | None) -> str:
        """Why a message that comes now cannot be delivered; empty if it can.

        `error` is how far this member's clock may be wrong. Half of δ is for the sender's clock.
        """
        if error is None or 2 * error > self._precision_ns:
            return NO_CLOCK
        if self.delivery_time(data) <= time:
            return TOO_LATE
        return FROM_THE_FUTURE if data.clock[0] > time + self._precision_ns else ""

    def on_arrived(self, data: ServiceData) -> None:
        """A message came in time."""
        insort(self._held, data, key=self._sort_key)

    def release(self, time: int) -> list[ServiceData]:
        """What is delivered at this time."""
        due = [data for data in self._held if self.delivery_time(data) <= time]
        del self._held[: len(due)]
        return due

    def delivery_time(self, data: ServiceData) -> int:
        """The common time at which every recipient delivers a message."""
        within_ms = data.quality.within_ms
        assert within_ms is not None
        return data.clock[0] + int(within_ms * _MILLISECOND) + self._precision_ns

    def _sort_key(self, data: ServiceData) -> tuple[int, str, int]:
        return self.delivery_time(data), data.id.sender.name, data.id.number
