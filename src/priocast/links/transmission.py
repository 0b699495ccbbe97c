"""Transmission with response: the procedure that every quality of service is built on (xAMp, Figure 1).

A message is sent, and responses are awaited until a timer expires. As long as too few have come, it is
sent again. The parameters of the figure are those of `Transmission`:

    figure      here
    ord         same_retry     all responses must be to the same transmission of the message
    send        send_first     False: another process has sent it; send it only if responses are missing
    M_r         responses      the bag of responses, one per process
    P_r         expected       the processes whose responses count
    n_r         wanted         how many of them are needed
    MAX         retries_max    how often it is sent; None: until enough processes have answered, at longer
                               and longer intervals; those that leave the view are not waited for

A transmission does no I/O. Its owner sends the message when `start` or `on_tick` returns True, and gives
it the responses. Several run at the same time, at the sender and at recipients on its behalf.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from priocast.core.identity import ProcessId

_BACKOFF_MAX = 16

AnyResponse = TypeVar("AnyResponse")
AnyKey = TypeVar("AnyKey")


def earliest(times: Iterable[int | None]) -> int | None:
    """The first of these times; None stands for never."""
    return min((at for at in times if at is not None), default=None)


class Transmission(Generic[AnyResponse]):
    """One execution of the procedure. `retry` numbers the transmissions of the message, from 1.

    `waits_until` is when the current timer expires; None before the start and after the end.
    """

    def __init__(
        self,
        expected: Iterable[ProcessId],
        wanted: int | None = None,
        *,
        timeout_ns: int,
        retries_max: int | None,
        same_retry: bool = False,
        send_first: bool = True,
    ) -> None:
        self.expected = list(dict.fromkeys(expected))
        self._wants_all = wanted is None or wanted >= len(self.expected)
        self._wanted = len(self.expected) if wanted is None else wanted
        self._timeout_ns = timeout_ns
        self._retries_max = retries_max
        self._same_retry = same_retry
        self._send_first = send_first
        self.retry = 0
        self.responses: dict[ProcessId, AnyResponse] = {}
        self._heard: set[ProcessId] = set()
        self.waits_until: int | None = None

    @property
    def wanted(self) -> int:
        """How many responses are needed; no more than there are processes left that can give one."""
        return len(self.expected) if self._wants_all else min(self._wanted, len(self.expected))

    @property
    def complete(self) -> bool:
        """Whether enough responses have come."""
        return len(self.responses) >= self.wanted

    @property
    def exhausted(self) -> bool:
        """Whether it ended without enough responses."""
        return self.retry > 0 and self.waits_until is None and not self.complete

    @property
    def missing(self) -> list[ProcessId]:
        """The expected processes that have not answered."""
        return [process for process in self.expected if process not in self.responses]

    @property
    def silent(self) -> list[ProcessId]:
        """The expected processes that have not answered any transmission: after the last one, they failed."""
        return [process for process in self.expected if process not in self._heard]

    def start(self, now: int) -> bool:
        """Begin; returns whether the message is to be sent now."""
        self.retry = 1
        self._wait(now)
        return self._send_first

    def on_response(self, process: ProcessId, retry: int, response: AnyResponse) -> None:
        """A process answered this transmission of the message; only its first answer to it counts."""
        self._heard.add(process)
        current = retry == self.retry or not self._same_retry
        if current and process in self.expected and process not in self.responses:
            self.responses[process] = response
            if self.complete:
                self.waits_until = None

    def on_departure(self, process: ProcessId) -> None:
        """A process has left the view: neither its response nor its silence counts any more."""
        if process in self.expected:
            self.expected.remove(process)
            self.responses.pop(process, None)
            if self.complete:
                self.waits_until = None

    def on_sent_by_another(self, now: int) -> None:
        """Another process sent the message again: wait for the responses to that."""
        if self.waits_until is not None:
            self._wait(now)

    def on_inaccessible(self, duration_ns: int) -> None:
        """The whole network was silent for so long: that does not count, nor what was sent meanwhile."""
        if self.waits_until is not None:
            self.waits_until += duration_ns
            if self._retries_max is not None:
                self._retries_max += 1

    def on_tick(self, now: int) -> bool:
        """Returns whether the message is to be sent again now."""
        if self.waits_until is None or now < self.waits_until:
            return False
        if self._retries_max is not None and self.retry >= self._retries_max:
            self.waits_until = None
            return False
        self.retry += 1
        if self._same_retry:
            self.responses.clear()
        self._wait(now)
        return True

    def _wait(self, now: int) -> None:
        if self.complete:
            self.waits_until = None
            return
        backoff = 1 if self._retries_max is not None else min(2 ** (self.retry - 1), _BACKOFF_MAX)
        self.waits_until = now + self._timeout_ns * backoff


class TransmissionTimes(Generic[AnyKey]):
    """Finds the transmission whose timer expires next without looking at all of them.

    A timer ends, or moves to a later time. Its entry is corrected when it comes first.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Transmission[Any], AnyKey]] = []
        self._count = 0

    def add(self, key: AnyKey, transmission: Transmission[Any]) -> None:
        """A transmission was started."""
        if transmission.waits_until is not None:
            self._count += 1
            heappush(self._entries, (transmission.waits_until, self._count, transmission, key))

    @property
    def next_at(self) -> int | None:
        """When the next timer expires."""
        entries = self._entries
        while entries and entries[0][2].waits_until != entries[0][0]:
            _, count, transmission, key = heappop(entries)
            if transmission.waits_until is not None:
                heappush(entries, (transmission.waits_until, count, transmission, key))
        return entries[0][0] if entries else None

    def expired(self, now: int) -> list[AnyKey]:
        """The transmissions whose timers have expired, in the order in which they were started."""
        expired = []
        while (at := self.next_at) is not None and at <= now:
            expired.append(heappop(self._entries))
        for entry in expired:
            heappush(self._entries, entry)
        return [key for _, _, _, key in sorted(expired, key=lambda entry: entry[1])]
