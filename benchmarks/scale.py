"""`python -m benchmarks.scale`: what a member, a group and a cycle of joining and leaving cost, as they grow.

The processor time of members is that of all of them together, in one process, divided by their number. Work
for each peer is unavoidable, so a cost per member that doubles with the group is linear in its peers; one
that grows faster is a defect. Memory is the growth of this process.
"""

import argparse
import asyncio
import gc
import logging
import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

import priocast
from benchmarks.driven_group import DrivenGroup
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.network.memory import MemoryHub
from priocast.simulation.scenario import Scenario, WorkloadOptions
from priocast.simulation.simulator import run_scenario

SIZES = (8, 16, 32, 64)
ORDERS = ("sequencer-ub", "causal-history")
GROUPS = 1_000
CYCLES = 10_000
_PART_CYCLES = 10
_MESSAGES_PER_MEMBER = 10
_HEARTBEAT_MS_PER_PAIR = 1.6  # as many heartbeats in a large group: few beside what is measured
_START_SECONDS = 300.0
_IDLE_HEARTBEATS = 5
_PAGE_KILOBYTES = os.sysconf("SC_PAGE_SIZE") / 1024


def founding_table(sizes: Sequence[int]) -> Table:
    """What it costs to found a group, and to keep it idle for a second."""
    table = _table(
        "founding a group",
        "members",
        "ms per member",
        "us per frame",
        "kB per member",
        "idle, ms/s per member",
    )
    for size in sizes:
        before = _kilobytes()
        group = DrivenGroup(size)
        group.wait_view()
        founded, frames, used = group.seconds, group.frames, _kilobytes() - before
        group.run(1_000)
        group.seconds = 0.0
        group.run(1_000)
        table.add_row(
            str(size),
            f"{1e3 * founded / size:,.2f}",
            f"{1e6 * founded / frames:,.0f}",
            f"{used / size:,.0f}",
            f"{1e3 * group.seconds / size:,.2f}",
        )
    return table


def deliveries_table(sizes: Sequence[int]) -> Table:
    """What a delivery costs at one member, in one event loop, in virtual time and in the simulator."""
    table = _table(
        "us per delivery, all members send", "members", "order", "event loop", "driven", "simulator"
    )
    for order in ORDERS:
        for size in sizes:
            table.add_row(
                str(size),
                order,
                f"{asyncio.run(_in_event_loop(size, order)):,.0f}",
                f"{_driven(size, order):,.0f}",
                f"{_simulated(size, order):,.0f}",
            )
        table.add_section()
    return table


async def _in_event_loop(size: int, order: str) -> float:
    """Microseconds of processor time per delivery, with members that share an event loop."""
    hub, expected = MemoryHub(), size * _MESSAGES_PER_MEMBER

    async def consume(group: priocast.Group) -> None:
        delivered = 0
        async for event in group:
            delivered += isinstance(event, priocast.Delivery)
            if delivered == expected:
                return

    async with AsyncExitStack() as stack:
        names = [f"m{number:03}" for number in range(size)]
        nodes = [
            await stack.enter_async_context(priocast.open_node(name, hub=hub, size=size)) for name in names
        ]
        heartbeat_ms = max(100.0, _HEARTBEAT_MS_PER_PAIR * size * size)
        membership = MembershipOptions(
            founders=size, heartbeat_ms=heartbeat_ms, failure_ms=10 * heartbeat_ms, slow_ms=100 * heartbeat_ms
        )
        joining = [  # without waiting for each other when they leave: 64 views would follow one another
            node.join(
                "scale", order=order, membership=membership, start_seconds=_START_SECONDS, leave_seconds=0
            )
            for node in nodes
        ]
        groups = await asyncio.gather(*(stack.enter_async_context(each) for each in joining))
        consuming = [asyncio.create_task(consume(group)) for group in groups]
        began = time.process_time()
        for _ in range(_MESSAGES_PER_MEMBER):
            for group in groups:
                await group.broadcast(bytes(64))
            await asyncio.sleep(0.01)
        await asyncio.gather(*consuming)
        return 1e6 * (time.process_time() - began) / (size * expected)


def _driven(size: int, order: str) -> float:
    group = DrivenGroup(size, order)
    group.wait_view()
    group.run(5)
    group.seconds, group.deliveries, expected = 0.0, 0, size * size * _MESSAGES_PER_MEMBER
    for _ in range(_MESSAGES_PER_MEMBER):
        for name in group.members:
            group.broadcast(name, bytes(64))
        group.run(10)
    group.run_until(lambda: group.deliveries >= expected)
    return 1e6 * group.seconds / expected


