"""One member of the study of execution times, as a process: `python -m priocast.study.xamp_worker`.

One member sends, the others receive. The ways of sending (bare TCP, the total order, every quality of
service) take turns, message by message, in the same processes, so what disturbs the machine disturbs them
alike. Processes of one machine share the monotonic clock, so times of different members can be compared.
"""

import asyncio
import time
from contextlib import AsyncExitStack

import msgspec

from priocast.core.errors import DeadlineExceeded, InvalidInput
from priocast.core.events import Delivery, ServiceDelivery
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import QualityKind, parse_quality
from priocast.runtime.group import Group
from priocast.services.options import ServiceOptions
from priocast.study.raw_exchange import RawRecipient, RawSender
from priocast.study.recorded_run import RecordedRunTask, check_undisturbed, join_run
from priocast.testing.worker import MemberProgress, read_line, report, run_worker, wait_start

RAW = "raw"
TOTAL_ORDER = "total order"
WARM_UP = 5
NUMBER_BYTES = 4
_END = b"end"
_PAUSE_SECONDS = 0.002
_LIMIT_SECONDS = 60.0
_PROGRESS_SECONDS = 0.25
_CLOCK_SECONDS = 0.2
_MILLISECOND = 1_000_000
_RESPONSE_MS = 5_000.0
_HELD_MAX = 1 << 16


class XampTask(RecordedRunTask, frozen=True, kw_only=True):
    """The task of one member. `raw` has the addresses for bare TCP, one per member; the last member sends.

    The number-th message is sent in the way `ways[number % len(ways)]`, and its size changes after each turn
    of the ways.
    """

    rank: int
    raw: list[str]
    ways: list[str]
    sizes: list[int]
    messages: int
    precision_ms: float

    @property
    def sends(self) -> bool:
        """Whether this member is the sender."""
        return self.rank == len(self.raw) - 1

    @property
    def count(self) -> int:
        """How many messages are sent."""
        return (WARM_UP + self.messages) * len(self.ways) * len(self.sizes)

    @property
    def delta_ms(self) -> float:
        """The time of the clock-driven quality, which the network is declared to keep."""
        within = [parse_quality(way).within_ms for way in self.ways if way.startswith(QualityKind.DELTA)]
        return max((each for each in within if each is not None), default=1.0)


class XampReport(MemberProgress, frozen=True, kw_only=True):
    """When messages were sent, confirmed and delivered here (monotonic clock, ns), by their numbers.

    A message of the total order is confirmed by the sender's own delivery, others by their responses.
    """

    sent: dict[int, int] = msgspec.field(default_factory=dict)
    confirmed: dict[int, int] = msgspec.field(default_factory=dict)
    delivered_at: dict[int, int] = msgspec.field(default_factory=dict)


class XampMember:
    """Receives, and sends if it is the sender."""

    def __init__(self, task: XampTask, group: Group, arrived: dict[int, int]) -> None:
        self._task = task
        self._group = group
        self._others = [each.name for each in group.view.members if each.name != task.member]
        self.sent: dict[int, int] = {}
        self.confirmed: dict[int, int] = {}
        self.delivered_at = arrived
        self._own_delivery: asyncio.Future[None] | None = None

    async def receive(self) -> None:
        """Note deliveries until the sender ends."""
        async for event in self._group:
            now = time.monotonic_ns()
            if isinstance(event, ServiceDelivery):
                self.delivered_at[int.from_bytes(event.payload[:NUMBER_BYTES])] = now
            elif isinstance(event, Delivery):
                payload = event.message.payload
                if payload == _END:
                    return
                self.delivered_at[int.from_bytes(payload[:NUMBER_BYTES])] = now
                if self._own_delivery is not None:
                    self._own_delivery.set_result(None)
            else:
                check_undisturbed(event)

    async def send_all(self, raw: RawSender) -> None:
        """Send all messages, one at a time."""
        task, number = self._task, 0
        await asyncio.sleep(_CLOCK_SECONDS)
        for _ in range(WARM_UP + task.messages):
            for size in task.sizes:
                for way in task.ways:
                    await asyncio.sleep(_PAUSE_SECONDS)
                    await self._send(way, number, size, raw)
                    number += 1
        await asyncio.sleep(2 * (task.delta_ms + task.precision_ms) / 1000)
        await self._group.broadcast(_END)

    async def _send(self, way: str, number: int, size: int, raw: RawSender) -> None:
        payload = number.to_bytes(NUMBER_BYTES) + bytes(size - NUMBER_BYTES)
        self.sent[number] = time.monotonic_ns()
        try:
            async with asyncio.timeout(_LIMIT_SECONDS):
                if way == RAW:
                    await raw.send(number, size)
                elif way == TOTAL_ORDER:
                    self._own_delivery = asyncio.get_running_loop().create_future()
                    await self._group.broadcast(payload)
                    await self._own_delivery
                    self._own_delivery = None
                else:
                    await self._send_with_quality(way, number, payload)
        except TimeoutError:
            raise DeadlineExceeded(f"a message ({way}) has no answer after {_LIMIT_SECONDS:g} s") from None
        self.confirmed[number] = time.monotonic_ns()

    async def _send_with_quality(self, way: str, number: int, payload: bytes) -> None:
        """A clock may not be synchronised at the beginning: the quality that needs it is tried again."""
        quality = parse_quality(way)
        while True:
            try:
                await self._group.send(payload, quality=quality, to=self._others)
                return
            except InvalidInput:
                if quality.kind is not QualityKind.DELTA:
                    raise
                await asyncio.sleep(_CLOCK_SECONDS)
                self.sent[number] = time.monotonic_ns()


async def work(task: XampTask) -> None:
    """Take part in one run."""
    recipient, sender = RawRecipient(), RawSender()
    async with AsyncExitStack() as stack:
        if not task.sends:
            server = await recipient.listen(task.raw[task.rank])
            stack.callback(server.close)
        group = await stack.enter_async_context(join_run(task, "xamp", services=_services(task)))
        member = XampMember(task, group, recipient.arrived)
        await wait_start()
        async with asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(_report_progress(member))
            receiving = tasks.create_task(member.receive())
            if task.sends:
                await sender.connect(task.raw[: task.rank])
                stack.callback(sender.close)
                await member.send_all(sender)
            await receiving
            reporting.cancel()
        report(
            XampReport(
                delivered=task.count,
                digest="done",
                sent=member.sent,
                confirmed=member.confirmed,
                delivered_at=member.delivered_at,
            )
        )
        await read_line()


def _services(task: XampTask) -> ServiceOptions:
    """TCP loses nothing. A slow process of a busy machine must not be taken for a failed one."""
    network = NetworkProperties(omission_degree=0, delay_ns=int(task.delta_ms * _MILLISECOND))
    return ServiceOptions(
        network=network, response_ms=_RESPONSE_MS, precision_ms=task.precision_ms, held_max=_HELD_MAX
    )


async def _report_progress(member: XampMember) -> None:
    while True:
        report(MemberProgress(delivered=max(len(member.delivered_at), len(member.sent))))
        await asyncio.sleep(_PROGRESS_SECONDS)


if __name__ == "__main__":
    run_worker(XampTask, work)
