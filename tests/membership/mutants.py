"""Deliberate faults in membership, flush and links: each is one mistake that a tired programmer might make.

A mutant is a function that injects the fault for the duration of a test. `test_mutants.py` shows that the
simulator's checkers catch them, `test_scripted_mutants.py` catches those that the simulator meets rarely.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec
import pytest

from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch
from priocast.core.view import View, ViewId
from priocast.links.frame import Frame
from priocast.membership import delivery_table as delivery_table_module
from priocast.membership import epoch as epoch_module
from priocast.membership import round as round_module
from priocast.membership import target_view as target_view_module
from priocast.membership import unordered
from priocast.membership import view_installer as view_installer_module
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.epoch import Epoch
from priocast.membership.failure_detector import FailureDetector
from priocast.membership.incoming_frames import IncomingFrames
from priocast.membership.membership import Membership
from priocast.membership.outputs import MembershipOutput, SendControl
from priocast.membership.packets import FlushPlan, Install, OrderDigest, Prepare, Propose
from priocast.membership.proposer import Proposer
from priocast.membership.round import Round
from priocast.membership.snapshot import Snapshot
from priocast.membership.stability import Stability
from priocast.membership.state_transfer import Donor, Restoration, StateTransfer
from priocast.membership.stream import Stream
from priocast.membership.unordered import UnorderedMessages
from priocast.membership.voter import Voter
from priocast.simulation.host import SimulatedHost

Mutant = Callable[[pytest.MonkeyPatch], None]


# The flush


def flush_plan_counts_only_the_proposers_packets(patch: pytest.MonkeyPatch) -> None:
    """The flush is skipped: packets that only others have received do not count."""
    honest = Round._flush_plan

    def plan(self: Round, view_id: ViewId, voters: list[ProcessId]) -> FlushPlan:
        found = honest(self, view_id, voters)
        own = self._promises.get(self.ballot.proposer)
        if own is None or own.view is None or own.view.id != view_id:
            return found
        return msgspec.structs.replace(found, counts=own.received)

    patch.setattr(Round, "_flush_plan", plan)


def packets_of_failed_members_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Of a failed member only those packets count that everybody has received anyway."""
    honest = Round._flush_plan

    def plan(self: Round, view_id: ViewId, voters: list[ProcessId]) -> FlushPlan:
        found = honest(self, view_id, voters)
        view = self._promises[voters[0]].view
        assert view is not None
        held = [self._promises[voter].received for voter in voters]
        cut = tuple(
            most if member in voters else min(column)
            for member, most, column in zip(view.members, found.counts, zip(*held, strict=True), strict=True)
        )
        return msgspec.structs.replace(found, counts=cut)

    patch.setattr(Round, "_flush_plan", plan)


def installs_without_all_packets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Epoch, "missing", lambda *_: None)


def does_not_freeze_at_the_promise(patch: pytest.MonkeyPatch) -> None:
    """Packets that come after the promise are accepted, although the proposer was told of fewer."""

    def receive(self: Epoch, peer: ProcessId, frame: Frame, now: int) -> None:
        bodies = self.links[peer].receive(frame, now)
        self.restless |= not self.frozen
        for body in bodies:
            self._on_body(peer, body, now)

    patch.setattr(Epoch, "receive", receive)


def forgets_unstable_packets(patch: pytest.MonkeyPatch) -> None:
    """A packet that one other member has acknowledged counts as stable."""

    def report(self: Stability, rank: int, held: Sequence[int]) -> bool:
        if rank == self._my_rank:
            return False
        for sender, count in enumerate(held):
            self.acknowledged[rank][sender] = max(self.acknowledged[rank][sender], count)
            self._received_by_others[sender] = max(self._received_by_others[sender], count)
            self._forget_stable(sender)
        return True

    patch.setattr(Stability, "report", report)


def keeps_stable_packets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stability, "_forget_stable", lambda *_: None)


def sends_everything_again(patch: pytest.MonkeyPatch) -> None:
    """After a view change a member sends messages again that have a position already."""
    honest = Epoch.unordered

    def unordered(self: Epoch) -> list[Batch]:
        placed = [
            ordered_batch.batch
            for ordered_batch in self.protocol.unconsumed()
            if ordered_batch.batch.sender == self.me
        ]
        return placed + honest(self)

    patch.setattr(Epoch, "unordered", unordered)


def sends_nothing_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Epoch, "unordered", lambda *_: [])


def links_outlive_their_view(patch: pytest.MonkeyPatch) -> None:
    """Frames of an old view are taken for frames of the new one."""
    patch.setattr(epoch_module, "channel_of", lambda _: 1)


