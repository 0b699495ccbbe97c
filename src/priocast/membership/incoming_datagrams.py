"""The datagrams that come to a member: decoded, and passed to the part that they are for."""

from collections.abc import Callable

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.membership.datagrams import read
from priocast.membership.membership import Membership
from priocast.membership.packets import ClientReceipt, ClientReply, ClientRequest, ClientSend, Heartbeat

OnRequest = Callable[[ProcessId, ClientRequest], None]
OnSend = Callable[[ProcessId, ClientSend, int], None]
Reject = Callable[[str], None]


class IncomingDatagrams:
    """Receives the datagrams of other processes for one member."""

    def __init__(
        self, membership: Membership, on_request: OnRequest, on_send: OnSend, reject: Reject
    ) -> None:
        self._membership = membership
        self._on_request = on_request
        self._on_send = on_send
        self._reject = reject

    def receive(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A datagram came from a process; raises PeerFault if something is wrong with it."""
        membership = self._membership
        if membership.on_repeated(peer, frame.body, now):
            return
        control = read(peer, frame)
        if isinstance(control, ClientRequest):
            self._on_request(peer, control)
        elif isinstance(control, ClientSend):
            self._on_send(peer, control, now)
        elif isinstance(control, ClientReply | ClientReceipt):
            self._reject("reply to a member")
        elif not membership.heard(peer, now):
            self._reject(membership.neighbours.objection_to(peer))
            if (notice := membership.neighbours.notice_to(peer, now)) is not None:
                membership.send(peer, notice)
        elif not membership.validator.knows(peer, control):
            self._reject("unknown process")
        else:
            membership.receive(peer, control, now)
            if isinstance(control, Heartbeat):
                membership.neighbours.on_heartbeat_body(peer, frame.body)
