"""Two honest processes that exchange frames, and intruders."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar, cast

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.address import Address
from priocast.network.codec import FrameKind, FrameReader, FrameWriter
from priocast.network.interface import Network, Port
from priocast.network.rejections import RejectionLog
from priocast.network.tcp import TcpNetwork
from priocast.network.tcp_connection import Introduction, encode_introduction
from priocast.network.udp import UdpNetwork
from priocast.network.udp_handshake import PeerTable
from priocast.network.udp_peer import SocketAddress
from priocast.network.udp_security import DatagramKind, read_header
from support.networks import NetworkFactory, Recorder, free_address, started
from support.waiting import PATIENCE_SECONDS, wait_until

AnyNetwork = TypeVar("AnyNetwork", bound=Network)
HERE = "127.0.0.1"


class HonestPair(Generic[AnyNetwork]):
    """Processes a and b in the group `test`; intruders attack b, which must not be affected."""

    def __init__(self, a: AnyNetwork, b: AnyNetwork) -> None:
        self.a, self.b = a, b
        self.recorders = Recorder(), Recorder()
        self.ports: list[Port] = []
        self._count = 0

    async def start(self) -> None:
        for network, name, recorder in zip((self.a, self.b), "ab", self.recorders, strict=True):
            self.ports.append(network.open("test", ProcessId(name), recorder))
        await self.exchange()

    async def exchange(self) -> None:
        """The honest processes still exchange frames."""
        self._count += 1
        word = b"honest %d" % self._count
        for recorder, peer in zip(self.recorders, "ba", strict=True):
            await recorder.wait_reaches(peer)
        for port, recorder, peer in zip(self.ports, reversed(self.recorders), "ba", strict=True):
            while word not in recorder.bodies():
                port.send(peer, [Frame(0, 0, 0, 0, word)])
                port.flush()
                with suppress(TimeoutError):
                    await asyncio.wait_for(recorder.wait_body(word), 0.2)

    async def wait_rejected(self, *reasons: str) -> None:
        """Wait until each of these reasons was counted."""
        await wait_until(lambda: all(self.b.rejections[reason] for reason in reasons))

    async def assert_rejected(self, reason: str, count: int | None = None) -> None:
        """Only this reason was counted (this often, if given), and the honest processes still work."""
        await self.wait_rejected(reason)
        await self.assert_rejected_exactly({reason: self.b.rejections[reason] if count is None else count})

    async def assert_rejected_exactly(self, rejections: dict[str, int]) -> None:
        """Exactly these reasons were counted, this often each, and the honest processes still work."""
        await wait_until(lambda: self.b.rejections.total() >= sum(rejections.values()))
        await self.exchange()
        assert dict(self.b.rejections) == rejections
        for recorder in self.recorders:
            assert all(body.startswith(b"honest ") for body in recorder.bodies())
            assert {peer.name for peer, _ in recorder.received} <= {"a", "b"}
            assert not recorder.errors
        assert not self.a.rejections


@asynccontextmanager
async def honest_pair(factory: NetworkFactory) -> AsyncIterator[HonestPair[TcpNetwork]]:
    """Two honest processes over TCP."""
    networks = cast("TcpNetwork", factory.network("a", "b")), cast("TcpNetwork", factory.network("b", "a"))
    async with started(*networks):
        pair = HonestPair(*networks)
        await pair.start()
        yield pair


# Over datagrams


class HonestUdpPair(HonestPair[UdpNetwork]):
    """Records what a sent to b, for a replay from another socket."""

    def __init__(self, factory: NetworkFactory, a: UdpNetwork, b: UdpNetwork) -> None:
        super().__init__(a, b)
        self.factory = factory
        self.sent: list[bytes] = []
        self._transmit = a.transmit
        a.transmit = self._record  # type: ignore[method-assign]

    def _record(self, datagram: bytes, to: SocketAddress) -> None:
        self.sent.append(datagram)
        self._transmit(datagram, to)

    def recorded(self, kind: DatagramKind) -> list[bytes]:
        """The datagrams of one kind that belong to the group, as a sent them."""
        group = self.b.ports.all()[0].group_hash.to_bytes(8)
        return [each for each in self.sent if each[3] == kind and each[4:12] == group]

    def send_raw(self, *datagrams: bytes) -> None:
        """Send datagrams to b from an unknown address."""
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            for datagram in datagrams:
                sender.sendto(datagram, self.factory.address("b"))

    @property
    def known(self) -> PeerTable:
        """The peers that b knows in the group."""
        return self.b.groups[self.b.ports.all()[0].group_hash]


@asynccontextmanager
async def honest_udp_pair(factory: NetworkFactory) -> AsyncIterator[HonestUdpPair]:
    """Two honest processes over UDP."""
    a, b = factory.datagrams("a", "b"), factory.datagrams("b", "a")
    pair = HonestUdpPair(factory, a, b)
    async with started(a, b):
        await pair.start()
        yield pair


class Insider:
    """An intruder with the group's key: it completes the handshake, then sends anything."""

    def __init__(
        self, factory: NetworkFactory, name: str, key: bytes | None = None, incarnation: int = 1
    ) -> None:
        self.known = PeerTable("test", [key or factory.keys["test"]], name, incarnation, RejectionLog(name))
        self.known.due(0.0)
        self._target = factory.address("b")
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((HERE, 0))

    def __enter__(self) -> "Insider":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    async def introduce(self) -> None:
        """Greet b until both trust each other."""
        loop = asyncio.get_running_loop()
        self._socket.sendto(self.known.call(self._target), self._target)
        while not ("b" in self.known.peers and self.known.peers["b"].confirmed):
            answer = await asyncio.wait_for(loop.sock_recv(self._socket, 65_536), PATIENCE_SECONDS)
            sealed = read_header(memoryview(answer))
            if sealed.kind is DatagramKind.GREETING:
                reply = self.known.on_greeting(sealed, self._target, 0.0).reply
                if reply is not None:
                    self._socket.sendto(reply, self._target)

    def say(self, kind: DatagramKind, *contents: bytes) -> None:
        """Seal and send any content to b."""
        peer = self.known.peers.get("b")
        for content in contents:
            datagram = self.known.sealer.seal(kind, content, peer.session if peer else bytes(32))
            self._socket.sendto(datagram, self._target)


