"""Where the time of a lone message goes: `python -m benchmarks.budget`, stage by stage, in real processes.

A message goes from a member to the sequencer, which orders it, and back. Each process notes when something
happens at its boundary to the network and to the application; all processes of a machine have the same clock.
A stage is the median over all messages that were alone: nothing else arrived at the sender or the sequencer
while they were on their way.
"""

import argparse
import asyncio
import statistics
import time
from bisect import bisect_left
from itertools import pairwise
from typing import Any

import priocast
import priocast.links.fifo_link
from benchmarks.delivery import RATE_PER_MEMBER, by_echo, median_of_followers, pace
from benchmarks.members import Load, MemberContext, run_members
from priocast.compiled import is_compiled
from priocast.network.ports import Ports
from priocast.network.tcp import TcpPort
from priocast.network.tcp_connection import AcceptedConnection

READ, CODEC_DONE, HANDLED, WRITE, WRITTEN = "read", "codec done", "handled", "write", "written"
Event = tuple[int, str]
Sent = tuple[int, int, int]
STAGES = (
    "broadcast",
    "waiting for the turn, until the write",
    "write",
    "wire and wake-up of the sequencer",
    "codec",
    "link, decode, queue, order, until the write",
    "write",
    "wire and wake-up of the sender",
    "codec",
    "link, decode, place, wake the application",
    "the application's turn",
)


class Notes:
    """What happened in one process, and when (ns)."""

    def __init__(self) -> None:
        self.events: list[Event] = []

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


async def noted_member(context: MemberContext, load: Load) -> tuple[list[Event], list[Sent]]:
    """Send at a low rate; return what happened here, and when own messages were sent and delivered."""
    notes, task = Notes(), context.task
    notes.around(AcceptedConnection, "buffer_updated", READ)
    notes.around(Ports, "receive", CODEC_DONE, HANDLED)
    notes.around(TcpPort, "send", WRITE, WRITTEN)
    sent: list[tuple[int, int]] = []
    times: list[Sent] = []
    async with priocast.join(
        "budget", member=task.member, listen=task.listen, peers=task.peers, incarnation=1
    ) as group:

        async def receive() -> None:
            async for event in group:
                if isinstance(event, priocast.Delivery):
                    if event.message.sender == group.me:
                        times.append((*sent[event.message.number], time.perf_counter_ns()))
                    if event.position == load.total - 1:
                        return

        receiving = asyncio.create_task(receive())
        await context.barrier()
        started = time.perf_counter()
        for number in range(load.messages):
            at = started + pace(number, context.rank, load.members, RATE_PER_MEMBER)
            await asyncio.sleep(at - time.perf_counter())
            began = time.perf_counter_ns()
            await group.broadcast(bytes(load.payload_bytes))
            sent.append((began, time.perf_counter_ns()))
        await receiving
        await context.barrier()
    return notes.events, times


def stages_of(sender: list[Event], sequencer: list[Event], message: Sent) -> list[int] | None:
    """How long each stage of a message took; None if it was not alone."""
    began, accepted, delivered = message
    there = _between(sequencer, began, delivered)
    here = _between(sender, began, delivered)
    at_sequencer = [name for _, name in there]
    at_sender = [name for _, name in here]
    if at_sender.count(READ) != 1 or at_sequencer.count(READ) != 1 or WRITE not in at_sequencer:
        return None
    if at_sender[:2] != [WRITE, WRITTEN] or at_sequencer[:2] != [READ, CODEC_DONE]:
        return None
    read = at_sender.index(READ)
    if at_sender[read : read + 2] != [READ, CODEC_DONE] or HANDLED not in at_sender:
        return None
    write = at_sequencer.index(WRITE)
    moments = [
        began,
        accepted,
        max(accepted, here[0][0]),
        max(accepted, here[1][0]),
        there[0][0],
        there[1][0],
        there[write][0],
        there[write + 1][0],
        here[read][0],
        here[read + 1][0],
        here[at_sender.index(HANDLED)][0],
        delivered,
    ]
    return [later - earlier for earlier, later in pairwise(moments)]


def _between(events: list[Event], first: int, last: int) -> list[Event]:
    return events[bisect_left(events, (first, "")) : bisect_left(events, (last, ""))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--messages", type=int, default=300, help="of each member")
    arguments = parser.parse_args()
    load = Load(arguments.members, arguments.messages, 64, burst=1, window=1, frame_messages=1)
    round_trip = median_of_followers(run_members(by_echo, load)) * 1e6
    reports = run_members(noted_member, load)
    (sequencer, _), senders = reports[0], reports[1:]
    lone = [
        stages
        for events, messages in senders
        for message in messages
        if (stages := stages_of(_events(events), _events(sequencer), tuple(message)))
    ]
    kind = "compiled" if is_compiled(priocast.links.fifo_link) else "sources"
    total = statistics.median(map(sum, lone)) / 1e3
    print(f"{arguments.members} members, {kind}: {len(lone)} lone messages, round trip {round_trip:.0f} us")
    for name, *times in zip(STAGES, *lone, strict=True):
        print(f"{statistics.median(times) / 1e3:8.0f} us  {name}")
    print(f"{total:8.0f} us  in all, {total / round_trip:.1f} raw round trips")


def _events(reported: list[list[Any]]) -> list[Event]:
    return [(at, name) for at, name in reported]


if __name__ == "__main__":
    main()
