"""A member that notes when messages pass its boundaries to network and application, for `budget.py`."""

import asyncio
import time
from typing import Any

import msgspec

import priocast
from benchmarks.delivery import RATE_PER_MEMBER, pace
from benchmarks.members import Load, MemberContext
from priocast.network.ports import Ports
from priocast.network.tcp import TcpPort
from priocast.network.tcp_connection import AcceptedConnection

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

    def around(self, owner: type, name: str, before: str, after: str = "") -> None:
        """Note when a method is called, and when it returns."""
        method = getattr(owner, name)

        def noted(*arguments: Any) -> Any:
            self.note(before)
            returned = method(*arguments)
            if after:
                self.note(after)
            return returned

        setattr(owner, name, noted)


async def noted_member(context: MemberContext, load: Load) -> Notes:
    """Send at a low rate, until all messages of the group are delivered."""
    notes, task = Notes([], []), context.task
    notes.around(AcceptedConnection, "buffer_updated", READ)
    notes.around(Ports, "receive", CODEC_DONE, HANDLED)
    notes.around(TcpPort, "send", WRITE, WRITTEN)
    called: list[int] = []
    returned: list[int] = []
    async with priocast.join(
        "budget", member=task.member, listen=task.listen, peers=task.peers, incarnation=1
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
