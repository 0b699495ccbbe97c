"""One process's whole stack, without any I/O: application in, frames out.

    broadcast ─▶ assembler ─▶ protocol ─▶ links ─▶ frames for the network
      consume ◀────────────── protocol ◀─ links ◀─ frames from the network

A driver (the asyncio runtime, the simulator) hands over what happens and the time at which it happens, gives
a `turn` when it has handed over all that was ready, transmits the frames that gather, and calls `tick` at
the `deadline`. The observer, which belongs to the driver, sees what goes in and out of the protocol.

Membership plugs in at the view: here it is given once and for all. A membership layer will install the
next one by closing this protocol and opening another for the new view.
"""

from collections import deque
from typing import Protocol as Interface

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.errors import ForeignFrame
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Stretch
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Consume,
    Input,
    LinkBlocked,
    LinkCleared,
    MoreToDo,
    OrderingOptions,
    Output,
    Packet,
    Received,
    Send,
    SendAll,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.links.fifo_link import FifoLink, Frame, LinkOptions
from priocast.protocols import find_protocol

_TURN = Turn()


class Observer(Interface):
    """Who watches a member: the recorder of a trace, or the simulator's checkers."""

    def view(self, view: View, position: int, now: int) -> None: ...
    def broadcast(self, batch: Batch, now: int, backlog: int) -> None: ...
    def sent(self, packet: Packet, to: ProcessId | None, now: int, backlog: int) -> None: ...
    def received(self, packet: Packet, peer: ProcessId, now: int, backlog: int) -> None: ...
    def delivered(self, stretch: Stretch, count: int, now: int, backlog: int) -> None: ...


