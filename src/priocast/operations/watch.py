"""Follows the groups of a node, and logs what whoever is on call wants to know.

It looks a few times a second at what the members keep anyway (the last views, when they were put out, what
they refused), so the members know nothing of logs, and pay nothing for them.
"""

import asyncio
import logging
import time

from priocast.membership.membership import Membership
from priocast.runtime.adaptation import NEWS
from priocast.runtime.driver import Driver
from priocast.runtime.node import Node

LOOK_SECONDS = 0.2
SLOW_SECONDS = 1.0
REJECTION_SECONDS = 1.0

log = logging.getLogger("priocast.group")


class Watch:
    """Logs for all groups of a node; `run` it as a task."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._followed: dict[Driver, Followed] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Log what is new since the last look; once more at the end, and nothing is missing."""
        drivers = list(self._node.groups.values())
        self._followed = {driver: self._followed.get(driver) or Followed(driver) for driver in drivers}
        for followed in self._followed.values():
            followed.look(time.monotonic_ns())


class Followed:
    """One member, and what has been told of it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._stops_told_until = 0
        self._changes_told_until = 0
        self._suspended = False
        self._warned_of = ""
        self._warn_at_seconds = SLOW_SECONDS
        self._stall_warn_at_seconds = SLOW_SECONDS
        self._rejections: dict[str, int] = {}
        self._rejections_logged_at = 0
        self._membership: Membership | None = None
        self._advice = ""

    def look(self, now: int) -> None:
        """Log what is new."""
        self._tell_stops()
        self._tell_changes()
        self._tell_suspension(now)
        self._tell_slowness(now)
        self._tell_stall(now)
        self._log_rejections(now)
        self._tell_advice()

    def _tell(self, level: int, sentence: str, **fields: object) -> None:
        driver = self._driver
        where = {"group": driver.configuration.group, "member": str(driver.member.me)}
        log.log(level, sentence, extra=where | fields)

    def _tell_changes(self) -> None:
        membership = self._driver.member.membership
        for change in membership.installations:
            if change.at <= self._changes_told_until:
                continue
            self._changes_told_until = change.at
            names = ", ".join(member.name for member in change.view.members)
            is_back = self._driver.incarnations > 1 and membership is not self._membership
            self._membership = membership
            self._tell(
                logging.INFO,
                f"{'back in' if is_back else 'in'} view {change.view.number} of {names}: {change.reason}",
                view=change.view.number,
                members=[str(member) for member in change.view.members],
                reason=str(change.reason),
                took_ms=round(change.took_ns / 1e6, 1),
            )

    def _tell_stops(self) -> None:
        for reason, at in self._driver.evictions:
            if at > self._stops_told_until:
                self._stops_told_until = at
                self._suspended = False
                self._tell(logging.WARNING, f"evicted from the group: {reason}", reason=str(reason))

    def _tell_suspension(self, now: int) -> None:
        membership = self._driver.member.membership
        if membership.suspended == self._suspended:
            return
        members = membership.view.members if membership.view else ()
        unheard = [
            member.name
            for member in members
            if member != membership.me and not membership.neighbours.trusts(member, now)
        ]
        if membership.suspended and not unheard:
            return  # Others have just left and were heard until then: that is over in a moment.
        self._suspended = membership.suspended
        if membership.suspended:
            assert membership.view is not None
            self._tell(
                logging.ERROR,
                f"suspended: no majority of the group can be reached; {', '.join(unheard)} cannot be heard",
                view=membership.view.number,
                unheard=unheard,
            )
        elif membership.view is not None:
            self._tell(logging.INFO, "goes on: a majority of the group can be reached again")

    def _tell_slowness(self, now: int) -> None:
        slow, waited_ns = self._driver.member.slow_member.waited(now)
        name, seconds = slow.name if slow else "", waited_ns / 1e9
        if name != self._warned_of:
            self._warned_of, self._warn_at_seconds = name, SLOW_SECONDS
        if name and seconds >= self._warn_at_seconds:
            self._warn_at_seconds = 2 * seconds
            self._tell(
                logging.WARNING,
                f"blocked on credit from {name} for {seconds:.1f} s: its application does not consume",
                peer=name,
                seconds=round(seconds, 1),
            )

    def _tell_stall(self, now: int) -> None:
        epoch = self._driver.member.epoch
        seconds = epoch.protocol.stalls.lasting(now) / 1e9 if epoch else 0.0
        if seconds < SLOW_SECONDS:
            self._stall_warn_at_seconds = SLOW_SECONDS
        if epoch and seconds >= self._stall_warn_at_seconds:
            self._stall_warn_at_seconds = 2 * seconds
            reason = epoch.protocol.stall_reason()
            self._tell(
                logging.WARNING,
                f"the application has had to wait for {seconds:.1f} s: {reason}",
                reason=reason,
                seconds=round(seconds, 1),
            )

    def _tell_advice(self) -> None:
        """Log which order was chosen, and why; that it stays, only for those who want to know everything."""
        advice = self._driver.advice
        if advice and advice != self._advice:
            news = advice.startswith(NEWS)
            self._tell(logging.INFO if news else logging.DEBUG, advice, advice=advice)
        self._advice = advice

    def _log_rejections(self, now: int) -> None:
        if now - self._rejections_logged_at < REJECTION_SECONDS * 1e9:
            return
        self._rejections_logged_at = now
        rejections = dict(self._driver.member.rejections)
        for reason, count in rejections.items():
            new = count - self._rejections.get(reason, 0)
            if new > 0:
                self._tell(logging.WARNING, f"refused: {reason} ({new} times)", reason=reason, count=count)
        self._rejections = rejections
