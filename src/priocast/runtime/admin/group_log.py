"""Logs the events of a node's groups that an operator wants to know.

It polls the state that the members keep anyway (the last views, evictions, rejections), so the members
contain no logging and pay nothing for it.
"""

import asyncio
import logging
import time

from priocast.core.identity import ProcessId
from priocast.membership.membership import Membership
from priocast.runtime.adaptation import NEWS
from priocast.runtime.driver import Driver
from priocast.runtime.node import Node

POLL_SECONDS = 0.2
SLOW_SECONDS = 1.0
REJECTION_SECONDS = 1.0

log = logging.getLogger("priocast.group")


class GroupLogger:
    """Logs the events of all groups of a node; `run` it as a task."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._logs: dict[Driver, _MemberLog] = {}

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            self.poll()
            await asyncio.sleep(POLL_SECONDS)

    def poll(self) -> None:
        """Log what is new since the last poll."""
        drivers = list(self._node.groups.values())
        self._logs = {driver: self._logs.get(driver) or _MemberLog(driver) for driver in drivers}
        for member_log in self._logs.values():
            member_log.poll(time.monotonic_ns())


class _MemberLog:
    """The log of one member, and what has been logged already."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._evictions_logged_until = 0
        self._views_logged_until = 0
        self._suspended = False
        self._bottleneck = ""
        self._slow_warn_at_seconds = SLOW_SECONDS
        self._stall_warn_at_seconds = SLOW_SECONDS
        self._unacknowledged: frozenset[ProcessId] = frozenset()
        self._rejections: dict[str, int] = {}
        self._rejections_logged_at = 0
        self._membership: Membership | None = None
        self._advice = ""
        self._storage_problems: list[str] = []

    def poll(self, now: int) -> None:
        """Log what is new."""
        self._log_evictions()
        self._log_views()
        self._log_suspension(now)
        self._log_bottleneck(now)
        self._log_unacknowledged()
        self._log_stall(now)
        self._log_rejections(now)
        self._log_advice()
        self._log_storage()

    def _log(self, level: int, message: str, **fields: object) -> None:
        driver = self._driver
        where = {"group": driver.configuration.group, "member": str(driver.member.me)}
        log.log(level, message, extra=where | fields)

    def _log_views(self) -> None:
        membership = self._driver.member.membership
        for change in membership.view_history.recent:
            if change.at <= self._views_logged_until:
                continue
            self._views_logged_until = change.at
            names = ", ".join(member.name for member in change.view.members)
            rejoined = self._driver.factory.made > 1 and membership is not self._membership
            self._membership = membership
            self._log(
                logging.INFO,
                f"{'rejoined' if rejoined else 'in'} view {change.view.number} of {names}: {change.reason}",
                view=change.view.number,
                members=[str(member) for member in change.view.members],
                reason=str(change.reason),
                took_ms=round(change.took_ns / 1e6, 1),
            )

    def _log_evictions(self) -> None:
        for reason, at in self._driver.evictions:
            if at > self._evictions_logged_until:
                self._evictions_logged_until = at
                self._suspended = False
                self._log(logging.WARNING, f"evicted: {reason}", reason=str(reason))

    def _log_suspension(self, now: int) -> None:
        membership = self._driver.member.membership
        if membership.trigger.suspended == self._suspended:
            return
        members = membership.view.members if membership.view else ()
        silent = [
            member.name
            for member in members
            if member != membership.me and not membership.neighbours.trusts(member, now)
        ]
        if membership.trigger.suspended and not silent:
            return  # Others have just left and were heard until then: a new view follows shortly.
        self._suspended = membership.trigger.suspended
        if membership.trigger.suspended:
            assert membership.view is not None
            self._log(
                logging.ERROR,
                f"suspended: no quorum can be reached; no heartbeats from {', '.join(silent)}",
                view=membership.view.number,
                silent=silent,
            )
        elif membership.view is not None:
            self._log(logging.INFO, "resumed: a quorum can be reached again")

    def _log_bottleneck(self, now: int) -> None:
        slow, waited_ns = self._driver.member.progress.slow_member.waited(now)
        name, seconds = slow.name if slow else "", waited_ns / 1e9
        if name != self._bottleneck:
            self._bottleneck, self._slow_warn_at_seconds = name, SLOW_SECONDS
        if name and seconds >= self._slow_warn_at_seconds:
            self._slow_warn_at_seconds = 2 * seconds
            self._log(
                logging.WARNING,
                f"the order has waited {seconds:.1f} s for {name}: its application does not consume",
                bottleneck=name,
                seconds=round(seconds, 1),
            )

    def _log_unacknowledged(self) -> None:
        """Log once for each peer that is heard and does not acknowledge, before it is evicted."""
        late = self._driver.member.progress.unacknowledged.late()
        for peer, waited_ns in late.items():
            if peer not in self._unacknowledged:
                seconds = waited_ns / 1e9
                self._log(
                    logging.WARNING,
                    f"{peer.name} is heard, but has acknowledged nothing for {seconds:.1f} s: "
                    "frames do not get through",
                    peer=peer.name,
                    seconds=round(seconds, 1),
                )
        self._unacknowledged = frozenset(late)

    def _log_stall(self, now: int) -> None:
        epoch = self._driver.member.epoch
        inspection = epoch.protocol.inspect(now) if epoch else None
        seconds = inspection.stalled_ns / 1e9 if inspection else 0.0
        if seconds < SLOW_SECONDS:
            self._stall_warn_at_seconds = SLOW_SECONDS
        if inspection and seconds >= self._stall_warn_at_seconds:
            self._stall_warn_at_seconds = 2 * seconds
            reason = inspection.stall_reason
            self._log(
                logging.WARNING,
                f"delivery has stalled for {seconds:.1f} s: {reason}",
                reason=reason,
                seconds=round(seconds, 1),
            )

    def _log_advice(self) -> None:
        """Log a choice or change of the order at level info, a confirmation of it at level debug."""
        advice = self._driver.advice
        if advice and advice != self._advice:
            news = advice.startswith(NEWS)
            self._log(logging.INFO if news else logging.DEBUG, advice, advice=advice)
        self._advice = advice

    def _log_storage(self) -> None:
        """Log a problem once: the number of rows that are lost is in the metrics."""
        problems = self._driver.storage.problems
        if bool(problems) != bool(self._storage_problems):
            for problem in problems:
                self._log(logging.ERROR, f"the member continues, but {problem}", problem=problem)
            if not problems:
                self._log(logging.INFO, "all records are written again")
        self._storage_problems = problems

    def _log_rejections(self, now: int) -> None:
        if now - self._rejections_logged_at < REJECTION_SECONDS * 1e9:
            return
        self._rejections_logged_at = now
        rejections = dict(self._driver.member.rejections)
        for reason, count in rejections.items():
            new = count - self._rejections.get(reason, 0)
            if new > 0:
                self._log(logging.WARNING, f"rejected: {reason} ({new} times)", reason=reason, count=count)
        self._rejections = rejections
