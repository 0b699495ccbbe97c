"""One view from within: its protocol, its links, and the packets that its members owe each other.

    open ──────▶ frozen ──────▶ complete ──────▶ closed
      a promise     the cut is        the next view
      to change     fetched           is installed

While it is open, packets flow between the links and the protocol. Once frozen it takes nothing more from the
links, so that what it told the proposer stays true; the flush then brings the packets that others hold of the
view. A complete epoch knows how the view ends: that is a function of the packets alone, and those are the
same at all who go on together.
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

import msgspec

from priocast.core.errors import ForeignFrame, LinkOverflow, PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import (
    CancelTimer,
    Input,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    Output,
    Packet,
    Protocol,
    Received,
    Send,
    SendAll,
    SendEach,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.stall import Stalls
from priocast.core.view import View, ViewId
from priocast.links.fifo_link import FifoLink, Frame, LinkOptions
from priocast.membership.packets import FlushPlan
from priocast.membership.stability import Stability

_TURN = Turn()

Observe = Callable[[Packet, ProcessId | None, int], None]


def channel_of(view: ViewId) -> int:
    """The number that a view's frames carry; 0 is for datagrams."""
    digest = blake2b(msgspec.msgpack.encode(view), digest_size=8).digest()
    return int.from_bytes(digest) | 1


