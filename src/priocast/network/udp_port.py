"""Sends the frames of one group over UDP: small ones share a datagram, large ones are fragmented.

    fits into a datagram, beside others                at once
    fits into a few datagrams                          at once, in fragments
    is larger                                          in fragments, as fast as they are received (`udp_pace`)

With a multicast address, what one turn sends is delayed until `flush`. A body that goes to several peers is
then sent once, to all, with a link header for each of them; what goes to one peer is sent only there. Peers
with certificates have a key for each pair, so nothing can be sent once to all.
"""

from collections.abc import Hashable, Iterator
from typing import Protocol

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.udp_content import LinkHeader, Sizes, pack_fragment, pack_fragments, pack_frames
from priocast.network.udp_handshake import PeerTable
from priocast.network.udp_pace import UNPACED_BYTES_MAX, Flow, Pacer, Sent
from priocast.network.udp_peer import KnownPeer, SocketAddress
from priocast.network.udp_security import DatagramKind

_DELAYED_BYTES_MAX = 4 * 1024 * 1024

Addressed = tuple[KnownPeer, Frame]


class PortOwner(Protocol):
    """What a port needs from its network."""

    ports: "Ports[UdpPort]"
    sizes: Sizes
    pacer: Pacer
    transfer_ids: Iterator[int]
    multicast: SocketAddress | None

    def transmit(self, datagram: bytes, to: SocketAddress) -> None: ...


class UdpPort(OpenPort):
    """Sends the frames of a group to the peers that are known in it."""

    def __init__(
        self, owner: PortOwner, known: PeerTable, group: str, process: ProcessId, receiver: Receiver
    ) -> None:
        super().__init__(group, process, receiver)
        self._owner = owner
        self._known = known
        self._delayed: list[Addressed] = []
        self._delayed_bytes = 0

    def send(self, peer: str, frames: list[Frame]) -> None:
        known = self._known.peers.get(peer)
        if known is None or not known.confirmed:
            return
        if self._owner.multicast is None or known.pair is not None:
            self._send(known, frames)
            return
        self._delayed += [(known, frame) for frame in frames]
        self._delayed_bytes += sum(len(frame.body) for frame in frames)
        if self._delayed_bytes > _DELAYED_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        if not self._delayed:
            return
        delayed, self._delayed, self._delayed_bytes = self._delayed, [], 0
        shared, single = share(delayed)
        self._send_shared(shared)
        for peer, frames in single.items():
            self._send(peer, frames)

    def close(self) -> None:
        self.flush()
        self._owner.ports.remove(self)

    def _send(self, peer: KnownPeer, frames: list[Frame]) -> None:
        sizes, seal = self._owner.sizes, self._known.sealer.seal
        whole = [frame for frame in frames if len(frame.body) <= sizes.frame_body]
        for content in pack_frames(self.process.incarnation, whole, sizes):
            self._owner.transmit(seal(DatagramKind.FRAMES, content, peer.session, peer.cipher), peer.address)
        if len(whole) < len(frames):
            for frame in frames:
                if len(frame.body) > sizes.frame_body:
                    self._send_in_fragments([(peer, frame)], peer)

    def _send_shared(self, shared: list[list[Addressed]]) -> None:
        sizes, multicast = self._owner.sizes, self._owner.multicast
        assert multicast is not None
        small = []
        for to_all in shared:
            for start in range(0, len(to_all), sizes.headers):
                addressed = to_all[start : start + sizes.headers]
                body = addressed[0][1].body
                if len(body) <= sizes.whole(len(addressed)):
                    small.append(pack_fragment(_headers(addressed), 0, body, 0, len(body)))
                else:
                    self._send_in_fragments(addressed, None)
        for content in pack_fragments(self.process.incarnation, small, sizes):
            self._owner.transmit(self._known.sealer.seal(DatagramKind.SHARED, content), multicast)

    def _send_in_fragments(self, addressed: list[Addressed], to: KnownPeer | None) -> None:
        """Send a body that is too large for a datagram, to one peer or, by multicast, to several."""
        body, pacer = addressed[0][1].body, self._owner.pacer
        assert len(body) <= FRAME_BYTES_MAX
        paced = len(body) > UNPACED_BYTES_MAX
        if paced:
            addressed = [each for each in addressed if not pacer.is_waiting(self.name_of(*each))]
        if not addressed:
            return
        transfer = _BodyTransfer(self, addressed, next(self._owner.transfer_ids), to)
        if paced:
            pacer.add(transfer)
        else:
            while transfer.send_next() is not None:
                pass

    def name_of(self, peer: KnownPeer, frame: Frame, number: int = 0) -> Hashable:
        """A frame of a link, also when it is sent again; one without a sequence number needs a `number`."""
        sequence = frame.sequence or -number
        return self.group_hash, self.process.incarnation, peer.session, frame.channel, sequence

    def send_fragment(self, fragment: bytes, to: KnownPeer | None) -> tuple[int, int]:
        """Send a fragment to one peer, or to all; return the counter and the size of its datagram."""
        sealer = self._known.sealer
        [content] = pack_fragments(self.process.incarnation, [fragment], self._owner.sizes)
        if to is not None:
            datagram = sealer.seal(DatagramKind.FRAGMENTS, content, to.session, to.cipher)
            address = to.address
        else:
            assert self._owner.multicast is not None
            datagram, address = sealer.seal(DatagramKind.SHARED, content), self._owner.multicast
        self._owner.transmit(datagram, address)
        return sealer.counter, len(datagram)

    def fragment_bytes(self, headers: int) -> int:
        """How many bytes of a body a fragment has beside so many link headers."""
        return self._owner.sizes.fragment(headers)


