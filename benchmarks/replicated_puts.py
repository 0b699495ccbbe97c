"""Puts into a replicated dictionary: ours beside PySyncObj's ReplDict and etcd, three processes, in one run.

Every member puts, over the same keys, one put at a time or with `OUTSTANDING` puts at once; a put counts when
its caller has the answer. At the end the copies must be equal: members write the same keys, so copies that
were applied in different orders differ. PySyncObj gets what its documentation recommends for each mode:
batches when puts are pipelined, none and a short tick otherwise. Its puts are answered in memory, as ours are
without a log. With `durability="disk"`, each answer waits for two disks, as it does with etcd.
"""

import asyncio
import math
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import priocast
from benchmarks.closed_loop import Call, MeasuredCalls, call_for_a_while, hash_of, measure
from benchmarks.members import Load, MemberContext
from benchmarks.peers.etcd_gateway import is_written, wait_ready
from benchmarks.peers.servers import etcd_servers
from benchmarks.peers.systems import program
from benchmarks.replicated_puts_peer import PeerDict
from priocast.network.address import parse_address

MEMBERS = 3
KEYS = 1000
VALUE = "v" * 64
OUTSTANDING = 256

Put = Callable[[str, str], Awaitable[object]]
Measure = Callable[[int], tuple[float, float]]


async def ours(context: MemberContext, load: Load, directory: str) -> MeasuredCalls:
    """One member with a `ReplicatedDict`; with a directory, answers wait for disks."""
    task = context.task
    async with priocast.replicate(
        "puts",
        priocast.ReplicatedDict[str, str](),
        member=task.member,
        listen=task.listen,
        peers=task.peers,
        durability="disk" if directory else "memory",
        state_directory=Path(directory) / task.member if directory else None,
    ) as store:
        await store.get("")
        measured = await call_for_a_while(context, load.burst, _putting(context, store.set))
        items = await store.items()
        await context.barrier()
        return msgspec.structs.replace(measured, copy_hash=hash_of(items))


async def peers(context: MemberContext, load: Load, _directory: str) -> MeasuredCalls:
    """One member with PySyncObj's `ReplDict`."""
    others = [each for each in context.task.addresses if each != context.task.listen]
    store = PeerDict(context.task.listen, others, is_pipelined=load.burst > 1)
    await store.wait_ready()
    measured = await call_for_a_while(context, load.burst, _putting(context, store.set))
    await store.set(f"end {context.rank}", "")
    await store.wait_keys([f"end {rank}" for rank in range(MEMBERS)])
    found = hash_of(store.items())
    await context.barrier()
    store.close()
    return msgspec.structs.replace(measured, copy_hash=found)


async def etcd(context: MemberContext, load: Load, servers: list[str]) -> MeasuredCalls:
    """The clients of one of three servers, each with a connection."""
    server = parse_address(servers[context.rank])
    free = [await asyncio.open_connection(server.host, server.port) for _ in range(load.burst)]
    await wait_ready(free[0])

    async def put(key: str, value: str) -> None:
        connection = free.pop()
        while not await is_written(connection, key.encode(), value.encode()):
            pass
        free.append(connection)

    measured = await call_for_a_while(context, load.burst, _putting(context, put))
    for _, writer in free:
        writer.close()
    return measured


def _putting(context: MemberContext, put: Put) -> Call:
    """Puts one after the other over the same keys as all other members."""

    def call(number: int) -> Awaitable[object]:
        return put(f"key {number % KEYS}", f"{context.task.member} {number} {VALUE}")

    return call


def replicated_puts_table(rounds: int, console: Console) -> Table:
    """A row for each system, one put at a time and pipelined."""
    table = Table(title=f"replicated puts per second, {MEMBERS} members that all put, answered to the caller")
    table.add_column("store")
    for mode in ("one at a time", f"{OUTSTANDING} at once"):
        for heading in (mode, "x PySyncObj", "CPU us a put"):
            table.add_column(heading, justify="right")
    measured: dict[str, list[list[tuple[float, float]]]] = {}
    systems = _systems(console)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("replicated puts", total=rounds * 2 * len(systems))
        for _ in range(rounds):
            for column, burst in enumerate((1, OUTSTANDING)):
                for name, rate in systems.items():
                    measured.setdefault(name, [[], []])[column].append(rate(burst))
                    progress.advance(task)
    base = measured["PySyncObj ReplDict"]
    for name, columns in measured.items():
        table.add_row(name, *(cell for pair in zip(columns, base, strict=True) for cell in _cells(*pair)))
    return table


def _systems(console: Console) -> dict[str, Measure]:
    """What is measured, by name: puts per second, and the CPU time for each in microseconds."""
    systems: dict[str, Measure] = {
        "PySyncObj ReplDict": lambda burst: _rate(peers, burst, ""),
        "in memory": lambda burst: _rate(ours, burst, ""),
        "durable log": _durable_rate,
    }
    if program("etcd", "etcd-server").is_there():
        systems["etcd, durable"] = _etcd_rate
    else:
        console.print("etcd is not measured: it is not installed (on Debian: apt install etcd-server)")
    return systems


def _durable_rate(burst: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        return _rate(ours, burst, directory)


def _etcd_rate(burst: int) -> tuple[float, float]:
    """Without the CPU time, most of which is the servers'."""
    with tempfile.TemporaryDirectory() as directory, etcd_servers(Path(directory)) as servers:
        return _rate(etcd, burst, servers)[0], math.nan


def _rate(
    part: Callable[..., Awaitable[MeasuredCalls]], burst: int, argument: str | list[str]
) -> tuple[float, float]:
    """Puts per second, and the CPU time of all members for each, in microseconds."""
    load = Load(MEMBERS, 0, len(VALUE), burst=burst, window=0, frame_messages=0)
    measured = measure(part, load, argument)
    return measured.rate, 1e6 * measured.cpu_seconds / measured.count


def _cells(measured: list[tuple[float, float]], base: list[tuple[float, float]]) -> tuple[str, str, str]:
    ratio = statistics.median(one[0] / other[0] for one, other in zip(measured, base, strict=True))
    rates, cpu_us = zip(*measured, strict=True)
    cpu = "" if math.isnan(cpu_us[0]) else f"{statistics.median(cpu_us):,.0f}"
    return f"{statistics.median(rates):,.0f}", f"{ratio:.1f}", cpu