class Epoch:
    """A member's part in one view. `sent` and `received` are told what passes; they belong to the driver.

    `before` is its part in the view before, which ends now.
    """

    def __init__(
        self,
        view: View,
        protocol: Protocol,
        link_options: LinkOptions,
        sent: Observe,
        received: Observe,
        before: "Epoch | None" = None,
        now: int = 0,
    ) -> None:
        self.me = protocol.me
        self.view = view
        self.protocol = protocol
        self.channel = channel_of(view.id)
        self.links = {peer: FifoLink(link_options, self.channel) for peer in view.members if peer != self.me}
        self.ranks = {member: rank for rank, member in enumerate(view.members)}
        self.stability = Stability(len(view.members), self.ranks[self.me])
        self.frozen = False
        self.restless = True
        self.overflowing: list[ProcessId] = []
        self._sent = sent
        self._received = received
        self._blocked: set[ProcessId] = set()
        self._timers: dict[str, int] = {}
        self.to_myself: deque[Packet] = deque()
        self._own_heard = 0
        self._stalls_before = before.stalls(now) if before else Stalls()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_union(protocol.PACKETS)).decode

    # While the view lasts

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A frame came from a peer's link."""
        link = self.links.get(peer)
        if link is None:
            raise PeerFault(f"{peer} sends in view {self.view.id}, of which it is not a member")
        bodies = link.receive(frame, now)
        self.restless |= bool(bodies) or link.congested != (peer in self._blocked)
        for body in bodies:
            self._on_body(peer, body, now)

    def act(self, now: int, may_order: bool) -> None:
        """One step of a turn; what comes of it can be transmitted before the next one."""
        self.restless = False
        if self.to_myself:
            self._hear_myself(now)
        for peer, link in self.links.items():
            if link.congested != (peer in self._blocked):
                self._blocked ^= {peer}
                self.step(LinkBlocked(peer) if link.congested else LinkCleared(peer), now)
        if may_order:
            self.step(_TURN, now)

    @property
    def has_work(self) -> bool:
        """Whether a turn would act on anything."""
        return not self.frozen and (self.restless or bool(self.to_myself))

    @property
    def idle(self) -> bool:
        """Whether nobody needs this member any more: all is ordered, and all was received."""
        return self.protocol.idle and not self.to_myself and all(link.idle for link in self.links.values())

    def step(self, event: Input, now: int) -> None:
        """Hand one input to the protocol and carry out its outputs; it may ask for a turn."""
        for output in self.protocol.step(event, now):
            if type(output) is MoreToDo:
                self.restless = True
            elif not self.frozen:
                self._carry_out(output, now)

    def tick(self, now: int) -> None:
        """Do what is due: timers of the protocol, and of the links."""
        for link in self.links.values():
            link.tick(now)
        for name in [name for name, at in self._timers.items() if at <= now]:
            del self._timers[name]
            self.restless = True
            self.step(TimerFired(name), now)

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next."""
        if self.frozen:
            return None
        times = [link.deadline for link in self.links.values()]
        return min((at for at in (*times, *self._timers.values()) if at is not None), default=None)

    @property
    def has_timers(self) -> bool:
        """Whether the protocol has set a timer."""
        return bool(self._timers)

    def stalls(self, now: int) -> Stalls:
        """How often and how long the application had to wait for queued messages, in earlier views, too."""
        return self._stalls_before.followed_by(self.protocol.stalls.until(now))

    def _on_body(self, peer: ProcessId, body: bytes, now: int) -> None:
        try:
            packet: Packet = self._decode(body)
        except msgspec.MsgspecError as error:
            raise ForeignFrame(f"{peer} sent a packet that cannot be read: {error}") from error
        rank = self.ranks[peer]
        number = self.stability.add(rank, body) if packet.TO_ALL else 0
        self._received(packet, peer, now)
        self.step(Received(peer, packet, (rank, number)), now)

    def _hear_myself(self, now: int) -> None:
        rank = self.ranks[self.me]
        while self.to_myself:
            packet = self.to_myself.popleft()
            self._own_heard += packet.TO_ALL
            number = self._own_heard if packet.TO_ALL else 0
            self._received(packet, self.me, now)
            self.step(Received(self.me, packet, (rank, number)), now)

    def _carry_out(self, output: Output, now: int) -> None:
        match output:
            case SendAll(packet=packet):
                self._sent(packet, None, now)
                body = self._encode(packet)
                self.stability.add(self.ranks[self.me], body)
                for peer in self.links:
                    self._give(peer, body, now)
                self.to_myself.append(packet)
            case SendEach(packet=packet):
                self._sent(packet, None, now)
                body = self._encode(packet)
                for peer in self.links:
                    self._give(peer, body, now)
                self.to_myself.append(packet)
            case Send(to=to, packet=packet):
                self._sent(packet, to, now)
                if to == self.me:
                    self.to_myself.append(packet)
                else:
                    self._give(to, self._encode(packet), now)
            case SetTimer(name=name, at=at):
                self._timers[name] = at
                self.restless = True
            case CancelTimer(name=name):
                self._timers.pop(name, None)

    def _give(self, peer: ProcessId, body: bytes, now: int) -> None:
        try:
            self.links[peer].send(body, now)
        except LinkOverflow:
            self.overflowing.append(peer)

    # When it ends

    def freeze(self, now: int) -> None:
        """Take nothing more from the links, and give them nothing more."""
        if not self.frozen:
            self._hear_myself(now)
            self.frozen = True
            self._timers.clear()

    def missing(self, plan: FlushPlan) -> tuple[ProcessId, ProcessId, int, int] | None:
        """The next packets that this member lacks of the cut: from whom to get whose, from where to where."""
        for rank, sender in enumerate(self.view.members):
            held, cut = self.stability.received[rank], plan.counts[rank]
            if held < cut:
                return plan.members[plan.holders[rank]], sender, held + 1, cut
        return None

    def supply(self, sender: ProcessId, first: int, bodies: tuple[bytes, ...], now: int) -> None:
        """Packets that another member held; what is held already, or comes too early, is left out."""
        rank = self.ranks.get(sender)
        if not self.frozen or rank is None or sender == self.me:
            return
        for number, body in enumerate(bodies, first):
            if number == self.stability.received[rank] + 1:
                self._on_body(sender, body, now)

    def ending(self, plan: FlushPlan) -> list[OrderedBatch]:
        """What is still to be consumed of this view by those who go on together.

        All that has its place keeps it. In a group in which each side of a cut goes on there is one
        exception: a message of a member on the other side, if that member may not know its place. It may send
        the message again on its side, so delivering it here would give it two places.
        """
        assert self.frozen and self.missing(plan) is None
        self.protocol.close()
        return [
            ordered_batch for ordered_batch in self.protocol.unconsumed() if self._keeps(ordered_batch, plan)
        ]

    def own_unconsumed(self) -> list[Batch]:
        """Our messages that have a place which was not consumed here."""
        return [
            ordered_batch.batch.after(ordered_batch.taken)
            for ordered_batch in self.protocol.unconsumed()
            if ordered_batch.batch.sender == self.me
        ]

    def unordered(self) -> list[Batch]:
        """Our messages that have no place, in the order in which to send them again.

        What waited in one line, in a plain view, stays in that line.
        """
        batches = self.protocol.unordered()
        return batches if self.protocol.options.prioritised else [batch.in_line() for batch in batches]

    def _keeps(self, ordered_batch: OrderedBatch, plan: FlushPlan) -> bool:
        sender = ordered_batch.batch.sender
        if not plan.acknowledged or sender in plan.members or ordered_batch.taken:
            return True
        return all(map(int.__ge__, plan.acknowledged[self.ranks[sender]], ordered_batch.dependencies))


def _union(packets: tuple[type[Packet], ...]) -> object:
    union: object = packets[0]
    for packet in packets[1:]:
        union = union | packet
    return union
