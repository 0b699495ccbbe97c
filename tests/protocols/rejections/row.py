"""The rows of the tables of rejections: packets that a member rejects, and the situation in which it does."""

from typing import Any, NamedTuple

from priocast.core.identity import ProcessId
from priocast.core.protocol import Input, OrderingOptions, Packet, Received, Turn
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from protocols.single_member import VIEW

TURN = Turn()


class RejectedPacket(Exception):
    """The packet of a row raised the error that is the cause of this one; no input before it raised any."""


class Situation:
    """A member of a group of three, and the inputs that it accepted `before` the packet in question."""

    def __init__(
        self,
        protocol: type[OrderingProtocol],
        me: ProcessId,
        *before: Input,
        position: int = 0,
        **options: Any,
    ) -> None:
        self.protocol = protocol
        self._me = me
        self._before = before
        self._position = position
        self._options = OrderingOptions(**options)

    def rejects(self, what: str, sender: ProcessId, packet: Packet, fault: str) -> "Rejection":
        """A row: the member rejects this packet of this sender with this fault."""
        return Rejection(what, self, sender, packet, fault)

    def hear(self, sender: ProcessId, packet: Packet) -> None:
        """Accept everything before the packet, and then the packet, which must raise."""
        member = self.protocol(self._me, VIEW, self._options, self._position)
        for event in self._before:
            member.step(event, 0)
        try:
            member.step(heard(sender, packet), 0)
        except Exception as error:
            raise RejectedPacket from error


class Rejection(NamedTuple):
    """One row."""

    what: str
    situation: Situation
    sender: ProcessId
    packet: Packet
    fault: str

    @property
    def protocol(self) -> type[OrderingProtocol]:
        return self.situation.protocol


def heard(sender: ProcessId, packet: Packet) -> Received:
    """A packet arrives; its number is that of the first packet to all."""
    return Received(sender, packet, (VIEW.members.index(sender), int(packet.TO_ALL)))
