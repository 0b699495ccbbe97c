"""Everything that turns foreign bytes into values, as one function of an input.

The first byte of an input chooses the decoder, the rest is what it gets. Nothing but `ForeignFrame` and
`Rejected` may come of it. Two of them are more than decoders. A stranger sends a frame to a whole member:
what it decodes, it checks, and nothing may change. A member of the view sends a packet to the qualities of
service of another one: it may be at fault, and may fill the memory of nobody.
"""

from collections.abc import Callable
from functools import cache, reduce
from operator import or_

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.quality import ATOMIC
from priocast.core.role import Role
from priocast.core.view import View
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.datagrams import CHANNEL, frame_of, read
from priocast.membership.packets import AnyControl, Heartbeat
from priocast.membership.permissions import may_send
from priocast.network.codec import FrameReader, hash_of
from priocast.network.fragments import Reassembly
from priocast.network.rejections import RejectionLog
from priocast.network.tcp_connection import Introduction
from priocast.network.udp_content import unpack_fragments, unpack_frames, unpack_report
from priocast.network.udp_handshake import Greeting
from priocast.network.udp_security import read_header
from priocast.protocols import PROTOCOLS
from priocast.services.frames import SERVICE_CHANNEL, read_service_frame
from priocast.services.packets import AnyServicePacket
from priocast.services.service_host import ServiceHost
from support.stacks import CHECKED, founded

STRANGER = ProcessId("z")
ME, PEER = ProcessId("a"), ProcessId("b")
_TIMERS_MAX = 2


def _of_type(decoded: object) -> Callable[[bytes], object]:
    decoder = msgspec.msgpack.Decoder(decoded).decode
    return lambda body: decode(decoder, body, STRANGER, "something")


def _read_stream(data: bytes) -> None:
    """Bytes of a connection, in two reads."""
    reader = FrameReader()
    for part in (data[: len(data) // 2], data[len(data) // 2 :]):
        free = reader.free()
        free[: len(part)] = part[: len(free)]
        reader.read(min(len(part), len(free)))


def _read_fragments(content: bytes) -> None:
    reassembly = Reassembly(RejectionLog("a"))
    incarnation, fragments = unpack_fragments(content, hash_of("a"))
    for fragment in fragments:
        reassembly.add(b"z", incarnation, fragment, 0.0)


@cache
def _member() -> tuple[Member, int]:
    group = founded("abc")
    return group.members["a"], group.now


def _be_received(body: bytes) -> None:
    """A stranger, which does not know the group's options, sends a datagram to a member."""
    member, now = _member()
    frame = Frame(CHANNEL, 0, 0, 0, body)
    control = read(STRANGER, frame)
    if isinstance(control, Heartbeat):
        frame = frame_of(msgspec.structs.replace(control, config=0))
    view = member.view
    member.receive(STRANGER, [frame], now)
    assert (
        not member.faults
        and member.view == view
        and member.departed is None
        and not member.membership.changing
    )
    member.membership.datagrams.clear()


def _be_served(body: bytes) -> None:
    """A member of the view sends a packet of a quality of service, to one that has just sent a message.

    Only the qualities of service of the member are made, and only for what can be decoded: a whole group for
    every input would take a thousand times as long as to decode it.
    """
    frame = Frame(SERVICE_CHANNEL, 0, 0, 0, body)
    read_service_frame(PEER, frame)
    host = ServiceHost(ME, CHECKED, None, is_strict=True)
    host.on_view(View(1, (ME, PEER)), 0)
    host.send([b"x"], ATOMIC, None, 0, 0)
    host.turn(0)
    host.receive(PEER, frame, 0)
    for _ in range(_TIMERS_MAX):
        if (deadline := host.deadline) is None:
            break
        host.tick(deadline, deadline)
        host.take_frames()
    assert host.held < 100


def _be_permitted(body: bytes) -> None:
    for role in Role:
        may_send(role, body)


DECODERS: tuple[Callable[[bytes], object], ...] = (
    _of_type(AnyControl),
    *(_of_type(reduce(or_, protocol.PACKETS)) for protocol in PROTOCOLS.values()),
    _of_type(Introduction),
    _of_type(Greeting),
    lambda block: Batch(STRANGER, 0, 0, 3, block).payloads(),
    _read_stream,
    unpack_frames,
    _read_fragments,
    unpack_report,
    lambda datagram: read_header(memoryview(datagram)),
    _be_permitted,
    _be_received,
    _of_type(AnyServicePacket),
    _be_served,
)
#: The decoder that needs no corpus of its own: any body will do.
PERMISSION = DECODERS.index(_be_permitted)


def check_input(data: bytes) -> None:
    """Decode an input; raises whatever is not the peer's fault."""
    if not data:
        return
    try:
        DECODERS[data[0] % len(DECODERS)](data[1:])
    except PeerFault:
        return
