"""One TCP connection: an introduction at its beginning, then frames, and one way to be turned away.

dialler                        listener
  │ ── HELLO, who I am ──────────▶ │   checks the header, then the introduction (and the certificate)
  │ ◀─ WELCOME, who I am ───────── │   or REFUSED, why
  │ ── DATA … ───────────────────▶ │   once the listener has dialled back
"""

import asyncio
import socket
from typing import Annotated, Protocol, cast

import msgspec

from priocast.core.errors import InvalidInput, Rejected
from priocast.core.identity import NAME_LENGTH_MAX, ProcessId, check_name
from priocast.network.address import Address
from priocast.network.codec import Arrival, FrameReader, FrameWriter, Kind, hash_of
from priocast.network.rejections import Reason, Rejections
from priocast.network.security import peer_groups

# Bytes that the kernel holds can no longer be overtaken: a shallow buffer keeps urgent frames close.
_SEND_BUFFER_BYTES = 256 * 1024
# A machine that vanished says nothing: its connections are given up after this.
_SILENCE_SECONDS = 20
_REFUSAL_CHARACTERS_MAX = 200

encode_introduction = msgspec.msgpack.Encoder().encode


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """Who a process is, and where it can be dialled; without a host, where the connection comes from.

    The token is drawn anew for each network, and tells a process that dialled itself from a namesake.
    """

    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)]
    host: Annotated[str, msgspec.Meta(max_length=255)]
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    token: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]


_decode_introduction = msgspec.msgpack.Decoder(Introduction).decode


class Host(Protocol):
    """What a connection asks of the process that it belongs to."""

    introduction: Introduction
    gate: Rejections
    connections: "dict[Connection, None]"

    def on_hello(self, connection: "Accepted", peer: Introduction) -> None: ...
    def on_data(self, connection: "Accepted", arrival: Arrival) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """What both ends share. `groups` holds the hashes of those that the peer may be in, None for all."""

    transport: asyncio.Transport

    def __init__(self, host: Host) -> None:
        self.host = host
        self.made = False
        self.turned_away = False
        self.name = ""
        self.groups: frozenset[int] | None = None
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._reader = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's have the methods, not the base
        self.made = True
        self.host.connections[self] = None
        _tune(transport.get_extra_info("socket"))
        # With a limit of 0, uvloop writes at once instead of at the end of a round, after our application.
        self.transport.set_write_buffer_limits(0)

    def connection_lost(self, exc: Exception | None) -> None:
        self.host.connections.pop(self, None)
        if not self.lost.done():
            self.lost.set_result(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.free()

    def buffer_updated(self, nbytes: int) -> None:
        if self.transport.is_closing():
            return  # TLS may still hand over what it had decrypted
        try:
            self.take(self._reader.read(nbytes))
        except Rejected as error:
            self.turn_away(error)

    def take(self, arrivals: list[Arrival]) -> None:
        raise AssertionError("each end knows what to do with its frames")

    def turn_away(self, error: Rejected) -> None:
        """Count it and hang up; whoever it was, the process goes on."""
        self.turned_away = True
        self.host.gate.note(error.reason, error.detail, peer=self.name, address=self.remote)
        self.transport.close()

    def say(self, kind: Kind, body: bytes) -> None:
        """Send a frame of the handshake."""
        self.transport.write(FrameWriter("", ProcessId(self.host.introduction.name, 0)).frame(kind, body))

    def introduced(self, arrival: Arrival) -> Introduction:
        """Who the peer says it is; its certificate, where there is one, must say the same."""
        try:
            peer = _decode_introduction(arrival.frames[0].body)
            self.name = check_name(peer.name, "member")
        except (msgspec.MsgspecError, InvalidInput) as error:
            raise Rejected(Reason.MALFORMED, f"an introduction cannot be read: {error}") from error
        if self.transport.get_extra_info("ssl_object") is not None:
            certificate = self.transport.get_extra_info("peercert") or {}
            self.groups = frozenset(map(hash_of, peer_groups(certificate, peer.name)))
        self._reader.expect(peer.name)
        return peer

    def may_be_in(self, group_hash: int) -> bool:
        """Whether the peer's certificate, where there is one, is for this group."""
        return self.groups is None or group_hash in self.groups

    @property
    def remote(self) -> str:
        """Where the other end is."""
        return str((self.transport.get_extra_info("peername") or ("",))[0])


class Accepted(Connection):
    """A connection that a peer dialled: frames come in here, once it is admitted."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.address: Address | None = None
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, arrivals: list[Arrival]) -> None:
        came_introduced = bool(self.name)
        for arrival in arrivals:
            if arrival.kind is Kind.HELLO:
                if came_introduced or len(arrival.frames) > 1:
                    raise Rejected(Reason.INTRODUCED_TWICE)
                self._on_hello(self.introduced(arrival))
            elif arrival.kind is not Kind.DATA:
                raise Rejected(Reason.OUT_OF_PLACE, arrival.kind.name)
            elif not self.name:
                raise Rejected(Reason.NOT_INTRODUCED)
            elif not (came_introduced and self.admitted.done()):
                raise Rejected(Reason.TOO_EARLY)
            else:
                self.host.on_data(self, arrival)

    def _on_hello(self, peer: Introduction) -> None:
        if peer.port:
            self.address = Address(peer.host or self.remote, peer.port)
        self.hold()
        self.host.on_hello(self, peer)

    def welcome(self) -> None:
        """Tell the peer that it may send; nothing is read before it is admitted."""
        self.say(Kind.WELCOME, encode_introduction(self.host.introduction))

    def hold(self) -> None:
        """Read nothing while the peer cannot be reached."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def admit(self) -> None:
        """The peer can be reached, for the first time or again: its frames may come."""
        if not self.admitted.done():
            self.admitted.set_result(None)
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def turn_away(self, error: Rejected) -> None:
        if not self.transport.is_closing():
            self.say(Kind.REFUSED, str(error)[:_REFUSAL_CHARACTERS_MAX].encode())
        super().turn_away(error)


class Dialled(Connection):
    """A connection that we dialled: frames go out here, once it is welcomed."""

    def __init__(self, host: Host, address: Address, *, learnt: bool) -> None:
        super().__init__(host)
        self.address = address
        self.learnt = learnt
        self.welcomed: asyncio.Future[Introduction] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.say(Kind.HELLO, encode_introduction(self.host.introduction))

    def take(self, arrivals: list[Arrival]) -> None:
        for arrival in arrivals:
            if arrival.kind is Kind.REFUSED:
                words = arrival.frames[0].body[:_REFUSAL_CHARACTERS_MAX].decode(errors="replace")
                raise Rejected(Reason.REFUSED_US, words)
            if arrival.kind is not Kind.WELCOME or len(arrival.frames) > 1 or self.welcomed.done():
                raise Rejected(Reason.OUT_OF_PLACE, arrival.kind.name)
            self.welcomed.set_result(self.introduced(arrival))


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (  # where the system has them
        ("TCP_KEEPIDLE", _SILENCE_SECONDS // 2),
        ("TCP_KEEPINTVL", _SILENCE_SECONDS // 4),
        ("TCP_KEEPCNT", 2),
        ("TCP_USER_TIMEOUT", 1000 * _SILENCE_SECONDS),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
