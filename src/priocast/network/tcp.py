"""Frames over TCP: in the clear on a trusted network, or with TLS.

Every process listens and dials every peer. It sends over the connections that it dialled and receives over
those that it accepted, so two processes never have to agree on which of two connections to keep. A process
that is not among the configured peers is dialled back at the address that it advertises (`dial_back.py`
says which of these are believed).

A connection that breaks is dialled again, with exponential backoff; the links retransmit what was lost with
it. Whatever a peer sends, at worst its own connection is closed.
"""

import asyncio
import secrets
import ssl
from collections import Counter

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import RELIABLE_NETWORK
from priocast.network.address import Address
from priocast.network.codec import hash_of
from priocast.network.dial_back import address_to_dial
from priocast.network.discovery import Discovery
from priocast.network.interface import UNALTERED, Receiver
from priocast.network.ports import Ports
from priocast.network.reachability import describe_unreached
from priocast.network.rejections import Reason, RejectionLog, log_reached
from priocast.network.security import PeerIdentity, TlsSecurity, check_role
from priocast.network.tcp_connection import (
    CLOSE_SECONDS,
    AcceptedConnection,
    Connection,
    DialledConnection,
    Introduction,
)
from priocast.network.tcp_dialler import Diallers
from priocast.network.tcp_listener import Listener
from priocast.network.tcp_port import TcpPort

ACCEPTED_MAX = 1024
_ACCEPTED_OF_ONE_MAX = 4  # a restarted process, and connections of earlier incarnations not yet timed out
_ANY_HOST = {"", "0.0.0.0", "::"}  # noqa: S104 - to compare with, not to listen on


