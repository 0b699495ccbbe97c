"""One member's part in one view: its protocol, its links, and the packets that are not stable yet.

    open ──────▶ frozen ──────▶ complete ──────▶ closed
      a promise     the flush is      the next view
      to change     finished          is installed

While it is open, packets flow between the links and the protocol. Once frozen it accepts nothing more from
the links, so that what it reported to the proposer stays true; the flush then brings the packets of the
view that other members have. A complete epoch knows how the view ends: that is a function of the packets
alone, and they are the same at all members that continue together.
"""

from collections import deque
from functools import reduce
from hashlib import blake2b
from operator import or_

import msgspec

from priocast.core.decoding import UNREADABLE, unreadable
from priocast.core.errors import LinkOverflow, PeerFault
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
    Received,
    Send,
    SendAll,
    SendEach,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.protocol_interface import Protocol
from priocast.core.stall import Stalls
from priocast.core.view import View, ViewId
from priocast.links.fifo_link import FifoLink
from priocast.links.frame import Frame, LinkOptions
from priocast.membership.observer import Observer
from priocast.membership.packets import FlushPlan, FlushReply
from priocast.membership.stability import Stability

_TURN = Turn()


def channel_of(view: ViewId) -> int:
    """The channel number of a view's frames: odd, because even ones are for frames outside of links."""
    digest = blake2b(msgspec.msgpack.encode(view), digest_size=8).digest()
    return int.from_bytes(digest) | 1