class _BodyTransfer:
    """A body that is too large for a datagram, on its way to one peer (`to`) or, by multicast, to several.

    A fragment is named by its offset in the body. One that is lost is sent again only to the peer that lacks
    it.
    """

    def __init__(self, port: UdpPort, addressed: list[Addressed], number: int, to: KnownPeer | None) -> None:
        self.flows = [peer.flow for peer, _ in addressed]
        self.frames = [port.name_of(peer, frame, number) for peer, frame in addressed]
        self._number = number
        self._port = port
        self._peers = [peer for peer, _ in addressed]
        self._headers = _headers(addressed)
        self._to = to
        self._body = addressed[0][1].body
        self.size = len(self._body)
        self._step = port.fragment_bytes(len(addressed))
        self._next = 0

    def send_next(self) -> Sent | None:
        """Send the next fragment to all; None if there are no more."""
        offset = self._next
        if offset >= self.size:
            return None
        self._next += self._step
        return self._send(offset, self._headers, self._to)

    def send_again(self, fragment: int, flow: Flow) -> Sent:
        """Send a fragment to the peer of one flow, which lacks it."""
        index = self.flows.index(flow)
        return self._send(fragment, self._headers[index : index + 1], self._peers[index])

    def _send(self, offset: int, headers: list[LinkHeader], to: KnownPeer | None) -> Sent:
        length = min(self._step, self.size - offset)
        fragment = pack_fragment(headers, self._number, self._body, offset, length)
        counter, size = self._port.send_fragment(fragment, to)
        return Sent(counter, size, to is None, offset, self)


def share(delayed: list[Addressed]) -> tuple[list[list[Addressed]], dict[KnownPeer, list[Frame]]]:
    """Separate the bodies (compared by identity) that go to several peers from what goes to one peer."""
    by_body: dict[int, dict[KnownPeer, Frame]] = {}
    single: dict[KnownPeer, list[Frame]] = {}
    for peer, frame in delayed:
        if frame.body and by_body.setdefault(id(frame.body), {}).setdefault(peer, frame) is frame:
            continue
        single.setdefault(peer, []).append(frame)  # an acknowledgement, or the same body once more
    shared = []
    for frames in by_body.values():
        if len(frames) > 1:
            shared.append(list(frames.items()))
        else:
            for peer, frame in frames.items():
                single.setdefault(peer, []).append(frame)
    return shared, single


def _headers(addressed: list[Addressed]) -> list[LinkHeader]:
    return [
        LinkHeader(peer.name_hash, frame.channel, frame.sequence, frame.acknowledged, frame.selective)
        for peer, frame in addressed
    ]
