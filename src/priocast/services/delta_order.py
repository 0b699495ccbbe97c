"""Delta: every recipient delivers a message at the same time, and in the same order (xAMp, Figure 6).

A message carries the time of sending by the common clock. Every recipient delivers it when that clock has
advanced by Δ, the time that the sender stated, and by δ, how far two clocks may be apart. Whatever was sent
earlier has arrived by then, if the network is as fast as the sender assumed. A message that arrives later
is rejected: delivering it would break the order. Among messages that state the same Δ, the order is that of
sending.

A process that does not run when the time has come delivers late. It cannot undo that, but it knows: such a
delivery is a timing failure of its recipient, and says so (`DeliveryWindow`).
"""

from bisect import insort

import msgspec

from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.services.clock import VirtualClock
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
        return self._delivery_time(self._held[0]) if self._held else None

    def rejection(self, data: ServiceData, time: int, error: int | None) -> str:
        """Why a message that comes now cannot be delivered; empty if it can.

        `error` is how far this member's clock may be wrong. Half of δ is for the sender's clock.
        """
        if error is None or 2 * error > self._precision_ns:
            return NO_CLOCK
        if self._delivery_time(data) <= time:
            return TOO_LATE
        return FROM_THE_FUTURE if data.clock[0] > time + self._precision_ns else ""

    def on_arrived(self, data: ServiceData) -> None:
        """A message came in time."""
        insort(self._held, data, key=self._sort_key)

    def release(self, time: int) -> list[ServiceData]:
        """What is delivered at this time."""
        due = [data for data in self._held if self._delivery_time(data) <= time]
        del self._held[: len(due)]
        return due

    def _delivery_time(self, data: ServiceData) -> int:
        return delivery_time(data, self._precision_ns)

    def _sort_key(self, data: ServiceData) -> tuple[int, str, int]:
        return self._delivery_time(data), data.id.sender.name, data.id.number


class DeliveryWindow:
    """Notices that this member delivers outside of the window: from Δ to Δ + 2δ after the sending.

    It should deliver after Δ + δ, by a clock that may be wrong, as that of the sender, by δ / 2. If its delay
    and the error of its clock are at most δ / 2 together, the delivery is in the window, and within δ of
    those of all recipients that can say the same.
    """

    def __init__(self, precision_ns: int, clock: VirtualClock) -> None:
        self._precision_ns = precision_ns
        self._clock = clock
        self._error = precision_ns // 2  # how wrong the clock was when that was known last
        self._due: dict[tuple[ProcessId, int], int] = {}

    def on_released(self, data: ServiceData, now: int) -> None:
        """The application can take a message, and those that share its transmission."""
        self._note_error(now)
        for number in range(data.id.number, data.id.number + data.message_count):
            self._due[data.id.sender, number] = delivery_time(data, self._precision_ns)

    def judged(self, unit: ServiceDelivery, now: int) -> ServiceDelivery:
        """The unit as the application takes it now: it says if it is late."""
        self._note_error(now)
        key = unit.sender, unit.number
        due = self._due.pop(key) if unit.index == unit.count - 1 else self._due[key]
        delay = self._clock.time(now) - due
        if delay + self._error <= self._precision_ns // 2:
            return unit
        return msgspec.structs.replace(unit, late_ms=max(delay, 1) / _MILLISECOND)

    def _note_error(self, now: int) -> None:
        error = self._clock.precision_ns(now)
        if error is not None:
            self._error = error


def delivery_time(data: ServiceData, precision_ns: int) -> int:
    """The common time at which every recipient delivers a message."""
    within_ms = data.quality.within_ms
    assert within_ms is not None
    return data.clock[0] + int(within_ms * _MILLISECOND) + precision_ns
