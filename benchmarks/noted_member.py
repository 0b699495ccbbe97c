"""A member that notes when messages pass its boundaries to network and application, for `budget.py`."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

import priocast
from benchmarks.delivery import RATE_PER_MEMBER, pace
from benchmarks.members import Load, MemberContext
from priocast.core.identity import ProcessId
from priocast.network.address import parse_address
from priocast.network.interface import Receiver
from priocast.network.tcp import TcpNetwork
from priocast.network.tcp_connection import AcceptedConnection, ConnectionOwner

READ, CODEC_DONE, HANDLED, WRITE, WRITTEN = "read", "codec done", "handled", "write", "written"
Event = tuple[int, str]


class OwnMessage(msgspec.Struct, frozen=True, array_like=True):
    """When `broadcast` was called for a message and returned, and when its sender delivered it (ns)."""

    called_at: int
    returned_at: int
    delivered_at: int


class Notes(msgspec.Struct, frozen=True):
    """What happened in one process, and when (ns), and the messages that it sent."""

    events: list[Event]
    messages: list[OwnMessage]

    def note(self, event: str) -> None:
        """It happens now."""
        self.events.append((time.perf_counter_ns(), event))

    def around(self, function: Callable[..., Any], before: str, after: str = "") -> Callable[..., Any]:
        """The same function; it is noted when it is called, and when it returns."""

        def noted(*arguments: Any) -> Any:
            self.note(before)
            returned = function(*arguments)
            if after:
                self.note(after)
            return returned

        return noted

    def note_reads(self) -> None:
        """Note when the connections that are accepted from now on have read something."""
        initialise = AcceptedConnection.__init__

        def initialise_noted(connection: AcceptedConnection, owner: ConnectionOwner) -> None:
            initialise(connection, owner)
            noted = self.around(connection.buffer_updated, READ)
            connection.buffer_updated = noted  # type: ignore[method-assign]

        AcceptedConnection.__init__ = initialise_noted  # type: ignore[method-assign, assignment]


class _Noted:
    """Something with other functions for some of its own."""

    def __init__(self, noted: object, **functions: Callable[..., Any]) -> None:
        self._noted = noted
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noted, name)


class _NotedNetwork(TcpNetwork):
    """A network that notes what a group sends and receives."""

    def __init__(self, notes: Notes, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._notes = notes

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> Any:
        received = self._notes.around(receiver.frames_received, CODEC_DONE, HANDLED)
        port: Any = super().open(group, process, _Noted(receiver, frames_received=received))
        return _Noted(port, send=self._notes.around(port.send, WRITE, WRITTEN))


async def noted_member(context: MemberContext, load: Load) -> Notes:
    """Send at a low rate, until all messages of the group are delivered."""
    notes, task = Notes([], []), context.task
    notes.note_reads()
    network = _NotedNetwork(
        notes, task.member, parse_address(task.listen), [parse_address(peer) for peer in task.peers]
    )
    called: list[int] = []
    returned: list[int] = []
    async with priocast.join(
        "budget", member=task.member, network=network, size=load.members, incarnation=1
    ) as group:

        async def receive() -> None:
            async for event in group:
                if isinstance(event, priocast.Delivery):
                    if event.message.sender == group.me:
                        number, now = event.message.number, time.perf_counter_ns()
                        notes.messages.append(OwnMessage(called[number], returned[number], now))
                    if event.position == load.total - 1:
                        return

        receiving = asyncio.create_task(receive())
        await context.barrier()
        started = time.perf_counter()
        for number in range(load.messages):
            at = started + pace(number, context.rank, load.members, RATE_PER_MEMBER)
            await asyncio.sleep(at - time.perf_counter())
            called.append(time.perf_counter_ns())
            await group.broadcast(bytes(load.payload_bytes))
            returned.append(time.perf_counter_ns())
        await receiving
        await context.barrier()
    return notes
