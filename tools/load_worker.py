"""One member under load, as a process of its own: `python -m tools.load_worker`, started by `load_group`.

It broadcasts at a steady rate or in bursts, consumes what is delivered, and reports every view, every
eviction, and its progress. It obeys lines on standard input: `order NAME` changes the order of the group,
`clock MS` sets its clock ahead by so many milliseconds (or back), and `finish` ends its broadcasts. It leaves
when standard input ends.
"""

import asyncio
import hashlib
import time
from pathlib import Path

import msgspec

from priocast.core.errors import GroupClosed
from priocast.core.events import Delivery, Event, Evicted, Restored, ViewChange
from priocast.core.priority import ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.runtime.configuration import State
from priocast.runtime.group import Group
from priocast.runtime.node import join
from priocast.testing.worker import MemberTask, read_line, report, run_worker

_TICK_SECONDS = 0.005
_URGENT_EVERY = 10
_BURST_PRIORITIES = (0, 96, 224)
_true_time_ns = time.time_ns


class LoadTask(MemberTask, frozen=True, kw_only=True):
    """The task of one member; with a `burst` it sends as fast as flow control allows, so many at a time."""

    run: str
    order: str
    options: OrderingOptions
    membership: MembershipOptions
    rate_per_second: int
    payload_bytes: int
    burst: int = 0
    report_ms: float = 50.0
    trace: str | None = None
    state_directory: str | None = None
    clock_ms: int = 0


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """An event at a member: `joining`, `view`, `evicted`, `restored` or `progress`.

    `time_ns` is the monotonic clock of the machine, which all processes share.
    """

    time_ns: int
    kind: str
    delivered: int
    digest: str = ""
    view: int = 0
    members: list[str] = []
    order: str = ""
    reason: str = ""


class DeliveryDigest:
    """The application's state: a hash over all deliveries, which shows whether members agree.

    Without `hashes` it only counts, which costs less than the delivery itself.
    """

    def __init__(self, hashes: bool) -> None:
        self._hashes = hashes
        self.digest = bytes(16)
        self.delivered = 0

    def apply(self, delivery: Delivery) -> None:
        """Add a message."""
        self.delivered += 1
        if not self._hashes:
            return
        text = f"{delivery.position} {delivery.message.id}".encode()
        self.digest = hashlib.blake2b(self.digest + text, digest_size=16).digest()

    def save(self) -> bytes:
        """The snapshot."""
        return self.digest

    def load(self, data: bytes) -> None:
        """Replace the state by a snapshot."""
        self.digest = data

    def report(
        self,
        kind: str,
        *,
        view: int = 0,
        members: list[str] | None = None,
        order: str = "",
        reason: object = "",
    ) -> None:
        """Report an event, with the current state."""
        report(
            LoadReport(
                time_ns=time.monotonic_ns(),
                kind=kind,
                delivered=self.delivered,
                digest=self.digest.hex(),
                view=view,
                members=members or [],
                order=order,
                reason=str(reason),
            )
        )


async def work(task: LoadTask) -> None:
    """Join, broadcast and consume until the parent ends standard input."""
    set_clock(task.clock_ms)
    application = DeliveryDigest(hashes=not task.burst)
    joining = join(
        "load",
        member=task.member,
        listen=task.listen,
        peers=task.peers,
        order=task.order,
        options=task.options,
        prioritised=task.options.prioritised,
        membership=task.membership,
        state=State(application.save, application.load),
        state_directory=Path(task.state_directory) if task.state_directory else None,
        trace=Path(task.trace) if task.trace else None,
        trace_journal=True,
        run=task.run,
    )
    application.report("joining")
    leaving = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        async with joining as group:
            # A member consumes until it has left: what it has broadcast must be ordered first.
            consuming = tasks.create_task(_consume(group, application, leaving))
            reporting = tasks.create_task(_report(application, task.report_ms / 1000))
            sending = tasks.create_task(_burst(group, task) if task.burst else _broadcast(group, task))
            await _obey(group, sending)
            leaving.set()
        consuming.cancel()
        reporting.cancel()


async def _obey(group: Group, sending: asyncio.Task[None]) -> None:
    """Do what the lines of the parent say, until there are no more; then broadcast nothing more."""
    while line := await read_line():
        match line.decode().split():
            case ["order", name]:
                group.change_order(name)
            case ["clock", milliseconds]:
                set_clock(int(milliseconds))
            case ["finish"]:
                sending.cancel()
    sending.cancel()


def set_clock(milliseconds: int) -> None:
    """Let the wall clock of this process be ahead by this time; its monotonic clock is not affected."""
    time.time_ns = lambda: _true_time_ns() + milliseconds * 1_000_000
    time.time = lambda: time.time_ns() / 1e9


async def _broadcast(group: Group, task: LoadTask) -> None:
    """Keep to the rate; messages for which there is no room wait."""
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


async def _burst(group: Group, task: LoadTask) -> None:
    """As fast as flow control allows."""
    payloads, turn = [bytes(task.payload_bytes)] * task.burst, 0
    while True:
        await group.broadcast_many(payloads, _BURST_PRIORITIES[turn % len(_BURST_PRIORITIES)])
        turn += 1


async def _consume(group: Group, application: DeliveryDigest, leaving: asyncio.Event) -> None:
    try:
        async for event in group:
            _apply(event, application)
    except GroupClosed:
        if not leaving.is_set():
            raise


def _apply(event: Event, application: DeliveryDigest) -> None:
    match event:
        case Delivery():
            application.apply(event)
        case ViewChange(view=view, reason=reason, order=order):
            members = [str(member) for member in view.members]
            application.report("view", view=view.number, members=members, order=order, reason=reason)
        case Evicted(reason=reason):
            application.report("evicted", reason=reason)
        case Restored():
            application.report("restored")


async def _report(application: DeliveryDigest, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        application.report("progress")


if __name__ == "__main__":
    run_worker(LoadTask, work)
