"""What clients saw, on disk: each process writes its events, and in the end they become one history.

Times are those of the monotonic clock, which the processes of a machine share. An invocation is written
before the transaction is submitted. The end of a file may be torn, as its process may have been killed.
"""

import heapq
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from priocast.trace.transaction_history import (
    FAIL,
    INFO,
    INVOKE,
    OK,
    SETTLED,
    EventType,
    HistoryEvent,
)
from tools.judge.transactions import Transaction, TransactionAnswer, value_of
from tools.judge.witness import read_witness

_NO_INDEX = "{:index 0, "


class EventRecorder:
    """The events of the clients in one process, in a file of their own."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1, encoding="utf-8")

    def invoke(self, transaction: Transaction) -> None:
        """A transaction is about to be submitted."""
        self._write(INVOKE, transaction)

    def answer(self, transaction: Transaction, answer: TransactionAnswer) -> None:
        """It was executed, or rejected at its place."""
        self._write(FAIL if answer.results is None else OK, transaction, answer)

    def unknown(self, transaction: Transaction) -> None:
        """Nobody knows."""
        self._write("info", transaction)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(
        self, kind: EventType, transaction: Transaction, answer: TransactionAnswer | None = None
    ) -> None:
        event = HistoryEvent(
            type=kind,
            process=transaction.process,
            function=transaction.function,
            value=value_of(transaction, answer.results if answer else None),
            time_ns=time.monotonic_ns(),
            rank=answer.rank if answer else None,
        )
        self._file.write(f"{event.time_ns} {kind} {event.process} {event.to_edn()}\n")


class RecordedEvent(NamedTuple):
    """A line of a recorder's file. At the same time, invocations are before answers."""

    time_ns: int
    is_answer: bool
    kind: str
    process: int
    edn: str


def unknown_outcomes(paths: Sequence[Path]) -> dict[int, int]:
    """The processes whose last transaction was not answered, each with the number of that transaction."""
    invoked: dict[int, int] = {}
    answered: dict[int, int] = {}
    for path in paths:
        for event in _recorded(path):
            counted = invoked if event.kind == INVOKE else answered
            counted[event.process] = counted.get(event.process, 0) + (event.kind != INFO)
    return {
        process: count - 1 for process, count in sorted(invoked.items()) if answered.get(process, 0) < count
    }


def merge_history(paths: Sequence[Path], witness: Sequence[Path], history: Path) -> None:
    """Make one history of the files of all recorders; `witness` says what became of unknown outcomes.

    Only one line of each file is in memory.
    """
    unknown = unknown_outcomes(paths)
    executed = read_witness(witness, unknown.keys())
    places = []
    for process, number in unknown.items():
        last, position = executed.get(process, (-1, -1))
        places.append([process, position if last == number else None])
    settled = HistoryEvent(
        type="info", process=None, function=SETTLED, value=places, time_ns=time.monotonic_ns()
    )
    with history.open("w", encoding="utf-8") as file:
        lines = chain((event.edn for event in heapq.merge(*map(_recorded, paths))), [settled.to_edn()])
        for index, edn in enumerate(lines):
            assert edn.startswith(_NO_INDEX)
            file.write(f"{{:index {index}, {edn.removeprefix(_NO_INDEX)}\n")


def _recorded(path: Path) -> Iterator[RecordedEvent]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                time_ns, kind, process, edn = line.rstrip("\n").split(" ", 3)
                yield RecordedEvent(int(time_ns), kind != INVOKE, kind, int(process), edn)
