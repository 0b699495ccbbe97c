"""A voter: it follows the highest ballot, holds what it accepts, and forgets nothing that may be decided."""

import pytest

from membership.builders import ORDERING, A, B, C, D, batch, epoch, view
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.packets import (
    Accepted,
    Ballot,
    Closure,
    Control,
    Declined,
    Fetch,
    Install,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Standing,
    Supply,
)
from priocast.membership.voter import Voter
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B, C)
STANDING = Standing(3)


class Host:
    """A member that votes: b, of a view of three; it writes down what it is asked to do."""

    def __init__(self, me: ProcessId = B, of: View | None = OLD) -> None:
        self.me = me
        self.view = of
        self.epoch = epoch(me, of) if of else None
        self.objection: str | None = None
        self.told: list[tuple[ProcessId, Control]] = []
        self.installed: list[Proposal] = []
        self.distrusted: set[ProcessId] = set()

    def tell(self, process: ProcessId, control: Control) -> None:
        self.told.append((process, control))

    def objection_to(self, proposer: ProcessId, voters: tuple[ProcessId, ...], now: int) -> str | None:
        return self.objection

    def standing_after(self, proposal: Proposal) -> Standing:
        return STANDING

    def install(self, proposal: Proposal, standing: Standing, now: int) -> None:
        assert standing == STANDING
        self.installed.append(proposal)

    def trusts(self, process: ProcessId, now: int) -> bool:
        return process not in self.distrusted

    def cut(self) -> list[tuple[ProcessId, Control]]:
        """What was told since the last cut."""
        told, self.told = self.told, []
        return told


def ordered(number: int) -> bytes:
    """The number-th packet of the sequencer."""
    return epoch(A, OLD)._encode(Ordered(number - 1, (batch(A, number - 1),)))


def ballot(number: int, proposer: ProcessId = A) -> Ballot:
    return Ballot(number, proposer)


def proposal(*members: ProcessId, number: int = 2, cut: tuple[int, ...] = (0, 0, 0)) -> Proposal:
    closure = Closure(OLD.id, tuple(one for one in members if one in OLD.members), cut, (0, 0, 0), ())
    return Proposal(View(number, members), (closure,), ORDERING, "why")


def promised(host: Host, number: int = 5) -> Voter:
    voter = Voter(host)
    voter.on_prepare(Prepare(ballot(number), (A, B)), 0)
    host.cut()
    return voter


def test_a_promise_says_where_the_member_stands_and_freezes_the_view() -> None:
    host = Host()
    voter = Voter(host)
    voter.on_prepare(Prepare(ballot(5), (A, B)), 0)
    known = ((0, 0, 0),) * 3
    assert host.cut() == [(A, Promise(ballot(5), OLD, (0, 0, 0), known, None, None))]
    assert voter.changing and host.epoch is not None and host.epoch.frozen


def test_a_promise_is_repeated_and_a_lower_ballot_declined() -> None:
    host = Host()
    voter = promised(host)
    voter.on_prepare(Prepare(ballot(5), (A, B)), 0)
    assert isinstance(host.cut()[0][1], Promise)
    voter.on_prepare(Prepare(ballot(4, C), (B, C)), 0)
    assert host.cut() == [(C, Declined(ballot(4, C), ballot(5), "a higher ballot is under way"))]
    voter.on_prepare(Prepare(ballot(6, C), (B, C)), 0)
    assert isinstance(host.cut()[0][1], Promise) and voter.promised == ballot(6, C)


def test_an_objection_is_said_and_nothing_promised() -> None:
    host = Host()
    host.objection = "b does not hear a"
    voter = Voter(host)
    voter.on_prepare(Prepare(ballot(5), (A, B)), 0)
    assert host.cut() == [(A, Declined(ballot(5), ballot(5), "b does not hear a"))]
    assert not voter.changing and host.epoch is not None and not host.epoch.frozen


def test_what_was_not_promised_is_not_accepted() -> None:
    host = Host()
    voter = promised(host)
    voter.on_propose(Propose(ballot(4), proposal(A, B)), 0)
    assert isinstance(host.cut()[0][1], Declined) and voter.accepted is None


