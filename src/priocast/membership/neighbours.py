"""The other processes of the group: which are alive, and who can talk to whom.

Every process says in its heartbeats whom it hears. Two processes are *linked* if each hears the other. A view
consists of processes that are all linked to each other, so a one-way loss or a bridge between two sides does
not lead to a view that cannot work.
"""

from bisect import bisect_left

from priocast.core.errors import PeerFault
from priocast.core.identity import NUMBER_MAX, ProcessId, is_name
from priocast.core.view import View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.failure_detector import FailureDetector
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.outputs import MembershipOutput
from priocast.membership.packets import Heartbeat, LaterIncarnation
from priocast.membership.quorum import is_quorum
from priocast.membership.reachability import Reachability
from priocast.membership.target_view import Peer

_NAMES_MAX = 4 * MEMBERS_MAX
_NEVER = -(1 << 62)


class Neighbours:
    """The other processes, by their latest incarnations and heartbeats.

    `own_incarnation_max` is the highest incarnation number of this process that any process knows. Who counts
    as alive is asked for in every turn, and seldom changes: the answer is kept until it may.
    """

    def __init__(self, me: ProcessId, options: MembershipOptions) -> None:
        self.me = me
        self.detector = FailureDetector(options)
        self.own_incarnation_max = me.incarnation
        self.incarnations: dict[str, ProcessId] = {}
        self.reachability = Reachability(me)
        self._primary = options.primary
        self._bodies: dict[ProcessId, bytes] = {}
        self._peers: dict[ProcessId, Peer] = {}
        self._avoided: dict[ProcessId, int] = {}
        self._departed: dict[str, tuple[ProcessId, ViewReason]] = {}
        self._alive: tuple[ProcessId, ...] = ()
        self._alive_until = _NEVER
        self._alive_revision = 0
        self._alive_peers: tuple[Peer, ...] | None = None

    # Inputs

    def meet(self, process: ProcessId, now: int) -> bool:
        """A frame came from an unknown incarnation; False if it is not accepted.

        An earlier incarnation is over. A later one takes over when the one that is known is suspected, has
        departed or says that it leaves: until then it may be another process that was given the same name.
        """
        if not is_name(process.name) or process.incarnation > NUMBER_MAX:
            raise PeerFault(f"{process} is not a valid process id")
        known = self.incarnations.get(process.name)
        if process.name == self.me.name or (known is not None and process.incarnation < known.incarnation):
            return False
        if known is not None:
            if self.uses_name(process.name, now):
                return False
            self._forget(known)
        elif len(self.incarnations) >= _NAMES_MAX:
            self._forget(max(self.incarnations.values(), key=lambda each: self.suspicion(each, now)))
        self.incarnations[process.name] = process
        self.reachability.add(process)
        was_steady = self._is_steady(now)
        self.detector.heard(process.name, now)
        if was_steady and self.detector.revision == self._alive_revision + 1:
            index = bisect_left(self._alive, process)
            self._alive = (*self._alive[:index], process, *self._alive[index:])
            self._alive_peers = None
            self._alive_revision = self.detector.revision
        return True

    def on_heartbeat(self, process: ProcessId, heartbeat: Heartbeat) -> bool:
        """Note what a process says of itself; return whether that is news."""
        before = self._peers.get(process)
        members = () if self._primary else heartbeat.members
        peer = Peer(process, heartbeat.view, members, heartbeat.leaving)
        is_news = self.reachability.update(process, heartbeat.hears) or peer != before
        if is_news:
            self._peers[process] = peer
            self._alive_peers = None
        return is_news

    def on_heartbeat_body(self, process: ProcessId, body: bytes) -> None:
        """A heartbeat was accepted that was encoded like this."""
        if process in self._peers:
            self._bodies[process] = body

    def on_repeated(self, process: ProcessId, body: bytes, now: int) -> bool:
        """A datagram came; return whether it is the last heartbeat again, which need not be decoded."""
        if self._bodies.get(process) != body:
            return False
        self.detector.heard(process.name, now)
        return True

    def on_view(self) -> None:
        """A view was installed: what processes have received counts anew, even if they repeat it."""
        self._bodies.clear()

    def on_later_incarnation(
        self, _: ProcessId, notice: LaterIncarnation, _now: int
    ) -> list[MembershipOutput]:
        """A process knows a later incarnation of this name, which is over: this one has too low a number."""
        if notice.known.name == self.me.name:
            self.own_incarnation_max = max(self.own_incarnation_max, notice.known.incarnation)
        return []

    def depart(self, process: ProcessId, reason: ViewReason) -> None:
        """The group continues, for this reason, without this incarnation, even if it is still heard."""
        self._departed[process.name] = process, reason
        self._alive_until = _NEVER

    def avoid(self, process: ProcessId, until: int) -> None:
        """Leave a process out of target views until this time."""
        self._avoided[process] = until

    def _forget(self, process: ProcessId) -> None:
        del self.incarnations[process.name]
        self.detector.forget(process.name)
        self.reachability.remove(process)
        self._bodies.pop(process, None)
        self._peers.pop(process, None)
        self._avoided.pop(process, None)
        self._departed.pop(process.name, None)

    # Queries

    def objection_to(self, process: ProcessId) -> str:
        """Why frames of an incarnation that could not be met are rejected."""
        known = self.incarnations.get(process.name, self.me)
        return "earlier incarnation" if process.incarnation < known.incarnation else "name in use"

    def notice_to(self, process: ProcessId, now: int) -> LaterIncarnation | None:
        """What to tell a process whose incarnation is earlier than one that is known, and is over."""
        known = self.incarnations.get(process.name)
        if known is None or process.incarnation >= known.incarnation or self.trusts(known, now):
            return None
        return LaterIncarnation(known)

    def knows(self, process: ProcessId) -> bool:
        """Whether a heartbeat came from this incarnation that was accepted."""
        return process in self._peers

    def uses_name(self, name: str, now: int) -> bool:
        """Whether a process of this name counts as alive and does not leave: nobody else may use it."""
        known = self.incarnations.get(name)
        return known is not None and self.trusts(known, now) and not self.is_leaving(known)

    def trusts(self, process: ProcessId, now: int) -> bool:
        """Whether this incarnation of a process counts as alive."""
        if self.incarnations.get(process.name) != process or self.departure_of(process) is not None:
            return False
        return self.detector.trusts(process.name, now)

    def suspicion(self, process: ProcessId, now: int) -> float:
        """How suspicious the silence of this incarnation is; from 1 on it counts as failed."""
        if self.incarnations.get(process.name) != process:
            return float("inf")
        return self.detector.suspicion(process.name, now)

    def peers(self, now: int) -> tuple[Peer, ...]:
        """The processes that count as alive and have sent a heartbeat, sorted."""
        alive = self.hears(now)
        if self._alive_peers is None:
            self._alive_peers = tuple(filter(None, map(self._peers.get, alive)))
        return self._alive_peers

    def hears(self, now: int) -> tuple[ProcessId, ...]:
        """The processes that count as alive, sorted."""
        if not self._is_steady(now):
            alive = tuple(
                sorted(process for process in self.incarnations.values() if self.trusts(process, now))
            )
            self._alive_until = self.detector.steady_until((process.name for process in alive), now)
            self._alive_revision = self.detector.revision
            if alive != self._alive:
                self._alive = alive
                self._alive_peers = None
        return self._alive

    def _is_steady(self, now: int) -> bool:
        """Whether those that counted as alive when it was last determined still do, and nobody else."""
        return now < self._alive_until and self._alive_revision == self.detector.revision

    def avoided(self, now: int) -> frozenset[ProcessId]:
        """The processes that target views leave out now."""
        return frozenset(process for process, until in self._avoided.items() if until > now)

    def view_of(self, process: ProcessId) -> ViewId | None:
        """The view that the process was in when it sent its last heartbeat."""
        peer = self._peers.get(process)
        return peer.view if peer else None

    def is_leaving(self, process: ProcessId) -> bool:
        """Whether the process wants to leave the group."""
        peer = self._peers.get(process)
        return peer is not None and peer.leaving

    def departure_of(self, process: ProcessId) -> ViewReason | None:
        """Why the group continues without this incarnation of a process; None if it does not."""
        departed, reason = self._departed.get(process.name, (None, None))
        return reason if departed == process else None

    def may_be_over(self, view: View, now: int) -> bool:
        """Whether the group may have continued without this process after a view that it is in.

        In a primary group it has not, if a quorum says that it is in the view. Otherwise one faulty member
        could talk all others out of the group, one by one, and nobody would be left to admit them again.
        """
        present = [
            member
            for member in view.members
            if member == self.me or (self.view_of(member) == view.id and self.trusts(member, now))
        ]
        return not (self._primary and is_quorum(view.members, present))

    def is_behind(self, process: ProcessId, view: View) -> bool:
        """Whether a process, by its last heartbeat, does not know a view that concerns it."""
        if self.departure_of(process) is not None:
            return True
        current = self.view_of(process)
        return process in view.members if current is None else current.number < view.number
