"""Frames over TCP: in the clear on a trusted network, or with TLS.

Every process listens and dials every peer. It sends over the connections that it dialled and receives over
those that it accepted, so two processes never have to agree on which of two connections to keep. A process
that is not among the configured peers is dialled back at the address that it advertises.

A connection that breaks is dialled again, with exponential backoff; the links retransmit what was lost with
it. Whatever a peer sends, at worst its own connection is closed.
"""

import asyncio
import secrets
import ssl
from collections import Counter

from priocast.core.errors import Rejected, UnusableKey
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import RELIABLE_NETWORK, Frame
from priocast.network.address import Address
from priocast.network.codec import FrameWriter, ReceivedFrames
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.rejections import Reason, RejectionLog, log_reached
from priocast.network.security import TlsSecurity
from priocast.network.tcp_connection import AcceptedConnection, Connection, DialledConnection, Introduction
from priocast.network.tcp_dialler import CLOSE_SECONDS, Diallers
from priocast.network.tcp_listener import Listener

ACCEPTED_MAX = 1024
_ACCEPTED_OF_ONE_MAX = 4  # a restarted process, and connections of earlier incarnations not yet timed out
# How much is buffered for a peer that does not read, in addition to what its links keep.
_UNSENT_BYTES_MAX = 8 * 1024 * 1024
_ANY_HOST = {"", "0.0.0.0", "::"}  # noqa: S104 - to compare with, not to listen on


class TcpPort(OpenPort):
    """One group's access to the network."""

    def __init__(self, network: "TcpNetwork", group: str, process: ProcessId, receiver: Receiver) -> None:
        super().__init__(group, process, receiver)
        self._network = network
        self._writer = FrameWriter(group, process)

    def send(self, peer: str, frames: list[Frame]) -> None:
        connection = self._network.dialled.get(peer)
        if (
            connection is None
            or connection.transport.is_closing()
            or (connection.groups is not None and self.group_hash not in connection.groups)
        ):
            return
        if connection.transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
            self._network.rejection_log.record(Reason.NOT_READING, peer=peer)
            return
        connection.transport.writelines(self._writer.data(frames))

    def flush(self) -> None:
        """Nothing is delayed."""

    def close(self) -> None:
        self._network.ports.remove(self)


