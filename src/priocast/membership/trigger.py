"""ViewChangeTrigger: whether the view suits us, and if not, whose turn it is to say so.

A wish that differs from the view calls for a round. The first of its voters holds it once things have
settled; the others leave it time to do so, the longer the further back they stand.
"""

from typing import Protocol

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Ordering
from priocast.membership.proposer import Proposer
from priocast.membership.target_view import TargetView, TargetViewPlanner
from priocast.membership.voter import Voter


class Host(Protocol):
    """The member that deliberates."""

    @property
    def me(self) -> ProcessId: ...
    @property
    def view(self) -> View | None: ...
    @property
    def options(self) -> MembershipOptions: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def wishes(self) -> TargetViewPlanner: ...
    @property
    def voter(self) -> Voter: ...
    @property
    def proposer(self) -> Proposer: ...
    @property
    def ordering(self) -> Ordering: ...
    @property
    def installed_at(self) -> int: ...


class ViewChangeTrigger:
    """What one member makes of whom it hears. `ordering_next` is an order that somebody asked for."""

    def __init__(self, host: Host, now: int) -> None:
        self._host = host
        self.ordering_next: Ordering | None = None
        self._began_at = now
        self._key: object = None
        self._wished_at = now

    def wish(self, now: int) -> TargetView | None:
        """What this member wants now; None if there is nothing that it could want."""
        return self._host.wishes.form(self._host.view, now - self._began_at, now)

    def act_on(self, wish: TargetView | None, now: int) -> None:
        """Hold a round on the wish, if it differs from the view and it is our turn."""
        host = self._host
        if wish is None or not self._needs_round(wish, now):
            self._key = None
            return
        key = (wish, host.voter.promised, self.ordering_next)
        if key != self._key:
            self._key = key
            self._wished_at = now
        if host.proposer.may_start(now) and now - self._wished_at >= self._patience_ns(wish, now):
            host.proposer.start(wish, self.ordering_next or host.ordering, self._reason(wish), now)

    def installed(self) -> None:
        """A view has begun; what was wished for before is history."""
        self._key = None
        if self.ordering_next == self._host.ordering:
            self.ordering_next = None

    def objection_to(self, proposer: ProcessId, voters: tuple[ProcessId, ...], now: int) -> str | None:
        """Why this member will not vote on a view of these, if so."""
        host = self._host
        primary, founders = host.options.primary, host.options.founders
        if primary and host.view is not None and proposer not in host.view.members:
            return f"{proposer.name} is not a member"
        founding = host.view is None and all(host.neighbours.view_of(voter) is None for voter in voters)
        if primary and founding and len(voters) != founders:
            return f"{host.me.name} expects {founders} founders, not {len(voters)}"
        for voter in voters:
            if voter != host.me and not host.neighbours.trusts(voter, now):
                return f"{host.me.name} does not hear {voter.name}"
        wish = self.wish(now)
        left_out = [process.name for process in wish.voters if process not in voters] if wish else []
        return f"it leaves out {', '.join(left_out)}" if left_out else None

    def others_wait(self, now: int) -> bool:
        """Whether somebody is there who has to let this member go first."""
        host = self._host
        return host.view is not None and any(
            host.neighbours.trusts(member, now) and not host.neighbours.is_leaving(member)
            for member in host.view.members
            if member != host.me
        )

    def _needs_round(self, wish: TargetView, now: int) -> bool:
        view = self._host.view
        if view is None or self._host.voter.changing or self.ordering_next is not None:
            return True
        if set(wish.members) != set(view.members):
            return True
        return any(self._is_estranged(member, view, now) for member in view.members)

    def _is_estranged(self, member: ProcessId, view: View, now: int) -> bool:
        """Whether a member of the view has long been in another one."""
        host = self._host
        if member == host.me or now - host.installed_at < host.options.failure_ns:
            return False
        return host.neighbours.view_of(member) != view.id

    def _patience_ns(self, wish: TargetView, now: int) -> int:
        host = self._host
        rank = wish.voters.index(host.me)
        asked_for = host.wishes.leaving or host.wishes.evicted or self.ordering_next
        settling_ns = 0 if asked_for else host.options.heartbeat_ns // 2
        patience = settling_ns + rank * host.options.failure_ns // 2
        if host.voter.changing and now - host.voter.active_at < host.options.failure_ns:
            patience = max(patience, host.options.failure_ns)
        return patience

    def _reason(self, wish: TargetView) -> str:
        """What the application is told about the next view."""
        host = self._host
        if host.view is None:
            return "the group was founded"
        before = host.view.members
        said = [f"{process.name} joined" for process in wish.members if process not in before]
        for process in before:
            if process not in wish.voters:
                said.append(f"{process.name} failed")
            elif process in host.wishes.evicted:
                said.append(f"{process.name} {host.wishes.evicted[process]}")
            elif process not in wish.members:
                said.append(f"{process.name} left")
        if self.ordering_next is not None:
            said.append(f"the order changes to {self.ordering_next.order}")
        return "; ".join(said) or "the view was renewed"
