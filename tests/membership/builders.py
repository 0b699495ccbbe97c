"""Builders for the tests of membership."""

from typing import Any

from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Batch, Scope, pack
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.links.frame import LinkOptions
from priocast.membership.epoch import Epoch
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Heartbeat, Ordering
from priocast.protocols.sequencer.ub import SequencerUb

MILLISECOND = 1_000_000
ORDERING = Ordering("sequencer-ub", True, "none")
REASON = ViewReason(failed=("x",))
A, B, C, D, E = (ProcessId(name) for name in "abcde")


def options(**chosen: Any) -> MembershipOptions:
    """A group of three founders with a failure timeout of 100 ms, except for the chosen options."""
    return MembershipOptions(
        **{"founders": 3, "heartbeat_ms": 20, "failure_ms": 100, "slow_ms": 200, **chosen}
    )


def view(*members: ProcessId, number: int = 1) -> View:
    """A view of these members."""
    return View(number, members)


def batch(sender: ProcessId, first: int, count: int = 1, level: int = 0, scope: Scope = TO_ALL) -> Batch:
    """Messages of one sender, from this number on."""
    payloads = [b"message %d" % number for number in range(first, first + count)]
    return pack(sender, level, first, payloads, scope=scope)


def epoch(me: ProcessId, of: View) -> Epoch:
    """One member's part in a view, without an observer."""
    protocol = SequencerUb(me, of, OrderingOptions())
    return Epoch(of, protocol, LinkOptions())


def heartbeat(
    *hears: ProcessId, of: ViewId | None = None, leaving: bool = False, members: tuple[ProcessId, ...] = ()
) -> Heartbeat:
    """The heartbeat of a process that hears these processes and is in this view."""
    return Heartbeat(config=1, view=of, members=members, round=0, hears=hears, received=(), leaving=leaving)


def acquainted(me: ProcessId, others: dict[ProcessId, Heartbeat], now: int = 0, **chosen: Any) -> Neighbours:
    """The neighbours of a process that has just received these heartbeats."""
    neighbours = Neighbours(me, options(**chosen))
    for process, said in others.items():
        hear(neighbours, process, now)
        neighbours.on_heartbeat(process, said)
    return neighbours


def hear(neighbours: Neighbours, process: ProcessId, now: int) -> bool:
    """A frame comes from a process, as `Membership.heard` handles it; False if it is not accepted."""
    if neighbours.incarnations.get(process.name) == process:
        neighbours.detector.heard(process.name, now)
        return True
    return neighbours.meet(process, now)
