"""Runs one protocol by itself, without links, clock and membership.

A `ProtocolRunner` does what `Epoch` does for a real member: it numbers packets that were sent to all, returns
a member's own packets to it, keeps timers, and gives turns. Packets for other members go to the outbox, and
the caller decides when they arrive.
"""

from collections import deque
from typing import NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Consume,
    Input,
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


class Outgoing(NamedTuple):
    """A packet for another member, or for all other members (`to` is None)."""

    to: ProcessId | None
    packet: Packet


class ProtocolRunner:
    """Steps a protocol and interprets its outputs.

    `received_counts` is how many packets to all have been received, by rank. `needs_turn` says that the
    protocol has inputs on which it has not acted. Subclasses may observe packets by `on_packet_sent` and
    `on_packet_received`.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.received_counts = [0] * len(protocol.view.members)
        self.timers: dict[str, int] = {}
        self.needs_turn = False
        self._outbox: list[Outgoing] = []
        self._own_packets: deque[Packet] = deque()

    @property
    def has_work(self) -> bool:
        """Whether a step of a turn would act on anything."""
        return self.needs_turn or bool(self._own_packets)

    def broadcast(self, batch: Batch, now: int) -> None:
        """The application broadcasts a batch."""
        self.step(Broadcast(batch), now)
        self.needs_turn = True

    def receive(self, sender: ProcessId, packet: Packet, now: int) -> None:
        """A packet arrives from a member; the caller keeps the order of each sender's packets."""
        self.needs_turn = True
        self._receive(sender, packet, now)

    def receive_own_packets(self, now: int) -> None:
        """Return the packets that the member sent to itself."""
        while self._own_packets:
            self._receive(self.protocol.me, self._own_packets.popleft(), now)

    def _receive(self, sender: ProcessId, packet: Packet, now: int) -> None:
        rank = self.protocol.ranks[sender]
        self.received_counts[rank] += packet.TO_ALL
        packet_id = (rank, self.received_counts[rank] if packet.TO_ALL else 0)
        self.on_packet_received(packet, sender, now)
        self.step(Received(sender, packet, packet_id), now)

    def consume(self, count: int, now: int) -> None:
        """The application consumes messages of the head batch."""
        self.step(Consume(count), now)

    def fire(self, timer: str, now: int) -> None:
        """A timer expires."""
        del self.timers[timer]
        self.needs_turn = True
        self.step(TimerFired(timer), now)

    def act(self, now: int) -> None:
        """One step of a turn: own packets, and then whatever the protocol does in a turn."""
        self.needs_turn = False
        self.receive_own_packets(now)
        self.step(Turn(), now)

    def run_until_idle(self, now: int) -> None:
        """Act until nothing is left to do."""
        while self.has_work:
            self.act(now)

    def take_outbox(self) -> list[Outgoing]:
        """The packets for other members since the last call."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def step(self, event: Input, now: int) -> None:
        """Give the protocol one input and carry out its outputs."""
        for output in self.protocol.step(event, now):
            self._carry_out(output, now)

    def on_packet_sent(self, packet: Packet, to: ProcessId | None, now: int) -> None:
        """The protocol sends a packet, to one member or to all."""

    def on_packet_received(self, packet: Packet, sender: ProcessId, now: int) -> None:
        """The protocol is about to receive a packet."""

    def _carry_out(self, output: Output, now: int) -> None:
        match output:
            case SendAll(packet=packet) | SendEach(packet=packet):
                self.on_packet_sent(packet, None, now)
                self._outbox.append(Outgoing(None, packet))
                self._own_packets.append(packet)
            case Send(to=to, packet=packet):
                self.on_packet_sent(packet, to, now)
                if to == self.protocol.me:
                    self._own_packets.append(packet)
                else:
                    self._outbox.append(Outgoing(to, packet))
            case SetTimer(name=name, at=at):
                self.timers[name] = at
            case CancelTimer(name=name):
                self.timers.pop(name, None)
            case MoreToDo():
                self.needs_turn = True
