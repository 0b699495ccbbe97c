"""`python -m benchmarks.watch_delay`: how long after it was recorded `priocast watch` reports a violation.

A group of two members writes a segment every half a second; now and then a segment says that one of them
delivered another message than the other at the same position. The delay is taken on the clock that stamps
the records: from the time of that record, which is written as soon as it is made, until the violation is
reported. A member itself writes its segments every two seconds, which comes on top.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from priocast.pipeline.live.watching import LiveUpdate, watch_runs
from priocast.trace.run_directory import write_manifest, write_segment
from priocast.trace.schema import (
    BROADCAST,
    DELIVERED,
    NO_POSITION,
    VIEW,
    GroupEventRow,
    Manifest,
    MessageRow,
    TraceRow,
)

_RUN = "delay"
_ORDER = "sequencer-ub"
_SEGMENT_SECONDS = 0.5
_FAULT_EVERY = 4
_WARM_UP = 2
_MEMBERS = ("a", "b")


class _Group:
    """Two members that deliver every message of the first one; every few segments, the second one errs."""

    def __init__(self) -> None:
        self._steps = dict.fromkeys(_MEMBERS, 0)
        self._segments = 0
        self.planted_ns: dict[int, int] = {}

    def write(self, directory: Path) -> None:
        """Write one segment of each member, with its times of now."""
        number = self._segments
        self._segments += 1
        is_wrong = number % _FAULT_EVERY == _FAULT_EVERY - 1
        for member in _MEMBERS:
            rows = list(self._rows(member, number, is_wrong and member == "b"))
            write_segment(directory, _RUN, f"{member}-1-{number:06}", rows)

    def _rows(self, member: str, number: int, is_wrong: bool) -> Iterator[TraceRow]:
        if number == 0:
            step, now = self._next(member)
            processes = tuple(f"{name}#1" for name in _MEMBERS)
            yield GroupEventRow(
                member, 1, 1, "a#1", step, now, VIEW, 0, processes, order=_ORDER, founded=True
            )
        if member == "a":
            yield self._message(member, BROADCAST, number, NO_POSITION)
        row = self._message(member, DELIVERED, number + is_wrong, number)
        if is_wrong:
            self.planted_ns[number] = row.time_ns
        yield row

    def _message(self, member: str, event: str, number: int, position: int) -> MessageRow:
        step, now = self._next(member)
        return MessageRow(
            member=member,
            incarnation=1,
            view=1,
            coordinator="a#1",
            step=step,
            time_ns=now,
            event=event,
            packet="",
            peer="",
            sender="a",
            sender_incarnation=1,
            level=0,
            first=number,
            count=1,
            priorities=b"",
            safe=False,
            to="",
            client="",
            request=0,
            position=position,
            bytes=64,
            backlog=0,
        )

    def _next(self, member: str) -> tuple[int, int]:
        step = self._steps[member]
        self._steps[member] += 1
        return step, time.time_ns()


def measure(directory: Path, violations: int) -> list[float]:
    """The delays of so many violations in seconds, after some that are not counted."""
    group, done = _Group(), threading.Event()
    write_manifest(directory, _manifest())
    delays: dict[int, float] = {}

    def on_update(update: LiveUpdate) -> bool:
        now = time.time_ns()
        for each in update.violations:
            if each.position in group.planted_ns and len(each.members) > 1:
                delays.setdefault(each.position, (now - group.planted_ns[each.position]) / 1e9)
        return len(delays) < violations + _WARM_UP

    def write() -> None:
        while not done.wait(_SEGMENT_SECONDS):
            group.write(directory)

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    try:
        watch_runs(directory, on_update)
    finally:
        done.set()
        writing.join()
    return [delays[position] for position in sorted(delays)][_WARM_UP:]


def _manifest() -> Manifest:
    return Manifest(
        run=_RUN,
        group=_RUN,
        order=_ORDER,
        prioritised=False,
        starvation="fifo",
        orders="coordinator",
        priorities_act="sequencing",
        members=list(_MEMBERS),
        policy="primary",
        delivery="agreed",
        clock="shared",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--violations", type=int, default=20, help="how many are measured")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="priocast-watch-delay-") as scratch:
        delays = measure(Path(scratch) / _RUN, chosen.violations)
    print(f"{len(delays)} violations: median {statistics.median(delays):.2f} s, most {max(delays):.2f} s")


if __name__ == "__main__":
    main()
