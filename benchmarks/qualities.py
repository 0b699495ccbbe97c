"""What each quality of service costs: rates, delivery times and tightness beside the total order and TCP.

Rates: all members send as fast as they may, and the ways of sending take turns in one group. A call has as
many messages with a quality as with the total order, as many are in flight, and the application takes them
one by one and does next to nothing with them. A message is in flight until its sender knows that it is done:
with the total order and *unreliable* when it delivers the message itself, with the others when it has the
receipt. (A sender delivers its own causal message at once, whatever the others have received: without the
receipts it would be ahead of them by seconds.) On a busy machine the processor time per message says more
than the rate. Times: one member sends one message at a time, as in `priocast study xamp`. Processes of one
machine share a clock, so the raw one-way time is measured, not halved.
"""

import asyncio
import statistics
import time
from contextlib import suppress

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import priocast
from benchmarks.members import Load, MemberContext, run_members, slowest
from benchmarks.rates import for_fixed_time
from priocast.core.quality import QualityKind, parse_quality
from priocast.study.xamp import ExecutionTime, XampPlan, measure_group, short_name, times_of
from priocast.study.xamp_worker import RAW, TOTAL_ORDER

UNITS = 64
"""How many messages one call has: a batch of the total order, or a transmission."""

IN_FLIGHT = 32 * UNITS
"""How many messages of a member may be on their way to its own application."""

SECONDS = 1.0
BY_BATCHES = "total order, by batches"
_ORDER = "sequencer-ub"
_UNBOUNDED = 1 << 40
_SERVICES = priocast.ServiceOptions(response_ms=5_000.0, held_max=1 << 16)
_MESSAGES = 60


def qualities_tables(members: int, rounds: int, console: Console) -> list[Table]:
    """One table of rates, one of times."""
    plan = XampPlan(members=(members,), sizes=(64,), messages=_MESSAGES)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("qualities", total=2 * rounds)
        rates: list[dict[str, Rate]] = []
        times = []
        for _ in range(rounds):
            rates.append(_rates(plan, members))
            progress.advance(task)
            times.append(_times(plan, members))
            progress.advance(task)
    return [_rates_table(members, rates), _times_table(members, times)]


# Rates


class Rate(msgspec.Struct, frozen=True):
    """The messages that one member delivered per second, and its processor time for each of them."""

    per_second: float
    processor_us: float


def _rates(plan: XampPlan, members: int) -> dict[str, Rate]:
    """The rate of the slowest member and the mean processor time, by way of sending.

    Delta waits, and has no rate.
    """
    names = [way for way in plan.ways(members) if way != RAW and not way.startswith(QualityKind.DELTA)]
    load = Load(members, _UNBOUNDED, 64, burst=UNITS * 8, window=0, frame_messages=0)
    found: list[dict[str, tuple[float, float]]] = run_members(by_ways, load, names)
    rates = {
        name: Rate(min(each[name][0] for each in found), statistics.mean(each[name][1] for each in found))
        for name in names
    }
    return {BY_BATCHES: Rate(slowest(load, for_fixed_time, True, _ORDER, SECONDS), 0.0), **rates}


async def by_ways(context: MemberContext, load: Load, names: list[str]) -> dict[str, tuple[float, float]]:
    """The messages per second that this member delivers, and the processor time, by way of sending."""
    delivered = 0
    rates: dict[str, tuple[float, float]] = {}
    window, by_delivery = _Window(), True

    async def receive() -> None:
        nonlocal delivered
        me, ordered, with_quality = group.me, priocast.Delivery, priocast.ServiceDelivery
        with suppress(priocast.GroupClosed):
            async for event in group:
                if isinstance(event, with_quality):
                    sender = event.sender
                elif isinstance(event, ordered):
                    sender = event.message.sender
                else:
                    continue
                delivered += 1
                if sender == me and by_delivery:
                    window.leave(1)

    async with priocast.join(
        "bench",
        member=context.task.member,
        listen=context.task.listen,
        peers=context.task.peers,
        order=_ORDER,
        services=_SERVICES,
        incarnation=1,
    ) as group:
        receiving = asyncio.create_task(receive())
        for name in names:
            await context.barrier()
            window.in_flight, by_delivery = 0, not _has_answers(name)
            sending = asyncio.create_task(_send(group, name, load, window))
            await asyncio.sleep(SECONDS / 4)
            started, before, processor = time.perf_counter(), delivered, time.process_time()
            await asyncio.sleep(SECONDS)
            count = delivered - before
            processor_us = (time.process_time() - processor) * 1e6 / max(1, count)
            rates[name] = count / (time.perf_counter() - started), processor_us
            sending.cancel()
            await context.barrier()
            await asyncio.sleep(SECONDS / 4)
        await context.barrier()
    await receiving
    return rates


