"""The walk of one message, and of one view change, through the code: `python -m benchmarks.walk`.

Counts every call of a Python function of Priocast, the files and folders that they are in, and how often the
walk goes from one folder to another. Comprehensions and lambdas count as calls, but not as functions. A
message walks from `broadcast` to its delivery at its own sender, in a group of two members on the memory
network, both in this process and both recording a trace. The sender is not the coordinator. A view change
walks from one member's `leave` to the view of the others; what it runs and a group at rest does not is
counted by purpose.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import priocast

_SOURCE = str(Path(priocast.__file__).parent)
_WALKS = 40
_SETTLING_SECONDS = 0.5
_REST_SECONDS = 1.0

#: Which files serve a purpose in a view change, by how their paths begin; the first that fits counts.
_PURPOSES: dict[str, tuple[str, ...]] = {
    "leaving": ("runtime/", "member.py", "membership/departure.py"),
    "checking what others sent": (
        "membership/validation.py",
        "membership/datagrams.py",
        "protocols/__init__.py",
    ),
    "ending an epoch and starting the next": (
        "core/",
        "links/",
        "protocols/",
        "services/",
        "membership/clients.py",
        "membership/delivery_table.py",
        "membership/epoch.py",
        "membership/stability.py",
        "membership/state_",
        "membership/stream.py",
        "membership/view_installer.py",
    ),
    "agreeing on the next view": ("",),
}


class Walk:
    """The calls between `start` and `stop`, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def start(self) -> None:
        sys.setprofile(self._note)

    def stop(self) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SOURCE):
            self.calls.append((code.co_filename[len(_SOURCE) + 1 :], code.co_qualname))

    def functions(self) -> set[tuple[str, str]]:
        """What was called, by file and name; comprehensions belong to the function that they are in."""
        return {call for call in self.calls if not call[1].endswith(">")}

    def __str__(self) -> str:
        folders = [str(Path(file).parent) for file, _ in self.calls]
        switches = sum(before != after for before, after in pairwise(folders))
        return (
            f"{len(self.calls)} calls of {len(self.functions())} functions in "
            f"{len({file for file, _ in self.calls})} files and {len(set(folders))} folders, "
            f"{switches} switches between folders"
        )


def by_purpose(functions: set[tuple[str, str]]) -> dict[str, int]:
    """How many functions a view change runs for which purpose."""
    counts = dict.fromkeys(_PURPOSES, 0)
    for file, _ in functions:
        counts[next(each for each, starts in _PURPOSES.items() if file.startswith(starts))] += 1
    return counts


async def _delivered(group: priocast.Group, payload: bytes) -> None:
    async for event in group:
        if isinstance(event, priocast.Delivery) and event.message.payload == payload:
            return


async def _until(reached: Callable[[], bool]) -> None:
    while not reached():
        await asyncio.sleep(0.001)


async def walk_of_a_message(order: str, trace: str) -> Walk:
    """From `broadcast` to the sender's own delivery: the shortest walk of several."""
    hub, walks = priocast.MemoryHub(), [Walk() for _ in range(_WALKS)]
    arguments: dict[str, Any] = {"hub": hub, "size": 2, "order": order, "trace": trace}
    a = priocast.join("walk", member="a", **arguments)
    b = priocast.join("walk", member="b", **arguments)
    entering = asyncio.create_task(a.__aenter__())
    async with b as sender:
        other = await entering
        reading = asyncio.create_task(_delivered(other, b"last"))
        for walk in walks:
            await asyncio.sleep(0.002)
            walk.start()
            await sender.broadcast(b"one")
            await _delivered(sender, b"one")
            walk.stop()
        await sender.broadcast(b"last")
        await reading
        await a.__aexit__(None, None, None)
    return min(walks, key=lambda walk: len(walk.calls))


async def walk_of_a_view_change() -> tuple[Walk, Walk]:
    """From one of three members' leave to the view of the other two; and before that, a second of rest."""
    hub, idle, walk = priocast.MemoryHub(), Walk(), Walk()
    joining = [priocast.join("walk", member=name, hub=hub, size=3) for name in "abc"]
    groups = await asyncio.gather(*(each.__aenter__() for each in joining))
    await asyncio.sleep(_SETTLING_SECONDS)
    idle.start()
    await asyncio.sleep(_REST_SECONDS)
    idle.stop()
    walk.start()
    leaving = asyncio.create_task(joining[2].__aexit__(None, None, None))
    await _until(lambda: all(len(group.view.members) == 2 for group in groups[:2]))
    walk.stop()
    await leaving
    for each in joining[:2]:
        await each.__aexit__(None, None, None)
    return walk, idle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--order", action="append", help="orders to walk through (sequencer-ub, reorder)")
    parser.add_argument(
        "--show", action="store_true", help="print every call for a message, and what a view change adds"
    )
    arguments = parser.parse_args()
    for order in arguments.order or ["sequencer-ub", "reorder"]:
        with TemporaryDirectory() as trace:
            walk = asyncio.run(walk_of_a_message(order, trace))
        print(f"a message, {order}: {walk}")
        if arguments.show:
            print("\n".join(f"  {file:40} {name}" for file, name in walk.calls))
    change, idle = asyncio.run(walk_of_a_view_change())
    added = change.functions() - idle.functions()
    purposes = ", ".join(f"{purpose} {count}" for purpose, count in by_purpose(added).items())
    print(f"a view change: {change}; {len(added)} functions that a group at rest does not run ({purposes})")
    if arguments.show:
        print("\n".join(f"  {file:40} {name}" for file, name in sorted(added)))


if __name__ == "__main__":
    main()
