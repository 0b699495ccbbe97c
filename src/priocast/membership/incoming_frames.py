"""The frames that come to a member, and which of its parts each of them is for.

    channel 0                  a datagram           IncomingDatagrams
    the channel of the view    a link's frame       Epoch
    the channel of services    a transmission       ServiceHost

A frame on the channel of another view is dropped: that view has ended here, or has not begun.
"""

from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.membership.datagrams import CHANNEL
from priocast.membership.fault_handler import FaultHandler
from priocast.membership.incoming_datagrams import IncomingDatagrams
from priocast.membership.membership import Membership
from priocast.membership.permissions import may_send
from priocast.services.frames import SERVICE_CHANNEL
from priocast.services.service_host import ServiceHost


class IncomingFrames:
    """Receives the frames of other processes for one member."""

    def __init__(
        self,
        membership: Membership,
        datagrams: IncomingDatagrams,
        services: ServiceHost,
        fault_handler: FaultHandler,
    ) -> None:
        self._membership = membership
        self._datagrams = datagrams
        self._services = services
        self._fault_handler = fault_handler

    def receive(self, peer: ProcessId, frames: list[Frame], now: int, role: Role = Role.MEMBER) -> None:
        """Frames came from a process, all that were ready."""
        membership = self._membership
        for frame in frames if role is Role.MEMBER else self._permitted(frames, role):
            try:
                if frame.channel == CHANNEL:
                    self._datagrams.receive(peer, frame, now)
                elif not membership.heard(peer, now):
                    self._on_unheard(peer, frame, now)
                elif membership.epoch is not None and frame.channel == membership.epoch.channel:
                    membership.epoch.receive(peer, frame, now)
                elif frame.channel == SERVICE_CHANNEL:
                    self._services.receive(peer, frame, now)
            except Exception as error:
                self._fault_handler.on_input(peer, error, now, evicts=role is Role.MEMBER)

    def _permitted(self, frames: list[Frame], role: Role) -> list[Frame]:
        """The frames that a process may send which is not a member; the others are rejected."""
        permitted = [frame for frame in frames if frame.channel == CHANNEL and may_send(role, frame.body)]
        for _ in range(len(frames) - len(permitted)):
            self._fault_handler.reject(
                f"not for {'a client' if role is Role.CLIENT else 'an observer'} to send"
            )
        return permitted

    def _on_unheard(self, peer: ProcessId, frame: Frame, now: int) -> None:
        """A frame came from this process itself, or from an incarnation that does not count."""
        membership = self._membership
        if peer == membership.me and frame.channel == SERVICE_CHANNEL:
            self._services.receive(peer, frame, now)
        else:
            self._fault_handler.reject(membership.neighbours.objection_to(peer))
