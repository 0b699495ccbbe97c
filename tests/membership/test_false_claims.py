"""What one faulty member claims, and honest ones believe, does not last longer than the faulty member."""

import pytest

from priocast.core.errors import FarAhead, PeerFault
from priocast.core.identity import ProcessId
from priocast.core.view import ViewId
from priocast.core.view_reason import ViewReason
from priocast.membership.datagrams import frame_of
from priocast.membership.packets import EvictionNotice, Heartbeat
from support.stacks import Neighbourhood, founded

A, D, X = (ProcessId(name) for name in "adx")
HIGHEST_FOR_A_JOINER = 1 << 61


def notice_to(name: str, number: int = 2) -> EvictionNotice:
    return EvictionNotice(ProcessId(name), ViewId(number, A), ViewReason(left=(name,)))


def test_one_member_does_not_talk_the_others_out_of_a_primary_group() -> None:
    group = founded("abcd")
    for _ in range(5):
        for name in "bcd":
            group.receive(A, name, frame_of(notice_to(name)))
        group.run(20)
    assert group.views() == dict.fromkeys("abcd", "abcd")
    assert not any(member.departed for member in group.members.values())


def test_a_member_without_which_a_quorum_has_continued_believes_it() -> None:
    group = founded("abcd")
    group.cut("d", "abc")
    group.wait_view("abc")
    group.lost.clear()
    group.run_until(lambda: group.members["d"].departed is not None)
    assert str(group.members["d"].departed).startswith("evicted: d failed")


def test_in_a_partitionable_group_one_word_is_enough() -> None:
    group = founded("abcd", policy="partitionable")
    group.receive(A, "d", frame_of(notice_to("d")))
    assert group.members["d"].departed is not None


@pytest.mark.parametrize("policy", ["primary", "partitionable"])
def test_a_joining_process_that_believed_a_number_starts_anew(policy: str) -> None:
    group = founded("abc", policy=policy)
    joining = group.start("d")
    config = joining.membership._config_hash
    group.receive(X, "d", frame_of(Heartbeat(config, None, (), HIGHEST_FOR_A_JOINER, (), ())))
    assert joining.membership.proposer.round_highest == HIGHEST_FOR_A_JOINER
    group.run_until(lambda: joining.departed is not None)
    assert "the round is far ahead" in str(joining.departed)
    group.start("d", 2)
    group.wait_view("abcd")


def sent_by_a(group: Neighbourhood) -> list[str]:
    return [
        name
        for name, control in group.members["a"].membership.datagrams
        if control.__class__ is EvictionNotice
    ]


def test_only_a_number_far_ahead_of_a_process_outside_the_view_is_answered() -> None:
    group = founded("abcd")
    handler = group.members["a"]._fault_handler
    handler.on_input(X, PeerFault("nonsense"), group.now)
    handler.on_input(X, FarAhead("too high"), group.now, evicts=False)
    handler.on_input(D, FarAhead("too high"), group.now)
    assert not sent_by_a(group), "a member of the view is evicted by a view change"
    handler.on_input(X, FarAhead("too high"), group.now)
    assert sent_by_a(group) == ["x"]
