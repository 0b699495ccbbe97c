"""The packets of the qualities of service: everything in them is bounded, and they survive the wire."""

import msgspec
import pytest
from msgspec import inspect

from priocast.core.quality import ATOMIC, CAUSAL, delta
from priocast.services.packets import (
    AnyServicePacket,
    Knowledge,
    MessageDecision,
    Predecessor,
    Report,
    ServicePacket,
    ServiceStream,
    TimeReply,
)
from services.builders import A, B, C, data, message
from test_decoded_types import unbounded


@pytest.mark.parametrize("packet", AnyServicePacket.__args__, ids=lambda packet: packet.__name__)
def test_everything_that_a_peer_can_name_is_bounded(packet: type[ServicePacket]) -> None:
    assert list(unbounded(inspect.type_info(packet), packet.__name__)) == []


@pytest.mark.parametrize(
    "packet",
    [
        data(message(B), CAUSAL, history=(Predecessor(message(C), (A, B)),), open_from=1),
        data(message(B), delta(20.5), clock=(1 << 61,), units=3),
        data(message(B, 1, ServiceStream.ATOMIC), ATOMIC, clock=(4, 0, 1)),
        MessageDecision(message(A, 2, ServiceStream.TIGHT), 257, True, (4, 1)),
        Report(message(A, 2, ServiceStream.TIGHT), 257, Knowledge.HELD, 2, (4,), (4, 1)),
        TimeReply(1, 1 << 60),
    ],
    ids=lambda packet: type(packet).__name__,
)
def test_packets_survive_the_wire(packet: ServicePacket) -> None:
    encoded = msgspec.msgpack.encode(packet)
    assert msgspec.msgpack.decode(encoded, type=AnyServicePacket) == packet


def test_a_message_has_a_readable_name() -> None:
    assert str(message(A, 3, ServiceStream.TIGHT)) == "a#1/tight/3"
