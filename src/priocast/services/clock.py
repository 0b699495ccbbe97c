"""The time service: clocks that all members read alike, to a precision that is known.

The coordinator's clock is the reference. Every other member asks it for the time, again and again. The
answer was given at some moment between request and reply, so half of that interval bounds the error. Of
the recent answers the one with the shortest interval counts; its error grows with its age, because clocks
drift apart. A clock that turns out to be fast stands still until its time has come; for so long it is
wrong by that much more.

A member that becomes the coordinator keeps the clock that it has, so that time does not jump.
"""

from collections import deque

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.services.outputs import Multicast, ServiceOutput
from priocast.services.packets import TimeReply, TimeRequest

_INTERVAL_NS = 100_000_000
_SAMPLES_KEPT = 16
_DRIFT_PER_MILLION = 200


class _Sample(msgspec.Struct, frozen=True):
    """An answer of the coordinator: what to add to the local time, how wrong that can be, and since when."""

    offset: int
    error: int
    at: int


class VirtualClock:
    """One member's reading of the common time. It never runs backwards."""

    def __init__(self, me: ProcessId) -> None:
        self._me = me
        self._coordinator: ProcessId | None = None
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES_KEPT)
        self._requests: dict[int, int] = {}
        self._number = 0
        self._offset = 0
        self._last = 0
        self.deadline: int | None = None

    def time(self, now: int) -> int:
        """The common time."""
        self._last = max(self._last, now + self._offset)
        return self._last

    def precision_ns(self, now: int) -> int | None:
        """How far this clock and the coordinator's can be apart; None if that is not known."""
        if self._coordinator == self._me:
            return 0
        ahead = max(0, self._last - now - self._offset)
        error = min((_error_of(sample, now) for sample in self._samples), default=None)
        return None if error is None else error + ahead

    def on_view(self, view: View, now: int) -> None:
        """The members have changed, and with them perhaps the reference."""
        if view.coordinator != self._coordinator:
            self._coordinator = view.coordinator
            self._samples.clear()
            self._requests.clear()
        if self._coordinator == self._me:
            self._offset = max(
                self._offset, self._last - now
            )  # the others follow it: it must not stand still
        self.deadline = None if self._coordinator == self._me else now

    def on_tick(self, now: int) -> list[ServiceOutput]:
        """Ask for the time."""
        if self.deadline is None or now < self.deadline or self._coordinator is None:
            return []
        self.deadline = now + _INTERVAL_NS
        self._number += 1
        self._requests[self._number] = now
        if len(self._requests) > _SAMPLES_KEPT:
            del self._requests[next(iter(self._requests))]
        return [Multicast((self._coordinator,), TimeRequest(self._number))]

    def on_request(self, peer: ProcessId, request: TimeRequest, now: int) -> list[ServiceOutput]:
        """Another member asks for the time."""
        return [Multicast((peer,), TimeReply(request.number, self.time(now)))]

    def on_reply(self, peer: ProcessId, reply: TimeReply, now: int) -> None:
        """The coordinator told the time."""
        asked_at = self._requests.pop(reply.number, None)
        if asked_at is None or peer != self._coordinator:
            return
        error = (now - asked_at + 1) // 2
        self._samples.append(_Sample(reply.time - (asked_at + now) // 2, error, asked_at))
        self._offset = min(self._samples, key=lambda sample: _error_of(sample, now)).offset


def _error_of(sample: _Sample, now: int) -> int:
    return sample.error + (now - sample.at) * _DRIFT_PER_MILLION // 1_000_000