class TcpNetwork:
    """The connections of one process.

    `advertise` is the address at which others reach this process, if it is not `listen`. `role` is the
    highest that it has in any group. `dialled` holds the connections that frames are sent over, by the
    identities of the peers: two processes of different groups may have the same name.
    """

    link_options = RELIABLE_NETWORK
    properties = UNALTERED

    def __init__(
        self,
        name: str,
        listen: Address,
        peers: list[Address],
        *,
        advertise: Address | None = None,
        security: TlsSecurity | None = None,
        role: Role = Role.MEMBER,
        discovery: Discovery | None = None,
    ) -> None:
        self.rejection_log = RejectionLog(name)
        self.ports: Ports[TcpPort] = Ports(name, self.rejection_log)
        self.rejections: Counter[str] = self.rejection_log.counts
        self.connections: dict[Connection, None] = {}
        self.dialled: dict[PeerIdentity, DialledConnection] = {}
        self.introduction = _introduce(name, advertise or listen, role)
        self._listen = listen
        self._advertise = advertise
        self._peers = peers
        self._discovery = discovery
        self._discovering: asyncio.Task[None] | None = None
        accepting: ssl.SSLContext | None = None
        self.dialling: ssl.SSLContext | None = None
        self._roles: dict[str, Role] | None = None
        self._security = security
        if security is not None:
            accepting, self.dialling = security.contexts()
            self._roles = security.roles_of(name)
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
        self.introduction = _introduce(self.introduction.name, advertised, self.introduction.role)
        self._diallers = Diallers(self, {self._listen, advertised})
        for address in self._peers:
            self._diallers.add(address, learnt=False)
        if self._discovery is not None:
            self._discovering = asyncio.create_task(self._discovery.run(self._on_discovered))

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> TcpPort:
        if self._roles is not None:
            check_role(self._roles, group, process.name, self.introduction.role)
        port = TcpPort(self.ports, self.rejection_log, group, process, receiver)
        self.ports.add(port)
        for connection in list(self.dialled.values()):
            port.add_route(connection)
        return port

    async def close(self) -> None:
        if self._discovering is not None:
            self._discovering.cancel()
        await self._listener.close()
        await self._diallers.close()
        await _ended([*self.dialled.values()])
        for connection in list(self.connections):
            connection.transport.abort()
        await _ended(list(self.connections))

    def unreached(self) -> list[str]:
        reached = {connection.address for connection in self.dialled.values()}
        missing = [address for address in self._peers if address not in reached]
        if self._discovery is not None and not self._peers:
            return [f"{self._discovery.name} (it has no address)"]
        return describe_unreached(missing, self._diallers.failures)

    def reload_keys(self) -> None:
        """Read certificates and the revocation list again; if a file is unusable, change nothing.

        Connections whose certificates are not trusted any more are closed. If our own certificate names other
        groups or roles, all are closed, and are dialled again.
        """
        if self._security is None:
            return
        from priocast.network.revocation import TrustCheck  # only where TLS is used

        accepting, dialling = self._security.contexts()
        roles, trust = self._security.roles_of(self.introduction.name), TrustCheck(self._security)
        for port in self.ports.all():
            check_role(roles, port.group, self.introduction.name, self.introduction.role)
        changed, self._roles = roles != self._roles, roles
        self._listener.context, self.dialling = accepting, dialling
        for connection in list(self.connections):
            objection = trust.objection_to(connection.certificate) if connection.certificate else None
            if objection is not None:
                connection.reject(Rejected(objection, "found when the keys were read again"))
            elif changed:
                connection.close()

    # Called by connections

    def on_hello(self, connection: AcceptedConnection, peer: Introduction) -> None:
        """A process dialled us: welcome it, and dial it back unless it is connected already."""
        if peer.token == self.introduction.token:
            connection.welcome()  # we dialled ourselves; the dialling end sees that by the token
            connection.close()
        else:
            self._check_peer(connection)
            self._check_name(connection)
            connection.welcome()
            known = self.dialled.get(connection.identity)
            if known is not None and not _are_rivals(known, connection):
                self._admit(connection)
            else:
                self._learn(connection)

    def on_reached(self, connection: DialledConnection) -> bool:
        """A process welcomed us. Return whether to keep the connection; configured addresses win."""
        name = connection.name
        if connection.token == self.introduction.token:
            return False
        self._check_peer(connection)
        self._check_name(connection)
        known = self.dialled.get(connection.identity)
        if known is not None and _are_rivals(known, connection):
            known.close()
            self.on_unreached(known)
        elif known is not None:
            if connection.learnt:
                return False
            if not known.learnt:
                raise Rejected(Reason.TWO_ADDRESSES, f"{connection.address} and {known.address} are {name}")
            known.close()
        self.dialled[connection.identity] = connection
        log_reached(self.introduction.name, name, str(connection.address))
        for port in self.ports.all():
            port.add_route(connection)
        for other in self._accepted(connection.identity):
            if other.token != connection.token:
                other.reject(Rejected(Reason.NAME_IN_USE, f"by {connection}"))
            elif other.admitted.done():
                other.admit(self.ports.receive)
            else:
                self._admit(other)
        return True

    def on_unreached(self, connection: DialledConnection) -> None:
        """A connection that we sent over is lost; the peer may have moved to the address it dials from."""
        if self.dialled.get(connection.identity) is connection:
            del self.dialled[connection.identity]
            for accepted in self._accepted(connection.identity):
                accepted.pause()
                self._learn(accepted)
        for port in self.ports.all():
            port.remove_route(connection, list(self.dialled.values()))

    def _check_peer(self, connection: Connection) -> None:
        """Reject a peer that shares no group with us, or is in one of our groups under our name."""
        identity, roles = connection.identity, self._roles
        if roles is not None and all(identity.role_in(hash_of(group)) is None for group in roles):
            raise Rejected(Reason.OTHER_GROUP, f"{identity.name} is in none of {', '.join(sorted(roles))}")
        if identity.name == self.introduction.name:
            raise Rejected(Reason.OWN_NAME, "give each process its own name")

    def _check_name(self, connection: AcceptedConnection | DialledConnection) -> None:
        """Reject a second process with a name that is in use, by a process that is heard."""
        known = self.dialled.get(connection.identity)
        if known is not None and _are_rivals(known, connection) and self.ports.hear(connection.name):
            raise Rejected(Reason.NAME_IN_USE, f"by {known}")

    def _accepted(self, identity: PeerIdentity | None = None) -> list[AcceptedConnection]:
        """The accepted connections, of all peers or of one, the oldest first."""
        accepted = [each for each in self.connections if isinstance(each, AcceptedConnection)]
        return [each for each in accepted if identity is None or each.identity == identity]

    def _learn(self, connection: AcceptedConnection) -> None:
        address = connection.named
        if address not in self._peers:
            certified = connection.certificate is not None
            found = address_to_dial(address, connection.remote, certified=certified)
            if found is None:
                return  # it may still be reached at a configured address
            address = found
        self._diallers.add(address, learnt=True)

    def _on_discovered(self, addresses: list[Address]) -> None:
        for address in self._peers:
            if address not in addresses:
                self._diallers.drop(address)
        self._peers = addresses
        for address in addresses:
            self._diallers.add(address, learnt=False)

    def _admit(self, connection: AcceptedConnection) -> None:
        admitted = [each for each in self._accepted() if each.admitted.done()]
        if len(admitted) >= ACCEPTED_MAX:
            connection.reject(Rejected(Reason.TOO_MANY_CONNECTIONS))
            return
        same = [each for each in admitted if each.identity == connection.identity]
        if len(same) >= _ACCEPTED_OF_ONE_MAX:
            same[0].reject(
                Rejected(Reason.TOO_MANY_CONNECTIONS, "the oldest connection of this process is closed")
            )
        connection.admit(self.ports.receive)


def _are_rivals(known: DialledConnection, other: AcceptedConnection | DialledConnection) -> bool:
    """Whether these are two processes that want to be the same member."""
    return known.token != other.token and known.identity.claims is Role.MEMBER


def _introduce(name: str, address: Address, role: Role) -> Introduction:
    host = "" if address.host in _ANY_HOST else address.host
    return Introduction(name, host, address.port, secrets.token_bytes(8), role)


async def _ended(connections: list[Connection] | list[DialledConnection]) -> None:
    """Close connections once their buffers are sent; abort those that take too long."""
    for connection in connections:
        connection.close()
    lost = [connection.lost for connection in connections]
    if lost:
        _, pending = await asyncio.wait(lost, timeout=CLOSE_SECONDS)
        if pending:
            for connection in connections:
                connection.transport.abort()
            await asyncio.wait(lost, timeout=CLOSE_SECONDS)
