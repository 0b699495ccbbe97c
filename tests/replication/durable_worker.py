"""A durable replica in a process of its own, which is killed (`killed_processes.py`).

It prints what its copy has when the group has begun, and then each command whose result was returned, with a
pause after each.
"""

import asyncio
import sys

import priocast
from replication.notes import Notes

_PATIENCE_SECONDS = 200.0
"""A worker gives up before those who wait for it, and says why."""


async def main(name: str, directory: str, first: int, pause: float, listen: str, *peers: str) -> None:
    async with priocast.open_replica(
        "notes",
        Notes(),
        member=name,
        listen=listen,
        peers=peers,
        durability="disk",
        state_directory=directory,
        start_seconds=_PATIENCE_SECONDS,
    ) as replica:
        lines = await replica.read(lambda notes: list(notes.lines), timeout_seconds=_PATIENCE_SECONDS)
        _write(",".join(["begins", *lines]))
        for number in range(first, first + 100_000):
            await replica.submit(f"{name}{number}".encode(), timeout_seconds=_PATIENCE_SECONDS)
            _write(f"{name}{number}")
            await asyncio.sleep(pause)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    name, directory, first, pause, *addresses = sys.argv[1:]
    asyncio.run(main(name, directory, int(first), float(pause), *addresses))
