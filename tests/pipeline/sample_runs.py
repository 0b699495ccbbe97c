"""Small runs for the pipeline's tests: models of protocols, recorded by the real recorder.

- `sequencer-ub`: every member submits batches to the first one, which orders what leaves its queue;
- `sequencer-bb`: every member sends batches to all, and the first one orders them by reference;
- `token-ring`: one member after the other sends what leaves its own queue, with its position.

Only a few messages are ordered at a time, so that there is a backlog. Members consume ordered messages in
portions that split batches. The clock is virtual, the random numbers are seeded.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Reference, reference_to
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.core.protocol import Packet
from priocast.core.starvation import FirstInFirstOut, Starvation, parse_starvation
from priocast.core.view import View
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.protocols import find_protocol
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import GroupEventRow, Manifest, MessageRow, TraceRow

LEVELS = (BACKGROUND, ROUTINE, ELEVATED, URGENT)
TICK_NS = 1_000_000
_BLOCK = bytes(64)  # payloads are not traced


class Submit(Packet, frozen=True, tag="submit"):
    batches: tuple[Batch, ...]


class Ordered(Packet, frozen=True, tag="ordered"):
    position: int
    batches: tuple[Batch, ...]


class ByReference(Packet, frozen=True, tag="order"):
    position: int
    references: tuple[Reference, ...]


def by_reference(ordered: Ordered) -> ByReference:
    """The same order, for members that have the messages."""
    return ByReference(ordered.position, tuple(map(reference_to, ordered.batches)))


Change = Callable[[list[TraceRow]], list[TraceRow]]


@dataclass(frozen=True)
class SampleRun:
    """A run in memory: change its rows to make a mutant, write it to get a run directory."""

    manifest: Manifest
    rows: list[TraceRow]

    @cached_property
    def messages(self) -> list[MessageRow]:
        return [row for row in self.rows if isinstance(row, MessageRow)]

    @cached_property
    def group_events(self) -> list[GroupEventRow]:
        return [row for row in self.rows if isinstance(row, GroupEventRow)]

    def named(self, run: str) -> "SampleRun":
        return replace(self, manifest=msgspec.structs.replace(self.manifest, run=run))

    def changed(self, change: "Change") -> "SampleRun":
        """The same run with other rows; the steps of each process are renumbered in the order of the list."""
        steps: dict[tuple[str, int], int] = {}
        rows: list[TraceRow] = []
        for row in change(list(self.rows)):
            step = steps[row.member, row.incarnation] = steps.get((row.member, row.incarnation), -1) + 1
            rows.append(row._replace(step=step))
        return replace(self, rows=rows)

    def write(self, parent: Path) -> Path:
        """Write it as members do: each writes several segments."""
        directory = parent / self.manifest.run
        write_manifest(directory, self.manifest)
        for member in sorted({row.member for row in self.rows}):
            rows = [row for row in self.rows if row.member == member]
            halves = (rows[: len(rows) // 2], rows[len(rows) // 2 :])
            for number, part in enumerate(filter(None, halves)):
                write_segment(directory, self.manifest.run, f"{member}-1-{number:06}", part)
        return directory

    def write_whole(self, parent: Path) -> Path:
        """Write it as one segment: with many small runs, opening files takes most of the time."""
        directory = parent / self.manifest.run
        write_manifest(directory, self.manifest)
        write_segment(directory, self.manifest.run, "all-1-000000", self.rows)
        return directory


class _Queue:
    """Batches by sort key, and equal ones first in, first out."""

    def __init__(self, policy: Starvation) -> None:
        self.count = 0
        self._policy = policy
        self._heap: list[tuple[int, int, Batch]] = []
        self._arrivals = 0

    def put(self, batch: Batch, now: int) -> None:
        self._arrivals += 1
        self.count += batch.count
        heappush(self._heap, (self._policy.sort_key(batch.urgency, now), self._arrivals, batch))

    def take(self, count_max: int) -> list[Batch]:
        """Up to `count_max` messages."""
        batches: list[Batch] = []
        while self._heap and count_max:
            rank, arrival, batch = heappop(self._heap)
            if batch.count > count_max:
                heappush(self._heap, (rank, arrival, _part(batch, count_max, batch.count)))
                batch = _part(batch, 0, count_max)
            batches.append(batch)
            count_max -= batch.count
            self.count -= batch.count
        return batches


@dataclass
class _Member:
    me: ProcessId
    recorder: Recorder
    outgoing: _Queue
    waiting: deque[OrderedBatch] = field(default_factory=deque)
    next_number: dict[int, int] = field(default_factory=dict)


class _Play:
    """The state of a run; a member sends at most `credit` messages in a tick."""

    def __init__(self, names: list[str], ordering: Ordering, credit: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.order_name = ordering.order
        self.prioritised = ordering.prioritised
        self.credit = credit
        policy = parse_starvation(ordering.starvation) if self.prioritised else FirstInFirstOut()
        self.queue = _Queue(policy)
        self.rows: list[TraceRow] = []
        self.now = 0
        self.position = 0
        processes = tuple(ProcessId(name) for name in names)
        self.view = View(1, processes)
        self.members = [_Member(me, Recorder(me, self.rows.append), _Queue(policy)) for me in processes]
        for member in self.members:
            member.recorder.installed(self.view)
            member.recorder.view(self.view, ordering, 0, ViewReason(founded=True), self.now)

    def broadcast(self, member: _Member, count_max: int) -> None:
        count = self.rng.randint(1, count_max)
        asked = [self.rng.choice(LEVELS)] * count if self.prioritised else self.rng.choices(LEVELS, k=count)
        level = asked[0] if self.prioritised else 0
        first = member.next_number.get(level, 0)
        member.next_number[level] = first + count
        priorities = b"" if self.prioritised else bytes(asked)
        batch = Batch(member.me, level, first, count, _BLOCK, priorities)
        member.recorder.broadcast(batch, self.now, count)
        member.outgoing.put(batch, self.now)

    def send(self, member: _Member) -> None:
        """A member sends what it has for the sequencer."""
        orderer = self.members[0]
        for batch in member.outgoing.take(self.credit):
            packet = Submit((batch,))
            to_all = self.order_name == "sequencer-bb"
            member.recorder.sent(packet, None if to_all else orderer.me, self.now, 0)
            for receiver in self.members if to_all else [orderer]:
                receiver.recorder.received(packet, member.me, self.now, self.queue.count)
            self.queue.put(batch, self.now)

    def order(self, orderer: _Member, queue: _Queue, count_max: int) -> None:
        batches = queue.take(count_max)
        if not batches:
            return
        ordered = Ordered(self.position, tuple(batches))
        packet = by_reference(ordered) if self.order_name == "sequencer-bb" else ordered
        orderer.recorder.sent(packet, None, self.now, queue.count)
        for member in self.members:
            member.recorder.received(packet, orderer.me, self.now, 0)
            position = self.position
            for batch in batches:
                member.waiting.append(OrderedBatch(self.view.id, position, batch))
                position += batch.count
        self.position += sum(batch.count for batch in batches)

    def tick(self, count_max: int, portion: int) -> None:
        """All members send, one orders, all consume."""
        if self.order_name == "token-ring":
            holder = self.members[self.now // TICK_NS % len(self.members)]
            self.order(holder, holder.outgoing, min(self.credit, count_max))
        else:
            for member in self.members:
                self.send(member)
            self.order(self.members[0], self.queue, count_max)
        for member in self.members:
            self.consume(member, portion)

    @property
    def is_over(self) -> bool:
        waiting = any(member.waiting or member.outgoing.count for member in self.members)
        return not waiting and not self.queue.count

    def consume(self, member: _Member, count_max: int) -> None:
        """The application consumes a portion, and usually another one."""
        assert count_max > 0
        while member.waiting and self.rng.random() < 0.9:
            ordered_batch = member.waiting[0]
            count = min(count_max, ordered_batch.batch.count - ordered_batch.taken)
            member.recorder.delivered(ordered_batch, count, self.now, self.queue.count)
            ordered_batch.taken += count
            if ordered_batch.taken == ordered_batch.batch.count:
                member.waiting.popleft()


def _part(batch: Batch, start: int, stop: int) -> Batch:
    priorities = batch.priorities[start:stop]
    return Batch(batch.sender, batch.level, batch.first + start, stop - start, _BLOCK, priorities)


def play(
    run: str = "sample",
    prioritised: bool = True,
    starvation: str = "none",
    ticks: int = 40,
    names: tuple[str, ...] = ("a", "b", "c", "d"),
    seed: int = 1,
    batch_max: int = 5,
    order: str = "sequencer-ub",
    credit: int = 1_000_000,
    broadcasts: int = 1,
) -> SampleRun:
    """A correct run: bursts at every member in each tick, and an orderer that is slower than that."""
    playing = _Play(list(names), Ordering(order, prioritised, starvation), credit, seed)
    portion = max(1, batch_max - 1)
    for _ in range(ticks):
        playing.now += TICK_NS
        for member in playing.members * broadcasts:
            playing.broadcast(member, batch_max)
        playing.tick(2 * batch_max, portion)
    while not playing.is_over:
        playing.now += TICK_NS
        playing.tick(2 * batch_max, portion)
    manifest = manifest_of(run, names, seed, prioritised=prioritised, starvation=starvation, order=order)
    return SampleRun(manifest, playing.rows)


def with_local_clocks(run: SampleRun) -> SampleRun:
    """The same run, with a different clock at each process."""
    processes = sorted({(row.member, row.incarnation) for row in run.rows})
    rows: list[TraceRow] = [
        row._replace(time_ns=row.time_ns + 10**12 * processes.index((row.member, row.incarnation)))
        for row in run.rows
    ]
    return SampleRun(msgspec.structs.replace(run.manifest, clock="local"), rows)


def manifest_of(
    run: str,
    names: Sequence[str],
    seed: int,
    prioritised: bool = True,
    starvation: str = "none",
    policy: str = "primary",
    delivery: str = "agreed",
    clock: str = "virtual",
    order: str = "sequencer-ub",
) -> Manifest:
    """The manifest of a run."""
    protocol = find_protocol(order)
    view = View(1, tuple(map(ProcessId, names)))
    return Manifest(
        run=run,
        group="sample",
        order=order,
        prioritised=prioritised,
        starvation=starvation,
        orders="coordinator" if protocol.orderer(view) else "",
        priorities_act=protocol.PRIORITIES_ACT,
        members=list(names),
        policy=policy,
        delivery=delivery,
        clock=clock,
        seed=seed,
        versions={"priocast": "0.1.0"},
    )
