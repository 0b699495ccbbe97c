"""Members that come, leave and are killed, each a process of its own that tells the benchmark what it sees.

All tell the time by the same clock (`CLOCK_MONOTONIC` is the machine's, not the process's), and each has a
pipe of its own: what a killed process shared with others might stay locked for ever.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from bisect import bisect_left
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import msgspec

import priocast
from priocast.runtime import event_loop
from priocast.study.processes import free_addresses

HEARTBEAT_MS = 50.0
FAILURE_MS = 500.0
_SPAWN = multiprocessing.get_context("spawn")
_LIMIT_SECONDS = 60.0
_SAMPLE_SECONDS = 0.01
_LEVELS = (0, 96, 224)


class Order(msgspec.Struct, frozen=True):
    """What one member is to be."""

    me: int
    addresses: tuple[str, ...]
    founders: int
    burst: int
    payload_bytes: int


class Seen(NamedTuple):
    """A view, as a member's application saw it."""

    at: float
    members: frozenset[str]


Samples = list[tuple[float, int]]


class Crew:
    """The members of one run, seen from the benchmark; what they told it is kept by member."""

    def __init__(self, founders: int, joiners: int, burst: int, payload_bytes: int) -> None:
        addresses = tuple(map(str, free_addresses(founders + joiners)))
        self._orders = [
            Order(me, addresses, founders, burst, payload_bytes) for me in range(founders + joiners)
        ]
        self._processes: dict[int, multiprocessing.process.BaseProcess] = {}
        self._pipes: dict[int, Connection] = {}
        self.started: dict[int, float] = {}
        self.views: dict[int, list[Seen]] = {}
        self.samples: dict[int, Samples] = {}
        for me in range(founders):
            self.start(me)

    def start(self, me: int) -> None:
        """Start a member."""
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_member, args=(self._orders[me], theirs))
        process.start()
        theirs.close()
        self._processes[me], self._pipes[me] = process, ours
        self.views[me] = []

    def wait_view(self, members: set[int]) -> float:
        """Wait until all of these are in a view of these; returns when the last one saw it."""
        wanted = frozenset(map(_name, members))
        self._follow(lambda: all(self._saw(me, wanted) is not None for me in members))
        return max(self._saw(me, wanted) or 0.0 for me in members)

    def wait_seconds(self, seconds: float) -> None:
        """Let time pass, and listen."""
        end = time.monotonic() + seconds
        self._follow(lambda: time.monotonic() >= end)

    def joined_at(self, me: int) -> float:
        """When a member that was just started asks to join: its interpreter has to start first."""
        self._follow(lambda: me in self.started)
        return self.started[me]

    def kill(self, me: int) -> float:
        """Kill a member as the machine would; returns when."""
        pid = self._processes[me].pid
        assert pid is not None
        at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return at

    def tell(self, me: int, word: str) -> float:
        """Tell a member to `leave`; returns when."""
        at = time.monotonic()
        self._pipes[me].send(word)
        return at

    def end(self) -> None:
        """Let all that are left give their samples and go, all at once."""
        for me, pipe in self._pipes.items():
            if self._processes[me].is_alive():
                pipe.send("end")
        self._follow(lambda: not self._pipes)
        for process in self._processes.values():
            process.join(5)
            if process.is_alive():
                process.kill()

    def rate(self, me: int, start: float, stop: float) -> float:
        """Messages per second that a member delivered in this time."""
        samples = self.samples[me]
        first, last = (min(bisect_left(samples, (at, 0)), len(samples) - 1) for at in (start, stop))
        return (samples[last][1] - samples[first][1]) / (stop - start)

    def _saw(self, me: int, members: frozenset[str]) -> float | None:
        last = self.views[me][-1:]
        return last[0].at if last and last[0].members == members else None

    def _follow(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _LIMIT_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the members did not do what they should: {self.views}")
            ready = wait(list(self._pipes.values()), timeout=0.01)
            for me, pipe in list(self._pipes.items()):
                if pipe in ready:
                    self._hear(me, pipe)

    def _hear(self, me: int, pipe: Connection) -> None:
        try:
            said = pipe.recv()
        except (EOFError, ConnectionResetError):
            del self._pipes[me]
            return
        if isinstance(said, Seen):
            self.views[me].append(said)
        elif isinstance(said, float):
            self.started[me] = said
        else:
            self.samples[me] = said


def _name(me: int) -> str:
    return f"m{me}"


def _member(order: Order, pipe: Connection) -> None:
    event_loop.run(_live(order, pipe))


async def _live(order: Order, pipe: Connection) -> None:
    """Join, send and deliver until told to leave, and tell then how much was delivered when."""
    samples: Samples = []
    joining = priocast.join(
        "bench",
        member=_name(order.me),
        listen=order.addresses[order.me],
        peers=[address for address in order.addresses if address != order.addresses[order.me]],
        membership=priocast.MembershipOptions(
            founders=order.founders, heartbeat_ms=HEARTBEAT_MS, failure_ms=FAILURE_MS
        ),
    )
    pipe.send(time.monotonic())
    async with joining as group:
        reading = asyncio.create_task(_read(group, pipe, samples))
        sending = asyncio.create_task(_send(group, order))
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        sending.cancel()
        pipe.send(samples)
    await reading


async def _read(group: priocast.Group, pipe: Connection, samples: Samples) -> None:
    """Deliver everything; note the views, and now and then how much there was."""
    delivered, sampled_at = 0, 0.0
    try:
        async for event in group:
            now = time.monotonic()
            if isinstance(event, priocast.Delivery):
                delivered += 1
            elif isinstance(event, priocast.ViewChange):
                pipe.send(Seen(now, frozenset(member.name for member in event.view.members)))
            if now - sampled_at >= _SAMPLE_SECONDS:
                sampled_at = now
                samples.append((now, delivered))
    except priocast.GroupClosed:
        return


async def _send(group: priocast.Group, order: Order) -> None:
    """As fast as flow control allows; without a burst, a message every hundredth of a second."""
    payload, turn = bytes(order.payload_bytes), 0
    while True:
        priority = _LEVELS[turn % len(_LEVELS)]
        turn += 1
        if order.burst:
            await group.broadcast_many([payload] * order.burst, priority)
        else:
            await asyncio.sleep(_SAMPLE_SECONDS)
            await group.broadcast(payload, priority)
