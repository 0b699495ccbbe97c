"""Frames in sealed datagrams: each stands alone, may be lost, and is good for one use.

There are no connections. Peers greet each other, at the addresses that they were given or at a multicast
address, until each has proved to the other that it holds the group's key now; then they take each other's
datagrams. A process that restarts greets again, with a higher incarnation. The links see to what is lost.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import count

from priocast.core.errors import InvalidAddress, InvalidOption, Rejected, UnusableKey
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT
from priocast.links.fifo_link import Frame, LinkOptions
from priocast.network.address import Address
from priocast.network.fragments import Reassembly
from priocast.network.interface import Receiver
from priocast.network.ports import Ports
from priocast.network.rejections import Reason, Rejections
from priocast.network.udp_content import Piece, Sizes, pack_seen, unpack_frames, unpack_pieces, unpack_seen
from priocast.network.udp_handshake import (
    PAUSE_SECONDS_FIRST,
    PAUSE_SECONDS_MAX,
    Acquaintance,
    Acquaintances,
    Answer,
    SocketAddress,
)
from priocast.network.udp_pace import REPORT_BYTES, Pacer
from priocast.network.udp_port import UdpPort
from priocast.network.udp_security import GROUP_KEY_BYTES, DatagramKind, Sealed, read_header
from priocast.network.udp_socket import is_here, open_multicast_socket, open_socket

DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX = 512, 65_507
_READS_MAX = 64
_CLOSE_SECONDS = 2.0

Arrivals = dict[tuple[int, ProcessId], list[Frame]]


class UdpNetwork:
    """One process's sockets, and whom it knows in each group that it has a key for.

    `keys` holds the key of each group by its name; `incarnation` must be higher than that of any former life
    of this process. Datagrams of `datagram_bytes` must fit into what the network carries in one piece.
    """

    # A link acknowledges every eighth frame at once: of full batches, that is just a window.
    link_options = LinkOptions(window_bytes=8 * BATCH_BYTES_CUT)

    def __init__(
        self,
        name: str,
        listen: Address,
        peers: list[Address],
        *,
        keys: dict[str, bytes],
        incarnation: int,
        multicast: Address | None = None,
        datagram_bytes: int = 1400,
    ) -> None:
        _check(keys, multicast, datagram_bytes)
        self.ports: Ports[UdpPort] = Ports(name)
        self.gate = Rejections(name)
        self.rejections: Counter[str] = self.gate.counts
        self.sizes = Sizes(datagram_bytes)
        self.pacer = Pacer(self.gate)
        self.marks: Iterator[int] = count(1)
        self.multicast: SocketAddress | None = multicast
        self.reassembly = Reassembly(self.gate)
        self.groups: dict[int, Acquaintances] = {}
        for group, key in keys.items():
            known = Acquaintances(group, key, name, incarnation, self.gate)
            self.groups[known.me.group] = known
        self._listen = listen
        self._peers: dict[Address, SocketAddress] = dict.fromkeys(peers, ())  # and where they are
        self._multicast_address = multicast
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._buffer = memoryview(bytearray(DATAGRAM_BYTES_MAX))

    @property
    def address(self) -> Address:
        """Where this process listens, once it does."""
        return self._listen

    # The runtime's side

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._sockets.append(open_socket(self._listen))
        self._listen = Address(self._listen.host, self._sockets[0].getsockname()[1])
        if self._multicast_address is not None:
            try:
                self._sockets.append(open_multicast_socket(self._multicast_address, self._sockets[0]))
            except InvalidAddress:
                self._sockets.pop().close()
                raise
            self._tasks.append(loop.create_task(self._greet_all(self._multicast_address)))
        for each in self._sockets:
            loop.add_reader(each, self._read, each)
        self._tasks += [loop.create_task(self._greet(address)) for address in self._peers]
        self._tasks.append(loop.create_task(self._keep_up()))

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> UdpPort:
        known = next((each for each in self.groups.values() if each.group == group), None)
        if known is None:
            raise UnusableKey(f"{process.name} has no key for the group {group}: give it one")
        port = UdpPort(self, known, group, process, receiver)
        self.ports.add(port)
        for peer in list(known.peers.values()):
            if peer.confirmed:
                receiver.reachable(peer.name)
        return port

    async def close(self) -> None:
        for port in self.ports.all():
            port.flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.pacer.wait_empty()
        self.pacer.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self._sockets:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        self._sockets.clear()

    def unreached(self) -> list[str]:
        return [str(address) for address in self._peers if not self._knows(address)]

    def transmit(self, datagram: bytes, to: SocketAddress) -> None:
        """Send a datagram, or lose it: whoever needs it sends it again."""
        if self._sockets:
            try:
                self._sockets[0].sendto(datagram, to)
            except OSError as error:
                self.gate.note(Reason.NOT_SENT, str(error))

    # Looking for peers

    async def _greet(self, address: Address) -> None:
        """Greet whoever is at an address that we were given, whenever nobody there is known."""
        pause = PAUSE_SECONDS_FIRST
        to: SocketAddress = ()
        while True:
            if not all(known.knows(to) for known in self.groups.values()):
                with suppress(OSError):  # a host that is not found now may be found later
                    to = await self._resolve(address)
                    if is_here(to, self._sockets[0]):
                        del self._peers[address]
                        return
                    self._peers[address] = to
                    for known in self.groups.values():
                        if not known.knows(to):
                            self.transmit(known.greeting(), to)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _knows(self, address: Address) -> bool:
        """Whether a process at this configured address is known in any group."""
        return any(known.knows(self._peers[address]) for known in self.groups.values())

    async def _resolve(self, address: Address) -> SocketAddress:
        found = await asyncio.get_running_loop().getaddrinfo(
            *address, family=self._sockets[0].family, type=socket.SOCK_DGRAM
        )
        return found[0][4]

    async def _greet_all(self, multicast: Address) -> None:
        """Greet whoever listens at the multicast address; those that know us do not answer."""
        pause = PAUSE_SECONDS_FIRST
        while True:
            for known in self.groups.values():
                self.transmit(known.greeting(Answer.IF_NEW), multicast)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2 * PAUSE_SECONDS_MAX)

    async def _keep_up(self) -> None:
        """Greet peers that are silent, and give up bodies that do not become whole."""
        loop = asyncio.get_running_loop()
        while True:
            for known in self.groups.values():
                for greeting, to in known.due(loop.time()):
                    self.transmit(greeting, to)
            self.reassembly.expire(loop.time())
            await asyncio.sleep(PAUSE_SECONDS_FIRST)

    # What comes in

    def _read(self, readable: socket.socket) -> None:
        """Take what is there, and hand it over group by group."""
        now = asyncio.get_running_loop().time()
        arrivals: Arrivals = {}
        for _ in range(_READS_MAX):
            try:
                size, source = readable.recvfrom_into(self._buffer)
            except OSError:  # nothing more is there, or what was sent earlier found nobody
                break
            try:
                self._take(
                    self._buffer[:size], source, arrivals, now, own_comes=readable is not self._sockets[0]
                )
            except Rejected as error:
                self.gate.note(error.reason, error.detail, address=str(source[0]))
        for (group, process), frames in arrivals.items():
            port = self.ports.find(group)
            if port is None:
                if not self.ports.was_open(group):
                    self.gate.note(Reason.UNKNOWN_GROUP, peer=process.name)
            else:
                port.receiver.frames_received(process, frames)

    def _take(
        self, datagram: memoryview, source: SocketAddress, arrivals: Arrivals, now: float, *, own_comes: bool
    ) -> None:
        sealed = read_header(datagram)
        known = self.groups.get(int.from_bytes(sealed.life[:8]))
        if known is None:
            raise Rejected(Reason.UNKNOWN_GROUP)
        if sealed.life == known.own_life:
            if not own_comes:
                raise Rejected(Reason.REFLECTED)
        elif sealed.kind is DatagramKind.GREETING:
            heard = known.on_greeting(sealed, source, now)
            if heard.answer is not None:
                self.transmit(heard.answer, source)
            if heard.reached is not None:
                self._tell_reachable(known, heard.reached)
        else:
            self._take_data(known, sealed, arrivals, now)

    def _take_data(self, known: Acquaintances, sealed: Sealed, arrivals: Arrivals, now: float) -> None:
        peer = known.find(sealed)
        content = peer.open(sealed, now)
        if not peer.confirmed:  # it would not send us frames if it did not take ours
            peer.confirmed = True
            self._tell_reachable(known, peer)
        if sealed.kind is DatagramKind.SEEN:
            self.pacer.on_seen(peer.flow, *unpack_seen(content), now)
            return
        if sealed.kind is DatagramKind.FRAMES:
            incarnation, frames = unpack_frames(content)
        else:
            incarnation, pieces = unpack_pieces(content, known.me.sender)
            added = [self.reassembly.add(peer.life, incarnation, piece, now) for piece in pieces]
            frames = [frame for frame in added if frame is not None]
            self._report(known, peer, incarnation, pieces)
        if frames:
            arrivals.setdefault((known.me.group, ProcessId(peer.name, incarnation)), []).extend(frames)

    def _report(
        self, known: Acquaintances, peer: Acquaintance, incarnation: int, pieces: list[Piece]
    ) -> None:
        """Tell a sender of large bodies now and then what was seen, and at the end of each."""
        parts = [piece for piece in pieces if len(piece.body) < piece.total]
        peer.unreported_bytes += sum(len(piece.body) for piece in parts)
        if peer.unreported_bytes >= REPORT_BYTES or any(
            self.reassembly.is_whole(peer.life, incarnation, piece) for piece in parts
        ):
            peer.unreported_bytes = 0
            self.transmit(known.sealer.seal(DatagramKind.SEEN, pack_seen(peer.window)), peer.address)

    def _tell_reachable(self, known: Acquaintances, peer: Acquaintance) -> None:
        self.gate.note_reached(peer.name, str(Address(*peer.address[:2])))
        port = self.ports.find(known.me.group)
        if port is not None:
            port.receiver.reachable(peer.name)


def _check(keys: dict[str, bytes], multicast: Address | None, datagram_bytes: int) -> None:
    for group, key in keys.items():
        if len(key) != GROUP_KEY_BYTES:
            raise UnusableKey(
                f"the key of the group {group} has {len(key)} bytes instead of {GROUP_KEY_BYTES}"
            )
    if not DATAGRAM_BYTES_MIN <= datagram_bytes <= DATAGRAM_BYTES_MAX:
        raise InvalidOption(
            f"datagram_bytes is {datagram_bytes}: choose from {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX}"
        )
    if multicast is not None and not _is_multicast(multicast.host):
        raise InvalidAddress(f"{multicast} is not a multicast address: choose one from 239.0.0.0 on")


def _is_multicast(host: str) -> bool:
    try:
        return IPv4Address(host).is_multicast
    except ValueError:
        return False
