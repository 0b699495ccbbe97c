"""One group's access to a network over TCP; its steps, which every message takes, are compiled."""

from collections.abc import Iterable

from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.network.codec import FrameWriter
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.tcp_connection import DialledConnection

# How much is buffered for a peer that does not read, in addition to what its links keep.
_UNSENT_BYTES_MAX = 8 * 1024 * 1024


class TcpPort(OpenPort):
    """One group's access to the network. `routes` holds the connection to each peer of the group."""

    def __init__(
        self,
        ports: Ports["TcpPort"],
        rejection_log: RejectionLog,
        group: str,
        process: ProcessId,
        receiver: Receiver,
    ) -> None:
        super().__init__(group, process, receiver)
        self._ports = ports
        self._rejection_log = rejection_log
        self._writer = FrameWriter(group, process)
        self.routes: dict[str, DialledConnection] = {}

    def send(self, peer: str, frames: list[Frame]) -> None:
        connection = self.routes.get(peer)
        if connection is None:
            return
        transport = connection.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
            self._rejection_log.record(Reason.NOT_READING, peer=peer)
        else:
            transport.writelines(self._writer.data(frames))

    def flush(self) -> None:
        """Nothing is delayed."""

    def close(self) -> None:
        self._ports.remove(self)

    def add_route(self, connection: DialledConnection) -> None:
        """Use a connection if its peer is in this group, unless there is one to a peer of a higher role."""
        role = connection.identity.role_in(self.group_hash)
        if role is None:
            return
        known = self.routes.get(connection.name)
        if known is None or role >= (known.identity.role_in(self.group_hash) or Role.OBSERVER):
            self.routes[connection.name] = connection
            self.receiver.reachable(connection.name, role)

    def remove_route(self, connection: DialledConnection, others: Iterable[DialledConnection]) -> None:
        """A connection is lost; use one of the others if it is to a peer of the same name."""
        if self.routes.get(connection.name) is connection:
            del self.routes[connection.name]
            for other in others:
                if other.name == connection.name:
                    self.add_route(other)
