"""What a replica that has a log needs of another one, and what it must not take over.

A replica whose log is a part of the other's receives the entries that it lacks. Otherwise it receives the
whole state, and its own log begins anew. That would destroy the last copy of something if the other one never
had it, so it is refused where the log proves it.
"""

from typing import Protocol

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, UnusableLog
from priocast.log.entries import LogEntry
from priocast.replication.commands import LogReport, LogTip
from priocast.replication.lineage import Lineage
from priocast.replication.saved_state import LogBase, LogTail, decode_base


class StateRecorder(Protocol):
    """Keeps what changes a replicated state."""

    def on_entry(self, entry: LogEntry, is_awaited: bool) -> None:
        """This changes the state now. `is_awaited`: answers wait for it to be on disks."""

    def on_state(self, index: int, data: bytes) -> None:
        """The state is replaced by one of another replica: that before the entry with this index."""

    def bodies_since(self, index: int) -> list[bytes] | None:
        """The encoded entries from an index on; None if they are not all there any more."""


def base_of(lineage: Lineage, index: int) -> bytes:
    """What a replica with this log has, for others; empty if it has nothing."""
    if not lineage.history:
        return b""
    return msgspec.msgpack.encode(LogBase(lineage.history, LogTip(lineage.generation, index)))


def base_of_report(report: LogReport) -> bytes:
    """What a member that founds a group has, as it reported; empty if that is nothing."""
    if report.is_damaged or not report.voters:
        return b""
    return msgspec.msgpack.encode(LogBase(report.history, report.tip))


def tail_since(base: bytes, lineage: Lineage, index: int, recorder: StateRecorder | None) -> LogTail | None:
    """What is missing to a replica that has `base`; None if its log is not a part, or entries are gone."""
    if recorder is None or not base:
        return None
    try:
        found = decode(decode_base, base, "a joining member", "a base")
    except ForeignFrame:
        return None
    if found.history != lineage.history or not lineage.contains(found.tip, index):
        return None
    entries = recorder.bodies_since(found.tip.index)
    return None if entries is None else LogTail(found.tip.index, entries)


def check_continues(own: Lineage, other: Lineage, index: int) -> None:
    """Raise UnusableLog if the state of another replica must not replace that of this log."""
    if own.history and other.history and own.history != other.history:
        raise UnusableLog(
            "the log is of another group that had the same name: its directory belongs elsewhere; remove it "
            "from here to join this group with an empty one"
        )
    lost = own.lost(other, index)
    if lost is not None:
        raise UnusableLog(
            f"entries up to {lost.index - 1} of generation {lost.generation} were answered as durable, and "
            "the group does not have them: was the directory of another member rolled back? This log is kept "
            "as it is: found the group again with it, or remove it to give up what only it has"
        )
