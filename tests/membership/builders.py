"""Short ways to make what the tests of membership need."""

from typing import Any

from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Batch, Scope, pack
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View, ViewId
from priocast.links.fifo_link import LinkOptions
from priocast.membership.epoch import Epoch
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Heartbeat, Ordering
from priocast.protocols.sequencer.ub import SequencerUb

MILLISECOND = 1_000_000
ORDERING = Ordering("sequencer-ub", True, "none")
A, B, C, D, E = (ProcessId(name) for name in "abcde")


def options(**chosen: Any) -> MembershipOptions:
    """A group of three founders with a failure timeout of 100 ms, but for what is chosen."""
    return MembershipOptions(
        **{"founders": 3, "heartbeat_ms": 20, "failure_ms": 100, "slow_ms": 200, **chosen}
    )


def view(*members: ProcessId, number: int = 1) -> View:
    """A view of these members."""
    return View(number, members)


def batch(sender: ProcessId, first: int, count: int = 1, level: int = 0, scope: Scope = TO_ALL) -> Batch:
    """So many messages, from this number on."""
    payloads = [b"message %d" % number for number in range(first, first + count)]
    return pack(sender, level, first, payloads, scope=scope)


def epoch(me: ProcessId, of: View) -> Epoch:
    """One member's part in a view, with nobody watching."""
    protocol = SequencerUb(me, of, OrderingOptions())
    return Epoch(of, protocol, LinkOptions(), lambda *_: None, lambda *_: None)


def alive(
    *hears: ProcessId, of: ViewId | None = None, leaving: bool = False, members: tuple[ProcessId, ...] = ()
) -> Heartbeat:
    """What a process says of itself: whom it hears, and the view that it is in."""
    return Heartbeat(
        config=1, view=of, members=members, accepted=None, round=0, hears=hears, received=(), leaving=leaving
    )


def acquainted(me: ProcessId, others: dict[ProcessId, Heartbeat], now: int = 0, **chosen: Any) -> Neighbours:
    """What a process knows that has just heard these."""
    neighbours = Neighbours(me, options(**chosen))
    for process, said in others.items():
        neighbours.heard(process, now)
        neighbours.on_heartbeat(process, said)
    return neighbours
