"""Who is there, and who can talk to whom.

Every process says whom it hears. Two processes are linked if each hears the other; a view is made of
processes that are all linked to each other, so one-way cuts and bridges do not lead to views that cannot
work.
"""

from priocast.core.identity import ProcessId
from priocast.core.view import ViewId
from priocast.membership.failure_detector import FailureDetector
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.membership.packets import Heartbeat

_NAMES_MAX = 4 * MEMBERS_MAX


class Neighbours:
    """The other processes of the group, as they were last heard of."""

    def __init__(self, me: ProcessId, options: MembershipOptions) -> None:
        self.me = me
        self._detector = FailureDetector(options)
        self._incarnations: dict[str, ProcessId] = {}
        self._alive: dict[ProcessId, Heartbeat] = {}
        self._avoided: dict[ProcessId, int] = {}
        self._departed: dict[str, ProcessId] = {}

    def be_awake(self, now: int) -> None:
        """This process is at work."""
        self._detector.be_awake(now)

    def heard_again(self, process: ProcessId, now: int) -> bool:
        """Something came from a process; False if this life of it was not heard of before."""
        if self._incarnations.get(process.name) != process:
            return False
        self._detector.heard(process.name, now)
        return True

    def heard(self, process: ProcessId, now: int) -> bool:
        """Something came from a process; False if that is an earlier life of it, or one too many."""
        known = self._incarnations.get(process.name)
        if known is None or process.incarnation > known.incarnation:
            if process.name == self.me.name:
                return False
            if known is not None:
                self._forget(known)
            elif len(self._incarnations) >= _NAMES_MAX:
                self._forget(max(self._incarnations.values(), key=lambda life: self.suspicion(life, now)))
            self._incarnations[process.name] = process
        elif process != known:
            return False
        self._detector.heard(process.name, now)
        return True

    def _forget(self, life: ProcessId) -> None:
        del self._incarnations[life.name]
        self._detector.forget(life.name)
        self._alive.pop(life, None)
        self._avoided.pop(life, None)
        self._departed.pop(life.name, None)

    def on_heartbeat(self, process: ProcessId, alive: Heartbeat) -> bool:
        """Take note of what a process says of itself; return whether that is news."""
        before = self._alive.get(process)
        self._alive[process] = alive
        return before is None or (before.view, before.hears, before.leaving) != (
            alive.view,
            alive.hears,
            alive.leaving,
        )

    def depart(self, process: ProcessId) -> None:
        """This life of a process is over for the group, even if it is still heard."""
        self._departed[process.name] = process

    def has_departed(self, process: ProcessId) -> bool:
        """Whether this life of a process is over for the group."""
        return self._departed.get(process.name) == process

    def avoid(self, process: ProcessId, until: int) -> None:
        """Do without a process for a while: it does not want what we want."""
        self._avoided[process] = until

    def avoids(self, process: ProcessId, now: int) -> bool:
        """Whether we do without this process now."""
        return self._avoided.get(process, 0) > now

    def trusts(self, process: ProcessId, now: int) -> bool:
        """Whether this life of the process counts as alive."""
        if self._incarnations.get(process.name) != process or self.has_departed(process):
            return False
        return self._detector.trusts(process.name, now)

    def suspicion(self, process: ProcessId, now: int) -> float:
        """How suspicious the silence of this life of the process is; from 1 on it counts as failed."""
        if self._incarnations.get(process.name) != process:
            return float("inf")
        return self._detector.suspicion(process.name, now)

    def knows(self, process: ProcessId) -> bool:
        """Whether this life of the process was heard of before."""
        return self._incarnations.get(process.name) == process

    def trusted(self, now: int) -> list[ProcessId]:
        """Every other process that counts as alive and has said where it stands."""
        return sorted(
            process
            for process in self._incarnations.values()
            if process in self._alive and self.trusts(process, now)
        )

    def hears(self, now: int) -> tuple[ProcessId, ...]:
        """Whom this process hears."""
        return tuple(sorted(process for process in self._incarnations.values() if self.trusts(process, now)))

    def alive(self, process: ProcessId) -> Heartbeat | None:
        """What the process last said of itself."""
        return self._alive.get(process)

    def view_of(self, process: ProcessId) -> ViewId | None:
        """The view that the process last said it is in."""
        alive = self._alive.get(process)
        return alive.view if alive else None

    def has_heard(self, name: str) -> bool:
        """Whether a process of this name was heard of."""
        return name in self._incarnations

    def is_bound_elsewhere(self, process: ProcessId, now: int) -> bool:
        """Whether the process is with others, in another view, to whom this process is not linked."""
        alive = self._alive.get(process)
        if alive is None or self.me in alive.members:
            return False
        companions = (other for other in alive.members if other != process and other in alive.hears)
        return any(not self.trusts(other, now) or not self.linked(self.me, other) for other in companions)

    def is_leaving(self, process: ProcessId) -> bool:
        """Whether the process asked to be let go."""
        alive = self._alive.get(process)
        return alive is not None and alive.leaving

    def linked(self, one: ProcessId, other: ProcessId) -> bool:
        """Whether each of the two hears the other, as far as is known here."""
        return self._hears(one, other) and self._hears(other, one)

    def _hears(self, one: ProcessId, other: ProcessId) -> bool:
        if one == self.me:
            return self._incarnations.get(other.name) == other
        alive = self._alive.get(one)
        return alive is not None and other in alive.hears