class Member:
    """A member of a group: the protocol, its links, and what the application has not handed over yet."""

    def __init__(
        self,
        me: ProcessId,
        view: View,
        order: str,
        options: OrderingOptions,
        link_options: LinkOptions,
        observer: Observer | None = None,
    ) -> None:
        protocol = find_protocol(order)
        self.me = me
        self.view = view
        self._protocol = protocol(me, view, options)
        self._assembler = Assembler(me, options.prioritised)
        self.links = {peer: FifoLink(link_options) for peer in view.members if peer != me}
        self._blocked: set[ProcessId] = set()
        self._timers: dict[str, int] = {}
        self._to_myself: deque[Packet] = deque()
        self._restless = True
        self._observer = observer
        self._encode = msgspec.msgpack.Encoder().encode
        packets = protocol.PACKETS
        self._decode = msgspec.msgpack.Decoder(packets[0] if len(packets) == 1 else _union(packets)).decode

    def start(self, now: int) -> None:
        """The view is installed; from here on the member takes part."""
        if self._observer is not None:
            self._observer.view(self.view, 0, now)

    # The application's side

    @property
    def backlog(self) -> int:
        """How many messages wait at this member for a place in the order."""
        return self._protocol.backlog + self._assembler.count

    @property
    def idle(self) -> bool:
        """Whether nobody needs this member any more: all is ordered, and all was received."""
        links_idle = all(link.idle for link in self.links.values())
        return links_idle and not self._assembler.count and self._protocol.idle

    def room(self, priority: int) -> int:
        """How many messages of this priority may be broadcast now."""
        assembler = self._assembler
        return self._protocol.outgoing.room(priority, assembler.count, assembler.bytes)

    def broadcast(self, payload: bytes, priority: int) -> None:
        """Take a message; it leaves with the next turn. The caller has asked for room."""
        self._assembler.add(payload, priority)

    def broadcast_many(self, payloads: list[bytes], priority: int) -> None:
        """Take messages of one priority; they leave with the next turn. The caller has asked for room."""
        self._assembler.add_many(payloads, priority)

    def head(self) -> Stretch | None:
        """What the application may consume next; valid until anything else is handed over."""
        return self._protocol.head()

    def consume(self, count: int, now: int) -> None:
        """The application took the next `count` messages of the head."""
        if self._observer is not None:
            head = self._protocol.head()
            assert head is not None
            self._observer.delivered(head, count, now, self.backlog)
        self._step(Consume(count), now)

    # The driver's side

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A frame came from a peer's link."""
        link = self.links[peer]
        bodies = link.receive(frame, now)
        self._restless |= bool(bodies) or link.congested != (peer in self._blocked)
        for body in bodies:
            try:
                packet = self._decode(body)
            except msgspec.MsgspecError as error:
                raise ForeignFrame(f"{peer} sent a packet that cannot be read: {error}") from error
            self._on_packet(peer, packet, now)

    @property
    def restless(self) -> bool:
        """Whether anything was handed over that a turn would act on."""
        return self._restless or bool(self._to_myself) or self._assembler.count > 0

    def turn(self, now: int) -> None:
        """All that was ready has been handed over: act on it until nothing is left to do."""
        self.act(now)
        while self.restless:
            self.act(now)

    def act(self, now: int) -> None:
        """One step of a turn; what comes of it can be transmitted before the next one.

        A packet to all waits for the next step at its own sender: the others should not wait for that.
        """
        self._restless = False
        for batch in self._assembler.close():
            if self._observer is not None:
                self._observer.broadcast(batch, now, self._protocol.backlog)
            self._step(Broadcast(batch), now)
        for _ in range(len(self._to_myself)):
            self._on_packet(self.me, self._to_myself.popleft(), now)
        self._note_congestion(now)
        self._restless |= self._step(_TURN, now)

    def tick(self, now: int) -> None:
        """Do what is due at this time; a turn should follow."""
        for link in self.links.values():
            deadline = link.deadline
            if deadline is not None and deadline <= now:
                link.tick(now)
        for name in sorted(name for name, at in self._timers.items() if at <= now):
            del self._timers[name]
            self._restless = True
            self._step(TimerFired(name), now)

    def reconnected(self, peer: ProcessId, now: int) -> None:
        """The network has a new connection to a peer; what the old one held may be lost."""
        self.links[peer].reconnected(now)

    @property
    def has_timers(self) -> bool:
        """Whether the protocol has set a timer."""
        return bool(self._timers)

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next."""
        times = [link.deadline for link in self.links.values()]
        return min((at for at in (*times, *self._timers.values()) if at is not None), default=None)

    # Between them

    def _on_packet(self, peer: ProcessId, packet: Packet, now: int) -> None:
        if self._observer is not None:
            self._observer.received(packet, peer, now, self._protocol.backlog)
        self._step(Received(peer, packet), now)

    def _step(self, event: Input, now: int) -> bool:
        """Hand one input to the protocol and carry out its outputs; return whether it has more to do."""
        more = False
        for output in self._protocol.step(event, now):
            if type(output) is MoreToDo:
                more = True
            else:
                self._carry_out(output, now)
        return more

    def _carry_out(self, output: Output, now: int) -> None:
        match output:
            case SendAll(packet=packet):
                self._observe_sent(packet, None, now)
                body = self._encode(packet)
                for link in self.links.values():
                    link.send(body, now)
                self._to_myself.append(packet)
            case Send(to=to, packet=packet):
                self._observe_sent(packet, to, now)
                if to == self.me:
                    self._to_myself.append(packet)
                else:
                    self.links[to].send(self._encode(packet), now)
            case SetTimer(name=name, at=at):
                self._timers[name] = at
                self._restless = True
            case CancelTimer(name=name):
                self._timers.pop(name, None)

    def _observe_sent(self, packet: Packet, to: ProcessId | None, now: int) -> None:
        if self._observer is not None:
            self._observer.sent(packet, to, now, self._protocol.backlog)

    def _note_congestion(self, now: int) -> None:
        """Tell the protocol which links have become full, or have room again."""
        for peer, link in self.links.items():
            if link.congested != (peer in self._blocked):
                self._blocked ^= {peer}
                self._step(LinkBlocked(peer) if link.congested else LinkCleared(peer), now)


def _union(packets: tuple[type[Packet], ...]) -> object:
    union: object = packets[0]
    for packet in packets[1:]:
        union = union | packet
    return union
