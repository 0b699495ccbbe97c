"""What must hold of a datagram before anything acts on it, by its type.

Decoding has bounded every length and number. Here a datagram is compared with what this member knows: who
sent it, the members and the packets of its view, the rounds so far, the orders that exist. What does not hold
is the sender's fault. A datagram that is merely late, or meant for an earlier incarnation of this process, is
no fault: the handlers ignore it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from priocast.core.errors import FarAhead, InvalidInput, PeerFault
from priocast.core.identity import NUMBER_MAX, STEP_MAX, ProcessId, is_name
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MEMBERS_MAX
from priocast.membership.packets import (
    Accepted,
    Ballot,
    ChangeOrder,
    Control,
    Declined,
    EvictionNotice,
    FlushPlan,
    FlushReply,
    FlushRequest,
    Heartbeat,
    Install,
    LaterIncarnation,
    OptionsMismatch,
    OrderDigest,
    Ordering,
    Prepare,
    Promise,
    Proposal,
    Propose,
    StabilityReport,
    StateChunk,
)
from priocast.membership.quorum import is_quorum

_BEFORE_OPTIONS = (Heartbeat, LaterIncarnation, OptionsMismatch)
_FAR_ROUND, _FAR_VIEW, _FAR_POSITION = (
    f"the {number} is far ahead" for number in ("round", "view", "position")
)
_FAR_AHEAD = (_FAR_ROUND, _FAR_VIEW, _FAR_POSITION)

CheckOrdering = Callable[[Ordering], object]
_Requirement = tuple[bool, str]
_Requirements = Iterable[_Requirement]


class DatagramValidator:
    """Checks the datagrams of other processes for one member.

    `check_ordering` raises InvalidInput if an order cannot be used. `epoch` is the part in the view.
    """

    def __init__(
        self, me: ProcessId, primary: bool, neighbours: Neighbours, check_ordering: CheckOrdering
    ) -> None:
        self.epoch: Epoch | None = None
        self._me = me
        self._primary = primary
        self._neighbours = neighbours
        self._check_ordering = check_ordering
        self._ordering_known: Ordering | None = None
        self._round_highest = 0
        self._requirements: dict[type[Control], Callable[[ProcessId, Any], _Requirements]] = {
            Heartbeat: self._of_heartbeat,
            StabilityReport: self._of_stability_report,
            Prepare: self._of_prepare,
            Promise: self._of_promise,
            Declined: self._of_declined,
            Propose: self._of_propose,
            Accepted: self._of_accepted,
            Install: self._of_install,
            FlushRequest: self._of_flush_request,
            FlushReply: self._of_flush_reply,
            EvictionNotice: self._of_eviction_notice,
            LaterIncarnation: self._of_later_incarnation,
            ChangeOrder: self._of_change_order,
            StateChunk: self._of_state_chunk,
        }

    def knows(self, process: ProcessId, control: Control) -> bool:
        """Whether the sender of a datagram is in the view, or has shown that its group options are ours."""
        if isinstance(control, _BEFORE_OPTIONS) or self._neighbours.knows(process):
            return True
        return self.epoch is not None and process in self.epoch.ranks

    def check(self, process: ProcessId, control: Control, round_highest: int) -> None:
        """Raise PeerFault if something does not hold that must; the highest known round is given."""
        requirements_of = self._requirements.get(type(control))
        if requirements_of is None:
            return
        self._round_highest = round_highest
        for holds, requirement in requirements_of(process, control):
            if not holds:
                fault = FarAhead if requirement in _FAR_AHEAD else PeerFault
                raise fault(f"{process} sent a {control.__struct_config__.tag} in which {requirement}")

    @property
    def _view(self) -> View | None:
        return self.epoch.view if self.epoch else None

    # One method for each datagram: what must hold, in the order in which it is checked

    def _of_heartbeat(self, process: ProcessId, heartbeat: Heartbeat) -> _Requirements:
        view, members, own = heartbeat.view, heartbeat.members, self._view
        yield self._is_near(heartbeat.round), _FAR_ROUND
        yield _are_distinct(heartbeat.hears), "the processes that it hears are not distinct"
        yield len(heartbeat.received) == len(members), "the counts are not those of the members"
        if view is None:
            yield not members, "there are members without a view"
            return
        yield self._is_near_view(view.number), _FAR_VIEW
        yield _are_distinct(members), "the members are not distinct"
        yield process in members and members[0] == view.coordinator, "the members are not those of its view"
        if own is not None and view == own.id:
            yield members == own.members, "the members are not those of this view"
            yield self._has_sent(heartbeat.received), "it has received what was never sent"

    def _of_stability_report(self, process: ProcessId, report: StabilityReport) -> _Requirements:
        own = self._view
        if own is not None and report.view == own.id:
            yield process in own.members, "the sender is not in the view"
            yield len(report.received) == len(own.members), "the counts are not those of the members"
            yield self._has_sent(report.received), "it has received what was never sent"

    def _of_prepare(self, process: ProcessId, prepare: Prepare) -> _Requirements:
        yield prepare.ballot.proposer == process, "the ballot is another's"
        yield self._is_near(prepare.ballot.round), _FAR_ROUND
        yield process in prepare.voters, "the proposer does not vote"
        yield _are_distinct(prepare.voters), "the voters are not distinct"
        yield len(prepare.voters) <= MEMBERS_MAX, "there are too many voters"

    def _of_promise(self, process: ProcessId, promise: Promise) -> _Requirements:
        view, own = promise.view, self._view
        yield self._is_mine(promise.ballot), "the ballot is another's"
        yield (promise.accepted is None) == (promise.accepted_in is None), "a proposal has no ballot"
        yield promise.accepted is None or _is_consistent(promise.accepted), "the proposal is inconsistent"
        size = len(view.members) if view else 0
        yield len(promise.received) == size, "the counts are not those of the members"
        rows = promise.acknowledged
        is_square = _is_square(rows, 0 if self._primary else size)
        yield is_square, "the acknowledgements are not those of the members"
        if promise.accepted is not None:
            yield self._is_near_view(promise.accepted.view.number), _FAR_VIEW
            yield self._exists(promise.accepted.ordering), "the order does not exist"
        if view is not None:
            yield self._is_near_view(view.number), _FAR_VIEW
            yield process in view.members, "the sender is not in its view"
            yield _are_distinct(view.members), "a member has an invalid name"
        if own is not None and view is not None and view.id == own.id:
            yield view == own, "the view is another one"
            yield self._has_sent(promise.received), "it has received what was never sent"

    def _of_declined(self, process: ProcessId, declined: Declined) -> _Requirements:
        yield self._is_mine(declined.ballot), "the ballot is another's"
        yield self._is_near(declined.promised.round), _FAR_ROUND

    def _of_propose(self, process: ProcessId, propose: Propose) -> _Requirements:
        yield propose.ballot.proposer == process, "the ballot is another's"
        yield from self._of_proposal(propose.proposal)

    def _of_accepted(self, process: ProcessId, accepted: Accepted) -> _Requirements:
        yield self._is_mine(accepted.ballot), "the ballot is another's"
        yield from self._of_digest(accepted.digest)

    def _of_install(self, process: ProcessId, install: Install) -> _Requirements:
        yield from self._of_proposal(install.proposal)
        yield from self._of_digest(install.digest)

    def _of_digest(self, digest: OrderDigest) -> _Requirements:
        yield _is_unambiguous(digest), "a process has two digests"
        epoch = self.epoch
        position_max = epoch.protocol.position_next + STEP_MAX if epoch else NUMBER_MAX // 2
        yield digest.position <= position_max, _FAR_POSITION

    def _of_flush_request(self, process: ProcessId, request: FlushRequest) -> _Requirements:
        yield 1 <= request.first <= request.last, "no packets are requested"

    def _of_flush_reply(self, process: ProcessId, reply: FlushReply) -> _Requirements:
        own = self._view
        yield reply.first >= 1 and len(reply.bodies) > 0, "there are no packets"
        if own is not None and reply.view == own.id:
            yield process in own.members and reply.sender in own.members, "a process is not in the view"

    def _of_eviction_notice(self, process: ProcessId, notice: EvictionNotice) -> _Requirements:
        own = self._view
        yield notice.process != process, "the sender is the evicted process"
        if own is not None and notice.process == self._me and self._primary:
            yield notice.view == own.id or notice.view.number > own.number, "the view is an earlier one"

    def _of_later_incarnation(self, process: ProcessId, notice: LaterIncarnation) -> _Requirements:
        yield notice.known.incarnation <= NUMBER_MAX - STEP_MAX, "the incarnation uses up the numbers"

    def _of_change_order(self, process: ProcessId, change: ChangeOrder) -> _Requirements:
        own = self._view
        yield self._exists(change.ordering), "the order does not exist"
        if own is not None and change.view == own.id:
            yield process in own.members, "the sender is not in the view"

    def _of_state_chunk(self, process: ProcessId, chunk: StateChunk) -> _Requirements:
        yield chunk.offset + len(chunk.data) <= chunk.size, "the chunk is longer than the state"

    def _of_proposal(self, proposal: Proposal) -> _Requirements:
        own = self._view
        yield self._is_near_view(proposal.view.number), _FAR_VIEW
        yield _is_consistent(proposal), "the proposal is inconsistent"
        yield self._exists(proposal.ordering), "the order does not exist"
        plan = proposal.flush_plan_of(own.id) if own else None
        if own is None or plan is None:
            return
        size = len(own.members)
        yield len(plan.counts) == size, f"the flush plan has {len(plan.counts)} counts for {size} members"
        yield set(plan.members) <= set(own.members), "the flush plan has members of another view"
        yield self._has_sent(plan.counts), "the flush plan counts what was never sent"
        yield proposal.view.number > own.number, "the view is an earlier one"
        if self._primary:
            yield proposal.view.number == own.number + 1, "a view is skipped"
            yield is_quorum(own.members, plan.members), "the flush plan has no quorum"

    # What they have in common

    def _is_mine(self, ballot: Ballot) -> bool:
        """Whether it is a ballot of this process, perhaps of an earlier incarnation."""
        return ballot.proposer.name == self._me.name

    def _is_near(self, round_: int) -> bool:
        """Whether a round is one that may follow; a process that joins does not know how far the group is."""
        return round_ <= (self._round_highest + STEP_MAX if self.epoch else NUMBER_MAX // 2)

    def _is_near_view(self, number: int) -> bool:
        return number <= (self.epoch.view.number + STEP_MAX if self.epoch else NUMBER_MAX // 2)

    def _has_sent(self, counts: Sequence[int]) -> bool:
        """Whether this member has sent as many packets to all in its view as these counts say."""
        assert self.epoch is not None
        rank = self.epoch.ranks[self._me]
        return counts[rank] <= self.epoch.stability.received[rank]

    def _exists(self, ordering: Ordering) -> bool:
        """Whether a view can be ordered like this; mostly it is the order of the last proposal again."""
        if ordering != self._ordering_known:
            try:
                self._check_ordering(ordering)
            except InvalidInput:
                return False
            self._ordering_known = ordering
        return True


def _are_distinct(processes: Sequence[ProcessId]) -> bool:
    """Whether these are valid names of different processes."""
    names = {process.name for process in processes}
    return len(names) == len(processes) and all(map(is_name, names))


def _is_square(rows: Sequence[Sequence[int]], size: int) -> bool:
    return len(rows) == size and all(len(row) == size for row in rows)


def _is_unambiguous(digest: OrderDigest) -> bool:
    return _are_distinct([sender.process for sender in digest.ordered])


def _is_consistent(proposal: Proposal) -> bool:
    """Whether the view, its parts and the flush plans of a proposal fit together."""
    view, plans = proposal.view, {plan.view: plan for plan in proposal.flush_plans}
    parts = {part.view: part.members for part in view.parts}
    return (
        view.number >= 1
        and _are_distinct(view.members)
        and len(plans) == len(proposal.flush_plans)
        and len(parts) == len(view.parts)
        and tuple(member for part in view.parts for member in part.members) == view.members
        and all(_is_consistent_plan(plan) for plan in plans.values())
        and all(
            earlier is None or (earlier in plans and set(members) <= set(plans[earlier].members))
            for earlier, members in parts.items()
        )
    )


def _is_consistent_plan(plan: FlushPlan) -> bool:
    """Whether the parts of a flush plan fit together."""
    size = len(plan.counts)
    return (
        0 < len(plan.members) <= size
        and _are_distinct(plan.members)
        and len(plan.holders) == size
        and all(holder < len(plan.members) for holder in plan.holders)
        and (not plan.acknowledged or _is_square(plan.acknowledged, size))
    )
