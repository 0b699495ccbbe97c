"""The voter's side of the agreement on a view: promise, fetch what is missing, accept, install.

    Prepare ─▶ promise: the epoch is frozen      Propose ─▶ fetch the cut ─▶ accept
    Install ─▶ fetch the cut, if need be ─▶ the next view begins

A voter follows the highest ballot that it has promised. What it accepted it tells whoever proposes next: in a
primary group that is how a view that may have been decided is never replaced by another one.
"""

from typing import Protocol

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.packets import (
    Accepted,
    Ballot,
    Control,
    Declined,
    FlushReply,
    FlushRequest,
    Install,
    OrderDigest,
    Prepare,
    Promise,
    Proposal,
    Propose,
)

_SUPPLY_BYTES_CUT = 256 * 1024


class Host(Protocol):
    """The member that votes."""

    @property
    def me(self) -> ProcessId: ...
    @property
    def view(self) -> View | None: ...
    @property
    def epoch(self) -> Epoch | None: ...
    def tell(self, process: ProcessId, control: Control) -> None: ...
    def objection_to(self, proposer: ProcessId, voters: tuple[ProcessId, ...], now: int) -> str | None: ...
    def digest_after(self, proposal: Proposal) -> OrderDigest: ...
    def install(self, proposal: Proposal, digest: OrderDigest, now: int) -> None: ...
    def trusts(self, process: ProcessId, now: int) -> bool: ...


class Voter:
    """What one member promised and accepted, and what it still lacks of the old view."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.promised: Ballot | None = None
        self.accepted_in: Ballot | None = None
        self.accepted: Proposal | None = None
        self.active_at = 0
        self.froze_at = 0
        self._proposed: Propose | None = None
        self._install: Install | None = None
        self._holders_tried = 0

    @property
    def changing(self) -> bool:
        """Whether a promise was given and no view has been installed since."""
        return self.promised is not None

    def on_prepare(self, prepare: Prepare, now: int) -> None:
        """Promise to follow no lower ballot, and say where this member stands; or say why not."""
        ballot = prepare.ballot
        if self.promised is not None and ballot < self.promised:
            self._decline(ballot, "a higher ballot is under way")
            return
        if ballot != self.promised:
            objection = self._host.objection_to(ballot.proposer, prepare.voters, now)
            if objection:
                self._decline(ballot, objection)
                return
            self.froze_at = self.froze_at if self.changing else now
            self.promised = ballot
            self._proposed = None
            if self._host.epoch is not None:
                self._host.epoch.freeze(now)
        self.active_at = now
        self._promise(ballot)

    def on_propose(self, propose: Propose, now: int) -> None:
        """Accept, as soon as all of the old view's packets that count are here."""
        if self.promised != propose.ballot:
            self._decline(propose.ballot, "not promised")
            return
        if not self._may_judge(propose.proposal):
            self._decline(propose.ballot, "this member's view has changed")
            return
        self.active_at = now
        self._proposed = propose
        self._go_on(now)

    def on_install(self, install: Install, now: int) -> None:
        """Somebody knows that the proposal was decided."""
        proposal, view = install.proposal, self._host.view
        if view is not None and proposal.view.number <= view.number:
            return
        accepted_another = self.accepted is not None and self.accepted != proposal
        if not self._is_concerned(proposal) or accepted_another:
            return
        if self._host.epoch is not None:
            self._host.epoch.freeze(now)
        self.active_at = now
        self._install = install
        self._go_on(now)

    def on_fetch(self, process: ProcessId, fetch: FlushRequest, epochs: tuple[Epoch | None, ...]) -> None:
        """Hand out packets of a view that this member has taken part in."""
        for epoch in epochs:
            if epoch is not None and epoch.view.id == fetch.view and fetch.sender in epoch.ranks:
                rank = epoch.ranks[fetch.sender]
                bodies = epoch.stability.bodies(rank, fetch.first, fetch.last, _SUPPLY_BYTES_CUT)
                if bodies:
                    self._host.tell(process, FlushReply(fetch.view, fetch.sender, fetch.first, tuple(bodies)))

    def on_flush_reply(self, supply: FlushReply, now: int) -> None:
        """Packets that this member lacked."""
        epoch = self._host.epoch
        if epoch is not None and epoch.view.id == supply.view:
            self.active_at = now
            epoch.supply(supply.sender, supply.first, supply.bodies, now)
            self._go_on(now)

    def repeat(self, now: int) -> None:
        """Say again what was said and not answered."""
        if self._install is not None or self._proposed is not None:
            self._holders_tried += 1
            self._go_on(now)

    def installed(self) -> None:
        """A view has begun: what was promised and accepted for it is history."""
        self.accepted = self.accepted_in = self.promised = None
        self._proposed = self._install = None
        self._holders_tried = 0

    def _promise(self, ballot: Ballot) -> None:
        epoch = self._host.epoch
        held = tuple(epoch.stability.received) if epoch else ()
        known = tuple(tuple(row) for row in epoch.stability.acknowledged) if epoch else ()
        promise = Promise(ballot, self._host.view, held, known, self.accepted_in, self.accepted)
        self._host.tell(ballot.proposer, promise)

    def _decline(self, ballot: Ballot, reason: str) -> None:
        self._host.tell(ballot.proposer, Declined(ballot, self.promised or ballot, reason))

    def _may_judge(self, proposal: Proposal) -> bool:
        """Whether the proposal ends this member's view, with or without it; or begins its first one.

        A proposal that is made again may leave out members that vote on it now: it was made without them.
        """
        view = self._host.view
        if view is None:
            return all(self._host.me not in plan.members for plan in proposal.flush_plans)
        plan = proposal.flush_plan_of(view.id)
        if plan is not None and len(plan.counts) != len(view.members):
            raise PeerFault(f"a proposal cuts view {view.id} at {len(plan.counts)} members")
        return plan is not None

    def _is_concerned(self, proposal: Proposal) -> bool:
        """Whether this member goes on, begins or leaves with the proposal."""
        if not self._may_judge(proposal):
            return False
        if self._host.view is None:
            return self._host.me in proposal.view.members
        return any(self._host.me in plan.members for plan in proposal.flush_plans)

    def _go_on(self, now: int) -> None:
        """FlushRequest what is missing, or do what waits for it."""
        install, propose = self._install, self._proposed
        if install is not None:
            if not self._fetch(install.proposal, now):
                self._host.install(install.proposal, install.digest, now)
            return
        if propose is None or self._fetch(propose.proposal, now):
            return
        ballot, proposal = propose.ballot, propose.proposal
        if self._host.view is not None or self._is_concerned(proposal):
            self.accepted_in, self.accepted = ballot, proposal
        self._host.tell(ballot.proposer, Accepted(ballot, self._host.digest_after(proposal)))

    def _fetch(self, proposal: Proposal, now: int) -> bool:
        """Ask for what is missing of the cut; return whether anything is."""
        epoch = self._host.epoch
        plan = proposal.flush_plan_of(epoch.view.id) if epoch else None
        if epoch is None or plan is None:
            return False
        missing = epoch.missing(plan)
        if missing is None:
            return False
        holder, sender, first, last = missing
        if self._holders_tried or not self._host.trusts(holder, now):
            others = [member for member in plan.members if member != self._host.me]
            holder = others[self._holders_tried % len(others)] if others else holder
        self._host.tell(holder, FlushRequest(epoch.view.id, sender, first, last))
        return True
