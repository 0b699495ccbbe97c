"""Datagrams as frames: what members say to each other beside their links."""

from collections.abc import Iterator, Sequence

import msgspec

from priocast.core.errors import ForeignFrame
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.membership.packets import AnyControl, Control

CHANNEL = 0
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyControl).decode


def frame_of(control: Control) -> Frame:
    """A datagram on its way."""
    return Frame(CHANNEL, 0, 0, 0, _encode(control))


def frames_of(datagrams: Sequence[tuple[str, Control]]) -> Iterator[tuple[str, list[Frame]]]:
    """Datagrams by name, each encoded once, however many it goes to."""
    last: Control | None = None
    frame = Frame(CHANNEL, 0, 0, 0)
    for name, control in datagrams:
        if control is not last:
            frame, last = frame_of(control), control
        yield name, [frame]


def read(peer: ProcessId, frame: Frame) -> Control:
    """What a peer says, or an error that says why it cannot be read."""
    try:
        control: Control = _decode(frame.body)
    except msgspec.MsgspecError as error:
        raise ForeignFrame(f"{peer} sent a datagram that cannot be read: {error}") from error
    return control
