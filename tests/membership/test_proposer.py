"""A proposer: rounds, what ends them, and the pauses between them."""

from typing import Any

from membership.builders import MILLISECOND, ORDERING, A, B, C, acquainted, alive, options, view
from priocast.core.identity import ProcessId
from priocast.core.view import View
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
ALL = TargetView((A, B, C), (A, B, C))
FAILURE = 100 * MILLISECOND


class Host:
    """A member that proposes: a, of a view of three; it writes down what it is asked to tell."""

    def __init__(self, of: View | None = OLD, **chosen: Any) -> None:
        self.me = A
        self.view = of
        self.options = options(**chosen)
        self.neighbours = acquainted(A, {B: alive(A, C), C: alive(A, B)}, **chosen)
        self.told: list[tuple[ProcessId, Control]] = []
        self.put_right_: list[ProcessId] = []

    def tell(self, process: ProcessId, control: Control) -> None:
        self.told.append((process, control))

    def correct(self, process: ProcessId) -> None:
        self.put_right_.append(process)

    def cut(self) -> list[tuple[ProcessId, Control]]:
        told, self.told = self.told, []
        return told


def started(host: Host, wish: TargetView = ALL) -> Proposer:
    proposer = Proposer(host, 0)
    proposer.start(wish, ORDERING, "why", 0)
    host.cut()
    return proposer


def promise(number: int = 1, of: View | None = OLD) -> Promise:
    held = (0,) * len(of.members) if of else ()
    return Promise(Ballot(number, A), of, held, tuple(held for _ in held), None, None)


def to_all(control: Control) -> list[tuple[ProcessId, Control]]:
    return [(process, control) for process in (A, B, C)]


def test_a_round_goes_from_question_to_decision() -> None:
    host = Host()
    proposer = Proposer(host, 0)
    proposer.start(ALL, ORDERING, "why", 0)
    assert host.cut() == to_all(Prepare(Ballot(1, A), (A, B, C)))
    for process in (A, B, C):
        proposer.on_promise(process, promise(), 1)
    assert proposer.round is not None and proposer.round.proposal is not None
    assert host.cut() == to_all(Propose(Ballot(1, A), proposer.round.proposal))
    for process in (A, B, C):
        proposer.on_accepted(process, Accepted(Ballot(1, A), OrderDigest(0)), 2)
    assert [type(control) for _, control in host.cut()] == [Install] * 3
    assert proposer.round is None


def test_each_ballot_is_above_all_that_were_heard_of() -> None:
    host = Host()
    proposer = Proposer(host, 0)
    proposer.note(7)
    proposer.start(ALL, ORDERING, "why", 0)
    assert proposer.round is not None and proposer.round.ballot == Ballot(8, A)


def test_who_has_not_answered_is_asked_again() -> None:
    host = Host()
    proposer = started(host)
    proposer.on_promise(B, promise(), 1)
    proposer.repeat(10 * MILLISECOND)
    assert [process for process, _ in host.cut()] == [A, C]


def test_a_round_that_gets_nowhere_is_given_up_and_the_next_one_pauses_longer() -> None:
    host = Host()
    proposer = started(host)
    proposer.repeat(FAILURE)
    assert proposer.round is None
    pauses = []
    now = FAILURE
    for _ in range(5):
        waited = 0
        while not proposer.may_start(now + waited):
            waited += MILLISECOND
        pauses.append(waited)
        now += waited
        for process in (B, C):
            host.neighbours.heard(process, now)
        proposer.start(ALL, ORDERING, "why", now)
        now += FAILURE
        for process in (B, C):
            host.neighbours.heard(process, now)
        proposer.repeat(now)
    assert pauses == sorted(pauses) and pauses[0] < pauses[2] and pauses[-1] == pauses[-2], "up to a limit"
    proposer.succeeded()
    proposer.start(ALL, ORDERING, "why", now)
    assert proposer.round is not None


def test_a_round_that_lost_a_voter_is_given_up_at_once() -> None:
    host = Host()
    proposer = started(host)
    host.neighbours.heard(B, 99 * MILLISECOND)
    host.neighbours.heard(C, 0)
    proposer.on_promise(A, promise(), 60 * MILLISECOND)
    proposer.repeat(101 * MILLISECOND)
    assert proposer.round is None, "c is silent"


def test_a_primary_round_is_given_up_when_one_declines() -> None:
    host = Host()
    proposer = started(host)
    proposer.on_declined(B, Declined(Ballot(1, A), Ballot(5, C), "a higher ballot is under way"), 1)
    assert proposer.round is None and proposer.objection == "a higher ballot is under way"
    assert proposer.round_highest == 5, "the next one is above it"


def test_who_declines_often_is_avoided_in_a_partitionable_group() -> None:
    host = Host(policy="partitionable")
    proposer = Proposer(host, 0)
    now = 0
    for _ in range(3):
        assert not host.neighbours.avoids(C, now)
        now += 10 * FAILURE
        proposer.start(ALL, ORDERING, "why", now)
        assert proposer.round is not None
        ballot = proposer.round.ballot
        for process in (A, B):
            held = ((0, 0, 0),) * 3
            proposer.on_promise(process, Promise(ballot, OLD, (0, 0, 0), held, None, None), now)
        proposer.on_declined(C, Declined(ballot, ballot, "it leaves out d"), now)
        assert proposer.round is None
    assert host.neighbours.avoids(C, now) and not host.neighbours.avoids(B, now)
    assert not host.neighbours.avoids(C, now + 2 * FAILURE)


def test_who_is_behind_is_put_right_first() -> None:
    host = Host(view(A, B, C, number=3))
    proposer = started(host)
    proposer.on_promise(B, promise(of=OLD), 1)
    proposer.on_promise(C, promise(of=None), 1)
    assert host.put_right_ == [B, C] and proposer.round is not None
    assert set(proposer.round.waiting_for()) == {A, B, C}


def test_who_is_behind_others_gives_up() -> None:
    host = Host()
    proposer = started(host)
    proposer.on_promise(B, promise(of=view(A, B, C, number=3)), 1)
    assert proposer.round is None


def test_a_primary_decision_does_not_wait_for_the_last_one_for_ever() -> None:
    host = Host()
    proposer = started(host)
    for process in (A, B, C):
        proposer.on_promise(process, promise(), 0)
    for process in (A, B):
        proposer.on_accepted(process, Accepted(Ballot(1, A), OrderDigest(0)), 0)
    assert proposer.round is not None, "the third may come yet"
    proposer.repeat(40 * MILLISECOND)
    assert proposer.round is None
    assert [process for process, control in host.cut() if isinstance(control, Install)] == [A, B, C]
