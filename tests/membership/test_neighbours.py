"""Neighbours: which life of whom is there, and who can talk to whom."""

from membership.builders import MILLISECOND, A, B, C, acquainted, alive, options, view
from priocast.core.identity import ProcessId
from priocast.membership.neighbours import Neighbours

B2 = ProcessId("b", 2)


def test_an_earlier_life_is_not_heard() -> None:
    neighbours = acquainted(A, {B: alive(A)})
    assert neighbours.heard(B2, 0) and neighbours.knows(B2)
    assert not neighbours.heard(B, 0), "that one is over"
    assert not neighbours.trusts(B, 0) and neighbours.trusts(B2, 0)
    assert neighbours.alive(B) is None and neighbours.suspicion(B, 0) == float("inf")


def test_nobody_else_has_our_name() -> None:
    neighbours = acquainted(A, {})
    assert not neighbours.heard(ProcessId("a", 7), 0)


def test_trusted_is_who_was_heard_lately_and_said_where_it_stands() -> None:
    neighbours = acquainted(A, {B: alive(A)})
    neighbours.heard(C, 0)
    assert neighbours.hears(0) == (B, C) and neighbours.trusted(0) == [B]
    assert neighbours.hears(100 * MILLISECOND) == ()


def test_news_is_another_view_another_hearing_or_a_wish_to_leave() -> None:
    neighbours = acquainted(A, {B: alive(A)})
    assert not neighbours.on_heartbeat(B, alive(A))
    assert neighbours.on_heartbeat(B, alive(A, C))
    assert (
        neighbours.on_heartbeat(B, alive(A, C, of=view(B, C).id)) and neighbours.view_of(B) == view(B, C).id
    )
    assert neighbours.on_heartbeat(B, alive(A, C, of=view(B, C).id, leaving=True)) and neighbours.is_leaving(
        B
    )


def test_linked_are_those_who_hear_each_other() -> None:
    neighbours = acquainted(A, {B: alive(A, C), C: alive(B)})
    assert neighbours.linked(A, B) and neighbours.linked(B, A)
    assert neighbours.linked(B, C)
    assert not neighbours.linked(A, C), "c does not hear us"


def test_a_new_life_is_not_linked_to_those_who_hear_the_old_one() -> None:
    neighbours = acquainted(A, {B2: alive(A, C), C: alive(A, B)})
    assert not neighbours.linked(B2, C)


def test_who_has_departed_is_not_trusted_though_it_is_heard() -> None:
    neighbours = acquainted(A, {B: alive(A)})
    neighbours.depart(B)
    assert neighbours.has_departed(B) and not neighbours.trusts(B, 0)
    neighbours.heard(B2, 0)
    assert neighbours.trusts(B2, 0), "its next life is another process"


def test_who_is_avoided_is_so_for_a_while() -> None:
    neighbours = acquainted(A, {B: alive(A)})
    neighbours.avoid(B, until=5)
    assert neighbours.avoids(B, 4) and not neighbours.avoids(B, 5)


def test_who_is_with_others_that_we_cannot_talk_to_is_bound_elsewhere() -> None:
    elsewhere = view(B, C, number=4)
    told = alive(A, C, of=elsewhere.id, members=elsewhere.members)
    neighbours = acquainted(A, {B: told})
    assert neighbours.is_bound_elsewhere(B, 0), "we do not hear c"
    neighbours = acquainted(A, {B: told, C: alive(A, B, of=elsewhere.id, members=elsewhere.members)})
    assert not neighbours.is_bound_elsewhere(B, 0), "all of them could come"


def test_names_are_bounded_and_the_most_silent_one_goes() -> None:
    neighbours = Neighbours(A, options())
    for number in range(300):
        neighbours.heard(ProcessId(f"n{number}"), number * MILLISECOND)
    assert not neighbours.has_heard("n0") and neighbours.has_heard("n299")
    assert sum(neighbours.has_heard(f"n{number}") for number in range(300)) == 256