class _Window:
    """Lets a member send as fast as its own application takes what it has sent."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._has_room = asyncio.Event()

    def leave(self, count: int) -> None:
        """So many messages of this member are done."""
        self.in_flight -= count
        if self.in_flight <= IN_FLIGHT - UNITS:
            self._has_room.set()

    async def enter(self) -> None:
        """Wait until a call has room."""
        while self.in_flight > IN_FLIGHT - UNITS:
            self._has_room.clear()
            await self._has_room.wait()
        self.in_flight += UNITS


async def _send(group: priocast.Group, name: str, load: Load, window: _Window) -> None:
    payloads = [bytes(load.payload_bytes)] * UNITS
    while True:
        await window.enter()
        if name == TOTAL_ORDER:
            await group.broadcast_many(payloads)
        else:
            receipt = group.send_nowait(payloads, quality=parse_quality(name))
            receipt.add_done_callback(asyncio.Future.exception)
            if _has_answers(name):
                receipt.add_done_callback(lambda _: window.leave(UNITS))


def _has_answers(name: str) -> bool:
    """Whether the recipients answer, so that there is a receipt."""
    return name != TOTAL_ORDER and parse_quality(name).count != 0


def _rates_table(members: int, rounds: list[dict[str, Rate]]) -> Table:
    table = Table(title=f"{members} members, 64 bytes, {UNITS} messages a call: messages per second")
    headings = ("way of sending", "msg/s", "of the total order", "processor time", "total order / this")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "way of sending" else "right")
    for name in rounds[0]:
        pairs = [(each[name], each[TOTAL_ORDER]) for each in rounds]
        rate = statistics.median(one.per_second for one, _ in pairs)
        ratio = statistics.median(one.per_second / order.per_second for one, order in pairs)
        row = [short_name(name), f"{rate:,.0f}", f"{ratio:.2f}"]
        if name != BY_BATCHES:
            processor_us = statistics.median(one.processor_us for one, _ in pairs)
            saving = statistics.median(order.processor_us / one.processor_us for one, order in pairs)
            row += [f"{processor_us:.2f} us", f"{saving:.2f}"]
        table.add_row(*row)
    return table


# Times


def _times(plan: XampPlan, members: int) -> dict[str, ExecutionTime]:
    reports = measure_group(members, plan, "", lambda _: None)
    return {each.way: each for each in times_of(members, plan, reports)}


def _times_table(members: int, rounds: list[dict[str, ExecutionTime]]) -> Table:
    table = Table(
        title=f"{members} members, 64 bytes: delivery at the last of {members - 1} recipients; the receipt",
        caption="raw: bare TCP; its receipt is the last response. The receipt of the total order is the "
        "sender's own delivery. Spread: between the first and the last recipient.",
    )
    headings = (
        "delivery",
        "x raw one-way",
        "x total order",
        "receipt",
        "x raw round trip",
        "spread",
        "longest",
    )
    table.add_column("way of sending")
    for heading in headings:
        table.add_column(heading, justify="right")
    for way in rounds[0]:
        of_way = [each[way] for each in rounds]
        raw, order = [each[RAW] for each in rounds], [each[TOTAL_ORDER] for each in rounds]
        table.add_row(
            short_name(way),
            _us([each.indication_ms for each in of_way]),
            _ratio([each.indication_ms for each in of_way], [each.indication_ms for each in raw]),
            _ratio([each.indication_ms for each in of_way], [each.indication_ms for each in order]),
            _us([each.confirmation_ms for each in of_way]),
            _ratio([each.confirmation_ms for each in of_way], [each.confirmation_ms for each in raw]),
            _us([each.spread_ms for each in of_way]),
            _us([each.spread_max_ms for each in of_way]),
        )
    return table


def _us(milliseconds: list[float]) -> str:
    return f"{statistics.median(milliseconds) * 1e3:,.0f} us"


def _ratio(measured: list[float], base: list[float]) -> str:
    return f"{statistics.median(one / other for one, other in zip(measured, base, strict=True)):.2f}"
