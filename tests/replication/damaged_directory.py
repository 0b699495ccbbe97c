"""Every damage to the log directory of a real member: what becomes of it is judged against what it held.

A file that is removed or cut, or a flipped bit anywhere, has one of these consequences, and no other:

    unused      the file is not needed to begin again: everything is there
    trimmed     the end of the last segment looks torn: everything before it is there
    damaged     the log is known to be damaged: it counts as lost, and the others fill it
    refused     the directory is not used at all
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal
from unittest.mock import patch

import msgspec

from log.simulated_directory import SimulatedDirectory, SimulatedFile
from priocast.core.errors import LogFault
from priocast.replication import state_log
from priocast.replication.replica import Replica
from priocast.replication.replicated_state import ReplicatedState
from priocast.replication.state_log import StateLog
from replication.durable_replicas import DurableReplicas
from replication.notes import Notes


class Damage(msgspec.Struct, frozen=True):
    """A file is removed, is cut at a byte, or has a flipped bit."""

    file: str
    kind: Literal["removed", "cut", "flipped"]
    at: int = 0

    def apply(self, directory: SimulatedDirectory) -> None:
        """Damage the file."""
        content = bytearray(directory.files.pop(self.file).content)
        match self.kind:
            case "removed":
                return
            case "cut":
                del content[self.at :]
            case "flipped":
                content[self.at // 8] ^= 1 << self.at % 8
        directory.files[self.file] = SimulatedFile(bytes(content), is_named=True)


async def written_directory() -> SimulatedDirectory:
    """The directory of a member that has worked, with a snapshot, an older segment and entries after both."""
    async with DurableReplicas("abc") as replicas:
        with patch.object(state_log, "ENTRIES_MAX", 10):
            await replicas.start()
            await _submit(replicas["a"], 0, 6)
        await _submit(replicas["a"], 6, 12)
        await replicas.fail_power()
        return replicas.disks["a"]


async def _submit(replica: Replica[Notes], first: int, last: int) -> None:
    for number in range(first, last):
        await replica.submit(str(number).encode())


def all_damages(directory: SimulatedDirectory, step: int = 1) -> Iterator[Damage]:
    """Each cut and each flipped bit, or every `step`th of them."""
    for name in directory.names():
        size = len(directory.read(name))
        yield Damage(name, "removed")
        yield from (Damage(name, "cut", at) for at in range(0, size, step))
        yield from (Damage(name, "flipped", at) for at in range(0, 8 * size, step))


def judge_all(directory: SimulatedDirectory, step: int = 1) -> Counter[str]:
    """Judge every damage; count the consequences, by file and kind."""
    whole = _lines_of(directory.copy())
    assert whole
    segments = [name for name in directory.names() if name.endswith(".segment")]
    counts: Counter[str] = Counter()
    for damage in all_damages(directory, step):
        copy = directory.copy()
        damage.apply(copy)
        consequence = _consequence(copy, whole)
        assert consequence != "wrong", f"{damage}: read as something that never was"
        if consequence == "trimmed":
            assert damage.file == segments[-1], f"{damage}: only the end can be torn"
        counts[f"{damage.file.rpartition('.')[2]} {damage.kind}: {consequence}"] += 1
    return counts


def _consequence(directory: SimulatedDirectory, whole: list[str]) -> str:
    try:
        lines = _lines_of(directory)
    except LogFault:
        return "refused"
    if lines is None:
        return "damaged"
    if lines == whole:
        return "unused"
    return "trimmed" if lines == whole[: len(lines)] else "wrong"


def _lines_of(directory: SimulatedDirectory) -> list[str] | None:
    """What a member would begin with; None if its log counts as damaged."""
    machine = Notes()
    log = StateLog(directory, "test", "a")
    log.recover(ReplicatedState(machine))
    return None if log.is_damaged else machine.lines
