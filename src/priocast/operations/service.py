"""Runs a node from its plan: starts all of it, hands out what is delivered, and ends without losing anything.

The first SIGTERM or SIGINT ends it in good order: nothing new is begun, what was broadcast here gets its
place, messages are handed out until then, and every group lets this member go. A second one ends it at once.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from priocast.core.errors import GroupClosed
from priocast.core.events import Event
from priocast.operations.admin import Admin
from priocast.operations.plan import GroupPlan, Plan
from priocast.operations.watch import Watch
from priocast.runtime.driver import Driver
from priocast.runtime.explanations import why_full
from priocast.runtime.gc_freeze import freeze_gc
from priocast.runtime.group import Group
from priocast.runtime.node import Node

_SETTLED_LOOK_SECONDS = 0.01
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("priocast.node")

OnEvent = Callable[[str, Event], Awaitable[None]]
Work = Callable[[dict[str, Group]], Awaitable[None]]


class _Unsettled(Exception):
    """There is no more time to wait for messages of ours to get their place."""


class Service:
    """One node, all its groups, and what goes with them.

    `on_event` gets every event, with the name of its group. `work` begins when all groups are joined; it
    should come to its end when `ending` is set.
    """

    def __init__(self, plan: Plan, on_event: OnEvent, work: Work) -> None:
        self.ending = asyncio.Event()
        self._plan = plan
        self._on_event = on_event
        self._work = work
        self._groups: dict[str, Group] = {}
        self._joined = asyncio.Event()
        self._worked = asyncio.Event()
        self._unsettled: list[str] = []
        self._deadline = 0.0

    def finish(self) -> None:
        """End in good order."""
        self.ending.set()

    async def run(self) -> list[str]:
        """Run until told to end; return the groups in which messages of ours were left without a place."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        async with AsyncExitStack() as stack:
            stack.callback(self._restore_signals)
            node = await stack.enter_async_context(self._plan.node())
            admin = self._plan.admin
            if admin is not None:
                await stack.enter_async_context(Admin(node, admin.listen, allow_remote=admin.allow_remote))
            log.info("%s waits for the groups to come about", self._plan.name)
            await self._take_part(node)
        return self._unsettled

    def _on_signal(self, number: signal.Signals) -> None:
        log.info("%s: ending in good order; a second one ends at once", number.name)
        self._restore_signals()
        self.finish()

    def _restore_signals(self) -> None:
        """Let signals do what they do to any process."""
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    async def _take_part(self, node: Node) -> None:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(Watch(node).run())
            living = {group.name: tasks.create_task(self._be_in(node, group)) for group in self._plan.groups}
            working = tasks.create_task(self._do_work())
            tasks.create_task(self._end(living, working))
            await asyncio.wait(living.values())
            watching.cancel()

    async def _end(self, living: dict[str, "asyncio.Task[None]"], working: "asyncio.Task[None]") -> None:
        """Wait for the end; then let the work come to its own, and give up what did not even begin."""
        await self.ending.wait()
        self._deadline = asyncio.get_running_loop().time() + self._plan.shutdown_seconds
        for name, task in living.items():
            if name not in self._groups:
                log.info("ended before the group came about", extra={"group": name})
                task.cancel()
        if self._joined.is_set():
            await asyncio.wait([working], timeout=self._plan.shutdown_seconds)
        working.cancel()
        self._worked.set()

    async def _do_work(self) -> None:
        await self._joined.wait()
        freeze_gc()
        await self._work(self._groups)

    async def _be_in(self, node: Node, plan: GroupPlan) -> None:
        """The whole time in one group; what it ordered is handed out to the last message."""
        try:
            async with asyncio.TaskGroup() as tasks, self._plan.joining(node, plan) as group:
                self._groups[plan.name] = group
                tasks.create_task(self._hand_out(plan.name, group))
                if len(self._groups) == len(self._plan.groups):
                    self._joined.set()
                await self._worked.wait()
                await self._wait_settled(node.groups[plan.name])
        except* _Unsettled as errors:
            log.error("%s", errors.exceptions[0], extra={"group": plan.name})
            self._unsettled.append(plan.name)
        else:
            log.info("left the group", extra={"group": plan.name, "member": str(group.me)})

    async def _hand_out(self, name: str, group: Group) -> None:
        try:
            async for event in group:
                await self._on_event(name, event)
        except GroupClosed:
            if not self.ending.is_set():
                raise

    async def _wait_settled(self, driver: Driver) -> None:
        """Wait until every message that was broadcast here has its place, but not for ever."""
        try:
            async with asyncio.timeout_at(self._deadline):
                while not driver.member.may_leave(time.monotonic_ns()):
                    await asyncio.sleep(_SETTLED_LOOK_SECONDS)
        except TimeoutError:
            raise _Unsettled(f"ends before it could leave in good order: {why_full(driver.member)}") from None
