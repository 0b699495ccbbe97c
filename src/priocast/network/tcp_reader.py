"""What a TCP connection reads: data goes to the ports of the groups, the handshake to the connection.

Every message comes this way, so these steps are compiled; those of the handshake are in `tcp_connection.py`.
"""

from collections.abc import Callable

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.network.codec import FrameKind, FrameReader, ReceivedFrames
from priocast.network.rejections import Reason, RejectionLog
from priocast.network.security import PeerIdentity

#: Passes frames on to the group with this hash: `Ports.receive`.
OnData = Callable[[int, ProcessId, list[Frame], Role], None]


class TcpReader:
    """Reads one connection.

    The connection handles the frames of a read until data is accepted, and those that are not data, and the
    rejection of a peer. While the connection `is_paused`, data is dropped: the peer
    retransmits what is not acknowledged. Nothing is read any more once it `is_closing`: TLS may still pass on
    what it had decrypted.
    """

    def __init__(self, rejection_log: RejectionLog) -> None:
        self.is_closing = False
        self.is_paused = False
        self._frames = FrameReader()
        self._on_handshake: Callable[[list[ReceivedFrames]], None] = _ignore
        self._on_rejected: Callable[[Rejected], None] = _ignore
        self._rejection_log = rejection_log
        self._on_data: OnData | None = None
        self._identity = PeerIdentity("", Role.OBSERVER, ())
        # Of the last data: the same object for all frames of an incarnation, for its hash.
        self._sender = ProcessId("", 0)
        self._group = -1
        self._role: Role | None = None

    def expect(self, peer: str) -> None:
        """The peer has introduced itself: from now on, all frames must be its own."""
        self._frames.expect(peer)

    def accept_data(self, on_data: OnData, identity: PeerIdentity) -> None:
        """From the next read on, data is passed on; it is from this peer."""
        self._on_data = on_data
        self._identity = identity

    def open(
        self,
        on_handshake: Callable[[list[ReceivedFrames]], None],
        on_rejected: Callable[[Rejected], None],
    ) -> None:
        """The connection is made: it handles these two, until it is lost."""
        self._on_handshake, self._on_rejected = on_handshake, on_rejected

    def close(self) -> None:
        """The connection is lost: forget it, so that it is freed without the garbage collector."""
        self.is_closing = True
        self._on_handshake = self._on_rejected = _ignore
        self._on_data = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put the next bytes."""
        del sizehint
        return self._frames.free()

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes were received."""
        if self.is_closing:
            return
        try:
            all_received = self._frames.read(nbytes)
            if self._on_data is None:
                self._on_handshake(all_received)
                return
            for received in all_received:
                if received.kind is not FrameKind.DATA:
                    self._on_handshake([received])
                elif not self.is_paused:
                    self._pass_on(received, self._on_data)
        except Rejected as error:
            self._on_rejected(error)

    def _pass_on(self, received: ReceivedFrames, on_data: OnData) -> None:
        """Frames arrived for a group: pass them on with the role of the peer, if it may be in the group."""
        group = received.group
        if group != self._group or received.incarnation != self._sender.incarnation:
            self._sender = ProcessId(self._identity.name, received.incarnation)
            self._group, self._role = group, self._identity.role_in(group)
        if self._role is None:
            self._rejection_log.record(Reason.OTHER_GROUP, peer=self._identity.name)
        else:
            on_data(group, self._sender, received.frames, self._role)


def _ignore(_: object) -> None:
    """Nobody is there to handle it."""
