"""One protocol by itself, step by step: its inputs, and the outputs of each.

There are no links and no other members, so a test can let any packet arrive, also in situations into which a
group of correct members does not come. What members do together is tested with the `Group` of `harness`.
"""

from typing import TypeVar

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT, Batch
from priocast.core.protocol import (
    Broadcast,
    OrderingOptions,
    Output,
    Packet,
    Received,
    Send,
    SendAll,
    SendEach,
    Turn,
)
from priocast.core.view import View
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.numbering.packets import NumberGrant, NumberRange

VIEW = View(1, (A, B, C))

Member = TypeVar("Member", bound=OrderingProtocol)
Kind = TypeVar("Kind", bound=Packet)


def member_of(protocol_class: type[Member], me: ProcessId, position: int = 0, **options: object) -> Member:
    """A member of a group of three, in a view that starts at this position."""
    return protocol_class(me, VIEW, OrderingOptions(**options), position)  # type: ignore[arg-type]


def say(member: OrderingProtocol, batch: Batch, now: int = 0) -> None:
    """The application of a member broadcasts a batch."""
    member.step(Broadcast(batch), now)


def say_frames(member: OrderingProtocol, count: int) -> None:
    """The application of a member broadcasts `count` messages, each of which fills a frame."""
    for number in range(count):
        say(member, batch_of(1, first=number, sender=member.me, size=BATCH_BYTES_CUT))


def hear(
    member: OrderingProtocol,
    sender: ProcessId,
    packet: Packet,
    packet_id: tuple[int, int] = (0, 0),
    now: int = 0,
) -> list[Output]:
    """The outputs when a packet arrives; a packet that was sent to all has an id."""
    return member.step(Received(sender, packet, packet_id), now)


def number_grant(position: int, count: int, bottleneck: str = "") -> NumberGrant:
    """A grant of consecutive numbers."""
    return NumberGrant((NumberRange(position, count),), bottleneck)


def turn(member: OrderingProtocol, now: int = 0) -> list[Output]:
    """The outputs of a turn; the member does not receive its own packets."""
    return member.step(Turn(), now)


def turn_heard(member: OrderingProtocol) -> list[Output]:
    """The outputs of a turn; the member receives its own packets, as from its driver."""
    outputs = turn(member)
    for output in outputs:
        if isinstance(output, SendAll | SendEach) or (isinstance(output, Send) and output.to == member.me):
            assert hear(member, member.me, output.packet) == []
    return outputs


def packets(outputs: list[Output], kind: type[Kind]) -> list[Kind]:
    """The packets of this kind among these outputs."""
    sent = [output.packet for output in outputs if isinstance(output, Send | SendAll | SendEach)]
    return [packet for packet in sent if isinstance(packet, kind)]


def placed(member: OrderingProtocol) -> list[str]:
    """The ordered batches that wait for the application."""
    return [str(ordered_batch.batch) for ordered_batch in member.unconsumed()]


def placed_at(member: OrderingProtocol) -> list[str]:
    """The same, with their positions."""
    return [f"{ordered_batch.position}: {ordered_batch.batch}" for ordered_batch in member.unconsumed()]
