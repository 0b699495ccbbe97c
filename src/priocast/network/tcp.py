"""Frames over TCP.

Every member listens, and dials every peer; it sends over the connections that it dialled and receives over
those that it accepted, so no two members ever have to agree on which of two connections to keep.

    dialler                      listener
      │ ── HELLO, who I am ────────▶ │   checks the header, then the introduction
      │ ◀─ WELCOME, who I am ─────── │   or REFUSED, why
      │ ── DATA … ─────────────────▶ │
      │ ── GOODBYE ────────────────▶ │   leaves on purpose

A connection that breaks is dialled again, with growing pauses; the links send again what it had swallowed.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import msgspec

from priocast.core.errors import ForeignFrame, InvalidAddress, JoinRefused, PeerFault, PeerRestarted
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import RELIABLE_NETWORK, Frame
from priocast.network.address import Address
from priocast.network.codec import FrameReader, FrameWriter, Kind
from priocast.network.interface import Introduction, Receiver

_REDIAL_SECONDS_FIRST = 0.02
_REDIAL_SECONDS_MAX = 1.0
_HANDSHAKE_SECONDS = 5.0
# Bytes that the kernel holds can no longer be overtaken: a shallow buffer keeps urgent frames close.
_SEND_BUFFER_BYTES = 256 * 1024

_encode = msgspec.msgpack.Encoder().encode
_decode_introduction = msgspec.msgpack.Decoder(Introduction).decode


class _Connection(asyncio.BufferedProtocol):
    """The part that both ends of a connection share: reading frames, and ending in one way."""

    transport: asyncio.Transport

    def __init__(self, network: "TcpNetwork") -> None:
        self.network = network
        self.reader = FrameReader()
        self.peer: ProcessId | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's have the methods, not the base
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        # With a limit of 0, uvloop writes at once instead of at the end of a round, after our application.
        self.transport.set_write_buffer_limits(0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.free()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self.frames(self.reader.read(nbytes))
        except PeerFault as error:
            self.fault(error)

    def frames(self, frames: list[tuple[Kind, Frame]]) -> None:
        raise AssertionError("each end knows what to do with its frames")

    def fault(self, error: PeerFault) -> None:
        raise AssertionError("each end knows what to do with a fault")

    def introduction_in(self, body: bytes) -> Introduction:
        try:
            introduction = _decode_introduction(body)
        except msgspec.MsgspecError as error:
            raise ForeignFrame(f"an introduction cannot be read: {error}") from error
        self.reader.expect(introduction.group, introduction.process)
        return introduction


class _Accepted(_Connection):
    """A connection that a peer dialled: frames come in here."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.network.accepted.append(self)
        self.deadline = asyncio.get_running_loop().call_later(_HANDSHAKE_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self.deadline.cancel()
        self.network.accepted.remove(self)

    def frames(self, frames: list[tuple[Kind, Frame]]) -> None:
        if self.peer is None and frames:
            kind, frame = frames.pop(0)
            if kind is not Kind.HELLO:
                raise ForeignFrame("a peer did not introduce itself first")
            self._welcome(self.introduction_in(frame.body))
        data = [frame for kind, frame in frames if kind is Kind.DATA]
        if data:
            assert self.peer is not None
            self.network.receiver.frames_received(self.peer, data)
        if frames and frames[-1][0] is Kind.GOODBYE and self.peer is not None:
            self.network.departed(self.peer)

    def _welcome(self, introduction: Introduction) -> None:
        network = self.network
        reason = network.introduction.refusal_of(introduction)
        if reason:
            raise JoinRefused(reason)
        network.receiver.introduced(introduction.process)
        self.deadline.cancel()
        self.peer = introduction.process
        self.transport.write(network.writer.frame(Kind.WELCOME, _encode(network.introduction)))
        if not network.opened:
            self.transport.pause_reading()

    def fault(self, error: PeerFault) -> None:
        """Tell the peer why, count it, and hang up; whoever it was, the group goes on."""
        self.network.refused.append(str(error))
        self.transport.write(self.network.writer.frame(Kind.REFUSED, str(error).encode()))
        self.transport.close()


class _Dialled(_Connection):
    """A connection that we dialled: frames go out here."""

    def __init__(self, network: "TcpNetwork", address: Address) -> None:
        super().__init__(network)
        self.address = address
        loop = asyncio.get_running_loop()
        self.welcomed: asyncio.Future[ProcessId] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.write(self.network.writer.frame(Kind.HELLO, _encode(self.network.introduction)))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if not self.welcomed.done():
            self.welcomed.set_exception(ConnectionResetError(f"{self.address} hung up"))

    def frames(self, frames: list[tuple[Kind, Frame]]) -> None:
        for kind, frame in frames:
            if kind is Kind.REFUSED:
                raise JoinRefused(f"{self.address} refused us: {frame.body.decode(errors='replace')}")
            if kind is not Kind.WELCOME or self.welcomed.done():
                raise ForeignFrame(f"{self.address} answers with a frame that does not belong here")
            introduction = self.introduction_in(frame.body)
            reason = self.network.introduction.refusal_of(introduction)
            if reason:
                raise JoinRefused(reason)
            self.peer = introduction.process
            self.welcomed.set_result(introduction.process)

    def fault(self, error: PeerFault) -> None:
        if not self.welcomed.done():
            self.welcomed.set_exception(error)
        self.transport.close()


class TcpNetwork:
    """One member's connections."""

    link_options = RELIABLE_NETWORK
    receiver: Receiver

    def __init__(self, introduction: Introduction, listen: Address, peers: list[Address]) -> None:
        self.introduction = introduction
        self.writer = FrameWriter(introduction.group, introduction.process)
        self.opened = False
        self.accepted: list[_Accepted] = []
        self.refused: list[str] = []
        self._listen = listen
        self._addresses = peers
        self._dialled: dict[ProcessId, _Dialled] = {}
        self._left: set[ProcessId] = set()
        self._dialling: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None

    async def start(self, receiver: Receiver) -> None:
        self.receiver = receiver
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Accepted(self), *self._listen)
        except OSError as error:
            raise InvalidAddress(
                f"cannot listen on {self._listen}: {error.strerror or error}; choose a free port here"
            ) from error
        self._dialling = [loop.create_task(self._dial(address)) for address in self._addresses]

    def open(self) -> None:
        self.opened = True
        for connection in self.accepted:
            if connection.peer is not None:
                connection.transport.resume_reading()

    def send(self, peer: ProcessId, frames: list[Frame]) -> None:
        connection = self._dialled.get(peer)
        if connection is None or connection.transport.is_closing():
            return
        pieces: list[bytes] = []
        for frame in frames:
            pieces.extend(self.writer.data(frame))
        connection.transport.writelines(pieces)

    async def close(self) -> None:
        for task in self._dialling:
            task.cancel()
        goodbye = self.writer.frame(Kind.GOODBYE)
        for connection in self._dialled.values():
            if not connection.transport.is_closing():
                connection.transport.write(goodbye)
                connection.transport.close()
        for accepted in list(self.accepted):
            accepted.transport.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await asyncio.gather(*self._dialling, return_exceptions=True)

    def departed(self, peer: ProcessId) -> None:
        self._left.add(peer)
        self.receiver.departed(peer)

    async def _dial(self, address: Address) -> None:
        """Keep a connection to a peer for as long as both are in the group."""
        pause = _REDIAL_SECONDS_FIRST
        while True:
            try:
                connection = await self._connect(address)
            except (OSError, TimeoutError):
                await asyncio.sleep(pause)
                pause = min(2 * pause, _REDIAL_SECONDS_MAX)
                continue
            except PeerFault as error:
                self.receiver.failed(error)
                return
            pause = _REDIAL_SECONDS_FIRST
            await connection.lost
            if connection.peer in self._left:
                return

    async def _connect(self, address: Address) -> _Dialled:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            make: Callable[[], _Dialled] = lambda: _Dialled(self, address)  # noqa: E731 - typed for mypy
            _, connection = await loop.create_connection(make, *address)
            try:
                peer = await connection.welcomed
            except BaseException:
                with suppress(Exception):
                    connection.welcomed.exception()
                connection.transport.abort()
                raise
        self._admit(peer, connection, address)
        return connection

    def _admit(self, peer: ProcessId, connection: _Dialled, address: Address) -> None:
        if peer.name == self.introduction.process.name:
            raise PeerRestarted(f"{address} is named {peer.name}, as we are: give each member its own name")
        known = self._dialled.get(peer)
        if known is not None and known.address != address:
            raise JoinRefused(f"{address} and {known.address} lead to the same member, {peer.name}")
        self.receiver.introduced(peer)
        self._dialled[peer] = connection
        self.receiver.connected(peer)
