"""A whole group in one process, driven by hand: nothing happens unless a test says so.

This is the harness for what members do together; `single_member` is the one for what a protocol does with one
input, where a test needs packets that no correct member sends.

The members here are real ones while one view lasts, with perfect links, so that a test decides only when a
packet arrives. All inputs and outputs of the protocols are in the `journal`, in the order in which they
happened in the whole group.
"""

from collections.abc import Iterable
from typing import NamedTuple

from priocast.core.assembler import Assembler
from priocast.core.guarantees import LIVENESS
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Batch, Message, OrderedBatch, Scope
from priocast.core.protocol import Consume, Input, OrderingOptions, Output, Packet
from priocast.core.stamp import Stamp
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink
from priocast.links.frame import Frame, LinkOptions
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.parts import Parts
from support.stacks import OneView, Unobserved

#: A longer journal shows that the group never becomes idle.
JOURNAL_MAX = 100_000


class Violation(AssertionError):
    """A guarantee is violated."""

    def __init__(self, guarantee: str, how: str) -> None:
        super().__init__(f"{guarantee}: {how}")
        self.guarantee = guarantee


class Broadcast(NamedTuple):
    """The application broadcast a message."""

    member: str
    payload: bytes
    priority: int
    scope: Scope = TO_ALL


class Queued(NamedTuple):
    """Messages entered the sender's own queue."""

    member: str
    batch: Batch
    now: int


class Sent(NamedTuple):
    """A protocol sent a packet (`to` is None: to all)."""

    member: str
    packet: Packet
    to: str | None


class Received(NamedTuple):
    """A protocol received a packet."""

    member: str
    packet: Packet
    peer: str
    now: int


class Delivered(NamedTuple):
    """The application consumed a message."""

    member: str
    position: int
    message: Message


class Stamped(NamedTuple):
    """The message that is delivered next has a stamp."""

    member: str
    stamp: Stamp
    message: Message


class Below(NamedTuple):
    """A layer took messages from the order below it, where the first of them has this position."""

    position: int
    batch: Batch


Happening = Broadcast | Queued | Sent | Received | Delivered | Stamped
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
        self.frames.append(Frame(1, 1, 0, 0, body))

    def receive(self, frame: Frame, now: int) -> list[bytes]:
        return [frame.body]


