"""The qualities of service in a group: who may send now, and what follows if a process does not answer."""

from collections.abc import Collection, Sequence

from priocast.core.errors import GroupClosed, NoQuorum
from priocast.core.events import ServiceDelivery
from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch
from priocast.core.quality import Quality, QualityKind
from priocast.core.view import ViewId
from priocast.core.view_reason import Eviction
from priocast.membership.membership import Membership
from priocast.membership.stream import Stream
from priocast.membership.stream_items import Head
from priocast.services.packets import TransmissionId
from priocast.services.service_host import ServiceHost


class GroupServices:
    """Connects the qualities of service of one member with its membership and its ordered stream."""

    def __init__(self, host: ServiceHost, membership: Membership, stream: Stream) -> None:
        self._host = host
        self._membership = membership
        self._stream = stream
        self._position_taken_at = -1
        self._settled: ViewId | None = None
        self._unanswered: dict[ProcessId, int] = {}
        detector = membership.neighbours.detector
        detector.inaccessibility.bound_ns = host.options.network.inaccessibility_ns

    def send(
        self,
        units: Sequence[bytes],
        quality: Quality,
        to: Collection[str] | None,
        priority: int,
        now: int,
        deadline: int | None = None,
    ) -> TransmissionId:
        """Send a message with a quality of service; see `ServiceHost.send`. The receipt comes later.

        Without a quorum, a primary group gives no guarantee that involves others: only best effort is sent.
        """
        self._check_membership(quality)
        return self._host.send(units, quality, to, priority, now, deadline)

    def check(
        self,
        units: Sequence[bytes],
        quality: Quality,
        to: Collection[str] | None,
        now: int,
        deadline: int | None = None,
    ) -> None:
        """Raise what `send` would raise, except for Overloaded."""
        self._check_membership(quality)
        self._host.check(units, quality, to, now, deadline)

    def _check_membership(self, quality: Quality) -> None:
        membership = self._membership
        if membership.view is None or membership.departed is not None:
            raise GroupClosed(f"{membership.me.name} is not in the group now: nothing was sent")
        if membership.trigger.suspended and quality.kind is not QualityKind.BEST_EFFORT:
            raise NoQuorum(f"no quorum of the group can be reached: nothing was sent with {quality}")

    def head(self, of_order: Head | None = None) -> ServiceDelivery | None:
        """The unit that the application takes next; None if the order goes first, or there is none.

        A view and a state go first, so that the application knows its group. Of messages, the more urgent one
        does; if neither is, they take turns.
        """
        unit = None if self._stream.awaits_state else self._host.head()
        if unit is None or of_order is None:
            return unit
        if not isinstance(of_order, OrderedBatch):
            return None
        batch = of_order.batch
        priority = batch.priorities[of_order.taken] if batch.priorities else batch.level
        if unit.priority == priority:
            return None if self._stream.position == self._position_taken_at else unit
        return unit if unit.priority > priority else None

    def take(self, now: int) -> ServiceDelivery:
        """The application takes the head."""
        self._position_taken_at = self._stream.position
        unit = self._host.take(now)
        assert unit is not None, "the application takes what it was offered"
        return unit

    def tick(self, now: int) -> None:
        """Do what is due at this time."""
        heard_at = self._membership.neighbours.detector.heard_at
        self._host.tick(now, heard_at, is_settled=self._is_settled(now))
        if self._unanswered:
            self._evict_unanswered(now)

    def _is_settled(self, now: int) -> bool:
        """Whether all members are in this view by now: one that is not does not answer, and has not failed.

        That matters where a process that does not answer is evicted. It is told about the view with every
        heartbeat, so it knows it after as many as the network can lose, and one more; then it has failed.
        """
        membership = self._membership
        view, neighbours = membership.view, membership.neighbours
        transmissions_max = self._host.options.transmissions_max
        if transmissions_max is None or view is None or view.id == self._settled:
            return True
        patience_ns = (transmissions_max + 1) * membership.options.heartbeat_ns
        others = (member for member in view.members if member != membership.me)
        if now - membership.installed_at < patience_ns and any(
            neighbours.view_of(member) != view.id for member in others
        ):
            return False
        self._settled = view.id
        return True

    def on_suspects(self, now: int) -> None:
        """Processes did not answer as often as the network can lose frames: they have failed.

        One that is silent altogether is left to failure detection: the others would not agree to a view
        without it yet, and nothing is ordered while they are asked. One that is heard is evicted.
        """
        suspects, self._host.suspects = self._host.suspects, []
        membership = self._membership
        for process in suspects:
            if process == membership.me:
                detail = "it has missed decisions about messages"
                membership.leave(now, Eviction(process.name, "unanswered", detail))
            else:
                self._unanswered.setdefault(process, now)

    def _evict_unanswered(self, now: int) -> None:
        membership = self._membership
        for process, since in list(self._unanswered.items()):
            is_heard = membership.neighbours.detector.was_heard_since(process.name, since)
            if membership.view is None or process not in membership.view.members:
                del self._unanswered[process]
            elif is_heard:
                del self._unanswered[process]
                membership.evict(process, "unanswered", now, "it did not answer a transmission")
