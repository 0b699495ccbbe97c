"""The order `auto`: the coordinator measures the load, asks the advisor, and changes the order.

Every member measures, because any of them may coordinate the next view, but only the coordinator acts. It
changes the order when another protocol was clearly better in several consecutive measurements, and then not
again for a while: a change stalls the group for the duration of a view change, and a short burst of load does
not justify it.
"""

import asyncio
import time
from typing import NamedTuple

import msgspec

from priocast.advice.advisor import advise
from priocast.advice.choice import is_clearly_better, situation_of
from priocast.advice.situation import Situation
from priocast.core.view import ViewId
from priocast.membership.packets import Ordering
from priocast.runtime.driver import Driver

MEASURE_SECONDS = 1.0
MEASUREMENTS_NEEDED = 5
PAUSE_SECONDS = 30.0
NEWS = ("starts with", "changes from")
_ACTIVE_SHARE = 0.05
_SECOND = 1_000_000_000


class _Measurement(NamedTuple):
    """The load at one time: how many messages of each sender are ordered, and how many wait."""

    view: ViewId
    at: int
    ordered: dict[str, int]
    backlog: int
    bytes: int


class Adaptation:
    """Adapts the order of one member's group; `run` it as a task."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._before: _Measurement | None = None
        self._in_favour = 0
        self._changed_at: int | None = None
        order = driver.member.membership.ordering.order
        driver.advice = f"starts with {order}, which suits a group of this size without load"

    async def run(self) -> None:
        """Measure periodically until cancelled."""
        while True:
            await asyncio.sleep(MEASURE_SECONDS)
            self.step(time.monotonic_ns())

    def step(self, now: int) -> None:
        """Measure the load since the last step, and change the order if that was advised for long enough."""
        measured, before = self._measure(now), self._before
        self._before = measured
        if measured is None or before is None or measured.view != before.view:
            self._in_favour = 0
            return
        membership = self._driver.member.membership
        assert membership.view is not None
        if membership.view.coordinator != membership.me:
            self._driver.advice = ""
            return
        advice = advise(self._situation(before, measured))
        order = membership.ordering.order
        self._in_favour = self._in_favour + 1 if is_clearly_better(advice, order) else 0
        self._driver.advice = f"{order} suits the load: " if order == advice.choice else f"{order} stays: "
        self._driver.advice += advice.why[0]
        if self._in_favour >= MEASUREMENTS_NEEDED and self._may_change(now):
            self._change(advice.choice, advice.why[0], now)

    def _may_change(self, now: int) -> bool:
        return self._changed_at is None or now - self._changed_at >= PAUSE_SECONDS * _SECOND

    def _change(self, order: str, why: str, now: int) -> None:
        driver, used = self._driver, self._driver.member.membership.ordering
        self._changed_at, self._in_favour = now, 0
        driver.advice = f"changes from {used.order} to {order}: {why}"
        driver.change_order(Ordering(order, used.prioritised, used.starvation))

    def _measure(self, now: int) -> _Measurement | None:
        member = self._driver.member
        epoch = member.epoch
        if epoch is None or member.membership.changing:
            return None
        digest = member.stream.digest(0, [])
        ordered = {each.process.name: sum(each.next_numbers.values()) for each in digest.ordered}
        return _Measurement(epoch.view.id, now, ordered, member.backlog, epoch.stability.bytes_total)

    def _situation(self, before: _Measurement, after: _Measurement) -> Situation:
        """The load between two measurements; a growing backlog was broadcast as well."""
        driver = self._driver
        epoch = driver.member.epoch
        assert epoch is not None
        seconds = (after.at - before.at) / _SECOND
        counts = {name: count - before.ordered.get(name, 0) for name, count in after.ordered.items()}
        delivered = sum(counts.values())
        members = len(epoch.view.members)
        active = sum(count > _ACTIVE_SHARE * delivered / members for count in counts.values())
        round_trips = [link.round_trip_ns_min for link in epoch.links.values() if link.round_trip_ns_min]
        known = situation_of(driver.configuration.options, driver.configuration.membership, members)
        return msgspec.structs.replace(
            known,
            rate=max(0.0, (delivered + max(0, after.backlog - before.backlog)) / seconds),
            senders=min(members, max(1, active)),
            rtt_ms=min(round_trips, default=100_000) / 1e6,
            payload_bytes=min((after.bytes - before.bytes) // delivered, 2**20) if delivered > 0 else 64,
        )
