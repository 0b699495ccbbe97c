"""Traces for measuring the pipeline: synthetic, valid, and as large as wanted.

No group runs: the rows are computed as arrays. Members broadcast in rounds. In each round every sender
broadcasts its batches and sends them by priority; then they get their positions by priority, and everybody
delivers them one by one. A round begins when the one before is delivered everywhere, so every guarantee holds
by construction. A `Fault` breaks one of them at a known place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from priocast.core.guarantees import (
    AGREEMENT,
    CAUSAL_ORDER,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    PRIORITY_ACCOUNTING,
    TIMESTAMP_ORDER,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)
from priocast.trace.columns import table_schema
from priocast.trace.run_directory import write_manifest, write_segment, write_table
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    NO_POSITION,
    RECEIVED,
    SCHEMA_VERSION,
    SENT,
    VIEW,
    GroupEventRow,
    Manifest,
    MessageRow,
)

SEQUENCER, REORDER, ADAPTIVE = "sequencer-ub", "reorder", "adaptive"
Array = np.ndarray[Any, np.dtype[Any]]

_BATCHES_PER_ROUND = 64
_ROUNDS_PER_SEGMENT_MAX = 2_000
_PHASES = 6
_ROUND_NS, _PHASE_NS = 1_000_000, 100_000
_SAFE_EVERY = 10
_ACTS = {SEQUENCER: "sequencing", REORDER: "consuming", ADAPTIVE: "sending"}
_PACKETS = {SEQUENCER: "submit", REORDER: "data", ADAPTIVE: "filled-slot"}
_KINDS = (BROADCAST, SENT, RECEIVED, SENT, RECEIVED, DELIVERED)
_VIEW_STEP = 0


class Fault(Enum):
    """What is wrong in a run: the guarantee that it breaks first."""

    REPEATED = INTEGRITY
    SWAPPED = TOTAL_ORDER
    LOST = AGREEMENT
    OUTSIDE_VIEW = VIEW_SYNCHRONY
    NOT_RECEIVED = UNIFORMITY
    OUT_OF_FIFO = FIFO_AMONG_EQUALS
    INVERTED = PRIORITY
    UNACCOUNTED = PRIORITY_ACCOUNTING
    STAMP_TWICE = TIMESTAMP_ORDER
    CAUSED_LATER = CAUSAL_ORDER
    MEMBER_LOST = f"{AGREEMENT}: a member delivers nothing"

    @property
    def guarantee(self) -> str:
        """The guarantee that it breaks."""
        return self.value.partition(":")[0]


@dataclass(frozen=True)
class TraceShape:
    """How large the trace is, and of what."""

    deliveries: int
    members: int = 5
    priorities: int = 4
    runs: int = 1
    segments: int = 1
    batch: int = 4
    order: str = SEQUENCER
    fault: Fault | None = None

    @property
    def batches(self) -> int:
        """How many batches each run has."""
        return max(_BATCHES_PER_ROUND, self.deliveries // self.runs // self.members // self.batch)


@dataclass(frozen=True)
class Batches:
    """All batches of a run, as arrays: what each is, and its place in the order."""

    sender: Array
    level: Array
    first: Array
    place: Array
    safe: Array
    round: Array


@dataclass
class Rows:
    """Some rows of one member, as arrays; `phase` says which event each is, `batch` and `index` of what."""

    phase: Array
    batch: Array
    index: Array
    position: Array
    stamp: Array

    def take(self, chosen: Array) -> "Rows":
        """Some of the rows, or all in another order."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def write_runs(directory: Path, shape: TraceShape, seed: int = 0, name: str = "run") -> None:
    """Write the runs of a trace."""
    for number in range(shape.runs):
        write_run(directory / f"{name}-{number}", shape, seed + number)