class Group:
    """The members of one view, the packets between them, and the time.

    `assemblers` are those of an earlier view, by name, whose message numbers continue. `below` is what each
    member's layer took from the order below it, if there is a layer.
    """

    def __init__(
        self,
        names: list[str],
        order: str,
        options: OrderingOptions,
        number: int = 1,
        position: int = 0,
        assemblers: dict[str, Assembler] | None = None,
    ) -> None:
        self.now = 0
        self.order = order
        self.options = options
        self.position = position
        self.journal: Journal = []
        self.view = View(number, tuple(ProcessId(name) for name in names))
        self.below: dict[str, list[Below]] = {}
        self.members: dict[str, OneView] = {}
        self.links: dict[tuple[str, str], PerfectLink] = {}
        for me in self.view.members:
            member = self._member(me, (assemblers or {}).get(me.name))
            for peer in member.links:
                member.links[peer] = self.links[me.name, peer.name] = PerfectLink()
            self.members[me.name] = member

    def _member(self, me: ProcessId, assembler: Assembler | None) -> OneView:
        journal = self.journal

        class PacketObserver(Unobserved):
            """Writes packets into the journal."""

            def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None:
                if len(journal) > JOURNAL_MAX:
                    raise Violation(LIVENESS, "the members never stop sending")
                journal.append(Sent(me.name, packet, to.name if to else None))

            def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None:
                journal.append(Received(me.name, packet, peer.name, now))

        def queued(batch: Batch, now: int) -> None:
            self.journal.append(Queued(me.name, batch, now))

        member = OneView(
            me,
            self.view,
            self.order,
            self.options,
            position=self.position,
            assembler=assembler,
            observer=PacketObserver(),
            queued=queued,
        )
        if isinstance(member.protocol, Parts):
            self.below[me.name] = _watched(member.protocol.inner)
        return member

    def broadcast(self, name: str, priority: int, payloads: list[bytes], scope: Scope = TO_ALL) -> int:
        """An application broadcasts as many of these as there is room for."""
        member = self.members[name]
        accepted = payloads[: max(0, member.room(priority))]
        for payload in accepted:
            self.journal.append(Broadcast(name, payload, priority, scope))
            if scope == TO_ALL:
                member.broadcast(payload, priority)
            else:
                member.broadcast_many([payload], priority, scope)
        return len(accepted)

    def turn(self, name: str) -> None:
        self.members[name].turn(self.now)

    def deliver(self, source: str, target: str, count: int = 1) -> int:
        """Up to `count` packets in flight from source to target arrive."""
        frames = self.links[source, target].frames
        arriving = frames[:count]
        del frames[:count]
        sender = next(each for each in self.view.members if each.name == source)
        for frame in arriving:
            self.members[target].receive(sender, frame, self.now)
        return len(arriving)

    def consume(self, name: str, count: int) -> int:
        """An application takes up to `count` messages."""
        member, left = self.members[name], count
        while left and (head := member.head()):
            taken = min(left, head.batch.count - head.taken)
            for index in range(head.taken, head.taken + taken):
                self.journal += delivered(name, head, index)
            member.consume(taken, self.now)
            left -= taken
        return count - left

    def crash(self, name: str) -> None:
        """A member does nothing more; packets that it has sent may still arrive."""
        del self.members[name]
        self.links = {link: frames for link, frames in self.links.items() if link[1] != name}

    def tell_held(self, source: str, target: str) -> None:
        """A member learns which packets to all another one has received; stable packets are dropped."""
        received, epoch = self.members[source].epoch.stability.received, self.members[target].epoch
        epoch.stability.report(epoch.ranks[self.members[source].me], received)

    def tick(self) -> None:
        """Fire every timer that is due."""
        for member in self.members.values():
            if not member.epoch.frozen:
                member.tick(self.now)

    def flow(self) -> None:
        """Give every member a turn, and deliver all packets in flight."""
        for name in self.members:
            self.turn(name)
        for source, target in self.links:
            self.deliver(source, target, len(self.links[source, target].frames))

    def settle(self, rounds_max: int, consumers: Iterable[str] | None = None) -> bool:
        """Run until nothing more happens; returns whether that took at most `rounds_max` rounds.

        Only these `consumers` consume; None: all members.
        """
        for link in self.links.values():
            link.congested = False
        for _ in range(rounds_max):
            happened = len(self.journal)
            self.flow()
            for name in self.members if consumers is None else consumers:
                self.consume(name, len(self.journal))
            if len(self.journal) == happened:
                deadlines = [member.deadline for member in self.members.values()]
                next_at = min((at for at in deadlines if at is not None), default=None)
                if next_at is None:
                    return True
                self.now = max(self.now, next_at)
            self.now += 1
            self.tick()
        return False


def delivered(name: str, ordered_batch: OrderedBatch, index: int) -> Journal:
    """What the journal says when a member delivers a message of a batch."""
    message = ordered_batch.message(index)
    at_position = Delivered(name, ordered_batch.position + index, message)
    stamp = ordered_batch.stamp
    return [at_position] if stamp is None else [Stamped(name, stamp.after(index), message), at_position]


def _watched(protocol: OrderingProtocol) -> list[Below]:
    """A list that grows with everything that is consumed of this protocol's order."""

    def step(event: Input, now: int) -> list[Output]:
        head = protocol.head()
        if isinstance(event, Consume) and head is not None:
            taken.append(Below(head.position + head.taken, head.cut(head.taken, event.count)))
        return original(event, now)

    taken: list[Below] = []
    original = protocol.step
    protocol.step = step  # type: ignore[method-assign]
    return taken
