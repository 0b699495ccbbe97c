"""One TCP connection: an introduction at the beginning, then frames; one way to reject the peer.

dialler                        listener
  │ ── HELLO, introduction ──────▶ │   checks the header, then the introduction (and the certificate)
  │ ◀─ WELCOME, introduction ───── │   or REJECTED with the reason
  │ ── DATA … ───────────────────▶ │   once the listener has dialled back
"""

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from typing import Annotated, Protocol, cast

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, InvalidInput, Rejected
from priocast.core.identity import NAME_LENGTH_MAX, ProcessId, check_name
from priocast.core.role import Role
from priocast.network.address import Address
from priocast.network.codec import FrameKind, FrameWriter, ReceivedFrames
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.security import PeerIdentity, identity_of
from priocast.network.tcp_reader import OnData, TcpReader

# Bytes in the kernel can no longer be overtaken: a small send buffer keeps the delay of urgent frames short.
_SEND_BUFFER_BYTES = 256 * 1024
# A host that vanished closes no connections: they are dropped after this time without a reply.
_SILENCE_SECONDS = 20
_REJECTION_CHARACTERS_MAX = 200
# How long a connection may take to close, and stay unread because its peer is not reached. On asyncio's own
# loop a connection that is not read does not notice that the other end is gone, and would be kept forever.
CLOSE_SECONDS = 2.0
PAUSED_SECONDS = 10.0

encode_introduction = msgspec.msgpack.Encoder().encode


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """A process's name and address; an empty host means the address that the connection comes from.

    The token is random for each network. It distinguishes a process that dialled itself from another process
    with the same name. The role is the highest that the process has in any group.
    """

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
    host: Annotated[str, msgspec.Meta(max_length=255)]
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    token: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    role: Role = Role.MEMBER


_decode_introduction = msgspec.msgpack.Decoder(Introduction).decode


class ConnectionOwner(Protocol):
    """What a connection needs from its network."""

    introduction: Introduction
    rejection_log: RejectionLog
    connections: "dict[Connection, None]"

    def on_hello(self, connection: "AcceptedConnection", peer: Introduction) -> None: ...


class _ClosedTransport(asyncio.Transport):
    """What a lost connection has instead of its transport, which refers to the connection in turn.

    A pair that refers to each other is freed only by the garbage collector: with TLS that is 250 kB of
    buffers for each stranger that was rejected.
    """

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """It is closed."""

    def abort(self) -> None:
        """It is closed."""


_CLOSED = _ClosedTransport()


