"""Runs a node from its plan: starts it, passes events to the application, and shuts down gracefully.

The first SIGTERM or SIGINT starts a graceful shutdown: no new work is started, own messages are ordered,
messages are delivered until then, and the node leaves every group. A second signal ends the process at once.
SIGHUP reads certificates and keys again.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from priocast.core.errors import GroupClosed, UnusableKey
from priocast.core.events import Event
from priocast.operations.node_plan import GroupPlan, NodePlan
from priocast.runtime.admin.group_log import GroupLogger
from priocast.runtime.driver import Driver
from priocast.runtime.gc_freeze import freeze_gc
from priocast.runtime.group import Group
from priocast.runtime.node import Node

_ORDERED_POLL_SECONDS = 0.01
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("priocast.node")

OnEvent = Callable[[str, Event], Awaitable[None]]
Work = Callable[[dict[str, Group]], Awaitable[None]]


class _Unordered(Exception):
    """The shutdown timed out before all own messages were ordered."""


class Service:
    """A node with its groups, admin endpoint and logging.

    `on_event` receives every event, with the name of its group. `work` starts when all groups are joined, and
    must return when `ending` is set.
    """

    def __init__(self, plan: NodePlan, on_event: OnEvent, work: Work) -> None:
        self.ending = asyncio.Event()
        self._plan = plan
        self._on_event = on_event
        self._work = work
        self._groups: dict[str, Group] = {}
        self._joined = asyncio.Event()
        self._work_done = asyncio.Event()
        self._unordered: list[str] = []
        self._deadline = 0.0

    def finish(self) -> None:
        """Start a graceful shutdown."""
        self.ending.set()

    async def run(self) -> list[str]:
        """Run until the shutdown; return the groups in which own messages stayed unordered."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        async with AsyncExitStack() as stack:
            stack.callback(self._restore_signals)
            node = await stack.enter_async_context(self._plan.node())
            loop.add_signal_handler(signal.SIGHUP, _reload_keys, node)
            admin = self._plan.admin
            if admin is not None:
                from priocast.runtime.admin.endpoint import Admin  # h11 takes 15 ms to import

                await stack.enter_async_context(Admin(node, admin.listen, allow_remote=admin.allow_remote))
            log.info("%s is joining its groups", self._plan.name)
            await self._run_groups(node)
        return self._unordered

    def _on_signal(self, number: signal.Signals) -> None:
        self._restore_signals()
        log.info("%s: leaving the groups; a second signal exits at once", number.name)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a node that leaves needs no new keys
        self.finish()

    def _restore_signals(self) -> None:
        """Restore the default action of the signals; with uvloop they have it only if no handler is left."""
        for number in (*_SIGNALS, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    async def _run_groups(self, node: Node) -> None:
        async with asyncio.TaskGroup() as tasks:
            logging_task = tasks.create_task(GroupLogger(node).run())
            memberships = {
                group.name: tasks.create_task(self._run_group(node, group)) for group in self._plan.groups
            }
            work = tasks.create_task(self._do_work())
            tasks.create_task(self._end(memberships, work))
            await asyncio.wait(memberships.values())
            logging_task.cancel()

    async def _end(self, memberships: dict[str, "asyncio.Task[None]"], work: "asyncio.Task[None]") -> None:
        """Wait for the shutdown; then wait for `work`, and cancel joins that have not completed."""
        await self.ending.wait()
        self._deadline = asyncio.get_running_loop().time() + self._plan.shutdown_seconds
        for name, task in memberships.items():
            if name not in self._groups:
                log.info("stopped before joining the group", extra={"group": name})
                task.cancel()
        if self._joined.is_set():
            await asyncio.wait([work], timeout=self._plan.shutdown_seconds)
        work.cancel()
        self._work_done.set()

    async def _do_work(self) -> None:
        await self._joined.wait()
        freeze_gc()
        await self._work(self._groups)

    async def _run_group(self, node: Node, plan: GroupPlan) -> None:
        """Join a group, pass on its events, and leave it after the last own message is delivered."""
        try:
            async with asyncio.TaskGroup() as tasks, self._plan.joining(node, plan) as group:
                self._groups[plan.name] = group
                tasks.create_task(self._pass_events(plan.name, group))
                if len(self._groups) == len(self._plan.groups):
                    self._joined.set()
                await self._work_done.wait()
                await self._wait_ordered(node.groups[plan.name])
        except* _Unordered as errors:
            log.error("%s", errors.exceptions[0], extra={"group": plan.name})
            self._unordered.append(plan.name)
        else:
            log.info("left the group", extra={"group": plan.name, "member": str(group.me)})

    async def _pass_events(self, name: str, group: Group) -> None:
        try:
            async for event in group:
                await self._on_event(name, event)
        except GroupClosed:
            if not self.ending.is_set():
                raise

    async def _wait_ordered(self, driver: Driver) -> None:
        """Wait until every message that was broadcast here is ordered, or until the deadline."""
        try:
            async with asyncio.timeout_at(self._deadline):
                while not driver.member.may_leave(time.monotonic_ns()):
                    await asyncio.sleep(_ORDERED_POLL_SECONDS)
        except TimeoutError:
            raise _Unordered(f"leaving with unordered messages: {driver.why_full()}") from None


def _reload_keys(node: Node) -> None:
    """Read the key files again; if one cannot be used, go on with what was read before, and say so."""
    try:
        node.reload_keys()
    except UnusableKey as error:
        log.error("SIGHUP: the keys stay as they were: %s", error)
    else:
        log.info("SIGHUP: read the keys again")
