"""What a live page costs the group that it shows: `python -m benchmarks.live_page`.

A group of four members in one process gets three times the load that its applications can handle, by turns
without and with a page that is open at every member; the pages are a process of their own. Printed are the
ratios of the rates and of the processor times per message. With `--minutes` one group is watched for that
long, or runs with `--no-page`, and the memory of its process is printed.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import priocast
from priocast.network.address import parse_address
from priocast.operations.http_client import responding
from priocast.runtime.group import Group
from priocast.study.workload import MIX

_MEMBERS = "abcd"
_LOAD = 3.0
_HANDLING_SECONDS = 0.005
_BURST = 4
_OPTIONS = priocast.MembershipOptions(founders=len(_MEMBERS), failure_ms=30_000, slow_ms=120_000)
_TURNS, _SETTLED_SECONDS, _MEASURED_SECONDS = 4, 4.0, 10.0
_SAMPLES = 10


class Measured(NamedTuple):
    """Messages per second at the first member, and processor time per message and member."""

    rate: float
    used_us: float


async def _consume(group: Group) -> None:
    async for _ in group:
        await asyncio.sleep(_HANDLING_SECONDS)


async def _send(group: Group) -> None:
    """Broadcast a share of the load, in bursts, with the priorities of the demo."""
    mixed = [priority for priority, share in MIX.items() for _ in range(round(50 * share))]
    pause = _BURST * len(_MEMBERS) * _HANDLING_SECONDS / _LOAD
    index = 0
    while True:
        for _ in range(_BURST):
            index += 1
            await group.broadcast(bytes(64), mixed[index * 7 % len(mixed)], timeout_seconds=3600)
        await asyncio.sleep(pause)


async def watch(addresses: Sequence[str]) -> None:
    """Have a page open at each of these addresses, until they end: print when all are, and how many came."""
    not_open = set(addresses)

    async def follow(address: str) -> int:
        updates = 0
        with suppress(ConnectionResetError):  # the group has ended
            async with responding(parse_address(address), "GET", "/events") as (_, chunks):
                async for chunk in chunks:
                    updates += chunk.count(b"event: update")
                    if updates and address in not_open:
                        not_open.remove(address)
                        print("" if not_open else "all pages are open\n", end="", flush=True)
        return updates

    began = time.monotonic()
    found = await asyncio.gather(*map(follow, addresses))
    print(f"{max(found) / (time.monotonic() - began):.1f} updates per second at most")


@asynccontextmanager
async def loaded_group(*, watched: bool) -> AsyncIterator[list[Group]]:
    """The group under load."""
    hub = priocast.MemoryHub()
    async with AsyncExitStack() as stack:
        addresses, joinings = [], []
        for name in _MEMBERS:
            node = await stack.enter_async_context(priocast.open_node(name, hub=hub, size=len(_MEMBERS)))
            admin = await stack.enter_async_context(node.serve_admin("127.0.0.1:0"))
            addresses.append(admin.url.removeprefix("http://").removesuffix("/"))
            joinings.append(node.join("tickets", membership=_OPTIONS, leave_seconds=0))
        groups = await asyncio.gather(*(joining.__aenter__() for joining in joinings))
        tasks = [asyncio.create_task(work(group)) for group in groups for work in (_consume, _send)]
        command = [sys.executable, "-m", "benchmarks.live_page", "--watch", *addresses]
        pages = None
        if watched:
            pages = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            assert pages.stdout is not None
            await pages.stdout.readline()
        yield groups
        for task in tasks:
            task.cancel()
        for joining in joinings:
            await joining.__aexit__(RuntimeError, RuntimeError(), None)
    if pages is not None:
        printed, _ = await pages.communicate()
        print(printed.decode(), end="", flush=True)


async def measure(*, watched: bool) -> Measured:
    """One group, once its queues have filled."""
    async with loaded_group(watched=watched) as groups:
        await asyncio.sleep(_SETTLED_SECONDS)
        first, began, used = groups[0].status().position, time.monotonic(), time.process_time()
        await asyncio.sleep(_MEASURED_SECONDS)
        messages = groups[0].status().position - first
        seconds, used = time.monotonic() - began, time.process_time() - used
    return Measured(messages / seconds, 1e6 * used / messages / len(_MEMBERS))


async def compare() -> None:
    """Print the costs of a page, as ratios of groups with one to groups without."""
    ratios: list[tuple[float, float, float]] = []
    for turn in range(_TURNS):
        order = (False, True) if turn % 2 else (True, False)
        found = {watched: await measure(watched=watched) for watched in order}
        without, with_page = found[False], found[True]
        share = (with_page.used_us - without.used_us) * with_page.rate / 1e6
        ratios.append((with_page.rate / without.rate, with_page.used_us / without.used_us, share))
        print(
            f"turn {turn + 1}: {without.rate:.0f} and {with_page.rate:.0f} messages/s, "
            f"{without.used_us:.0f} and {with_page.used_us:.0f} us of processor time per message and member",
            flush=True,
        )
    rates, times, shares = map(median, zip(*ratios, strict=True))
    print(
        f"with a page at each member: rate x {rates:.3f}, processor time per message x {times:.3f}, "
        f"which is {shares:.2%} of a processor for each member"
    )


def resident_mib() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def watch_memory(minutes: float, *, watched: bool) -> None:
    """Run one group under load, and print the memory of its process as time passes."""
    async with loaded_group(watched=watched) as groups:
        for sample in range(_SAMPLES + 1):
            status = groups[0].status()
            print(
                f"{sample * minutes / _SAMPLES:5.1f} min  {resident_mib():7.1f} MiB  "
                f"{status.position:8,} delivered  {status.backlog:7,} wait",
                flush=True,
            )
            if sample < _SAMPLES:
                await asyncio.sleep(60 * minutes / _SAMPLES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="watch one group for so long, and print its memory")
    parser.add_argument("--no-page", action="store_true", help="with --minutes: nobody has a page open")
    parser.add_argument("--watch", nargs="+", help="have a page open at these admin addresses")
    arguments = parser.parse_args()
    if arguments.watch:
        asyncio.run(watch(arguments.watch))
    elif arguments.minutes:
        asyncio.run(watch_memory(arguments.minutes, watched=not arguments.no_page))
    else:
        asyncio.run(compare())
