"""Where transactions were executed, as their replicas saw it: written by each, and read for a few in the end.

A client whose replica was killed does not know what became of its last transaction; the replicas do. Every
one that executes a transaction writes down its position, so what one loses when it is killed, others have.
"""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

Executed = Mapping[int, tuple[int, int]]
"""The last executed transaction of processes: its number, and its position."""


class WitnessLog:
    """The transactions that one replica has executed, in a file of its own."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1, encoding="utf-8")

    def record(self, process: int, number: int, position: int) -> None:
        """A transaction of a process was executed here, with an effect."""
        self._file.write(f"{process} {number} {position}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_witness(paths: Iterable[Path], processes: Set[int]) -> Executed:
    """The last transaction of each of these processes that any replica has executed."""
    found: dict[int, tuple[int, int]] = {}
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if line.endswith("\n") and int(words[0]) in processes:
                    process, number, position = map(int, words)
                    found[process] = max(found.get(process, (-1, -1)), (number, position))
    return found
