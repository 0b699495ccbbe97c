"""What durable stores cost: segments of our own beside SQLite, for one batch size after the other.

`python -m benchmarks.log_stores [DIRECTORY]` appends entries of 64 bytes in batches, with one sync a batch,
and prints entries per second, and the ratio to what the disk does with the same bytes and syncs alone.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from priocast.core.identity import ProcessId
from priocast.log.disk_directory import DiskDirectory
from priocast.log.entries import MessageEntry, encode_entry
from priocast.log.ordered_log import OrderedLog

_SECONDS = 1.0
_ENTRY = MessageEntry(1, 1, ProcessId("a", 7), 96, 1, 96, bytes(64))
_ENCODED = encode_entry(_ENTRY)

AppendBatch = Callable[[int], None]


def _floor(path: Path) -> AppendBatch:
    descriptor = os.open(path / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append(count: int) -> None:
        os.write(descriptor, _ENCODED * count)
        os.fdatasync(descriptor)

    return append


def _segments(path: Path) -> AppendBatch:
    log = OrderedLog(DiskDirectory(path), "g", "a", b"salt")
    log.recover()

    def append(count: int) -> None:
        for _ in range(count):
            log.append(_ENTRY)
        log.sync()

    return append


def _sqlite(path: Path) -> AppendBatch:
    database = sqlite3.connect(path / "log.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE log (entry_index INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def append(count: int) -> None:
        database.execute("BEGIN")
        bodies = ((encode_entry(_ENTRY),) for _ in range(count))
        database.executemany("INSERT INTO log (body) VALUES (?)", bodies)
        database.execute("COMMIT")

    return append


def _rate(append: AppendBatch, count: int) -> float:
    """Entries per second."""
    batches, start = 0, time.perf_counter()
    while time.perf_counter() - start < _SECONDS:
        append(count)
        batches += 1
    return batches * count / (time.perf_counter() - start)


def main() -> None:
    """Print the table."""
    print(f"{'batch':>6} {'disk alone':>12} {'segments':>18} {'SQLite':>18}")
    for count in (1, 16, 256):
        rates = []
        for store in (_floor, _segments, _sqlite):
            with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as directory:
                rates.append(_rate(store(Path(directory)), count))
        floor, *others = rates
        ratios = "".join(f"{rate:>11,.0f} {rate / floor:4.0%}  " for rate in others)
        print(f"{count:>6} {floor:>12,.0f} {ratios}")


if __name__ == "__main__":
    main()
