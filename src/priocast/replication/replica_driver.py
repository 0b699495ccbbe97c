"""Drives a replica: joins, applies what is delivered, and broadcasts what the replica asks for.

The driver's task is the only one that consumes the ordered stream, so the state machine runs in one task.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any

from priocast.core.errors import DeadlineExceeded, GroupClosed, Overloaded, PriocastError
from priocast.core.events import DeliveredBatch, Evicted, Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.priority import HIGHEST
from priocast.core.view import View
from priocast.replication.commands import (
    Answer,
    Barrier,
    ChangeVoter,
    Command,
    CommandId,
    LogReport,
    NextSlot,
    Promised,
    Question,
    Refill,
    Settle,
    Stored,
    encode_envelope,
)
from priocast.replication.conditions import Conditions
from priocast.replication.durability import Durability
from priocast.replication.happenings import CommandFinished, CommandSettled, Happened
from priocast.replication.questions import Questions
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.requests import OpenRequest, Requests
from priocast.replication.sessions import Outcome
from priocast.replication.state_log import StateLog
from priocast.replication.submissions import Submissions
from priocast.runtime.group import Group

log = logging.getLogger("priocast.replica")


class ReplicaDriver:
    """One member's part in a replicated state, from joining until leaving.

    `position` is that of the next message. `fresh_as_of`: the state contains everything that was acknowledged
    before this time of the local clock.
    """

    def __init__(self, group: Group, state: ReplicatedState, state_log: StateLog | None) -> None:
        self._session, name = str(group.me), group.me.name
        self.group = group
        self.state = state
        self.position = 0
        self.is_current = False
        self.fresh_as_of: float | None = None
        self.closed: GroupClosed | None = None
        self.conditions = Conditions()
        self.submissions = Submissions(self._session)
        self.questions = Questions(self._session, name, self.send, lambda: state.view)
        self.settlements: Requests[Outcome] = Requests(self._session)
        self._barriers: Requests[None] = Requests(self._session)
        self._barriers_due: dict[int, asyncio.Future[None]] = {}
        self._slots_asked: dict[CommandId, int] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._had_view = False
        self.durability = Durability(name, state, state_log, self.send) if state_log else None

    async def run(self) -> None:
        """Apply what is delivered, until the group is closed, or the state machine or the disk fails."""
        if self.durability is None:
            await self._consume()
            return
        tasks = [asyncio.create_task(self._consume()), asyncio.create_task(self.durability.sync())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _consume(self) -> None:
        async for event in self.group.events_by_batch():
            self._on_event(event)

    def close(self, reason: GroupClosed) -> None:
        """Every call that waits ends with this reason, and so does every later one."""
        self.closed = reason
        self.is_current = False
        for task in self._background:
            task.cancel()
        for waiting in (self.submissions, self.settlements, self._barriers, self.questions, self.conditions):
            waiting.close(reason)

    # The ordered stream

    def _on_event(self, event: DeliveredBatch | ViewChange | Restored | Evicted) -> None:
        match event:
            case DeliveredBatch():
                self._on_batch(event)
            case ViewChange():
                self._on_view(event.view)
            case Restored():
                self.position = event.position
                self._on_restored()
            case Evicted():
                self.is_current = False
        if self.state.slots_changed and self.state.reports is None:
            self._ask_for_slots()
        self.conditions.check()

    def _on_batch(self, batch: DeliveredBatch) -> None:
        """Apply messages one by one: what happens to one may decide what the next one is."""
        on_message, conditions, session = self.state.on_message, self.conditions, self._session
        answers_at_once = self.durability is None
        for index in range(len(batch.payloads)):
            happened = on_message(batch, index)
            self.position = batch.position + index + 1
            if type(happened) is CommandFinished and answers_at_once:
                if happened.id.session == session:
                    self._answer(happened)
            elif happened is not None:
                self._on_happened(happened, batch.sender.name, batch.priority_of(index))
            if conditions.are_awaited:
                conditions.check()

    def _on_view(self, view: View) -> None:
        is_new = _is_new(self.group.me, view)
        if self.durability is not None:
            self.durability.before_view(is_founding=not (is_new or self._had_view))
        self._had_view = True
        self.state.on_view(view, is_new)
        self.questions.on_view(view)
        if self.durability is not None:
            self.durability.on_view(view)
        self.is_current = not self.state.awaits_state and self.state.reports is None

    def _on_happened(self, happened: Happened, sender: str, priority: int) -> None:
        match happened:
            case Question():
                self.questions.on_question(happened, sender, priority)
            case Answer():
                self.questions.on_answer(happened)
            case CommandFinished() | CommandSettled() | Barrier():
                if self.durability is None:
                    self._answer(happened)
                else:
                    self.durability.defer(partial(self._answer, happened))
            case LogReport() | Promised() | Refill() | Stored() if self.durability is not None:
                self.durability.on_disk_message(happened)
                self.is_current = not self.state.awaits_state and self.state.reports is None

    def _answer(self, happened: CommandFinished | CommandSettled | Barrier) -> None:
        """Give the result to the caller, if it is at this member."""
        match happened:
            case CommandFinished():
                at = self.submissions.finish(happened.id, happened.outcome)
            case CommandSettled():
                at = self.settlements.finish(happened.request, happened.outcome)
            case Barrier():
                at = self._barriers.finish(CommandId(happened.session, happened.number), None)
        if at is not None:
            self.fresh_as_of = max(at, self.fresh_as_of or at)

    def _on_restored(self) -> None:
        """The state of another member was loaded: it has the outcomes of what was ordered meanwhile."""
        if self.durability is not None:
            self.durability.on_restored()
        self.is_current = self.state.reports is None
        if not self.is_current:
            return
        for command, outcome in list(self.submissions.restored(self.state.sessions)):
            finished = partial(self._answer, CommandFinished(command, outcome))
            if self.durability is None:
                finished()
            else:
                self.durability.defer(finished)
        for request in (*self._barriers, *self.settlements):
            self.send(request.payload, request.priority, request.to)
        self.questions.on_restored()
        self._slots_asked.clear()

    def _ask_for_slots(self) -> None:
        """Have the next slots of long commands ordered, if that is up to this member."""
        self.state.slots_changed = False
        due = dict(self.state.slots_due(self.group.me.name))
        self._slots_asked = {command: slot for command, slot in self._slots_asked.items() if command in due}
        for command, slotted in due.items():
            if self._slots_asked.get(command) != slotted.slot:
                self._slots_asked[command] = slotted.slot
                slot = NextSlot(command, slotted.slot, time.time_ns())
                self.send(encode_envelope(slot), slotted.priority, None)

    # What is broadcast

    def submit(
        self, command: CommandId, body: bytes, priority: int, timeout_seconds: float
    ) -> Awaitable[None] | None:
        """Broadcast a command; if there is no room for it now, return what waits for room."""
        payload = encode_envelope(Command(command, self.submissions.floor, time.time_ns(), body))
        try:
            self.group.broadcast_nowait(payload, priority)
        except PriocastError:
            return self._submit_when_room(command, payload, priority, timeout_seconds)
        return None

    async def _submit_when_room(
        self, command: CommandId, payload: bytes, priority: int, timeout_seconds: float
    ) -> None:
        """Broadcast a command; if that fails, it is settled, because its number must not stay open."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.group.broadcast(payload, priority)
        except BaseException:
            if self.closed is None:
                request = self.settle(command, priority)
                self._start(self._finish_in_doubt(command, request))
            raise

    def settle(self, command: CommandId, priority: int) -> OpenRequest[Outcome]:
        """Ask what became of a command."""
        request = self.settlements.next_id()
        return self._ask(request, Settle(command, request), priority)

    def change_voter(self, member: str, is_voter: bool) -> OpenRequest[Outcome]:
        """Have the disk of a member count, or not any more."""
        request = self.settlements.next_id()
        return self._ask(request, ChangeVoter(request, member, is_voter), HIGHEST)

    def _ask(self, request: CommandId, message: Settle | ChangeVoter, priority: int) -> OpenRequest[Outcome]:
        payload = encode_envelope(message)
        added = self.settlements.add(request, payload, priority, None)
        self.send(payload, priority, None)
        return added

    async def _finish_in_doubt(self, command: CommandId, request: OpenRequest[Outcome]) -> None:
        self.submissions.finish(command, await request.answer)

    def barrier(self, priority: int) -> asyncio.Future[None]:
        """Done when everything that is ordered now is applied here; calls of one turn share a barrier."""
        if priority not in self._barriers_due:
            request = self._barriers.next_id()
            payload = encode_envelope(Barrier(request.session, request.number))
            added = self._barriers.add(request, payload, priority, (self.group.me.name,))
            self._barriers_due[priority] = added.answer
            asyncio.get_running_loop().call_soon(self._send_barrier, added)
        return self._barriers_due[priority]

    def _send_barrier(self, barrier: OpenRequest[None]) -> None:
        del self._barriers_due[barrier.priority]
        if self.closed is None:
            self.send(barrier.payload, barrier.priority, barrier.to)

    def send(self, payload: bytes, priority: int, to: tuple[str, ...] | None) -> None:
        """Broadcast now, or as soon as there is room."""
        if self.closed is not None:
            return
        try:
            self.group.broadcast_nowait(payload, priority, to=to)
        except Overloaded:
            self._start(self._send_when_room(payload, priority, to))

    async def _send_when_room(self, payload: bytes, priority: int, to: tuple[str, ...] | None) -> None:
        while self.closed is None:
            try:
                await self.group.broadcast(payload, priority, to=to)
            except DeadlineExceeded as error:
                log.warning("%s: tries again", error, extra={"member": str(self.group.me)})
            else:
                return

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._on_background_done)

    def _on_background_done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("the replica could not broadcast: %s", error, extra={"member": str(self.group.me)})


def _is_new(me: ProcessId, view: View) -> bool:
    """Whether this member joins others that were in a view before, and so receives their state."""
    return any(part.view is None and me in part.members for part in view.parts) and any(
        part.view is not None for part in view.parts
    )