class Epoch:
    """A member's part in one view.

    A turn has something to act on if the epoch is `restless` or has packets `to_myself`. `turn_is_due` says
    that the protocol missed a turn, because nothing could be ordered then. `overflowing` are peers with full
    links. `before` is this member's part in the previous view.
    """

    def __init__(
        self,
        view: View,
        protocol: Protocol,
        link_options: LinkOptions,
        observer: Observer | None = None,
        before: "Epoch | None" = None,
        now: int = 0,
    ) -> None:
        self.me = protocol.me
        self.view = view
        self.protocol = protocol
        self._step = protocol.step
        self.channel = channel_of(view.id)
        self.links = {peer: FifoLink(link_options, self.channel) for peer in view.members if peer != self.me}
        self.ranks = {member: rank for rank, member in enumerate(view.members)}
        self.stability = Stability(len(view.members), self.ranks[self.me])
        self.frozen = False
        self.restless = True
        self.turn_is_due = False
        self.timers: dict[str, int] = {}
        self.overflowing: list[ProcessId] = []
        self._observer = observer
        self._observed = {packet for packet in protocol.PACKETS if observer and observer.observes(packet)}
        self._blocked: set[ProcessId] = set()
        self.to_myself: deque[Packet] = deque()
        self._own_received = 0
        self._stalls_before = before.stalls(now) if before else Stalls()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(reduce(or_, protocol.PACKETS)).decode

    # While the view lasts

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A frame came from a peer's link."""
        if self.frozen:
            return
        link = self.links.get(peer)
        if link is None:
            raise PeerFault(f"{peer} sends in view {self.view.id}, of which it is not a member")
        bodies = link.receive(frame, now)
        if bodies or link.congested != (peer in self._blocked):
            self.restless = True
        for body in bodies:
            self._on_body(peer, body, now)

    def act(self, now: int, may_order: bool) -> None:
        """One step of a turn; its frames can be transmitted before the next step."""
        self.restless = False
        if self.to_myself:
            self._receive_own(now)
        for peer, link in self.links.items():
            if link.congested != (peer in self._blocked):
                self._blocked ^= {peer}
                self.step(LinkBlocked(peer) if link.congested else LinkCleared(peer), now)
        self.turn_is_due = not may_order
        if may_order and (outputs := self._step(_TURN, now)):
            self._carry_out(outputs, now)

    def step(self, event: Input, now: int) -> bool:
        """Give one input to the protocol, and carry out its outputs; return whether there were any."""
        outputs = self._step(event, now)
        if outputs:
            self._carry_out(outputs, now)
        return bool(outputs)

    def _carry_out(self, outputs: list[Output], now: int) -> None:
        """Do what the protocol wants, unless the epoch is frozen."""
        if self.frozen:
            return
        for output in outputs:
            match output:
                case SendAll() | SendEach() | Send():
                    self._send(output, now)
                case MoreToDo():
                    self.restless = True
                case SetTimer(name=name, at=at):
                    self.timers[name] = at
                    self.restless = True
                case CancelTimer(name=name):
                    self.timers.pop(name, None)

    def tick(self, now: int) -> None:
        """Do what is due: retransmissions and acknowledgements of the links, timers of the protocol."""
        self.stability.forget_stable()
        for link in self.links.values():
            link.tick(now)
        for name in [name for name, at in self.timers.items() if at <= now]:
            del self.timers[name]
            self.restless = True
            self.step(TimerFired(name), now)

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next."""
        if self.frozen:
            return None
        times = [link.deadline for link in self.links.values()]
        return min((at for at in (*times, *self.timers.values()) if at is not None), default=None)

    @property
    def idle(self) -> bool:
        """Whether no member needs this one any more: everything is ordered, and was received."""
        return self.protocol.idle and not self.to_myself and all(link.idle for link in self.links.values())

    def stalls(self, now: int) -> Stalls:
        """How often and how long the application waited for queued messages, in earlier views as well."""
        return self._stalls_before.followed_by(self.protocol.stalls.until(now))

    def _on_body(self, peer: ProcessId, body: bytes, now: int) -> None:
        try:
            packet: Packet = self._decode(body)
        except UNREADABLE as error:
            raise unreadable(peer, "a packet", error) from error
        rank = self.ranks[peer]
        number = self.stability.add(rank, body) if packet.TO_ALL else 0
        if self._observer is not None and type(packet) in self._observed:
            self._observer.received(packet, peer, now, self.protocol.backlog)
        if outputs := self._step(Received(peer, packet, (rank, number)), now):
            self._carry_out(outputs, now)

    def _receive_own(self, now: int) -> None:
        """Give the protocol its own packets, in the order in which it sent them."""
        rank = self.ranks[self.me]
        while self.to_myself:
            packet = self.to_myself.popleft()
            self._own_received += packet.TO_ALL
            number = self._own_received if packet.TO_ALL else 0
            if self._observer is not None and type(packet) in self._observed:
                self._observer.received(packet, self.me, now, self.protocol.backlog)
            if outputs := self._step(Received(self.me, packet, (rank, number)), now):
                self._carry_out(outputs, now)

    def _send(self, output: SendAll | SendEach | Send, now: int) -> None:
        packet = output.packet
        to = output.to if isinstance(output, Send) else None
        if self._observer is not None and type(packet) in self._observed:
            self._observer.sent(packet, to, now, self.protocol.backlog)
        if to is None or to == self.me:
            self.to_myself.append(packet)
        if to == self.me:
            return
        body = self._encode(packet)
        if packet.TO_ALL:
            self.stability.add(self.ranks[self.me], body)
        for peer in self.links if to is None else (to,):
            try:
                self.links[peer].send(body, now)
            except LinkOverflow:
                self.overflowing.append(peer)

    # When it ends

    def freeze(self, now: int) -> None:
        """Accept nothing more from the links, and send nothing more on them."""
        if not self.frozen:
            self._receive_own(now)
            self.frozen = True
            self.restless = False
            self.timers.clear()

    def missing(self, plan: FlushPlan) -> tuple[ProcessId, ProcessId, int, int] | None:
        """The next packets that this member lacks: who has them, their sender, first and last number."""
        for rank, sender in enumerate(self.view.members):
            received, count = self.stability.received[rank], plan.counts[rank]
            if received < count:
                return plan.members[plan.holders[rank]], sender, received + 1, count
        return None

    def on_flush_reply(self, reply: FlushReply, now: int) -> None:
        """Packets from another member; those that were received before, or come too early, are skipped."""
        sender = reply.sender
        rank = self.ranks.get(sender)
        if not self.frozen or rank is None or sender == self.me:
            return
        for number, body in enumerate(reply.bodies, reply.first):
            if number == self.stability.received[rank] + 1:
                self._on_body(sender, body, now)

    def ending(self, plan: FlushPlan) -> list[OrderedBatch]:
        """What is still to be consumed of this view by those who continue together.

        Every message that has a position keeps it. There is one exception in a partitionable group: a message
        of a member on the other side of the partition, if that member may not know the position. It may send
        the message again on its side, so delivering it here would give it two positions.
        """
        assert self.frozen and self.missing(plan) is None
        self.protocol.close()
        return [
            ordered_batch for ordered_batch in self.protocol.unconsumed() if self._keeps(ordered_batch, plan)
        ]

    def own_unconsumed(self) -> list[Batch]:
        """Own messages that have a position and were not consumed here."""
        return [
            ordered_batch.batch.after(ordered_batch.taken)
            for ordered_batch in self.protocol.unconsumed()
            if ordered_batch.batch.sender == self.me
        ]

    def unordered(self) -> list[Batch]:
        """Own messages that have no position, in the order in which to send them again.

        Messages that waited first in, first out, in a plain view, keep that order.
        """
        batches = self.protocol.unordered()
        return batches if self.protocol.options.prioritised else [batch.in_line() for batch in batches]

    def _keeps(self, ordered_batch: OrderedBatch, plan: FlushPlan) -> bool:
        sender = ordered_batch.batch.sender
        if not plan.acknowledged or sender in plan.members or ordered_batch.taken:
            return True
        return all(map(int.__ge__, plan.acknowledged[self.ranks[sender]], ordered_batch.dependencies))
