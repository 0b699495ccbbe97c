"""Sends the frames of one group over UDP: small ones share a datagram, large ones are fragmented.

With a multicast address, what one turn sends is delayed until `flush`. A body that goes to several peers is
then sent once, to all, with a link header for each of them; what goes to one peer is sent only there. Peers
with certificates have a key for each pair, so nothing can be sent once to all.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.udp_content import LinkHeader, Sizes, pack_fragment, pack_fragments, pack_frames
from priocast.network.udp_handshake import PeerTable
from priocast.network.udp_pace import Pacer, Sent
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
                if len(body) <= sizes.fragment(len(addressed)):
                    small.append(pack_fragment(_headers(addressed), 0, body, 0, len(body)))
                else:
                    self._send_in_fragments(addressed, None)
        for content in pack_fragments(self.process.incarnation, small, sizes):
            self._owner.transmit(self._known.sealer.seal(DatagramKind.SHARED, content), multicast)

    def _send_in_fragments(self, addressed: list[Addressed], to: KnownPeer | None) -> None:
        """Send a body that is too large for a datagram, to one peer or, by multicast, to all.

        Without a sequence number, it is always a new one.
        """
        transfer_id, body = next(self._owner.transfer_ids), addressed[0][1].body
        assert len(body) <= FRAME_BYTES_MAX
        links = [(peer.session, frame.channel, frame.sequence or -transfer_id) for peer, frame in addressed]
        self._owner.pacer.add(
            (self.group_hash, self.process.incarnation, *links),
            [peer.flow for peer, _ in addressed],
            self._fragments(addressed, transfer_id, to),
            len(body),
        )

    def _fragments(
        self, addressed: list[Addressed], transfer_id: int, to: KnownPeer | None
    ) -> Iterator[list[Sent]]:
        """Send a body, one fragment a step; a lost fragment is sent again only to the peer that lacks it."""
        headers, body = _headers(addressed), addressed[0][1].body
        step = self._owner.sizes.fragment(len(headers))
        for offset in range(0, len(body), step):
            span = slice(offset, min(offset + step, len(body)))
            counter, size = self._send_fragment(headers, transfer_id, body, span, to)
            yield [
                Sent(counter, size, self._sender_again(peer, header, transfer_id, body, span))
                for (peer, _), header in zip(addressed, headers, strict=True)
            ]

    def _sender_again(
        self, peer: KnownPeer, header: LinkHeader, transfer_id: int, body: bytes, span: slice
    ) -> Callable[[], Sent]:
        def again() -> Sent:
            return Sent(*self._send_fragment([header], transfer_id, body, span, peer), again)

        return again

    def _send_fragment(
        self, headers: list[LinkHeader], transfer_id: int, body: bytes, span: slice, to: KnownPeer | None
    ) -> tuple[int, int]:
        sealer = self._known.sealer
        fragment = pack_fragment(headers, transfer_id, body, span.start, span.stop - span.start)
        [content] = pack_fragments(self.process.incarnation, [fragment], self._owner.sizes)
        if to is not None:
            datagram = sealer.seal(DatagramKind.FRAGMENTS, content, to.session, to.cipher)
            address = to.address
        else:
            assert self._owner.multicast is not None
            datagram, address = sealer.seal(DatagramKind.SHARED, content), self._owner.multicast
        self._owner.transmit(datagram, address)
        return sealer.counter, len(datagram)


def share(delayed: list[Addressed]) -> tuple[list[list[Addressed]], dict[KnownPeer, list[Frame]]]:
    """Separate the bodies (compared by identity) that go to several peers from what goes to one peer."""
    by_body: dict[int, list[Addressed]] = {}
    single: dict[KnownPeer, list[Frame]] = {}
    for peer, frame in delayed:
        if frame.body:
            by_body.setdefault(id(frame.body), []).append((peer, frame))
        else:
            single.setdefault(peer, []).append(frame)
    shared = []
    for addressed in by_body.values():
        if len({peer for peer, _ in addressed}) > 1:
            shared.append(addressed)
        else:
            for peer, frame in addressed:
                single.setdefault(peer, []).append(frame)
    return shared, single


def _headers(addressed: list[Addressed]) -> list[LinkHeader]:
    return [
        LinkHeader(peer.name_hash, frame.channel, frame.sequence, frame.acknowledged, frame.selective)
        for peer, frame in addressed
    ]
