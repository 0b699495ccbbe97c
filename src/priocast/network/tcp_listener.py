"""Accepts connections. A process is a stranger until it has introduced itself and was dialled back.

Strangers are limited in number and time: when there are too many, the oldest is rejected, so that idle
connections cannot keep others out. A stranger gets one kilobyte of buffer, and with TLS what a handshake
needs. One host may have half of the strangers, and a part of all connections.
"""

import asyncio
import socket
import ssl
from collections import Counter
from functools import partial

from priocast.core.errors import InvalidAddress, Rejected
from priocast.network.address import Address
from priocast.network.rejections import Reason
from priocast.network.security import reason_of
from priocast.network.tcp_connection import CLOSE_SECONDS, AcceptedConnection, ConnectionOwner
from priocast.network.tcp_dialler import HANDSHAKE_SECONDS

STRANGERS_MAX = 256
ACCEPTED_OF_HOST_MAX = 640
_BACKLOG = 128
_DESCRIPTORS_PAUSE_SECONDS = 0.2


class Listener:
    """The listening socket, and the connections that are not admitted yet.

    `context` is that of connections accepted from now on.
    """

    def __init__(self, owner: ConnectionOwner, context: ssl.SSLContext | None) -> None:
        self._owner = owner
        self.context = context
        self._strangers: dict[asyncio.Task[None], str] = {}
        self._accepted_of: Counter[str] = Counter()
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None

    async def start(self, listen: Address) -> Address:
        """Listen; return the address, with the actual port if port 0 was given."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(*listen, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            self._socket = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        except OSError as error:
            raise InvalidAddress(
                f"cannot listen on {listen}: {error.strerror or error}; choose a free port of this host"
            ) from error
        self._socket.setblocking(False)
        self._accepting = loop.create_task(self._accept(self._socket))
        return Address(listen.host, self._socket.getsockname()[1])

    async def close(self) -> None:
        """Stop accepting, and close the connections that are not admitted yet."""
        if self._accepting is None or self._socket is None:
            return
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self._socket.close()
        strangers = list(self._strangers)
        for stranger in strangers:
            stranger.cancel()
        await asyncio.gather(*strangers, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, (host, *_) = await loop.sock_accept(listening)
            except OSError as error:
                self._owner.rejection_log.record(Reason.NO_DESCRIPTORS, str(error))
                await asyncio.sleep(_DESCRIPTORS_PAUSE_SECONDS)
                continue
            if self._accepted_of[host] >= ACCEPTED_OF_HOST_MAX:
                self._owner.rejection_log.record(Reason.TOO_MANY_CONNECTIONS, address=host)
                accepted.close()
                continue
            self._make_room(host)
            self._start_meeting(accepted, host)
            await asyncio.sleep(0)  # a task that is cancelled before it starts would leave its socket open

    def _start_meeting(self, accepted: socket.socket, host: str) -> None:
        connection = AcceptedConnection(self._owner)
        stranger = asyncio.get_running_loop().create_task(self._meet(connection, accepted))
        self._strangers[stranger] = host
        self._accepted_of[host] += 1
        stranger.add_done_callback(partial(self._on_met, connection, host))

    def _make_room(self, host: str) -> None:
        """Reject the oldest stranger if there are too many: of this host, or in all."""
        strangers = self._strangers
        of_host = [stranger for stranger, its_host in strangers.items() if its_host == host]
        if len(of_host) >= STRANGERS_MAX // 2 and len(of_host) < len(strangers):
            oldest = of_host[0]
        elif len(strangers) >= STRANGERS_MAX:
            oldest = next(iter(strangers))
        else:
            return
        self._owner.rejection_log.record(Reason.TOO_MANY_STRANGERS, address=strangers.pop(oldest))
        oldest.cancel()

    def _on_met(self, connection: AcceptedConnection, host: str, stranger: asyncio.Task[None]) -> None:
        """A stranger is admitted or rejected; its connection counts until it is lost."""
        self._strangers.pop(stranger, None)
        if connection.made and not connection.lost.done():
            connection.lost.add_done_callback(lambda _: self._release(host))
        else:
            self._release(host)

    def _release(self, host: str) -> None:
        self._accepted_of[host] -= 1
        if not self._accepted_of[host]:
            del self._accepted_of[host]

    async def _meet(self, connection: AcceptedConnection, accepted: socket.socket) -> None:
        """Wait until a stranger is admitted or its time is up."""
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._connect(connection, accepted)
                await asyncio.wait(
                    (connection.admitted, connection.lost), return_when=asyncio.FIRST_COMPLETED
                )
        except ssl.SSLError as error:
            error.__traceback__ = None  # it refers to the connection, which refers to the error
            self._owner.rejection_log.record(reason_of(error), str(error))
            return
        except TimeoutError:
            reason = Reason.NOT_DIALLED_BACK if connection.name else Reason.TOO_SLOW
            if connection.made:
                connection.reject(
                    Rejected(reason, f"it names {connection.named}" if connection.named.port else "")
                )
            else:
                self._owner.rejection_log.record(reason)
            return
        except OSError as error:
            error.__traceback__ = None
            self._owner.rejection_log.record(Reason.HUNG_UP)
            return
        except BaseException:
            if connection.made:
                connection.transport.abort()
            raise
        if not connection.name and connection.rejection is None:
            self._owner.rejection_log.record(Reason.HUNG_UP)

    async def _connect(self, connection: AcceptedConnection, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        if self.context is None:
            await loop.connect_accepted_socket(lambda: connection, accepted)
        else:
            await loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self.context,
                ssl_handshake_timeout=2 * HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )
