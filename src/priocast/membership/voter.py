"""The voter's side of the agreement on a view: promise, flush, accept, install.

    Prepare ─▶ promise: the epoch is frozen      Propose ─▶ flush ─▶ accept
    Install ─▶ flush, if need be ─▶ the next view begins

A voter follows the highest ballot that it has promised to. It tells later proposers what it has accepted: in
a primary group, that is why a view that may have been decided is never replaced by another one.
"""

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.neighbours import Neighbours
from priocast.membership.outputs import AcceptProposal, InstallView, MembershipOutput, SendControl
from priocast.membership.packets import (
    FLUSH_PACKETS_MAX,
    TEXT_LENGTH_MAX,
    Ballot,
    Declined,
    FlushReply,
    FlushRequest,
    Install,
    Prepare,
    Promise,
    Proposal,
    Propose,
)

_FLUSH_REPLY_BYTES_MAX = 256 * 1024


class Voter:
    """What one member has promised and accepted, and which packets of the old view it still lacks.

    `promised` is the ballot that it follows in the current view change; None if there is none.
    """

    def __init__(self, me: ProcessId, neighbours: Neighbours, *, primary: bool = False) -> None:
        self.promised: Ballot | None = None
        self.accepted_in: Ballot | None = None
        self.accepted: Proposal | None = None
        self.active_at = 0
        self.froze_at = 0
        self._me = me
        self._primary = primary
        self._neighbours = neighbours
        self._view: View | None = None
        self._epoch: Epoch | None = None
        self._epoch_before: Epoch | None = None
        self._proposed: Propose | None = None
        self._install: Install | None = None
        self._holders_tried = 0
        self._asked: dict[tuple[ProcessId, ProcessId], int] = {}

    def on_prepare(
        self, process: ProcessId, prepare: Prepare, objection: str, now: int
    ) -> list[MembershipOutput]:
        """Promise to follow no lower ballot, and report this member's state; or decline."""
        ballot = prepare.ballot
        if process != ballot.proposer or self._me not in prepare.voters:
            return []
        if self.promised is not None and ballot < self.promised:
            return self._decline(ballot, "a higher ballot is in progress")
        if ballot != self.promised:
            if objection:
                return self._decline(ballot, objection)
            if self.promised is None:
                self.froze_at = now
            self.promised = ballot
            self._proposed = None
            if self._epoch is not None:
                self._epoch.freeze(now)
        self.active_at = now
        return [SendControl(ballot.proposer, self._promise(ballot))]

    def on_propose(self, process: ProcessId, propose: Propose, now: int) -> list[MembershipOutput]:
        """Accept, as soon as all packets of the old view that count are here."""
        if process != propose.ballot.proposer:
            return []
        if self.promised != propose.ballot:
            return self._decline(propose.ballot, "not promised")
        if not self._may_judge(propose.proposal):
            return self._decline(propose.ballot, "this member's view has changed")
        self.active_at = now
        self._proposed = propose
        return self._advance(now)

    def on_install(self, _: ProcessId, install: Install, now: int) -> list[MembershipOutput]:
        """The proposal was decided."""
        proposal, view = install.proposal, self._view
        if view is not None and proposal.view.number <= view.number:
            return []
        # In a primary group a quorum has decided, whatever this voter accepted in an earlier round. In a
        # partitionable one all voters decide, and another proposal may be decided with this one's vote.
        is_bound = not self._primary and self.accepted is not None and self.accepted != proposal
        if not self._is_concerned(proposal) or is_bound:
            return []
        if self._epoch is not None:
            self._epoch.freeze(now)
        self.active_at = now
        self._install = install
        return self._advance(now)

    def on_flush_request(self, process: ProcessId, request: FlushRequest, _: int) -> list[MembershipOutput]:
        """Send packets of this view or the one before: as many as a reply may carry, by count and bytes."""
        for epoch in (self._epoch, self._epoch_before):
            if epoch is None or epoch.view.id != request.view or process not in epoch.ranks:
                continue
            if request.sender in epoch.ranks:
                rank = epoch.ranks[request.sender]
                last = min(request.last, request.first + FLUSH_PACKETS_MAX - 1)
                bodies = epoch.stability.bodies(rank, request.first, last, _FLUSH_REPLY_BYTES_MAX)
                if bodies:
                    reply = FlushReply(request.view, request.sender, request.first, tuple(bodies))
                    return [SendControl(process, reply)]
        return []

    def on_flush_reply(self, process: ProcessId, reply: FlushReply, now: int) -> list[MembershipOutput]:
        """Packets came that this member lacked, if it has asked this process for them."""
        epoch = self._epoch
        last = self._asked.get((process, reply.sender), 0)
        if epoch is None or epoch.view.id != reply.view or reply.first > last:
            return []
        self.active_at = now
        asked = msgspec.structs.replace(reply, bodies=reply.bodies[: last - reply.first + 1])
        epoch.on_flush_reply(asked, now)
        return self._advance(now)

    def on_tick(self, now: int) -> list[MembershipOutput]:
        """Ask again for packets that did not come."""
        if self._install is None and self._proposed is None:
            return []
        self._holders_tried += 1
        return self._advance(now)

    def on_view(self, epoch: Epoch | None) -> None:
        """A view was installed: promises and acceptances for it are over. None: one without this member."""
        if epoch is not None:
            self._epoch_before, self._epoch, self._view = self._epoch, epoch, epoch.view
        self.accepted = self.accepted_in = self.promised = None
        self._proposed = self._install = None
        self._holders_tried = 0
        self._asked.clear()

    def _promise(self, ballot: Ballot) -> Promise:
        epoch = self._epoch
        received = tuple(epoch.stability.received) if epoch else ()
        acknowledged: tuple[tuple[int, ...], ...] = ()
        if epoch is not None and not self._primary:  # half a megabyte in the largest view
            acknowledged = tuple(map(tuple, epoch.stability.acknowledged))
        return Promise(ballot, self._view, received, acknowledged, self.accepted_in, self.accepted)

    def _decline(self, ballot: Ballot, reason: str) -> list[MembershipOutput]:
        return [
            SendControl(ballot.proposer, Declined(ballot, self.promised or ballot, reason[:TEXT_LENGTH_MAX]))
        ]

    def _may_judge(self, proposal: Proposal) -> bool:
        """Whether the proposal ends this member's view, with or without it, or begins its first one.

        A proposal that is made again may exclude members that vote on it now: it was made without them.
        """
        view = self._view
        if view is None:
            return all(self._me not in plan.members for plan in proposal.flush_plans)
        return proposal.flush_plan_of(view.id) is not None

    def _is_concerned(self, proposal: Proposal) -> bool:
        """Whether this member continues, begins or leaves with the proposal."""
        if not self._may_judge(proposal):
            return False
        if self._epoch is None:
            return self._me in proposal.view.members
        return any(self._me in plan.members for plan in proposal.flush_plans)

    def _advance(self, now: int) -> list[MembershipOutput]:
        """Request the packets that are missing; if none are, install or accept."""
        install, propose = self._install, self._proposed
        if install is not None:
            requests = self._missing(install.proposal, now)
            return requests or [InstallView(install.proposal, install.digest)]
        if propose is None:
            return []
        requests = self._missing(propose.proposal, now)
        if requests:
            return requests
        if self._epoch is not None or self._is_concerned(propose.proposal):
            self.accepted_in, self.accepted = propose.ballot, propose.proposal
        return [AcceptProposal(propose.ballot, propose.proposal)]

    def _missing(self, proposal: Proposal, now: int) -> list[MembershipOutput]:
        """The request for the next packets that are missing, if any are."""
        epoch = self._epoch
        plan = proposal.flush_plan_of(epoch.view.id) if epoch else None
        missing = epoch.missing(plan) if epoch and plan else None
        if epoch is None or plan is None or missing is None:
            return []
        holder, sender, first, last = missing
        if self._holders_tried or not self._neighbours.trusts(holder, now):
            others = [member for member in plan.members if member != self._me]
            holder = others[self._holders_tried % len(others)] if others else holder
        self._asked[holder, sender] = last
        return [SendControl(holder, FlushRequest(epoch.view.id, sender, first, last))]