def _simulated(size: int, order: str) -> float:
    """Includes the founding of the group, and the checks of every guarantee."""
    scenario = Scenario(
        seed=1,
        order=order,
        workload=WorkloadOptions(
            messages=(_MESSAGES_PER_MEMBER,) * size,
            rate_per_second=(100,) * size,
            consume_us=(0,) * size,
            start_us=(0,) * size,
            broadcast_from_us=200_000,
        ),
        membership=MembershipOptions(founders=size),
    )
    began = time.process_time()
    run = run_scenario(scenario)
    assert not run.violations, run.violations
    return 1e6 * (time.process_time() - began) / (size * size * _MESSAGES_PER_MEMBER)


def groups_table(counts: Sequence[int]) -> Table:
    """What groups on one node cost: each has one member."""
    table = _table(
        "groups on one node", "groups", "ms to join each", "kB each", "heartbeat, ms", "idle, ms/s each"
    )
    for count in counts:
        heartbeat_ms = max(100.0, 2 * count)
        joined, kilobytes, idle = asyncio.run(_groups(count, heartbeat_ms))
        table.add_row(
            str(count), f"{joined:,.2f}", f"{kilobytes:,.0f}", f"{heartbeat_ms:,.0f}", f"{idle:,.2f}"
        )
    return table


async def _groups(count: int, heartbeat_ms: float) -> tuple[float, float, float]:
    """With heartbeats so rare that a busy machine keeps up with them: otherwise fewer are measured."""
    membership = MembershipOptions(
        founders=1, heartbeat_ms=heartbeat_ms, failure_ms=10 * heartbeat_ms, slow_ms=100 * heartbeat_ms
    )
    before, began = _kilobytes(), time.process_time()
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(priocast.open_node("a", hub=MemoryHub(), size=1))
        joining = [
            node.join(f"group{number}", membership=membership, start_seconds=_START_SECONDS)
            for number in range(count)
        ]
        await asyncio.gather(*(stack.enter_async_context(each) for each in joining))
        joined, used = time.process_time() - began, _kilobytes() - before
        began, seconds = time.process_time(), _IDLE_HEARTBEATS * heartbeat_ms / 1e3
        await asyncio.sleep(seconds)
        idle = (time.process_time() - began) / seconds
        return 1e3 * joined / count, used / count, 1e3 * idle / count


def cycles_table(cycles: int) -> Table:
    """A fourth process joins a group of three and leaves it, again and again: nothing may grow."""
    table = _table("a process joins and leaves", "cycles so far", "ms per cycle", "objects", "MB")
    group = DrivenGroup(3)
    group.wait_view()
    of_part = cycles // _PART_CYCLES
    for part in range(_PART_CYCLES):
        group.seconds = 0.0
        join_and_leave(group, range(1 + part * of_part, 1 + (part + 1) * of_part))
        gc.collect()
        table.add_row(
            f"{(part + 1) * of_part:,}",
            f"{1e3 * group.seconds / of_part:,.2f}",
            f"{len(gc.get_objects()):,}",
            f"{_kilobytes() / 1024:,.1f}",
        )
    return table


def join_and_leave(group: DrivenGroup, incarnations: Sequence[int]) -> None:
    """Let a process join and leave a group once with each of these incarnations."""
    staying = tuple(group.members)
    for incarnation in incarnations:
        member = group.start("visitor", incarnation)
        group.wait_view()
        member.leave(group.now)
        group.wait_view(*staying)


def _kilobytes() -> float:
    """The memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KILOBYTES


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "order" else "right")
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small groups, few groups and few cycles")
    quick = parser.parse_args(arguments).quick
    logging.getLogger("priocast").setLevel(logging.ERROR)  # groups that wait a second for their turn say so
    console = Console(width=110)
    console.print(founding_table((4, 8) if quick else (*SIZES, MEMBERS_MAX // 2, MEMBERS_MAX)))
    console.print(deliveries_table((4, 8) if quick else SIZES))
    console.print(groups_table((10, 20) if quick else (GROUPS // 10, GROUPS)))
    console.print(cycles_table(20 if quick else CYCLES))


if __name__ == "__main__":
    main()
