"""Frames in sealed datagrams: each is independent, may be lost, and is accepted once.

There are no connections. Peers greet each other, at configured addresses or at a multicast address, until
each has proved to the other that it holds the group's key now; then they accept each other's datagrams. A
process that restarts greets again, with a higher incarnation. The links retransmit what is lost.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from priocast.core.errors import InvalidAddress, Rejected, UnusableKey
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_BYTES_CUT
from priocast.core.network_properties import NetworkProperties
from priocast.core.role import Role
from priocast.links.frame import Frame, LinkOptions
from priocast.network.address import Address, check_multicast
from priocast.network.datagram_size import DATAGRAM_BYTES, DATAGRAM_BYTES_MAX, check_datagram_bytes
from priocast.network.fragments import Reassembly
from priocast.network.interface import Receiver
from priocast.network.ports import Ports
from priocast.network.reachability import ITSELF, describe_unreached, failure_of
from priocast.network.rejections import Reason, RejectionLog, log_reached
from priocast.network.security import TlsSecurity, check_role
from priocast.network.udp_content import (
    Fragment,
    Sizes,
    pack_report,
    unpack_fragments,
    unpack_frames,
    unpack_report,
)
from priocast.network.udp_handshake import PAUSE_SECONDS_MAX, PeerTable
from priocast.network.udp_pace import IN_FLIGHT_BYTES_MAX, IN_FLIGHT_BYTES_MIN, UNPACED_BYTES_MAX, Pacer
from priocast.network.udp_peer import PAUSE_SECONDS_FIRST, KnownPeer, SocketAddress
from priocast.network.udp_port import UdpPort
from priocast.network.udp_security import GROUP_KEY_BYTES, DatagramKind, Sealed, read_header
from priocast.network.udp_socket import is_here, open_multicast_socket, open_socket

if TYPE_CHECKING:
    from priocast.network.udp_certificates import OwnCertificate

_READS_MAX = 64
_CLOSE_SECONDS = 2.0
_SILENCE_SECONDS_MAX = 3.0  # a peer that is silent for a second is greeted every second, and answers

FramesBySender = dict[tuple[int, ProcessId, Role], list[Frame]]
KeySource = bytes | Path


class UdpNetwork:
    """The sockets of one process, and the peers that it knows in each group that it has a key for.

    `keys` holds the key of each group by its name, or the file that it is in; `incarnation` must be higher
    than that of any earlier start of this process. The network should carry datagrams of `datagram_bytes`
    without IP fragmentation. `role` is what the process is in all its groups. With `security`, processes
    prove their names by certificates, and each pair of them has keys of its own; only calls are multicast
    then.
    """

    link_options = LinkOptions(
        window_bytes=32 * BATCH_BYTES_CUT,
        congested_bytes=8 * BATCH_BYTES_CUT,
        acknowledge_after_bytes=2 * BATCH_BYTES_CUT,
    )

    def __init__(
        self,
        name: str,
        listen: Address,
        peers: list[Address],
        *,
        keys: Mapping[str, KeySource],
        incarnation: int,
        multicast: Address | None = None,
        datagram_bytes: int = DATAGRAM_BYTES,
        role: Role = Role.MEMBER,
        security: TlsSecurity | None = None,
    ) -> None:
        if multicast is not None:
            check_multicast(multicast)
        self.rejection_log = RejectionLog(name)
        self.ports: Ports[UdpPort] = Ports(name, self.rejection_log)
        self.rejections: Counter[str] = self.rejection_log.counts
        self.sizes = Sizes(check_datagram_bytes(datagram_bytes))
        self.pacer = Pacer(self.rejection_log)
        self.transfer_ids: Iterator[int] = count(1)
        self.multicast: SocketAddress | None = multicast
        self.reassembly = Reassembly(self.rejection_log)
        self.groups: dict[int, PeerTable] = {}
        self._keys = keys
        self._certificate = _certificate_of(security, name, role)
        for group, source in keys.items():
            group_keys = _keys_in(group, source)
            known = PeerTable(
                group, group_keys, name, incarnation, self.rejection_log, role, self._certificate
            )
            known.hears = partial(self._hears, known)
            self.groups[known.me.group] = known
        self._listen = listen
        self._peers: dict[Address, SocketAddress] = dict.fromkeys(peers, ())  # and where they are
        self._failures: dict[Address, str] = {}
        self._multicast_address = multicast
        self._sockets: list[socket.socket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._buffer = memoryview(bytearray(DATAGRAM_BYTES_MAX))
        # With certificates, frames are sealed for each receiver, so nothing is sent once to all.
        self.properties = NetworkProperties(
            error_detection=True, broadcast=multicast is not None and security is None
        )

    @property
    def address(self) -> Address:
        """The address that this process listens on; before `start`, port 0 means any free port."""
        return self._listen

    # Called by the runtime

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
            raise UnusableKey(f"{process.name} has no key for group {group!r}: add one to keys=")
        if self._certificate is not None:
            check_role(self._certificate.roles, group, process.name, self._certificate.role)
        port = UdpPort(self, known, group, process, receiver)
        self.ports.add(port)
        for peer in list(known.peers.values()):
            if peer.confirmed:
                receiver.reachable(peer.name, peer.role)
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
        return describe_unreached(
            [address for address in self._peers if not self._knows(address)], self._failures
        )

    def reload_keys(self) -> None:
        """Read the files of keys again, and use what they contain now; if one is unusable, change nothing."""
        read = {group: _keys_in(group, source) for group, source in self._keys.items()}
        if self._certificate is not None:
            self._certificate.reload([port.group for port in self.ports.all()])
        for known in self.groups.values():
            known.change_keys(read[known.group])
            known.renew_certificate()

    def transmit(self, datagram: bytes, to: SocketAddress) -> None:
        """Send a datagram; if that fails it is lost, and the links retransmit."""
        if self._sockets:
            try:
                self._sockets[0].sendto(datagram, to)
            except OSError as error:
                self.rejection_log.record(Reason.NOT_SENT, str(error))

    # Looking for peers

    async def _greet(self, address: Address) -> None:
        """Greet the process at a configured address, whenever no known peer is there."""
        pause = PAUSE_SECONDS_FIRST
        to: SocketAddress = ()
        while True:
            if not all(known.knows(to) for known in self.groups.values()):
                try:
                    to = await self._resolve(address)
                except (OSError, ValueError) as error:  # a host that is not found now may be found later
                    self._failures[address] = failure_of(error)
                else:
                    if is_here(to, self._sockets[0]):
                        self._failures[address] = ITSELF
                        return
                    self._peers[address] = to
                    for known in self.groups.values():
                        known.configured.add(to)
                        if not known.knows(to):
                            self.transmit(known.call(to), to)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _knows(self, address: Address) -> bool:
        """Whether a process at this configured address is known in any group that is in use."""
        in_use = [known for known in self.groups.values() if self.ports.find(known.me.group)]
        return any(known.knows(self._peers[address]) for known in in_use or self.groups.values())

    def _hears(self, known: PeerTable, name: str) -> bool:
        """Whether a peer counts as alive in a group; if the group is not in use, whether it answers."""
        port, peer = self.ports.find(known.me.group), known.peers.get(name)
        if port is not None:
            return port.receiver.hears(name)
        silence = asyncio.get_running_loop().time() - peer.heard_at if peer else _SILENCE_SECONDS_MAX
        return silence < _SILENCE_SECONDS_MAX

    async def _resolve(self, address: Address) -> SocketAddress:
        found = await asyncio.get_running_loop().getaddrinfo(
            *address, family=self._sockets[0].family, type=socket.SOCK_DGRAM
        )
        return found[0][4]

    async def _greet_all(self, multicast: Address) -> None:
        """Greet everyone at the multicast address; peers that know us do not reply."""
        pause = PAUSE_SECONDS_FIRST
        while True:
            for known in self.groups.values():
                self.transmit(known.call(None), multicast)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2 * PAUSE_SECONDS_MAX)

    async def _keep_up(self) -> None:
        """Greet silent peers, and discard bodies that stay incomplete."""
        loop = asyncio.get_running_loop()
        while True:
            for known in self.groups.values():
                for greeting, to in known.due(loop.time()):
                    self.transmit(greeting, to)
            self.reassembly.expire(loop.time())
            await asyncio.sleep(PAUSE_SECONDS_FIRST)

    # Received datagrams

    def _read(self, readable: socket.socket) -> None:
        """Read the datagrams that are ready, and pass their frames on, group by group."""
        now = asyncio.get_running_loop().time()
        received: FramesBySender = {}
        for _ in range(_READS_MAX):
            try:
                size, source = readable.recvfrom_into(self._buffer)
            except OSError:  # no more datagrams, or an earlier one could not be delivered
                break
            try:
                self._on_datagram(
                    self._buffer[:size], source, received, now, is_multicast=readable is not self._sockets[0]
                )
            except Rejected as error:
                self.rejection_log.record(error.reason, error.detail, address=str(source[0]))
                for address, expected_at in self._peers.items():
                    if expected_at == source:
                        self._failures[address] = failure_of(error)
        for (group, process, role), frames in received.items():
            self.ports.receive(group, process, frames, role)

    def _on_datagram(
        self,
        datagram: memoryview,
        source: SocketAddress,
        received: FramesBySender,
        now: float,
        *,
        is_multicast: bool,
    ) -> None:
        sealed = read_header(datagram)
        known = self.groups.get(int.from_bytes(sealed.session[:8]))
        if known is None:
            raise Rejected(Reason.UNKNOWN_GROUP)
        if sealed.session == known.own_session:
            if not is_multicast:  # our own multicasts return to us
                raise Rejected(Reason.REFLECTED)
        elif sealed.kind is DatagramKind.GREETING or sealed.kind is DatagramKind.CALL:
            outcome = known.on_greeting(sealed, source, now)
            if outcome.reply is not None:
                self.transmit(outcome.reply, source)
            if outcome.reached is not None:
                self._notify_reachable(known, outcome.reached)
        else:
            self._on_data(known, sealed, source, received, now)

    def _on_data(
        self,
        known: PeerTable,
        sealed: Sealed,
        source: SocketAddress,
        received: FramesBySender,
        now: float,
    ) -> None:
        peer = known.find(sealed)
        content = peer.open(sealed, known.own_session)
        peer.on_heard(sealed.counter, source, now)
        if not peer.confirmed:  # a peer that sends frames accepts ours
            peer.confirmed = True
            self._notify_reachable(known, peer)
        if sealed.kind is DatagramKind.RECEIVED:
            self.pacer.on_report(peer.flow, *unpack_report(content), now)
            return
        if sealed.kind is DatagramKind.FRAMES:
            incarnation, frames = unpack_frames(content)
        else:
            incarnation, fragments = unpack_fragments(content, known.me.sender)
            added = [self.reassembly.add(peer.session, incarnation, fragment, now) for fragment in fragments]
            frames = [frame for frame in added if frame is not None]
            self._report(known, peer, incarnation, fragments)
        if frames:
            sender = known.me.group, ProcessId(peer.name, incarnation), peer.role
            received.setdefault(sender, []).extend(frames)

    def _report(self, known: PeerTable, peer: KnownPeer, incarnation: int, fragments: list[Fragment]) -> None:
        """Report to the sender of large bodies which datagrams were received: regularly, and at the end."""
        parts = [
            fragment for fragment in fragments if UNPACED_BYTES_MAX < fragment.total > len(fragment.body)
        ]
        peer.unreported_bytes += sum(len(fragment.body) for fragment in parts)
        if peer.unreported_bytes >= peer.flow.report_bytes or any(
            self.reassembly.is_whole(peer.session, incarnation, fragment) for fragment in parts
        ):
            peer.unreported_bytes = 0
            report = known.sealer.seal(
                DatagramKind.RECEIVED, pack_report(peer.window), peer.session, peer.cipher
            )
            self.transmit(report, peer.address)

    def _notify_reachable(self, known: PeerTable, peer: KnownPeer) -> None:
        self._share_buffers()
        log_reached(known.name, peer.name, str(Address(*peer.address[:2])))
        port = self.ports.find(known.me.group)
        if port is not None:
            port.receiver.reachable(peer.name, peer.role)

    def _share_buffers(self) -> None:
        """Send large bodies to each peer as fast as its buffer allows if all send to it, and it is like ours.

        The system counts a datagram as up to twice its size.
        """
        buffer = self._sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        peers = [peer for known in self.groups.values() for peer in known.peers.values()]
        share = min(buffer // (2 * len(peers)), IN_FLIGHT_BYTES_MAX)
        for peer in peers:
            peer.flow.bytes_max = max(share, IN_FLIGHT_BYTES_MIN)


def _certificate_of(security: TlsSecurity | None, name: str, role: Role) -> "OwnCertificate | None":
    if security is None:
        return None
    from priocast.network.udp_certificates import OwnCertificate  # importing it takes 100 ms

    return OwnCertificate(security, name, role)


def _keys_in(group: str, source: KeySource) -> tuple[bytes, ...]:
    """The keys of a group: the first one seals, all of them open."""
    if not isinstance(source, bytes):
        from priocast.network.keys import read_group_keys  # only where it is used: it imports x509

        return read_group_keys(source)
    if len(source) != GROUP_KEY_BYTES:
        raise UnusableKey(f"the key of group {group!r} must have {GROUP_KEY_BYTES} bytes, not {len(source)}")
    return (source,)
