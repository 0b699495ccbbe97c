"""Datagrams as frames, which members exchange beside their links."""

from collections.abc import Iterator, Sequence

import msgspec

from priocast.core.decoding import decode
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.membership.packets import AnyControl, Control

CHANNEL = 0
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyControl).decode


def frame_of(control: Control) -> Frame:
    """The frame of a datagram."""
    return Frame(CHANNEL, 0, 0, 0, _encode(control))


def frames_of(datagrams: Sequence[tuple[str, Control]]) -> Iterator[tuple[str, list[Frame]]]:
    """Frames by the name of their destination; a datagram to several processes is encoded once."""
    last: Control | None = None
    frame = Frame(CHANNEL, 0, 0, 0)
    for name, control in datagrams:
        if control is not last:
            frame, last = frame_of(control), control
        yield name, [frame]


def read(peer: ProcessId, frame: Frame) -> Control:
    """The datagram in a peer's frame; raises ForeignFrame if it cannot be decoded."""
    control: Control = decode(_decode, frame.body, peer, "a datagram")
    return control