# Over connections


def hello(name: str, address: Address | None = None) -> bytes:
    """Encode an introduction."""
    host, port = address or Address("", 0)
    return FrameWriter("", ProcessId(name, 0)).frame(
        FrameKind.HELLO, encode_introduction(Introduction(name, host, port, b"intruder"))
    )


def data(group: str, sender: str, body: bytes = b"evil") -> bytes:
    """Encode a frame for a group."""
    return b"".join(FrameWriter(group, ProcessId(sender, 1)).data([Frame(0, 0, 0, 0, body)]))


async def call(address: Address, *words: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Connect, send something, and return the reply."""
    answer = b""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection(*address, ssl=context)
        with suppress(OSError):
            for word in words:
                writer.write(word)
                await writer.drain()
            answer = await asyncio.wait_for(reader.read(-1), PATIENCE_SECONDS)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return answer


class Impostor:
    """An intruder that listens as well, so that it is dialled back and admitted; then it sends anything."""

    def __init__(self, name: str, writer: asyncio.StreamWriter) -> None:
        self.name = name
        self._writer = writer

    async def say(self, *words: bytes) -> None:
        """Send bytes over the connection that it dialled."""
        for word in words:
            self._writer.write(word)
        with suppress(OSError):
            await self._writer.drain()


@asynccontextmanager
async def impostor(
    name: str, target: Address, contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None
) -> AsyncIterator[Impostor]:
    """Have an intruder admitted under this name."""
    accepting, dialling = contexts or (None, None)
    address, answered = free_address(), []
    welcome = hello(name, address)[64:]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered.append(writer)
        frames = FrameReader()
        with suppress(OSError):
            word = await reader.read(2000)
            frames.free()[: len(word)] = word
            if frames.read(len(word)):
                writer.write(FrameWriter("", ProcessId(name, 0)).frame(FrameKind.WELCOME, welcome))
                await reader.read(-1)

    server = await asyncio.start_server(serve, *address, ssl=accepting)
    reader, writer = await asyncio.open_connection(*target, ssl=dialling)
    try:
        writer.write(hello(name, address))
        assert await asyncio.wait_for(reader.read(2000), PATIENCE_SECONDS)
        await wait_until(lambda: answered)
        yield Impostor(name, writer)
    finally:
        server.close()
        for each in (writer, *answered):
            each.transport.abort()
            with suppress(OSError):
                await each.wait_closed()