# The agreement


def a_quorum_is_one_less(patch: pytest.MonkeyPatch) -> None:
    def is_quorum(members: Sequence[ProcessId], present: Collection[ProcessId]) -> bool:
        return 2 * (sum(member in present for member in members) + 1) > len(members)

    patch.setattr(round_module, "is_quorum", is_quorum)
    patch.setattr(target_view_module, "is_quorum", is_quorum)


def both_halves_are_a_quorum(patch: pytest.MonkeyPatch) -> None:
    def is_quorum(members: Sequence[ProcessId], present: Collection[ProcessId]) -> bool:
        return 2 * sum(member in present for member in members) >= len(members)

    patch.setattr(round_module, "is_quorum", is_quorum)
    patch.setattr(target_view_module, "is_quorum", is_quorum)


def decides_without_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """The first voter that accepts decides."""
    patch.setattr(Round, "is_decided", lambda self, **_: self.proposal is not None and bool(self._digests))


def follows_a_lower_ballot(patch: pytest.MonkeyPatch) -> None:
    honest = Voter.on_prepare

    def on_prepare(
        self: Voter, process: ProcessId, prepare: Prepare, objection: str, now: int
    ) -> list[MembershipOutput]:
        if self.promised is not None and prepare.ballot < self.promised:
            self.promised = None
        return honest(self, process, prepare, objection, now)

    patch.setattr(Voter, "on_prepare", on_prepare)


def replaces_an_accepted_proposal(patch: pytest.MonkeyPatch) -> None:
    """A proposal that may have been decided is replaced by another one."""
    patch.setattr(Round, "_proposal", Round._new_proposal)


def forgets_what_it_accepted(patch: pytest.MonkeyPatch) -> None:
    honest = Voter.on_prepare

    def on_prepare(
        self: Voter, process: ProcessId, prepare: Prepare, objection: str, now: int
    ) -> list[MembershipOutput]:
        self.accepted = self.accepted_in = None
        return honest(self, process, prepare, objection, now)

    patch.setattr(Voter, "on_prepare", on_prepare)


def two_proposals_in_one_ballot(patch: pytest.MonkeyPatch) -> None:
    """The last of the voters is asked to accept a view without it."""

    def ask(self: Proposer, round_: Round) -> list[MembershipOutput]:
        question = round_.question()
        outputs: list[MembershipOutput] = []
        for voter in round_.waiting_for():
            if isinstance(question, Propose) and voter == round_.voters[-1] and len(round_.voters) > 2:
                members = tuple(each for each in question.proposal.view.members if each != round_.voters[1])
                view = View(question.proposal.view.number, members, question.proposal.view.parts)
                proposal = msgspec.structs.replace(question.proposal, view=view)
                outputs.append(SendControl(voter, Propose(question.ballot, proposal)))
            else:
                outputs.append(SendControl(voter, question))
        return outputs

    patch.setattr(Proposer, "_ask", ask)


def installs_something_else_than_it_accepted(patch: pytest.MonkeyPatch) -> None:
    """Each member puts itself first in the view, and so each has another coordinator."""
    honest = Voter.on_install

    def on_install(self: Voter, process: ProcessId, install: Install, now: int) -> list[MembershipOutput]:
        view, me = install.proposal.view, self._me
        if me in view.members:
            members = (me, *(member for member in view.members if member != me))
            proposal = msgspec.structs.replace(install.proposal, view=View(view.number, members, view.parts))
            self.accepted = None
            install = Install(proposal, install.digest)
        return honest(self, process, install, now)

    patch.setattr(Voter, "on_install", on_install)


# What may be delivered


def safe_is_delivered_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Stability, "is_stable", lambda *_: True)


def one_other_is_enough_for_safe(patch: pytest.MonkeyPatch) -> None:
    """A packet counts as stable when one other member has it."""

    def is_stable(self: Stability, dependencies: Sequence[int]) -> bool:
        holding = sum(all(map(int.__ge__, row, dependencies)) for row in self.acknowledged)
        return holding >= min(2, len(self.acknowledged))

    patch.setattr(Stability, "is_stable", is_stable)


def sender_need_not_know(patch: pytest.MonkeyPatch) -> None:
    """In a partitionable group, messages are delivered whether their sender knows the position or not."""
    patch.setattr(Stability, "is_received_by", lambda *_: True)


