"""Datagrams: encoded once for all who get them, and strictly read."""

import pytest

from membership.builders import A, B, heartbeat, view
from priocast.core.errors import ForeignFrame
from priocast.membership.datagrams import CHANNEL, frame_of, frames_of, read
from priocast.membership.packets import StabilityReport


def test_what_is_said_is_what_is_read() -> None:
    for said in (heartbeat(A, B), StabilityReport(view(A, B).id, (3, 4))):
        frame = frame_of(said)
        assert frame.channel == CHANNEL and read(B, frame) == said


def test_what_goes_to_many_is_encoded_once() -> None:
    said, other = heartbeat(A), heartbeat(B)
    first, second, third = frames_of([("b", said), ("c", said), ("c", other)])
    assert (first[0], second[0], third[0]) == ("b", "c", "c")
    assert first[1][0] is second[1][0] and third[1][0] is not first[1][0]


@pytest.mark.parametrize("body", [b"", b"\x00", b"nonsense", frame_of(heartbeat(A)).body[:-3]])
def test_what_cannot_be_read_is_the_peers_fault(body: bytes) -> None:
    with pytest.raises(ForeignFrame, match="b#1 sent a datagram that cannot be read"):
        read(B, frame_of(heartbeat(A)).__class__(CHANNEL, 0, 0, 0, body))