class Connection(asyncio.BufferedProtocol, ABC):
    """What both ends have in common. `identity` is who the peer is, once it has introduced itself.

    `certificate` is the peer's, with TLS, as DER.
    """

    transport: asyncio.Transport

    def __init__(self, owner: ConnectionOwner) -> None:
        self.owner = owner
        self.made = False
        self.rejection: Rejected | None = None
        self.name = ""
        self.identity = PeerIdentity("", Role.OBSERVER, ())
        self.certificate: bytes | None = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.reader = TcpReader(owner.rejection_log)
        # The event loop asks for these two once, and then calls what it got.
        self.get_buffer = self.reader.get_buffer  # type: ignore[method-assign]
        self.buffer_updated = self.reader.buffer_updated  # type: ignore[method-assign]
        self._abort_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's have the methods, not the base class
        self.made = True
        self.reader.open(self.on_frames, self.reject)
        self.owner.connections[self] = None
        _tune(transport.get_extra_info("socket"))
        # With a limit of 0, uvloop writes at once instead of at the end of the loop iteration.
        self.transport.set_write_buffer_limits(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.connections.pop(self, None)
        self.abort_after(None)
        if not self.lost.done():
            self.lost.set_result(exc)
        self.reader.close()
        self.transport = _CLOSED

    @abstractmethod
    def on_frames(self, batches: list[ReceivedFrames]) -> None:
        """Frames arrived that are not data; each end handles those that it expects."""

    def reject(self, error: Rejected) -> None:
        """Count the reason and close the connection."""
        # A traceback refers to this connection, which refers to the error.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        self.rejection = error
        self.owner.rejection_log.record(error.reason, error.detail, peer=self.name, address=self.remote)
        self.close()

    def close(self) -> None:
        """Close the connection when its buffer is sent, or after a while."""
        self.reader.is_closing = True
        self.transport.close()
        self.abort_after(CLOSE_SECONDS)

    def abort_after(self, seconds: float | None) -> None:
        """End the connection after this time, if it lasts that long; None: not any more."""
        if self._abort_timer is not None:
            self._abort_timer.cancel()
            self._abort_timer = None
        if seconds is not None and not self.lost.done():
            loop = asyncio.get_running_loop()
            self._abort_timer = loop.call_later(seconds, self.transport.abort)

    def send_handshake(self, kind: FrameKind, body: bytes) -> None:
        """Send a frame of the handshake."""
        self.transport.write(FrameWriter("", ProcessId(self.owner.introduction.name, 0)).frame(kind, body))

    def read_introduction(self, received: ReceivedFrames) -> Introduction:
        """The peer's introduction; with TLS, its certificate must contain the same name."""
        tls = self.transport.get_extra_info("ssl_object")
        try:
            peer = decode(_decode_introduction, received.frames[0].body, self.remote, "an introduction")
            self.name = check_name(peer.name, "member")
        except (ForeignFrame, InvalidInput) as error:
            raise Rejected(Reason.MALFORMED, str(error)) from error
        certificate = None
        if tls is not None:
            certificate = self.transport.get_extra_info("peercert") or {}
            self.certificate = tls.getpeercert(binary_form=True)
        self.identity = identity_of(certificate, peer.name, peer.role)
        self.reader.expect(peer.name)
        return peer

    @property
    def remote(self) -> str:
        """The host of the other end."""
        return str((self.transport.get_extra_info("peername") or ("",))[0])


class AcceptedConnection(Connection):
    """A connection that a peer dialled: frames are received here, once it is admitted.

    `named` is the address at which the peer says that it listens; port 0: at none. `token` is the peer's.
    """

    def __init__(self, owner: ConnectionOwner) -> None:
        super().__init__(owner)
        self.named = Address("", 0)
        self.token = b""
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_frames(self, batches: list[ReceivedFrames]) -> None:
        was_introduced = bool(self.name)
        for received in batches:
            if received.kind is FrameKind.HELLO:
                if was_introduced or len(received.frames) > 1:
                    raise Rejected(Reason.INTRODUCED_TWICE)
                self._on_hello(self.read_introduction(received))
            elif received.kind is not FrameKind.DATA:
                raise Rejected(Reason.UNEXPECTED, received.kind.name)
            elif not self.name:
                raise Rejected(Reason.NOT_INTRODUCED)
            else:
                raise Rejected(Reason.TOO_EARLY)

    def _on_hello(self, peer: Introduction) -> None:
        self.named = Address(peer.host or self.remote, peer.port)
        self.token = peer.token
        self.pause()
        self.owner.on_hello(self, peer)

    def welcome(self) -> None:
        """Accept the introduction; nothing is read before the connection is admitted."""
        self.send_handshake(FrameKind.WELCOME, encode_introduction(self.owner.introduction))

    def pause(self) -> None:
        """Stop reading while there is no connection to the peer."""
        self.reader.is_paused = True
        if not self.transport.is_closing():
            self.transport.pause_reading()
            self.abort_after(PAUSED_SECONDS)

    def admit(self, on_data: OnData) -> None:
        """There is a connection to the peer, so start or resume reading."""
        self.reader.accept_data(on_data, self.identity)
        self.reader.is_paused = False
        if not self.admitted.done():
            self.admitted.set_result(None)
        if not self.transport.is_closing():
            self.abort_after(None)
            self.transport.resume_reading()

    def reject(self, error: Rejected) -> None:
        if not self.transport.is_closing():
            self.send_handshake(FrameKind.REJECTED, str(error)[:_REJECTION_CHARACTERS_MAX].encode())
        super().reject(error)


class DialledConnection(Connection):
    """A connection that we dialled: frames are sent here, once the peer has welcomed us."""

    def __init__(self, owner: ConnectionOwner, address: Address, *, learnt: bool) -> None:
        super().__init__(owner)
        self.address = address
        self.learnt = learnt
        self.welcomed: asyncio.Future[Introduction] = asyncio.get_running_loop().create_future()
        self.dialled_at = time.time()

    @property
    def token(self) -> bytes:
        """The token of the peer, which has welcomed us."""
        return self.welcomed.result().token

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.dialled_at))
        return f"{self.name} at {self.address}, connected since {since} UTC"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.send_handshake(FrameKind.HELLO, encode_introduction(self.owner.introduction))

    def on_frames(self, batches: list[ReceivedFrames]) -> None:
        for received in batches:
            if received.kind is FrameKind.REJECTED:
                text = received.frames[0].body[:_REJECTION_CHARACTERS_MAX].decode(errors="replace")
                raise Rejected(Reason.REJECTED_BY_PEER, text)
            if received.kind is not FrameKind.WELCOME or len(received.frames) > 1 or self.welcomed.done():
                raise Rejected(Reason.UNEXPECTED, received.kind.name)
            self.welcomed.set_result(self.read_introduction(received))


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (  # where the operating system has them
        ("TCP_KEEPIDLE", _SILENCE_SECONDS // 2),
        ("TCP_KEEPINTVL", _SILENCE_SECONDS // 4),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", 1000 * _SILENCE_SECONDS),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