def each_member_judges_for_itself(patch: pytest.MonkeyPatch) -> None:
    """Each member decides for itself whether a lost sender knew the position of its message."""

    def keeps(self: Epoch, ordered_batch: OrderedBatch, plan: FlushPlan) -> bool:
        sender = ordered_batch.batch.sender
        if not plan.acknowledged or sender in plan.members or ordered_batch.taken:
            return True
        return self.stability.is_received_by(self.ranks[sender], ordered_batch.dependencies)

    patch.setattr(Epoch, "_keeps", keeps)
    patch.setattr(Stability, "merge", lambda *_: None)


def merged_view_begins_at_the_lowest_position(patch: pytest.MonkeyPatch) -> None:
    honest = delivery_table_module.merged

    def merged(digests: list[OrderDigest]) -> OrderDigest:
        lowest = min(digest.position for digest in digests)
        return msgspec.structs.replace(honest(digests), position=lowest)

    patch.setattr(round_module, "merged", merged)


# Incarnations


def restart_has_the_same_incarnation(patch: pytest.MonkeyPatch) -> None:
    honest = SimulatedHost.crash

    def crash(self: SimulatedHost, back_after_ns: int | None) -> None:
        honest(self, back_after_ns)
        self.incarnation -= 1

    patch.setattr(SimulatedHost, "crash", crash)


def incarnations_are_not_distinguished(patch: pytest.MonkeyPatch) -> None:
    """A frame of any incarnation counts as one of the first known incarnation."""
    honest = IncomingFrames.receive

    def receive(self: IncomingFrames, peer: ProcessId, frames: list[Frame], now: int) -> None:
        honest(self, self._membership.neighbours.incarnations.get(peer.name, peer), frames, now)

    patch.setattr(IncomingFrames, "receive", receive)


def evicted_members_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "_on_eviction_notice", lambda *_: [])


def nobody_is_ever_suspected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FailureDetector, "trusts", lambda self, name, _: name in self._rhythms)


def digest_is_not_adopted(patch: pytest.MonkeyPatch) -> None:
    """A new member does not know what was delivered before it joined."""
    patch.setattr(DeliveryTable, "adopt", lambda *_: None)


def resubmits_delivered_messages(patch: pytest.MonkeyPatch) -> None:
    """An incarnation resubmits everything that the one before it left, even what was delivered."""
    honest = unordered.resubmit

    def resubmit(
        assembler: Assembler, unordered_messages: UnorderedMessages, digest: OrderDigest, prioritised: bool
    ) -> None:
        honest(assembler, unordered_messages, msgspec.structs.replace(digest, ordered=()), prioritised)

    patch.setattr(view_installer_module, "resubmit", resubmit)


def resubmits_nothing(patch: pytest.MonkeyPatch) -> None:
    honest = unordered.resubmit

    def resubmit(
        assembler: Assembler, unordered_messages: UnorderedMessages, digest: OrderDigest, prioritised: bool
    ) -> None:
        honest(assembler, UnorderedMessages([]), digest, prioritised)

    patch.setattr(view_installer_module, "resubmit", resubmit)


def repeated_requests_are_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeliveryTable, "is_repeated", lambda *_: False)


# The state


def older_messages_follow_the_state(patch: pytest.MonkeyPatch) -> None:
    """Messages before the snapshot's position are delivered after it."""
    honest = Stream.restore

    def restore(self: Stream, snapshot: Snapshot) -> None:
        honest(self, snapshot)
        self._restored_from = 0

    patch.setattr(Stream, "restore", restore)


def snapshot_is_one_message_too_old(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is labelled with a position that is one too high."""
    honest = Donor.offer
    patch.setattr(Donor, "offer", lambda self, position, *rest: honest(self, position + 1, *rest))


def new_member_does_not_wait_for_the_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StateTransfer, "on_view", lambda *_: [])


def donor_is_never_replaced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Restoration, "tick", lambda *_: None)
    patch.setattr(Restoration, "replace_donors", lambda *_: None)


def lost_donors_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """A new member of a partitionable group that nobody can give the state waits for ever."""
    patch.setattr(StateTransfer, "has_lost_donors", False)


# Repetition


def questions_are_asked_once(patch: pytest.MonkeyPatch) -> None:
    """A lost question of a round is never repeated, and the round is never given up."""
    patch.setattr(Proposer, "on_tick", lambda *_: [])


def decision_is_announced_once(patch: pytest.MonkeyPatch) -> None:
    """A process that missed a decision is not corrected."""
    patch.setattr(Membership, "correct", lambda *_: None)


def missing_packets_are_requested_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Voter, "on_tick", lambda *_: [])


ALL: tuple[Mutant, ...] = tuple(
    value
    for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__
)
