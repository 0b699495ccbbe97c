"""One round of the agreement on a view, on the proposer's side: from the first question to the decision.

    preparing ── all voters promised ──▶ proposing ── enough accepted ──▶ decided
        └────────────── a voter declines, is suspected, or a higher ballot exists ─▶ given up

In a primary group this is single-decree Paxos among the members of the last view: what a quorum of them has
accepted is decided, and a proposal that may have been decided is proposed again instead of a new one. In a
partitionable group all voters must accept; there is nothing to protect beyond them.
"""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import Part, View, ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.delivery_table import merged
from priocast.membership.outputs import StartRound
from priocast.membership.packets import (
    Accepted,
    Ballot,
    Control,
    FlushPlan,
    Install,
    OrderDigest,
    Prepare,
    Promise,
    Proposal,
    Propose,
)
from priocast.membership.quorum import is_quorum


class Round:
    """One ballot: what to ask which voters, and what they answered. `view` is the proposer's view.

    `members` are those of the next view, unless a view must be proposed again that was accepted before.
    """

    def __init__(self, ballot: Ballot, start: StartRound, view: View | None, primary: bool, now: int) -> None:
        self.ballot = ballot
        self.started_at = self.moved_at = now
        self.voters, self.members = start.target.voters, start.target.members
        self.proposal: Proposal | None = None
        self.declined: list[ProcessId] = []
        self._start = start
        self._view = view
        self._primary = primary
        self._promises: dict[ProcessId, Promise] = {}
        self._digests: dict[ProcessId, OrderDigest] = {}

    def waiting_for(self) -> tuple[ProcessId, ...]:
        """The voters that have not answered yet."""
        answered = self._promises if self.proposal is None else self._digests
        return tuple(voter for voter in self.voters if voter not in answered)

    def question(self) -> Control:
        """The question to the voters that have not answered."""
        if self.proposal is None:
            return Prepare(self.ballot, self.voters)
        return Propose(self.ballot, self.proposal)

    def on_promise(self, voter: ProcessId, promise: Promise, now: int) -> bool:
        """A voter promised; return whether all have, so that there is a proposal now."""
        if promise.ballot != self.ballot or voter not in self.voters or self.proposal is not None:
            return False
        if any(_contradict(each.view, promise.view) for each in self._promises.values()):
            raise PeerFault(f"{voter} is in a view of which another voter knows other members")
        self._promises[voter] = promise
        self.moved_at = now
        if len(self._promises) < len(self.voters):
            return False
        assert not self.declined or set(self.declined) <= set(self._promises)
        self.proposal = self._proposal()
        return True

    def on_declined(self, voter: ProcessId) -> bool:
        """A voter declined; return whether all voters have answered."""
        if voter in self.voters and voter not in self.declined:
            self.declined.append(voter)
        return len(self.declined) + len(self._promises) >= len(self.voters)

    def on_accepted(self, voter: ProcessId, accepted: Accepted, now: int) -> None:
        """A voter accepted the proposal."""
        if accepted.ballot == self.ballot and voter in self.voters and self.proposal is not None:
            if voter not in self._digests:
                self.moved_at = now  # voters repeat themselves, which is no progress
            self._digests[voter] = accepted.digest

    def is_decided(self, hurried: bool) -> bool:
        """Whether the proposal is decided; unless hurried, wait for all of its voters."""
        all_accepted = len(self._digests) == len(self.voters)
        if self.proposal is None or not (all_accepted or (hurried and self._primary)):
            return False
        # The last view decides, of which a quorum is enough; or the founders.
        electorate = self._view or self.proposal.view
        return not self._primary or is_quorum(electorate.members, self._digests)

    def decision(self) -> Install:
        """The datagram that announces the decision."""
        assert self.proposal is not None
        old_members = [member for plan in self.proposal.flush_plans for member in plan.members]
        digests = [self._digests[member] for member in old_members if member in self._digests]
        if self._primary:
            assert digests or not old_members, "a member of the old view has accepted"
            # All are equal unless a voter is faulty: a proposer that was in the old view believes its own.
            proposer = self.ballot.proposer
            own = self._digests.get(proposer) if proposer in old_members else None
            digests = digests[:1] if own is None else [own]
        return Install(self.proposal, merged(digests or [OrderDigest(0)]))

    def _proposal(self) -> Proposal:
        if self._primary:
            number = (self._view.number if self._view else 0) + 1
            # What only joining processes accepted cannot have been decided: they are no electors.
            electors = [
                promise
                for promise in self._promises.values()
                if self._view is None or promise.view is not None
            ]
            accepted = [
                (promise.accepted_in, promise.accepted)
                for promise in electors
                if promise.accepted_in and promise.accepted and promise.accepted.view.number == number
            ]
            if accepted:
                # It may have been decided, so it must not be replaced.
                return max(accepted, key=lambda pair: pair[0])[1]
        return self._new_proposal()

    def _new_proposal(self) -> Proposal:
        by_view = self._by_view()
        view = self._next_view(by_view)
        plans = tuple(self._flush_plan(ended, by_view[ended]) for ended in by_view if ended is not None)
        return Proposal(view, plans, self._start.ordering, self._reason(view))

    def _next_view(self, by_view: dict[ViewId | None, list[ProcessId]]) -> View:
        numbers = [0]
        for promise in self._promises.values():
            numbers.append(promise.view.number if promise.view else 0)
            numbers.append(promise.accepted.view.number if promise.accepted else 0)
        if self._primary:
            numbers = [self._view.number if self._view else 0]
        parts = []
        for view_id, voters in by_view.items():
            staying = tuple(voter for voter in voters if voter in self._start.target.members)
            if staying:
                parts.append(Part(view_id, staying))
        members = tuple(member for part in parts for member in part.members)
        return View(max(numbers) + 1, members, tuple(parts))

    def _by_view(self) -> dict[ViewId | None, list[ProcessId]]:
        """The voters by the view that they come from: the largest first, those without a view last."""
        by_view: dict[ViewId | None, list[ProcessId]] = {}
        for voter in self.voters:
            view = self._promises[voter].view
            by_view.setdefault(view.id if view else None, []).append(voter)
        joiners = by_view.pop(None, [])
        ordered: dict[ViewId | None, list[ProcessId]] = {}
        for view_id in sorted(by_view, key=lambda each: (-len(by_view[each]), each)):
            view = self._promises[by_view[view_id][0]].view
            assert view is not None
            ordered[view_id] = sorted(by_view[view_id], key=view.members.index)
        if joiners:
            ordered[None] = sorted(joiners)
        return ordered

    def _flush_plan(self, view_id: ViewId, voters: list[ProcessId]) -> FlushPlan:
        """A packet that one of those who continue has received counts for all of them."""
        promises = [self._promises[voter] for voter in voters]
        columns = list(zip(*(promise.received for promise in promises), strict=True))
        counts = tuple(max(column) for column in columns)
        holders = tuple(column.index(max(column)) for column in columns)
        acknowledged: tuple[tuple[int, ...], ...] = ()
        if not self._primary:
            matrices = [promise.acknowledged for promise in promises]
            acknowledged = tuple(
                tuple(max(values) for values in zip(*rows, strict=True))
                for rows in zip(*matrices, strict=True)
            )
        return FlushPlan(view_id, tuple(voters), counts, holders, acknowledged)

    def _reason(self, view: View) -> ViewReason:
        """What is new in the view, compared with the views that its voters come from."""
        old = {promise.view.id: promise.view for promise in self._promises.values() if promise.view}
        before = dict.fromkeys(member for old_view in old.values() for member in old_view.members)
        parts = [part for part in view.parts if part.view is not None]
        joined = [member for part in view.parts if part.view is None for member in part.members]
        excluded = [member.name for member in before if member in self.voters and member not in view.members]
        evicted = tuple(each for each in self._start.evictions if each.member in excluded)
        evicted_names = {each.member for each in evicted}
        return ViewReason(
            founded=not before,
            joined=tuple(member.name for member in joined) if before else (),
            left=tuple(name for name in excluded if name not in evicted_names),
            failed=tuple(member.name for member in before if member not in self.voters),
            evicted=evicted,
            merged=tuple(member.name for part in parts[1:] for member in part.members),
            order=self._start.ordering.order if self._start.reorders else "",
        )


def _contradict(one: View | None, other: View | None) -> bool:
    """Whether two views have the same id and are not the same."""
    return one is not None and other is not None and one.id == other.id and one != other
