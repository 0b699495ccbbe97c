"""Small runs for the pipeline's tests: a sequencer, played by hand and written down by the real recorder.

Every member submits batches to the first one, which orders what its queue lets out, a few messages at a
time, so that there is a backlog; members consume what is ordered in bites that cut batches in two. The
clock is virtual, the dice are seeded.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Stretch
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.core.protocol import Packet
from priocast.core.starvation import FirstInFirstOut, parse_starvation
from priocast.core.view import View
from priocast.trace.recorder import Recorder
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import Manifest, Row

LEVELS = (BACKGROUND, ROUTINE, ELEVATED, URGENT)
TICK_NS = 1_000_000
_BLOCK = bytes(64)  # what is in a message is not traced


class Submit(Packet, frozen=True, tag="submit"):
    batches: tuple[Batch, ...]


class Ordered(Packet, frozen=True, tag="ordered"):
    position: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True)
class SampleRun:
    """A run in memory: change its rows to make a mutant, write it to have a run directory."""

    manifest: Manifest
    rows: list[Row]

    def named(self, run: str) -> "SampleRun":
        return replace(self, manifest=msgspec.structs.replace(self.manifest, run=run))

    def changed(self, change: Callable[[list[Row]], list[Row]]) -> "SampleRun":
        """The same run with other rows; every member's steps are counted anew in the order of the list."""
        steps: dict[tuple[str, int], int] = {}
        rows = []
        for row in change(list(self.rows)):
            step = steps[row.member, row.incarnation] = steps.get((row.member, row.incarnation), -1) + 1
            rows.append(row._replace(step=step))
        return replace(self, rows=rows)

    def write(self, parent: Path) -> Path:
        """Write it as members do: each its own segments, more than one."""
        directory = parent / self.manifest.run
        write_manifest(directory, self.manifest)
        for member in sorted({row.member for row in self.rows}):
            rows = [row for row in self.rows if row.member == member]
            for number, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
                if part:
                    write_segment(directory, f"{member}-1-{number:06}", part)
        return directory

    def write_whole(self, parent: Path) -> Path:
        """Write it as one segment: where there are many small runs, to open files takes the most time."""
        directory = parent / self.manifest.run
        write_manifest(directory, self.manifest)
        write_segment(directory, "all-1-000000", self.rows)
        return directory


@dataclass
class _Member:
    me: ProcessId
    recorder: Recorder
    waiting: deque[Stretch] = field(default_factory=deque)
    next_number: dict[int, int] = field(default_factory=dict)


class _Play:
    """The run as it is being played."""

    def __init__(self, names: list[str], prioritised: bool, starvation: str, seed: int) -> None:
        self.dice = random.Random(seed)
        self.prioritised = prioritised
        self.policy = parse_starvation(starvation) if prioritised else FirstInFirstOut()
        self.queue: list[tuple[int, int, Batch]] = []
        self.backlog = 0
        self.arrivals = 0
        self.rows: list[Row] = []
        self.now = 0
        self.position = 0
        processes = tuple(ProcessId(name) for name in names)
        self.view = View(1, processes)
        self.members = [_Member(me, Recorder(me, self.rows.append)) for me in processes]
        for member in self.members:
            member.recorder.installed(self.view)
            member.recorder.view(self.view, processes[0], 0, "founded", self.now)

    def broadcast(self, member: _Member, count_max: int) -> None:
        count = self.dice.randint(1, count_max)
        asked = [self.dice.choice(LEVELS)] * count if self.prioritised else self.dice.choices(LEVELS, k=count)
        level = asked[0] if self.prioritised else 0
        first = member.next_number.get(level, 0)
        member.next_number[level] = first + count
        priorities = b"" if self.prioritised else bytes(asked)
        batch = Batch(member.me, level, first, count, _BLOCK, priorities)
        orderer = self.members[0]
        packet = Submit((batch,))
        member.recorder.broadcast(batch, self.now, count)
        member.recorder.sent(packet, orderer.me, self.now, 0)
        orderer.recorder.received(packet, member.me, self.now, self.backlog)
        self.arrivals += 1
        heappush(self.queue, (self.policy.rank(level, self.now), self.arrivals, batch))
        self.backlog += count

    def take(self, count_max: int) -> Batch:
        rank, arrival, batch = heappop(self.queue)
        if batch.count > count_max:
            heappush(self.queue, (rank, arrival, _part(batch, count_max, batch.count)))
            batch = _part(batch, 0, count_max)
        self.backlog -= batch.count
        return batch

    def order(self, count_max: int) -> None:
        batches, left = [], count_max
        while self.queue and left:
            batches.append(self.take(left))
            left -= batches[-1].count
        if not batches:
            return
        packet = Ordered(self.position, tuple(batches))
        orderer = self.members[0]
        orderer.recorder.sent(packet, None, self.now, self.backlog)
        for member in self.members:
            member.recorder.received(packet, orderer.me, self.now, 0)
            position = self.position
            for batch in batches:
                member.waiting.append(Stretch(self.view.id, position, batch))
                position += batch.count
        self.position += count_max - left

    def consume(self, member: _Member, count_max: int) -> None:
        """The application takes a bite, and mostly another one."""
        assert count_max > 0
        while member.waiting and self.dice.random() < 0.9:
            stretch = member.waiting[0]
            count = min(count_max, stretch.batch.count - stretch.taken)
            member.recorder.delivered(stretch, count, self.now, self.backlog)
            stretch.taken += count
            if stretch.taken == stretch.batch.count:
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
) -> SampleRun:
    """A correct run: a burst at every member in each tick, and an orderer that does not keep up."""
    playing = _Play(list(names), prioritised, starvation, seed)
    for _ in range(ticks):
        playing.now += TICK_NS
        for member in playing.members:
            playing.broadcast(member, batch_max)
        playing.order(2 * batch_max)
        for member in playing.members:
            playing.consume(member, max(1, batch_max - 1))
    while playing.queue or any(member.waiting for member in playing.members):
        playing.now += TICK_NS
        playing.order(2 * batch_max)
        for member in playing.members:
            playing.consume(member, max(1, batch_max - 1))
    return SampleRun(
        manifest_of(run, names, seed, prioritised=prioritised, starvation=starvation), playing.rows
    )


def manifest_of(
    run: str,
    names: Sequence[str],
    seed: int,
    prioritised: bool = True,
    starvation: str = "none",
    policy: str = "primary",
    delivery: str = "agreed",
    clock: str = "virtual",
) -> Manifest:
    """What a run of a sequencer is."""
    return Manifest(
        run=run,
        group="sample",
        order="sequencer-ub",
        prioritised=prioritised,
        starvation=starvation,
        orders="coordinator",
        members=list(names),
        policy=policy,
        delivery=delivery,
        clock=clock,
        seed=seed,
        versions={"priocast": "0.1.0"},
    )
