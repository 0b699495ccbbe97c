"""The frames of the qualities of service, which members exchange beside datagrams and links."""

from collections.abc import Iterable

import msgspec

from priocast.core.decoding import decode
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.services.outputs import Multicast
from priocast.services.packets import AnyServicePacket, ServicePacket

SERVICE_CHANNEL = 2
"""Datagrams have channel 0, and the links of a view an odd one."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyServicePacket).decode


def service_frame(packet: ServicePacket) -> Frame:
    """The frame of a packet."""
    return Frame(SERVICE_CHANNEL, 0, 0, 0, _encode(packet))


def service_frames(multicasts: Iterable[Multicast]) -> list[tuple[str, list[Frame]]]:
    """Frames by the name of their destination; a packet to several processes is encoded once."""
    frames: dict[str, list[Frame]] = {}
    for to, packet in ((each.to, each.packet) for each in multicasts):
        frame = service_frame(packet)
        for process in to:
            frames.setdefault(process.name, []).append(frame)
    return list(frames.items())


def read_service_frame(peer: ProcessId, frame: Frame) -> ServicePacket:
    """The packet in a peer's frame; raises ForeignFrame if it cannot be decoded."""
    packet: ServicePacket = decode(_decode, frame.body, peer, "a packet of a quality of service")
    return packet
