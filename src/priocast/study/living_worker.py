"""One member of a living group, as a process of its own: `python -m priocast.study.living_worker`.

It reads its task from the first line of standard input, broadcasts at a steady rate and consumes what is
delivered, and reports as JSON lines on standard output: every view, every time it was put out, and how much
it delivered every so often. A line `finish` lets it broadcast no more; it leaves when standard input ends.
"""

import asyncio
import hashlib
import sys
import time
from pathlib import Path

import msgspec

from priocast.core.errors import GroupClosed, PriocastError
from priocast.core.events import Delivery, Evicted, Restored, ViewChange
from priocast.core.priority import ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.runtime import event_loop
from priocast.runtime.configuration import State
from priocast.runtime.group import Group
from priocast.runtime.node import join

_TICK_SECONDS = 0.005
_REPORT_SECONDS = 0.05
_URGENT_EVERY = 10


class LivingTask(msgspec.Struct, frozen=True, kw_only=True):
    """What one member is to do."""

    run: str
    member: str
    listen: str
    peers: list[str]
    order: str
    options: OrderingOptions
    membership: MembershipOptions
    rate_per_second: int
    payload_bytes: int
    trace: str | None = None
    state_directory: str | None = None
    labels: dict[str, str] = {}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What happened at a member; `time_ns` is of the machine's monotonic clock, which all processes share."""

    time_ns: int
    kind: str
    delivered: int
    digest: str = ""
    view: int = 0
    members: list[str] = []
    reason: str = ""


class Replica:
    """A state that shows whether members agree: a hash over all that was delivered, in order."""

    def __init__(self) -> None:
        self.digest = bytes(16)
        self.delivered = 0

    def apply(self, delivery: Delivery) -> None:
        """Deal with a message."""
        words = f"{delivery.position} {delivery.message.id}".encode()
        self.digest = hashlib.blake2b(self.digest + words, digest_size=16).digest()
        self.delivered += 1

    def save(self) -> bytes:
        """All there is to know."""
        return self.digest

    def load(self, data: bytes) -> None:
        """Be as another replica was."""
        self.digest = data


async def work(task: LivingTask) -> None:
    """Take part until told to leave."""
    replica = Replica()
    joining = join(
        "living",
        member=task.member,
        listen=task.listen,
        peers=task.peers,
        order=task.order,
        options=task.options,
        prioritised=task.options.prioritised,
        membership=task.membership,
        state=State(replica.save, replica.load),
        state_directory=Path(task.state_directory) if task.state_directory else None,
        trace=Path(task.trace) if task.trace else None,
        trace_journal=True,
        run=task.run,
        labels=task.labels,
    )
    async with joining as group, asyncio.TaskGroup() as tasks:
        working = [
            tasks.create_task(_broadcast(group, task)),
            tasks.create_task(_consume(group, replica)),
            tasks.create_task(_report(replica)),
        ]
        if await _line_of_input() == b"finish\n":
            working[0].cancel()
            await _line_of_input()
        for each in working:
            each.cancel()


async def _broadcast(group: Group, task: LivingTask) -> None:
    """Keep to the rate, whatever happens; what there is no room for waits."""
    payload = bytes(task.payload_bytes)
    started, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - started) * task.rate_per_second)
        urgent = (due // _URGENT_EVERY) - (sent // _URGENT_EVERY)
        if due > sent:
            if urgent:
                await group.broadcast_many([payload] * urgent, URGENT)
            if due - sent > urgent:
                await group.broadcast_many([payload] * (due - sent - urgent), ROUTINE)
            sent = due
        await asyncio.sleep(_TICK_SECONDS)


async def _consume(group: Group, replica: Replica) -> None:
    async for event in group:
        match event:
            case Delivery():
                replica.apply(event)
            case ViewChange(view=view, reason=reason):
                members = [str(member) for member in view.members]
                _say(replica, "view", view=view.number, members=members, reason=reason)
            case Evicted(reason=reason):
                _say(replica, "stopped", reason=reason)
            case Restored():
                _say(replica, "restored")


async def _report(replica: Replica) -> None:
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        _say(replica, "progress")


def _say(
    replica: Replica, kind: str, *, view: int = 0, members: list[str] | None = None, reason: str = ""
) -> None:
    report = Report(
        time_ns=time.monotonic_ns(),
        kind=kind,
        delivered=replica.delivered,
        digest=replica.digest.hex(),
        view=view,
        members=members or [],
        reason=reason,
    )
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


async def _line_of_input() -> bytes:
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)


def main() -> None:
    """Read the task, do it, and say in one line what went wrong if something did."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=LivingTask)
    try:
        event_loop.run(work(task))
    except* (PriocastError, GroupClosed) as errors:
        sys.exit(f"{task.member}: {errors.exceptions[0]}")


if __name__ == "__main__":
    main()
