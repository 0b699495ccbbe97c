"""The frames that a member has to transmit: of its links, of datagrams, and of the qualities of service."""

from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.membership.clients import Clients
from priocast.membership.datagrams import frames_of
from priocast.membership.membership import Membership
from priocast.membership.stability_reporter import StabilityReporter
from priocast.services.service_host import ServiceHost


class OutgoingFrames:
    """Collects the frames of all parts of one member."""

    def __init__(
        self, membership: Membership, reporter: StabilityReporter, clients: Clients, services: ServiceHost
    ) -> None:
        self._membership = membership
        self._reporter = reporter
        self._clients = clients
        self._services = services

    def take(self, now: int, first: ProcessId | None = None) -> list[tuple[str, list[Frame]]]:
        """The frames to transmit, by the name of their destination; those to `first` come first."""
        membership = self._membership
        epoch, sent_at = membership.epoch, membership.heartbeats.sent_at
        frames: list[tuple[str, list[Frame]]] = []
        if epoch is not None and not epoch.frozen:
            unreported_bytes = epoch.stability.unreported_bytes
            if (unreported_bytes > self._reporter.unreported_bytes_max or epoch.protocol.has_safe) and (
                report := self._reporter.due(epoch)
            ):
                for peer in epoch.links:
                    membership.send(peer, report)
            for peer, link in epoch.links.items():
                if link.frames:
                    frames.insert(0 if peer == first else len(frames), (peer.name, link.frames))
                    link.frames = []
                    if peer.name in sent_at:
                        sent_at[peer.name] = now
        if membership.datagrams:
            frames += frames_of(membership.datagrams)
            membership.datagrams = []
        if self._clients.replies:
            frames += frames_of(self._clients.replies)
            self._clients.replies = []
        if self._services.has_frames:
            frames += self._services.take_frames()
        return frames
