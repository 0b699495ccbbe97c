"""One view of a protocol under attack: a member sends packets that are invented, or varied.

What `hostile_group` does with whole groups is done here with the protocol alone, where no eviction follows at
once: packets reach the states in which they can do harm. A packet may be rejected as the sender's fault. From
then on the receiver may fail: the membership evicts the sender and, if need be, the receiver.
"""

from collections import deque
from functools import cache
from random import Random

import msgspec

from fuzz.invention import Inventor, type_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import pack
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Consume,
    MoreToDo,
    OrderingOptions,
    Packet,
    Received,
    Send,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.protocol_interface import Protocol
from priocast.core.starvation import Ageing, PeriodicRelease, Strict
from priocast.core.view import View
from priocast.protocols import all_orders, find_protocol

_encode = msgspec.msgpack.Encoder().encode

MEMBERS = tuple(map(ProcessId, "abc"))
_STEPS = 60
_MILLISECOND = 1_000_000


class HostileView:
    """Three members of one view, connected by lossless links. Which of them is bad follows from the seed."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(f"view {seed}")
        self._inventor = Inventor(random)
        self.order = random.choice(all_orders(("sequencer-ub", "moving-bb", "reorder")))
        options = OrderingOptions(
            prioritised=random.random() < 0.8,
            starvation=random.choice((Strict(), Ageing(1_000), PeriodicRelease(5 * _MILLISECOND))),
            window=random.choice((None, 2, 16)),
            bucket=random.choice((1, 3)),
            distributed=random.random() < 0.3,
            part_ms=2.0,
            part_count=random.choice((2, 32)),
        )
        view = View(1, MEMBERS)
        self._members = {me: find_protocol(self.order)(me, view, options) for me in MEMBERS}
        self._numbers: dict[tuple[ProcessId, int], int] = {}
        self._sent_to_all = dict.fromkeys(MEMBERS, 0)
        self._links: dict[tuple[ProcessId, ProcessId], deque[Packet]] = {
            (sender, to): deque() for sender in MEMBERS for to in MEMBERS
        }
        self._received = {(sender, to): 0 for sender in MEMBERS for to in MEMBERS}
        self._timers: dict[tuple[ProcessId, str], int] = {}
        self._bad = random.choice(MEMBERS)
        self._good = [me for me in MEMBERS if me != self._bad]
        self._over: set[ProcessId] = {self._bad}
        self._now = 0
        self.cases = 0

    def attack(self) -> None:
        """Let messages flow with an attack on top, and end the view; raises what went wrong."""
        random = self._random
        actions = (
            self._broadcast,
            *[self._deliver] * 4,
            self._consume,
            self._fire_timers,
            self._send_hostile,
        )
        for _ in range(_STEPS):
            self._now += random.choice((0, 1_000, _MILLISECOND, 120 * _MILLISECOND))
            random.choice(actions)()
            if len(self._over) == len(MEMBERS):
                return
        for me in self._good:
            if me not in self._over:
                self._end(self._members[me])

    def _broadcast(self) -> None:
        random = self._random
        me = random.choice(MEMBERS)
        protocol = self._members[me]
        level = random.choice((0, 7, 255)) if protocol.options.prioritised else 0
        count = random.choice((1, 1, 3))
        if protocol.outgoing.room(level, 0, 0) < count:
            return
        first = self._numbers.get((me, level), 0)
        self._numbers[me, level] = first + count
        priorities = b"" if protocol.options.prioritised else bytes(count)
        self._step(me, Broadcast(pack(me, level, first, [b"x"] * count, priorities)))

    def _deliver(self) -> None:
        """Receive some of what is on its way, and act."""
        for (sender, to), packets in self._links.items():
            for _ in range(min(len(packets), self._random.choice((0, 1, 5)))):
                self._receive(sender, to, packets.popleft())
        for me in MEMBERS:
            self._step(me, Turn())

    def _consume(self) -> None:
        me = self._random.choice(MEMBERS)
        protocol = self._members[me]
        for _ in range(self._random.choice((1, 4))):
            head = protocol.head()
            if head is None:
                return
            assert me in self._over or head.batch.sender in MEMBERS, f"{head.batch} is of no member"
            self._step(me, Consume(1))

    def _fire_timers(self) -> None:
        for (me, name), at in list(self._timers.items()):
            if at <= self._now:
                del self._timers[me, name]
                self._step(me, TimerFired(name))

    def _send_hostile(self) -> None:
        """The bad member sends a few packets to a good one, at once or behind its others."""
        random = self._random
        to = random.choice(self._good)
        for _ in range(random.choice((1, 1, 2))):
            kinds = self._members[to].PACKETS
            seen = self._inventor.seen(kinds)
            varied = seen is not None and random.random() < 0.75
            packet = (
                self._inventor.vary(seen) if varied else self._inventor.invent(type_of(random.choice(kinds)))
            )
            self.cases += 1
            if random.random() < 0.7:
                self._receive(self._bad, to, packet)
            else:
                self._links[self._bad, to].append(packet)

    def _receive(self, sender: ProcessId, to: ProcessId, packet: Packet) -> None:
        number = 0
        if packet.TO_ALL:
            self._received[sender, to] += 1
            number = self._received[sender, to]
        self._step(to, Received(sender, packet, (MEMBERS.index(sender), number)))

    def _step(self, me: ProcessId, event: Broadcast | Received | Turn | Consume | TimerFired) -> None:
        """Give a member an input; after a fault of a peer, what becomes of the member does not matter."""
        try:
            outputs = self._members[me].step(event, self._now)
        except PeerFault:
            self._over.add(me)
            return
        except Exception:
            if me in self._over:
                return
            raise
        for output in outputs:
            match output:
                case SetTimer(name=name, at=at):
                    self._timers[me, name] = at
                case CancelTimer(name=name):
                    self._timers.pop((me, name), None)
                case MoreToDo():
                    continue
                case Send(to=to, packet=packet):
                    self._send(me, (to,), packet)
                case _:
                    self._send(me, MEMBERS, output.packet)

    def _send(self, me: ProcessId, to: tuple[ProcessId, ...], packet: Packet) -> None:
        """Put a packet on the links; what a good member sends, the others can decode."""
        self._inventor.see(packet)
        if me not in self._over:
            cls: type[Packet] = type(packet)
            assert _decoder_of(cls).decode(_encode(packet)) == packet, f"{me} sends {packet}"
        for member in to:
            self._links[me, member].append(packet)

    def _end(self, protocol: Protocol) -> None:
        """The view ends: what is ordered stays, the rest goes to the next view."""
        protocol.inspect(self._now)
        protocol.close()
        for ordered in protocol.unconsumed():
            ordered.message(ordered.taken)
        protocol.unordered()


@cache
def _decoder_of(cls: type[Packet]) -> msgspec.msgpack.Decoder[Packet]:
    return msgspec.msgpack.Decoder(cls)


def run_view_case(seed: int) -> int:
    """Attack a new view; return how many packets were sent. Raises what went wrong."""
    view = HostileView(seed)
    try:
        view.attack()
    except Exception as error:
        error.add_note(f"view, seed {seed}: {view.order}")
        raise
    return view.cases
