"""A whole group in one place, driven by hand: nothing happens unless a test says so.

The members are the real ones, with the links replaced by perfect ones, so that a test decides only when a
packet arrives and not what becomes of its frames. Whatever goes in and out of the protocols is in the
`journal`, in the order in which it happened in the whole group.
"""

from collections import deque
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Message, Stretch
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink, Frame, LinkOptions
from priocast.member import Member


class Broadcast(NamedTuple):
    """The application handed a message over."""

    member: str
    payload: bytes
    priority: int


class Sent(NamedTuple):
    """A protocol gave a packet to the links (`to` is None: to all)."""

    member: str
    packet: Packet
    to: str | None


class Received(NamedTuple):
    """A packet came to a protocol."""

    member: str
    packet: Packet
    peer: str
    now: int


class Delivered(NamedTuple):
    """The application consumed a message."""

    member: str
    position: int
    message: Message


Happening = Broadcast | Sent | Received | Delivered
Journal = list[Happening]


class PerfectLink(FifoLink):
    """Loses nothing and keeps the order; it is congested when the test says so."""

    def __init__(self) -> None:
        super().__init__(LinkOptions())

    @property
    def idle(self) -> bool:
        return not self.frames

    @property
    def deadline(self) -> int | None:
        return None

    def send(self, body: bytes, now: int) -> None:
        self.frames.append(Frame(1, 0, 0, body))

    def receive(self, frame: Frame, now: int) -> list[bytes]:
        return [frame.body]


class Witness:
    """Writes down what one member's protocol does."""

    def __init__(self, member: str, journal: Journal) -> None:
        self._member = member
        self._journal = journal

    def view(self, view: View, position: int, now: int) -> None:
        pass

    def broadcast(self, batch: Batch, now: int, backlog: int) -> None:
        pass  # the journal has what the application said, not what the stack made of it

    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
        self._journal.append(Sent(self._member, packet, to.name if to else None))

    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
        self._journal.append(Received(self._member, packet, peer.name, now))

    def delivered(self, stretch: Stretch, count: int, now: int, backlog: int) -> None:
        for index in range(stretch.taken, stretch.taken + count):
            place = stretch.position + index
            self._journal.append(Delivered(self._member, place, stretch.message(index)))


class Group:
    """The members, the packets between them, and the time."""

    def __init__(self, names: list[str], order: str, options: OrderingOptions) -> None:
        self.now = 0
        self.order = order
        self.options = options
        self.journal: Journal = []
        self.view = View(1, tuple(ProcessId(name) for name in names))
        self.members: dict[str, Member] = {}
        self.links: dict[tuple[str, str], PerfectLink] = {}
        for me in self.view.members:
            member = Member(me, self.view, order, options, LinkOptions(), Witness(me.name, self.journal))
            for peer in member.links:
                member.links[peer] = self.links[me.name, peer.name] = PerfectLink()
            self.members[me.name] = member
            member.start(self.now)

    def broadcast(self, name: str, priority: int, payloads: list[bytes]) -> int:
        """Let an application broadcast as many of these as there is room for."""
        member = self.members[name]
        accepted = payloads[: max(0, member.room(priority))]
        for payload in accepted:
            self.journal.append(Broadcast(name, payload, priority))
            member.broadcast(payload, priority)
        return len(accepted)

    def turn(self, name: str) -> None:
        self.members[name].turn(self.now)

    def deliver(self, source: str, target: str, count: int = 1) -> int:
        """Let up to `count` packets arrive that are on their way from source to target."""
        frames = self.links[source, target].frames
        arriving = deque(frames[:count])
        del frames[:count]
        sender = self.members[source].me
        for frame in arriving:
            self.members[target].receive(sender, frame, self.now)
        return len(arriving)

    def consume(self, name: str, count: int) -> int:
        """Let an application take up to `count` messages."""
        member, left = self.members[name], count
        while left and (head := member.head()):
            taken = min(left, head.batch.count - head.taken)
            member.consume(taken, self.now)
            left -= taken
        return count - left

    def settle(self, rounds_max: int) -> bool:
        """Let everything happen that can; return whether the group came to rest within so many rounds."""
        for link in self.links.values():
            link.congested = False
        for _ in range(rounds_max):
            happened = len(self.journal)
            for name in self.members:
                self.turn(name)
            for source, target in self.links:
                self.deliver(source, target, len(self.links[source, target].frames))
            for name in self.members:
                self.consume(name, len(self.journal))
            if len(self.journal) == happened:
                return True
            self.now += 1
        return False
