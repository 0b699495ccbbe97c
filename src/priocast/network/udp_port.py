"""One group's way out over UDP: small frames share a datagram, large ones go in pieces, shared ones go once.

With a multicast address, what one turn sends is held back until it is flushed. A body that goes to several
peers is then sent once, to all, with a row for each of them; what goes to one peer is sent to it alone.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.udp_content import Row, Sizes, pack_frames, pack_piece, pack_pieces
from priocast.network.udp_handshake import Acquaintance, Acquaintances, SocketAddress
from priocast.network.udp_pace import Pacer, Sent
from priocast.network.udp_security import DatagramKind

_HELD_BYTES_MAX = 4 * 1024 * 1024

Addressed = tuple[Acquaintance, Frame]


class Wire(Protocol):
    """What the ports of a process share."""

    ports: "Ports[UdpPort]"
    sizes: Sizes
    pacer: Pacer
    marks: Iterator[int]
    multicast: SocketAddress | None

    def transmit(self, datagram: bytes, to: SocketAddress) -> None: ...


class UdpPort(OpenPort):
    """Sends what a group says, to those of its members that are known."""

    def __init__(
        self, wire: Wire, known: Acquaintances, group: str, process: ProcessId, receiver: Receiver
    ) -> None:
        super().__init__(group, process, receiver)
        self._wire = wire
        self._known = known
        self._held: list[Addressed] = []
        self._held_bytes = 0

    def send(self, peer: str, frames: list[Frame]) -> None:
        known = self._known.peers.get(peer)
        if known is None or not known.confirmed:
            return
        if self._wire.multicast is None:
            self._send(known, frames)
            return
        self._held += [(known, frame) for frame in frames]
        self._held_bytes += sum(len(frame.body) for frame in frames)
        if self._held_bytes > _HELD_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        held, self._held, self._held_bytes = self._held, [], 0
        shared, single = share(held)
        self._send_shared(shared)
        for peer, frames in single.items():
            self._send(peer, frames)

    def close(self) -> None:
        self.flush()
        self._wire.ports.remove(self)

    def _send(self, peer: Acquaintance, frames: list[Frame]) -> None:
        sizes, seal = self._wire.sizes, self._known.sealer.seal
        whole = [frame for frame in frames if len(frame.body) <= sizes.frame_body]
        for content in pack_frames(self.process.incarnation, whole, sizes):
            self._wire.transmit(seal(DatagramKind.FRAMES, content), peer.address)
        if len(whole) < len(frames):
            for frame in frames:
                if len(frame.body) > sizes.frame_body:
                    self._send_in_pieces([(peer, frame)], peer.address)

    def _send_shared(self, shared: list[list[Addressed]]) -> None:
        sizes, multicast = self._wire.sizes, self._wire.multicast
        assert multicast is not None
        small = []
        for to_all in shared:
            for start in range(0, len(to_all), sizes.rows):
                addressed = to_all[start : start + sizes.rows]
                body = addressed[0][1].body
                if len(body) <= sizes.piece(len(addressed)):
                    small.append(pack_piece(_rows(addressed), 0, body, 0, len(body)))
                else:
                    self._send_in_pieces(addressed, multicast)
        for content in pack_pieces(self.process.incarnation, small, sizes):
            self._wire.transmit(self._known.sealer.seal(DatagramKind.PIECES, content), multicast)

    def _send_in_pieces(self, addressed: list[Addressed], to: SocketAddress) -> None:
        """Send one body that is too large for a datagram; what has no sequence is never the same twice."""
        mark, body = next(self._wire.marks), addressed[0][1].body
        assert len(body) <= FRAME_BYTES_MAX
        links = [(peer.life, frame.channel, frame.sequence or -mark) for peer, frame in addressed]
        self._wire.pacer.add(
            (self.group_hash, self.process.incarnation, *links),
            [peer.flow for peer, _ in addressed],
            self._pieces(addressed, mark, to),
            len(body),
        )

    def _pieces(self, addressed: list[Addressed], mark: int, to: SocketAddress) -> Iterator[list[Sent]]:
        """Send a body, a piece each step; a piece that one peer lacks goes to it alone."""
        rows, body = _rows(addressed), addressed[0][1].body
        step = self._wire.sizes.piece(len(rows))
        for offset in range(0, len(body), step):
            span = slice(offset, min(offset + step, len(body)))
            counter, size = self._send_piece(rows, mark, body, span, to)
            yield [
                Sent(counter, size, self._sender_again(peer, row, mark, body, span))
                for (peer, _), row in zip(addressed, rows, strict=True)
            ]

    def _sender_again(
        self, peer: Acquaintance, row: Row, mark: int, body: bytes, span: slice
    ) -> Callable[[], Sent]:
        def again() -> Sent:
            return Sent(*self._send_piece([row], mark, body, span, peer.address), again)

        return again

    def _send_piece(
        self, rows: list[Row], mark: int, body: bytes, span: slice, to: SocketAddress
    ) -> tuple[int, int]:
        piece = pack_piece(rows, mark, body, span.start, span.stop - span.start)
        [content] = pack_pieces(self.process.incarnation, [piece], self._wire.sizes)
        datagram = self._known.sealer.seal(DatagramKind.PIECES, content)
        self._wire.transmit(datagram, to)
        return self._known.sealer.counter, len(datagram)


def share(held: list[Addressed]) -> tuple[list[list[Addressed]], dict[Acquaintance, list[Frame]]]:
    """Tell the bodies (the very objects) that go to several peers from what goes to one alone."""
    by_body: dict[int, list[Addressed]] = {}
    single: dict[Acquaintance, list[Frame]] = {}
    for peer, frame in held:
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


def _rows(addressed: list[Addressed]) -> list[Row]:
    return [
        Row(peer.name_hash, frame.channel, frame.sequence, frame.acknowledged, frame.selective)
        for peer, frame in addressed
    ]