def test_a_proposal_is_accepted_and_told_to_whoever_proposes_next() -> None:
    host = Host()
    voter = promised(host)
    voter.on_propose(Propose(ballot(5), proposal(A, B)), 0)
    assert host.cut() == [(A, Accepted(ballot(5), STANDING))]
    voter.on_prepare(Prepare(ballot(6, C), (B, C)), 0)
    ((_, promise),) = host.cut()
    assert isinstance(promise, Promise)
    assert (promise.accepted_in, promise.accepted) == (ballot(5), proposal(A, B))


def test_nothing_is_accepted_before_all_that_counts_is_here() -> None:
    host = Host()
    voter = promised(host)
    wanted = proposal(A, B, cut=(2, 0, 0))
    voter.on_propose(Propose(ballot(5), wanted), 0)
    assert host.cut() == [(A, Fetch(OLD.id, A, 1, 2))] and voter.accepted is None
    voter.on_supply(Supply(OLD.id, A, 1, (ordered(1),)), 0)
    assert host.cut() == [(A, Fetch(OLD.id, A, 2, 2))]
    voter.on_supply(Supply(OLD.id, A, 1, (ordered(1), ordered(2))), 0)
    assert host.cut() == [(A, Accepted(ballot(5), STANDING))], "what came twice counts once"


def test_if_the_holder_is_gone_another_one_is_asked() -> None:
    host = Host()
    voter = promised(host)
    host.distrusted = {A}
    voter.on_propose(Propose(ballot(5), proposal(A, B, C, cut=(1, 0, 0))), 0)
    voter.repeat(1)
    voter.repeat(2)
    assert [process for process, _ in host.cut()] == [A, C, A], "one after the other"


def test_a_voter_that_is_left_out_can_still_accept() -> None:
    """In Paxos an acceptor accepts values that are not about itself, or a quorum may be out of reach."""
    host = Host()
    voter = promised(host)
    without = proposal(A, C)
    voter.on_propose(Propose(ballot(5), without), 0)
    assert isinstance(host.cut()[0][1], Accepted) and voter.accepted == without
    voter.on_install(Install(without, STANDING), 0)
    assert host.installed == [], "but it does not go on with it"


def test_a_decision_is_installed_by_those_whom_it_concerns_only() -> None:
    host = Host()
    voter = Voter(host)
    voter.on_install(Install(proposal(A, B), STANDING), 0)
    assert host.installed == [proposal(A, B)] and host.epoch is not None and host.epoch.frozen
    stranger = Host(D, None)
    Voter(stranger).on_install(Install(proposal(A, B), STANDING), 0)
    assert stranger.installed == []


def test_a_decision_of_the_past_is_ignored() -> None:
    host = Host()
    Voter(host).on_install(Install(proposal(A, B, number=1), STANDING), 0)
    assert host.installed == []


def test_a_decision_waits_for_the_packets_that_count() -> None:
    host = Host()
    voter = Voter(host)
    voter.on_install(Install(proposal(A, B, cut=(1, 0, 0)), STANDING), 0)
    assert host.cut() == [(A, Fetch(OLD.id, A, 1, 1))] and host.installed == []
    voter.on_supply(Supply(OLD.id, A, 1, (ordered(1),)), 0)
    assert len(host.installed) == 1


def test_packets_are_handed_out_as_far_as_they_are_here() -> None:
    host = Host()
    voter = promised(host)
    voter.on_propose(Propose(ballot(5), proposal(A, B, cut=(2, 0, 0))), 0)
    voter.on_supply(Supply(OLD.id, A, 1, (ordered(1), ordered(2))), 0)
    host.cut()
    voter.on_fetch(C, Fetch(OLD.id, A, 1, 9), (host.epoch, None))
    assert host.cut() == [(C, Supply(OLD.id, A, 1, (ordered(1), ordered(2))))]
    voter.on_fetch(C, Fetch(OLD.id, A, 3, 9), (host.epoch, None))
    voter.on_fetch(C, Fetch(view(A, C).id, A, 1, 9), (None, None))
    assert host.cut() == []


def test_a_cut_of_another_size_is_the_proposers_fault() -> None:
    voter = promised(Host())
    with pytest.raises(PeerFault, match="cuts view 1@a#1 at 2 members"):
        voter.on_propose(Propose(ballot(5), proposal(A, B, cut=(0, 0))), 0)