class TcpNetwork:
    """The connections of one process.

    `advertise` is the address at which others reach this process, if it is not `listen`.
    """

    link_options = RELIABLE_NETWORK

    def __init__(
        self,
        name: str,
        listen: Address,
        peers: list[Address],
        *,
        advertise: Address | None = None,
        security: TlsSecurity | None = None,
    ) -> None:
        self.rejection_log = RejectionLog(name)
        self.ports: Ports[TcpPort] = Ports(name, self.rejection_log)
        self.rejections: Counter[str] = self.rejection_log.counts
        self.connections: dict[Connection, None] = {}
        self.dialled: dict[str, DialledConnection] = {}
        self.introduction = _introduce(name, advertise or listen)
        self._listen = listen
        self._advertise = advertise
        self._peers = peers
        accepting: ssl.SSLContext | None = None
        self.dialling: ssl.SSLContext | None = None
        self._groups: frozenset[str] | None = None
        if security is not None:
            accepting, self.dialling = security.contexts()
            self._groups = security.groups_of(name)
        self._listener = Listener(self, accepting)
        self._diallers = Diallers(self, set())

    @property
    def address(self) -> Address:
        """The address that this process listens on; before `start`, port 0 means any free port."""
        return self._listen

    # Called by the runtime

    async def start(self) -> None:
        self._listen = await self._listener.start(self._listen)
        advertised = self._advertise or self._listen
        self.introduction = _introduce(self.introduction.name, advertised)
        self._diallers = Diallers(self, {self._listen, advertised})
        for address in self._peers:
            self._diallers.add(address, learnt=False)

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> TcpPort:
        if self._groups is not None and group not in self._groups:
            raise UnusableKey(
                f"the certificate of {process.name} does not include group {group!r}: issue one that does"
            )
        port = TcpPort(self, group, process, receiver)
        self.ports.add(port)
        for name, connection in list(self.dialled.items()):
            if connection.may_be_in(port.group_hash):
                receiver.reachable(name)
        return port

    async def close(self) -> None:
        await self._listener.close()
        await self._diallers.close()
        await _ended([*self.dialled.values()])
        for connection in list(self.connections):
            connection.transport.abort()
        await _ended(list(self.connections))

    def unreached(self) -> list[str]:
        reached = {connection.address for connection in self.dialled.values()}
        own = {self._listen, self._advertise}
        return [str(address) for address in self._peers if address not in reached | own]

    # Called by connections

    def on_hello(self, connection: AcceptedConnection, peer: Introduction) -> None:
        """A process dialled us: welcome it, and dial it back unless it is connected already."""
        if peer.token == self.introduction.token:
            connection.welcome()  # we dialled ourselves; the dialling end sees that by the token
            connection.transport.close()
        elif peer.name == self.introduction.name:
            raise Rejected(Reason.OWN_NAME, "give each process its own name")
        else:
            connection.welcome()
            if peer.name in self.dialled:
                self._admit(connection)
            else:
                self._learn(connection)

    def on_data(self, connection: AcceptedConnection, received: ReceivedFrames) -> None:
        """Frames arrived for a group."""
        reached = self.dialled.get(connection.name)
        if reached is None:
            return  # reading is paused by now; the peer retransmits what is not acknowledged
        if connection.may_be_in(received.group) and reached.may_be_in(received.group):
            self.ports.receive(
                received.group, ProcessId(connection.name, received.incarnation), received.frames
            )
        else:
            self.rejection_log.record(Reason.OTHER_GROUP, peer=connection.name)

    def on_reached(self, connection: DialledConnection) -> bool:
        """A process welcomed us. Return whether to keep the connection; configured addresses win."""
        peer, name = connection.welcomed.result(), connection.name
        if peer.token == self.introduction.token:
            return False
        if name == self.introduction.name:
            raise Rejected(Reason.OWN_NAME, f"{connection.address}: give each process its own name")
        known = self.dialled.get(name)
        if known is not None:
            if connection.learnt:
                return False
            if not known.learnt:
                raise Rejected(Reason.TWO_ADDRESSES, f"{connection.address} and {known.address} are {name}")
            known.transport.close()
        self.dialled[name] = connection
        log_reached(self.introduction.name, name, str(connection.address))
        for port in self.ports.all():
            if connection.may_be_in(port.group_hash):
                port.receiver.reachable(name)
        for other in self._accepted(name):
            if other.admitted.done():
                other.admit()
            else:
                self._admit(other)
        return True

    def on_unreached(self, connection: DialledConnection) -> None:
        """A connection that we sent over is lost; the peer may have moved to the address it dials from."""
        if self.dialled.get(connection.name) is connection:
            del self.dialled[connection.name]
            for accepted in self._accepted(connection.name):
                accepted.pause()
                self._learn(accepted)

    def _accepted(self, name: str | None = None) -> list[AcceptedConnection]:
        """The accepted connections, of all peers or of one, the oldest first."""
        accepted = [each for each in self.connections if isinstance(each, AcceptedConnection)]
        return [each for each in accepted if name is None or each.name == name]

    def _learn(self, connection: AcceptedConnection) -> None:
        if connection.address is not None:
            self._diallers.add(connection.address, learnt=True)

    def _admit(self, connection: AcceptedConnection) -> None:
        admitted = [each for each in self._accepted() if each.admitted.done()]
        if len(admitted) >= ACCEPTED_MAX:
            connection.reject(Rejected(Reason.TOO_MANY_CONNECTIONS))
            return
        same = [each for each in admitted if each.name == connection.name]
        if len(same) >= _ACCEPTED_OF_ONE_MAX:
            same[0].reject(
                Rejected(Reason.TOO_MANY_CONNECTIONS, "the oldest connection of this process is closed")
            )
        connection.admit()


def _introduce(name: str, address: Address) -> Introduction:
    host = "" if address.host in _ANY_HOST else address.host
    return Introduction(name, host, address.port, secrets.token_bytes(8))


async def _ended(connections: list[Connection] | list[DialledConnection]) -> None:
    """Close connections once their buffers are sent; abort those that take too long."""
    for connection in connections:
        connection.transport.close()
    lost = [connection.lost for connection in connections]
    if lost:
        _, pending = await asyncio.wait(lost, timeout=CLOSE_SECONDS)
        if pending:
            for connection in connections:
                connection.transport.abort()
            await asyncio.wait(lost, timeout=CLOSE_SECONDS)
