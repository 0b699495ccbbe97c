"""The trigger of a view change: whether the view must change, and whether this member proposes the next one.

A target view that differs from the view needs a round. Its first voter starts the round once the group has
settled. The other voters leave it time to do so, the more the later they come in the target view.
"""

from priocast.core.identity import ProcessId
from priocast.core.view import View, ViewId
from priocast.core.view_reason import DETAIL_LENGTH_MAX, Eviction, EvictionCause, ViewReason
from priocast.membership.departure import Departed
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.outputs import LeaveAtOnce, MembershipOutput, SendControl, StartRound
from priocast.membership.packets import Ballot, ChangeOrder, Ordering
from priocast.membership.target_view import GroupSituation, TargetView, TargetViewPlanner


class ViewChangeTrigger:
    """Decides when a member starts a round.

    `leaving`: the application asked to leave. `may_found`: in a primary group, a process that has heard of a
    view must not found another one. `evictions`: members that the next view shall exclude, and why.
    `ordering_next`: an order that somebody asked for. `suspended`: this member is in a view, but cannot be in
    the next one, so nothing may be ordered.
    """

    def __init__(
        self,
        me: ProcessId,
        options: MembershipOptions,
        neighbours: Neighbours,
        ordering: Ordering,
        may_found: bool,
        now: int,
    ) -> None:
        self.leaving = False
        self.may_found = may_found
        self.evictions: dict[ProcessId, Eviction] = {}
        self.ordering_next: Ordering | None = None
        self.suspended = False
        self._me = me
        self._options = options
        self._neighbours = neighbours
        self._view: View | None = None
        self._ordering = ordering
        self._installed_at = now
        self._target: TargetView | None = None
        self._target_basis: tuple[GroupSituation, int] | None = None
        self._pending: object = None
        self._pending_since = now
        self._withdrawal: Eviction | None = None

    # Inputs

    def on_evaluate(self, promised: Ballot | None, active_at: int, now: int) -> list[MembershipOutput]:
        """See whether the view should change, and start a round if it is this member's turn.

        `promised` is the ballot that this member has promised to follow in the current view change, if there
        is one, and `active_at` when it last advanced.
        """
        target = self.target(now)
        if target is not None and any(member in self.evictions for member in target.members):
            self.evictions.clear()  # nobody else has the state of the view
        self.suspended = target is None and self._view is not None
        if self.leaving and (target is None or self._view is None) and not self._others_stay(now):
            return [LeaveAtOnce()]
        if target is None or not self._needs_round(target, promised, now):
            self._pending = None
            return []
        pending = (target, promised, self.ordering_next)
        if pending != self._pending:
            self._pending = pending
            self._pending_since = now
        if now - self._pending_since < self._patience_ns(target, promised, active_at, now):
            return []
        evictions = tuple(self.evictions.values())
        reorders = self.ordering_next is not None
        return [StartRound(target, self.ordering_next or self._ordering, evictions, reorders)]

    def on_view(self, view: View, ordering: Ordering, now: int) -> None:
        """A view was installed."""
        self._view, self._ordering, self._installed_at = view, ordering, now
        self._pending = None
        self.suspended = False
        self.evictions = {
            member: eviction for member, eviction in self.evictions.items() if member in view.members
        }
        if self.ordering_next == ordering:
            self.ordering_next = None

    def on_leave(self, eviction: Eviction | None) -> None:
        """The application asked to leave; or the member leaves because it would be evicted like this."""
        self.leaving = True
        self._withdrawal = self._withdrawal or eviction

    def on_evict(self, member: ProcessId, cause: EvictionCause, detail: str) -> bool:
        """A member must be evicted; return whether that is news."""
        if self._view is None or member not in self._view.members or member in self.evictions:
            return False
        self.evictions[member] = Eviction(member.name, cause, detail[:DETAIL_LENGTH_MAX])
        return True

    def on_change_order(self, view: ViewId, ordering: Ordering) -> bool:
        """A member of this view asks for another order; return whether that is news."""
        if self._view is None or view != self._view.id or ordering == self._ordering:
            return False
        self.ordering_next = ordering
        return True

    def on_tick(self) -> list[MembershipOutput]:
        """Ask the coordinator for the order that this member wants, until it orders."""
        if self.ordering_next is None or self._view is None:
            return []
        if self.ordering_next == self._ordering:
            self.ordering_next = None
            return []
        if self._view.coordinator == self._me:
            return []
        return [SendControl(self._view.coordinator, ChangeOrder(self._view.id, self.ordering_next))]

    # Queries

    def departed(self, reason: ViewReason) -> Departed:
        """How this member departs with a view that has this reason: a withdrawal is like an eviction."""
        if self._withdrawal is not None:
            return Departed(False, ViewReason(evicted=(self._withdrawal,)))
        return Departed(self.leaving, reason)

    def target(self, now: int) -> TargetView | None:
        """The view that this member would propose now; None if it can be in no view."""
        neighbours = self._neighbours
        situation = GroupSituation(
            me=self._me,
            options=self._options,
            view=self._view,
            peers=neighbours.peers(now),
            reachability=neighbours.reachability,
            avoided=neighbours.avoided(now),
            leaving=self.leaving,
            evicted=frozenset(self.evictions),
            may_found=self.may_found,
        )
        basis = situation, neighbours.reachability.revision
        if basis != self._target_basis:
            self._target_basis, self._target = basis, TargetViewPlanner(situation).target()
        return self._target

    def objection_to(self, proposer: ProcessId, voters: tuple[ProcessId, ...], now: int) -> str:
        """Why this member does not vote on a view of these voters; empty if it does."""
        me, view, neighbours = self._me, self._view, self._neighbours
        primary, founders = self._options.primary, self._options.founders
        if primary and view is not None and proposer not in view.members:
            return f"{proposer.name} is not a member"
        founding = view is None and all(neighbours.view_of(voter) is None for voter in voters)
        if founding and len(voters) != founders:
            return f"{me.name} expects {founders} founders, not {len(voters)}"
        for voter in voters:
            if voter != me and not neighbours.trusts(voter, now):
                return f"{me.name} does not hear {voter.name}"
        target = self.target(now)
        missing = [process.name for process in target.voters if process not in voters] if target else []
        return f"it leaves out {', '.join(missing)}" if missing else ""

    def _others_stay(self, now: int) -> bool:
        """Whether another member of the view is alive and does not leave, and so has to agree."""
        return self._view is not None and any(
            self._neighbours.trusts(member, now) and not self._neighbours.is_leaving(member)
            for member in self._view.members
            if member != self._me
        )

    def _needs_round(self, target: TargetView, promised: Ballot | None, now: int) -> bool:
        view = self._view
        if view is None or promised is not None or self.ordering_next is not None:
            return True
        if set(target.members) != set(view.members):
            return True
        if now - self._installed_at < self._options.failure_ns:
            return False
        # A member that has long been in another view must be brought back into one view with the others.
        others = (member for member in view.members if member != self._me)
        return any(self._neighbours.view_of(member) != view.id for member in others)

    def _patience_ns(self, target: TargetView, promised: Ballot | None, active_at: int, now: int) -> int:
        """How long the need for a round must have lasted before this member starts it."""
        failure_ns = self._options.failure_ns
        requested = self.leaving or self.evictions or self.ordering_next
        settling_ns = 0 if requested else self._options.heartbeat_ns // 2
        patience_ns = settling_ns + target.voters.index(self._me) * failure_ns // 2
        if promised is not None and now - active_at < failure_ns:
            patience_ns = max(patience_ns, failure_ns)
        return patience_ns
