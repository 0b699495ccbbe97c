"""A replica: one member's copy of a replicated state, and the calls to change and read it.

    async with priocast.open_replica("bank", Accounts(), member="a", listen=..., peers=[...]) as replica:
        result = await replica.submit(b"deposit 5", priority=priocast.URGENT)
        balance = await replica.read(lambda accounts: accounts.balance)

The replica consumes the ordered stream of its group by itself. It answers a call only on *safe* delivery:
every member of the view has received the command, so no partition can undo it.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from types import TracebackType
from typing import Any, Generic, TypeVar

from priocast.core.errors import DeadlineExceeded, GroupClosed, InvalidInput
from priocast.core.identity import ProcessId
from priocast.core.priority import ROUTINE, check_priority
from priocast.core.view import View
from priocast.replication.arguments import (
    check_command,
    check_read,
    command_id_of,
    outcome_unknown,
    result_of,
)
from priocast.replication.commands import CommandId
from priocast.replication.questions import Questions
from priocast.replication.replica_driver import ReplicaDriver
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.sessions import Outcome
from priocast.replication.state_log import StateLog
from priocast.replication.state_machine import StateMachine
from priocast.replication.voters import Voters
from priocast.runtime.arguments import check_seconds
from priocast.runtime.group import Group
from priocast.runtime.status import Status

log = logging.getLogger("priocast.replica")

SUBMIT_SECONDS = 30.0

M = TypeVar("M", bound=StateMachine)
T = TypeVar("T")


class Replica(Generic[M]):
    """A replica of the state machine `machine`; `open_replica` yields one."""

    def __init__(
        self,
        joining: AbstractAsyncContextManager[Group],
        machine: M,
        state: ReplicatedState,
        open_log: Callable[[], StateLog] | None = None,
    ) -> None:
        self.machine = machine
        self._open_log = open_log
        self._joining = joining
        self._state = state
        self._driver: ReplicaDriver | None = None
        self._running: asyncio.Task[None] | None = None
        self._closing = False

    def __await__(self) -> Generator[Any, None, "Replica[M]"]:
        """Open the replica without a block, as in a notebook; then `close` it."""
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Stop the replica and leave the group, as the end of `async with` does."""
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> "Replica[M]":
        joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = running = asyncio.create_task(self._run(joined))
        try:
            await asyncio.wait([running, joined], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop()
            raise
        if not joined.done():
            running.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()
        if kind is None and self._running is not None:
            self._running.result()

    async def _stop(self) -> None:
        self._closing = True
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self, joined: asyncio.Future[None]) -> None:
        """Read the log if there is one, join, apply what is delivered, and leave."""
        state_log = self._open_log() if self._open_log is not None else None
        with closing(state_log) if state_log is not None else nullcontext():
            if state_log is not None:
                state_log.recover(self._state)
            await self._run_in_group(joined, state_log)

    async def _run_in_group(self, joined: asyncio.Future[None], state_log: StateLog | None) -> None:
        """Be a member; an error of the state machine or of the disk makes this member leave."""
        async with self._joining as group:
            self._driver = driver = ReplicaDriver(group, self._state, state_log)
            joined.set_result(None)
            try:
                await driver.run()
            except asyncio.CancelledError:
                driver.close(GroupClosed(f"the replica {group.me.name} was closed"))
                if not self._closing:
                    raise
            except GroupClosed as error:
                driver.close(error)
                raise
            except Exception as error:
                log.error("the replica stopped: %r", error, extra={"member": str(group.me)})
                closed = GroupClosed(f"the replica {group.me.name} stopped: {error!r}")
                closed.__cause__ = error
                driver.close(closed)
                raise

    @property
    def _open(self) -> ReplicaDriver:
        if self._driver is None:
            raise GroupClosed("the replica is not open: use it within its 'async with'")
        if self._driver.closed is not None:
            raise self._driver.closed
        return self._driver

    # What this replica is

    @property
    def me(self) -> ProcessId:
        """This member: its name and its current incarnation."""
        return self._open.group.me

    @property
    def view(self) -> View | None:
        """The members of the group at `position`; None before the first view."""
        return self._state.view

    @property
    def position(self) -> int:
        """The position of the next message: all before it were applied here."""
        return self._open.position

    @property
    def time_ns(self) -> int:
        """The time of the order: the highest clock that came with a command, in nanoseconds since 1970."""
        return self._state.time_ns

    @property
    def questions(self) -> Questions:
        """Asks other members, and answers what they ask."""
        return self._open.questions

    @property
    def voters(self) -> Voters:
        """The members whose disks count, with `durability="disk"`."""
        return Voters(self._state, self._change_voter)

    def status(self) -> Status:
        """The status of this member and its group."""
        return self._open.group.status()

    @property
    def is_current(self) -> bool:
        """Whether this replica is in the group and has its state: what it applied is a prefix of the order.

        How recent it is, `staleness_seconds` says. `wait_current` and `wait_not_current` wait for a change.
        """
        return self._driver is not None and self._driver.is_current

    @property
    def staleness_seconds(self) -> float | None:
        """How old this replica's state is at most: it contains everything acknowledged before that time.

        None if that is not known. Every `submit`, and every `read` with a barrier, renews it.
        """
        fresh_as_of = self._open.fresh_as_of
        return None if fresh_as_of is None or not self.is_current else time.monotonic() - fresh_as_of

    # Waiting

    async def wait_current(self, timeout_seconds: float = SUBMIT_SECONDS) -> None:
        """Wait until `is_current`; raise `DeadlineExceeded` after `timeout_seconds`."""
        await self.wait_until(lambda: self.is_current, timeout_seconds)

    async def wait_not_current(self, timeout_seconds: float = SUBMIT_SECONDS) -> None:
        """Wait until this replica is not current; raise `DeadlineExceeded` after `timeout_seconds`."""
        await self.wait_until(lambda: not self.is_current, timeout_seconds)

    async def wait_until(
        self, condition: Callable[[], bool], timeout_seconds: float = SUBMIT_SECONDS
    ) -> None:
        """Wait until a `condition` on the local state holds; it is checked after every event.

        After `timeout_seconds`, `DeadlineExceeded` is raised.
        """
        check_seconds("timeout_seconds", timeout_seconds)
        await self._wait(self._open.conditions.wait(condition), timeout_seconds)

    async def _wait(self, awaited: Awaitable[T], timeout_seconds: float) -> T:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await awaited
        except TimeoutError:
            raise DeadlineExceeded(f"timed out after {timeout_seconds:g} s: {self._why_waiting()}") from None

    def _why_waiting(self) -> str:
        durability = self._driver.durability if self._driver is not None else None
        if durability is not None and (why := durability.why_not_current()):
            return why
        if not self.is_current:
            return "this replica is not in the group now, or has not received the state"
        status = self.status()
        return f"the group is {status.state}"

    async def _wait_founded(self, timeout_seconds: float) -> None:
        """Wait until the members have agreed on what is on their disks, if they have any."""
        if self._open_log is not None and self._state.reports is not None:
            await self.wait_until(lambda: self._state.reports is None, timeout_seconds)

    # Commands and reads

    async def submit(
        self, command: bytes, priority: int = ROUTINE, *, timeout_seconds: float = SUBMIT_SECONDS
    ) -> bytes:
        """Have every replica apply a command, exactly once; return its result.

        - `command`: what `apply` gets; nearly 1 MiB at most.
        - `priority`: 0 to 255, higher is more urgent.
        - `timeout_seconds`: how long to wait. Then `OutcomeUnknown` is raised, with the id of the command.

        `CommandFailed` is raised if `apply` raised an exception. If this member is evicted meanwhile, it
        rejoins and submits the command again; the command is applied once.
        """
        check_command(command, priority, timeout_seconds)
        driver = self._open
        if self._open_log is not None:
            await self._wait_founded(timeout_seconds)
        if driver.submissions.is_full:
            await self._wait(driver.submissions.wait_room(), timeout_seconds)
        command_id, outcome = driver.submissions.open(timeout_seconds)
        try:
            waiting = driver.submit(command_id, command, priority, timeout_seconds)
            if waiting is not None:
                await waiting
            found = await outcome
        except TimeoutError:
            raise outcome_unknown(command_id, timeout_seconds, self._why_waiting()) from None
        return result_of(command_id, found)

    async def settle(
        self, command: CommandId | str, priority: int = ROUTINE, *, timeout_seconds: float = SUBMIT_SECONDS
    ) -> Outcome:
        """What became of a command whose outcome was unknown; if it was not applied, it never will be.

        - `command`: its id, as `OutcomeUnknown` has it; also one of another replica, or of an earlier start.
        - `priority`: that of the question.
        - `timeout_seconds`: how long to wait. Then `DeadlineExceeded` is raised.
        """
        wanted = command_id_of(command)
        check_priority(priority)
        check_seconds("timeout_seconds", timeout_seconds)
        await self._wait_founded(timeout_seconds)
        return await self._wait(asyncio.shield(self._open.settle(wanted, priority).answer), timeout_seconds)

    async def _change_voter(self, member: str, is_voter: bool, timeout_seconds: float) -> Outcome:
        """Everything so far is durable first: so is the change of voters before this one."""
        if self._open_log is None:
            raise InvalidInput("the group has no voters: open its replicas with durability='disk'")
        await self.read(lambda _: None, timeout_seconds=timeout_seconds)
        answer = self._open.change_voter(member, is_voter).answer
        return await self._wait(asyncio.shield(answer), timeout_seconds)

    async def read(
        self,
        query: Callable[[M], T],
        priority: int = ROUTINE,
        *,
        staleness_seconds: float = 0.0,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> T:
        """Read the state at this replica: `query` gets the state machine, and must not change it.

        By default the read is linearizable: it sees every command whose result was returned before, at any
        replica. A barrier is ordered for it; reads that begin together share one.

        - `query`: a function of the state machine; what it returns is returned.
        - `priority`: that of the barrier.
        - `staleness_seconds`: a state that is at most this old is good enough. If this replica is known to be
          as recent, it answers at once; with infinity as soon as it is current.
        - `timeout_seconds`: how long to wait. Then `DeadlineExceeded` is raised.
        """
        check_read(query, priority, staleness_seconds, timeout_seconds)
        driver, known = self._open, self.staleness_seconds
        if math.isinf(staleness_seconds):
            await self.wait_current(timeout_seconds)
        elif not staleness_seconds or known is None or known > staleness_seconds:
            await self._wait_founded(timeout_seconds)
            await self._wait(asyncio.shield(driver.barrier(priority)), timeout_seconds)
        return query(self.machine)