def write_run(directory: Path, shape: TraceShape, seed: int) -> None:
    """Write one run: its manifest, and for each member one view and its messages."""
    names = [f"m{number}" for number in range(shape.members)]
    write_manifest(directory, _manifest(directory.name, shape, names))
    batches = make_batches(shape, np.random.default_rng(seed))
    rounds = int(batches.round[-1]) + 1
    segments = max(shape.segments, -(-rounds // _ROUNDS_PER_SEGMENT_MAX))
    bounds = np.linspace(0, rounds, segments + 1).astype(int) * _BATCHES_PER_ROUND
    for member, member_name in enumerate(names):
        step = _VIEW_STEP + 2
        for segment, (low, high) in enumerate(pairwise(bounds)):
            rows = in_order(shape, batches, member_rows(shape, batches, member, int(low), int(high)))
            rows = broken(shape, batches, rows, member, segment)
            table = to_messages(shape, batches, rows, names, member, step, directory.name)
            write_table(directory, f"{member_name}-1-{segment:05d}", MessageRow, table)
            step += 2 * len(rows.phase)
        write_segment(directory, directory.name, f"{member_name}-1-view", [_view(shape, names, member)])


def make_batches(shape: TraceShape, rng: np.random.Generator) -> Batches:
    """Random senders and levels; numbers by sender and level, places by priority within each round."""
    count = shape.batches
    numbers = np.arange(count)
    sender = rng.integers(shape.members, size=count)
    levels = np.unique(np.linspace(0, 255, shape.priorities).astype(np.int32))
    level = levels[rng.integers(len(levels), size=count)]
    stream = sender * 256 + level
    by_stream = np.argsort(stream, kind="stable")
    ordered = stream[by_stream]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.concatenate((starts, [count])))
    first = np.empty(count, np.int64)
    first[by_stream] = (numbers - np.repeat(starts, lengths)) * shape.batch
    rounds = numbers // _BATCHES_PER_ROUND
    by_place = np.lexsort((numbers, -level, rounds))
    if shape.fault in {Fault.INVERTED, Fault.UNACCOUNTED}:
        _exchange(by_place, lambda one, other: bool(level[one] != level[other]))
    if shape.fault is Fault.OUT_OF_FIFO:
        _exchange(by_place, lambda one, other: bool(stream[one] == stream[other]))
    place = np.empty(count, np.int64)
    place[by_place] = numbers
    return Batches(sender, level, first, place, numbers % _SAFE_EVERY == 0, rounds)


def _exchange(by_place: Array, is_wanted: Callable[[int, int], bool]) -> None:
    """Exchange the first two neighbours of one round that are wanted."""
    for place in range(len(by_place) - 1):
        one, other = by_place[place], by_place[place + 1]
        if one // _BATCHES_PER_ROUND == other // _BATCHES_PER_ROUND and is_wanted(one, other):
            by_place[place], by_place[place + 1] = other, one
            return
    raise AssertionError("a round has such a pair")


def member_rows(shape: TraceShape, batches: Batches, member: int, low: int, high: int) -> Rows:
    """What one member records of the batches from `low` to `high`, phase by phase."""
    numbers = np.arange(low, min(high, len(batches.sender)))
    own = numbers[batches.sender[numbers] == member]
    by_sequencer = shape.order == SEQUENCER
    parts = [(0, own, False), (1, own, False)]
    if not by_sequencer or member == 0:
        parts.append((2, numbers, False))
    if by_sequencer:
        parts += [(3, numbers, True)] if member == 0 else []
        parts.append((4, numbers, True))
    messages = np.repeat(numbers, shape.batch)
    index = np.tile(np.arange(shape.batch), len(numbers))
    found = [np.concatenate([chosen for _, chosen, _ in parts] + [messages])]
    phase = [np.full(len(chosen), number) for number, chosen, _ in parts] + [np.full(len(messages), 5)]
    position = [
        batches.place[chosen] * shape.batch if placed else np.full(len(chosen), NO_POSITION)
        for _, chosen, placed in parts
    ] + [batches.place[messages] * shape.batch + index]
    before = sum(len(chosen) for _, chosen, _ in parts)
    stamp = np.concatenate((np.full(before, NO_POSITION), position[-1]))
    return Rows(
        np.concatenate(phase),
        found[0],
        np.concatenate((np.zeros(before, np.int64), index)),
        np.concatenate(position),
        stamp,
    )


def in_order(shape: TraceShape, batches: Batches, rows: Rows) -> Rows:
    """The rows in the order of the member's steps."""
    by_number = np.isin(rows.phase, (0, 2))
    place = np.where(by_number, rows.batch, batches.place[rows.batch]) * shape.batch + rows.index
    turn = batches.round[rows.batch] * _PHASES + rows.phase
    return rows.take(np.lexsort((place, turn)))


def broken(shape: TraceShape, batches: Batches, rows: Rows, member: int, segment: int) -> Rows:
    """The rows with the fault, if it is one of this member's records."""
    everything = np.arange(len(rows.phase))
    if shape.fault is Fault.MEMBER_LOST and member == shape.members - 1:
        return rows.take(everything[rows.phase != 5])
    if member != 1 or segment != 0:
        return rows
    delivered = everything[rows.phase == 5]
    one, other = delivered[len(delivered) // 2], delivered[len(delivered) // 2 + 1]
    kept = everything
    match shape.fault:
        case Fault.REPEATED:
            kept = np.insert(everything, one, one)
        case Fault.LOST:
            kept = np.delete(everything, one)
        case Fault.SWAPPED:
            for values in (rows.batch, rows.index):
                values[one], values[other] = values[other], values[one]
        case Fault.NOT_RECEIVED:
            safe = everything[(rows.phase == 4) & batches.safe[rows.batch]]
            kept = np.delete(everything, safe[len(safe) // 2])
        case Fault.CAUSED_LATER:
            broadcast = everything[rows.phase == 0][0]
            last = delivered[rows.batch[delivered] == rows.batch[broadcast]][-1]
            kept = np.insert(np.delete(everything, broadcast), last, broadcast)
        case Fault.STAMP_TWICE:
            rows.stamp[one] = rows.stamp[other]
    return rows.take(kept)


def to_messages(
    shape: TraceShape, batches: Batches, rows: Rows, names: list[str], member: int, step: int, run: str
) -> pa.Table:
    """Rows of a member as a segment of the table `messages` of a run."""
    count = len(rows.phase)
    delivered = rows.phase == 5
    to_orderer = (rows.phase == 1) & (shape.order == SEQUENCER)
    received = np.isin(rows.phase, (2, 4))
    packets = np.array(["", _PACKETS[shape.order], "ordered"])
    packet = np.select([np.isin(rows.phase, (1, 2)), np.isin(rows.phase, (3, 4))], [1, 2], 0)
    peer = np.select([to_orderer | (rows.phase == 4), received], [0, batches.sender[rows.batch]], len(names))
    stamped = delivered & (shape.order == ADAPTIVE)
    time = batches.round[rows.batch] * _ROUND_NS + rows.phase * _PHASE_NS
    columns: dict[str, object] = {
        "run": _words(np.zeros(count, np.int32), [run]),
        "member": _words(np.zeros(count, np.int32), [names[member]]),
        "incarnation": np.ones(count, np.int64),
        "view": np.ones(count, np.int64),
        "coordinator": _words(np.zeros(count, np.int32), [f"{names[0]}#1"]),
        "step": step + 2 * np.arange(count),
        "time_ns": time + np.arange(count) % _PHASE_NS,
        "event": _words(rows.phase, list(_KINDS)),
        "packet": _words(packet, list(packets)),
        "peer": _words(peer, [*names, ""]),
        "sender": _words(batches.sender[rows.batch], names),
        "sender_incarnation": np.ones(count, np.int64),
        "level": batches.level[rows.batch].astype(np.int32),
        "first": batches.first[rows.batch] + rows.index,
        "count": np.where(delivered, 1, shape.batch).astype(np.int32),
        "priorities": pa.array([b""], pa.binary()).take(np.zeros(count, np.int32)),
        "safe": batches.safe[rows.batch],
        "to": _words(np.zeros(count, np.int32), [""]),
        "client": _words(np.zeros(count, np.int32), [""]),
        "request": np.zeros(count, np.int64),
        "position": rows.position,
        "bytes": np.full(count, 100),
        "backlog": np.zeros(count, np.int64),
        "distribution": _words(stamped, ["", "0.0"]),
        "stamp_number": np.where(stamped, rows.stamp, NO_POSITION),
        "clock_offset_ns": pa.nulls(count, pa.int64()),
        "schema_version": np.full(count, SCHEMA_VERSION, np.int32),
    }
    schema = table_schema(MessageRow)
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _words(indices: Array, words: list[str]) -> pa.DictionaryArray:
    """A column that refers to words; each once, as the writer of a trace does."""
    unique = list(dict.fromkeys(words))
    renumbered = np.array([unique.index(word) for word in words], np.int32)
    return pa.DictionaryArray.from_arrays(renumbered[indices.astype(np.int32)], pa.array(unique))


def _view(shape: TraceShape, names: list[str], member: int) -> GroupEventRow:
    late = 2 * _BATCHES_PER_ROUND * (1 + shape.batch) * 2 + 1  # after the first deliveries
    return GroupEventRow(
        member=names[member],
        incarnation=1,
        view=1,
        coordinator=f"{names[0]}#1",
        step=late if shape.fault is Fault.OUTSIDE_VIEW and member == 1 else _VIEW_STEP,
        time_ns=0,
        event=VIEW,
        position=0,
        members=tuple(f"{name}#1" for name in names),
        orderer=f"{names[0]}#1" if shape.order == SEQUENCER else "",
        order=shape.order,
        starvation="none",
        priorities_act=_ACTS[shape.order],
        sends_by_priority=shape.order != REORDER,
        founded=True,
    )


def _manifest(run: str, shape: TraceShape, names: list[str]) -> Manifest:
    return Manifest(
        run=run,
        group="synthetic",
        order=shape.order,
        prioritised=True,
        starvation="none",
        orders="coordinator" if shape.order == SEQUENCER else "",
        priorities_act=_ACTS[shape.order],
        members=names,
        policy="primary",
        delivery="agreed",
        clock="virtual",
    )


def faulty_shapes(deliveries: int) -> Iterator[tuple[str, TraceShape]]:
    """One small run for each fault, by its name."""
    orders = {Fault.UNACCOUNTED: REORDER, Fault.STAMP_TWICE: ADAPTIVE}
    for fault in Fault:
        shape = TraceShape(deliveries, order=orders.get(fault, SEQUENCER), fault=fault)
        yield fault.name.lower().replace("_", "-"), shape
