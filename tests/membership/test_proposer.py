"""The proposer: rounds, what ends them, and the pauses between them."""

from typing import Any

from membership.builders import MILLISECOND, ORDERING, A, B, C, acquainted, hear, heartbeat, options, view
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.neighbours import Neighbours
from priocast.membership.outputs import AvoidProcess, CorrectMember, MembershipOutput, SendControl, StartRound
from priocast.membership.packets import (
    Accepted,
    Ballot,
    Control,
    Declined,
    Install,
    OrderDigest,
    Prepare,
    Promise,
    Propose,
)
from priocast.membership.proposer import Proposer
from priocast.membership.target_view import TargetView

OLD = view(A, B, C)
START = StartRound(TargetView((A, B, C), (A, B, C)), ORDERING)
FAILURE = 100 * MILLISECOND


def proposer_of(of: View = OLD, **chosen: Any) -> tuple[Proposer, Neighbours]:
    """The proposer of a, in a view of three, and its neighbours."""
    neighbours = acquainted(A, {B: heartbeat(A, C), C: heartbeat(A, B)}, **chosen)
    proposer = Proposer(A, options(**chosen), neighbours, 0)
    proposer.on_view(of)
    return proposer, neighbours


def started(of: View = OLD) -> tuple[Proposer, Neighbours]:
    proposer, neighbours = proposer_of(of)
    assert proposer.on_start(START, 0)
    return proposer, neighbours


def promise(number: int = 1, of: View | None = OLD) -> Promise:
    received = (0,) * len(of.members) if of else ()
    return Promise(Ballot(number, A), of, received, tuple(received for _ in received), None, None)


def to_all(control: Control) -> list[MembershipOutput]:
    return [SendControl(process, control) for process in (A, B, C)]


def recipients(outputs: list[MembershipOutput], of: type[Control]) -> list[ProcessId]:
    return [each.to for each in outputs if isinstance(each, SendControl) and isinstance(each.control, of)]


def test_a_round_leads_from_prepare_to_the_decision() -> None:
    proposer, _ = proposer_of()
    assert proposer.on_start(START, 0) == to_all(Prepare(Ballot(1, A), (A, B, C)))
    assert proposer.on_start(START, 0) == [], "one round at a time"
    assert proposer.on_promise(A, promise(), 1) == proposer.on_promise(B, promise(), 1) == []
    asked = proposer.on_promise(C, promise(), 1)
    assert proposer.round is not None and proposer.round.proposal is not None
    assert asked == to_all(Propose(Ballot(1, A), proposer.round.proposal))
    accepted = Accepted(Ballot(1, A), OrderDigest(0))
    assert proposer.on_accepted(A, accepted, 2) == proposer.on_accepted(B, accepted, 2) == []
    assert recipients(proposer.on_accepted(C, accepted, 2), Install) == [A, B, C]
    assert proposer.round is None


def test_each_ballot_is_above_all_known_ones() -> None:
    proposer, _ = proposer_of()
    proposer.on_round_number(7)
    proposer.on_start(START, 0)
    assert proposer.round is not None and proposer.round.ballot == Ballot(8, A)


def test_voters_that_have_not_answered_are_asked_again() -> None:
    proposer, _ = started()
    proposer.on_promise(B, promise(), 1)
    assert recipients(proposer.on_tick(10 * MILLISECOND), Prepare) == [A, C]


def test_a_round_that_does_not_advance_is_given_up_and_pauses_grow() -> None:
    proposer, neighbours = started()
    proposer.on_tick(FAILURE)
    assert proposer.round is None
    pauses = []
    now = FAILURE
    for _ in range(5):
        waited = 0
        while not proposer.on_start(START, now + waited):
            waited += MILLISECOND
        pauses.append(waited)
        now += waited + FAILURE
        for process in (B, C):
            hear(neighbours, process, now)
        proposer.on_tick(now)
    assert pauses == sorted(pauses) and pauses[0] < pauses[2] and pauses[-1] == pauses[-2], "up to a limit"


def test_a_round_that_lost_a_voter_is_given_up_at_once() -> None:
    proposer, neighbours = started()
    hear(neighbours, B, 99 * MILLISECOND)
    hear(neighbours, C, 0)
    proposer.on_promise(A, promise(), 60 * MILLISECOND)
    proposer.on_tick(101 * MILLISECOND)
    assert proposer.round is None, "c is silent"


def test_a_primary_round_is_given_up_when_one_voter_declines() -> None:
    proposer, _ = started()
    proposer.on_declined(B, Declined(Ballot(1, A), Ballot(5, C), "a higher ballot is in progress"), 1)
    assert proposer.round is None and proposer.objection == "a higher ballot is in progress"
    assert proposer.round_highest == 5, "the next one is above it"


def test_a_process_that_declines_often_is_avoided_in_a_partitionable_group() -> None:
    proposer, _ = proposer_of(policy="partitionable")
    outputs: list[MembershipOutput] = []
    now = 0
    for _ in range(3):
        assert outputs == []
        now += 10 * FAILURE
        proposer.on_start(START, now)
        assert proposer.round is not None
        ballot = proposer.round.ballot
        for process in (A, B):
            acknowledged = ((0, 0, 0),) * 3
            proposer.on_promise(process, Promise(ballot, OLD, (0, 0, 0), acknowledged, None, None), now)
        outputs += proposer.on_declined(C, Declined(ballot, ballot, "it leaves out d"), now)
        assert proposer.round is None
    assert outputs == [AvoidProcess(C, now + 2 * FAILURE)]


def test_a_voter_that_is_behind_is_corrected_first() -> None:
    proposer, _ = started(view(A, B, C, number=3))
    assert proposer.on_promise(B, promise(of=OLD), 1) == [CorrectMember(B)]
    assert proposer.on_promise(C, promise(of=None), 1) == [CorrectMember(C)]
    assert proposer.round is not None and set(proposer.round.waiting_for()) == {A, B, C}


def test_a_proposer_that_is_behind_gives_up() -> None:
    proposer, _ = started()
    assert proposer.on_promise(B, promise(of=view(A, B, C, number=3)), 1) == []
    assert proposer.round is None


def test_a_primary_decision_does_not_wait_for_the_last_voter_for_ever() -> None:
    proposer, _ = started()
    for process in (A, B, C):
        proposer.on_promise(process, promise(), 0)
    for process in (A, B):
        assert proposer.on_accepted(process, Accepted(Ballot(1, A), OrderDigest(0)), 0) == []
    assert recipients(proposer.on_tick(40 * MILLISECOND), Install) == [A, B, C]
    assert proposer.round is None
