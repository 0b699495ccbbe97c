"""Neighbours: which incarnations are there, and what they said last."""

from membership.builders import MILLISECOND, REASON, A, B, C, acquainted, hear, heartbeat, options, view
from priocast.core.identity import ProcessId
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MEMBERS_MAX

B2 = ProcessId("b", 2)


def test_an_earlier_incarnation_is_not_accepted() -> None:
    neighbours = acquainted(A, {B2: heartbeat(A)})
    assert not hear(neighbours, B, 0)
    assert neighbours.objection_to(B) == "earlier incarnation"
    assert not neighbours.trusts(B, 0) and neighbours.trusts(B2, 0)
    assert neighbours.suspicion(B, 0) == float("inf")


def test_a_later_incarnation_is_accepted_once_the_earlier_one_is_suspected() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    assert not hear(neighbours, B2, 99 * MILLISECOND)
    assert neighbours.objection_to(B2) == "name in use"
    assert neighbours.trusts(B, 99 * MILLISECOND) and [peer.process for peer in neighbours.peers(0)] == [B]
    assert hear(neighbours, B2, 100 * MILLISECOND)
    assert not neighbours.trusts(B, 100 * MILLISECOND) and neighbours.trusts(B2, 100 * MILLISECOND)
    assert neighbours.peers(100 * MILLISECOND) == ()


def test_a_later_incarnation_is_accepted_when_the_earlier_one_leaves() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    neighbours.on_heartbeat(B, heartbeat(A, leaving=True))
    assert hear(neighbours, B2, 1) and neighbours.trusts(B2, 1)


def test_no_other_process_has_our_name() -> None:
    neighbours = acquainted(A, {})
    assert not hear(neighbours, ProcessId("a", 7), 0)


def test_peers_are_alive_and_have_sent_a_heartbeat() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    hear(neighbours, C, 0)
    assert neighbours.hears(0) == (B, C) and [peer.process for peer in neighbours.peers(0)] == [B]
    assert neighbours.hears(100 * MILLISECOND) == ()


def test_news_is_another_view_other_processes_heard_or_an_intention_to_leave() -> None:
    neighbours, elsewhere = acquainted(A, {B: heartbeat(A)}), view(B, C).id
    assert not neighbours.on_heartbeat(B, heartbeat(A))
    assert neighbours.on_heartbeat(B, heartbeat(A, C))
    assert neighbours.on_heartbeat(B, heartbeat(A, C, of=elsewhere)) and neighbours.view_of(B) == elsewhere
    assert neighbours.on_heartbeat(B, heartbeat(A, C, of=elsewhere, leaving=True))
    assert neighbours.is_leaving(B)


def test_a_departed_incarnation_is_not_trusted_though_it_is_heard() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    neighbours.depart(B, REASON)
    assert neighbours.departure_of(B) == REASON and neighbours.departure_of(B2) is None
    assert not neighbours.trusts(B, 0)
    hear(neighbours, B2, 0)
    assert neighbours.trusts(B2, 0), "its next incarnation is another process"


def test_a_process_is_avoided_until_a_time() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    neighbours.avoid(B, until=5)
    assert neighbours.avoided(4) == {B} and neighbours.avoided(5) == frozenset()


def test_names_are_bounded_and_the_most_silent_one_is_forgotten() -> None:
    neighbours = Neighbours(A, options())
    for number in range(4 * MEMBERS_MAX + 50):
        hear(neighbours, ProcessId(f"n{number}"), number * MILLISECOND)
    assert "n49" not in neighbours.incarnations and "n50" in neighbours.incarnations
    assert len(neighbours.incarnations) == 4 * MEMBERS_MAX


def test_who_is_alive_is_determined_again_when_it_may_have_changed() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    assert neighbours.hears(0) == (B,)
    assert hear(neighbours, C, 1) and neighbours.hears(2) == (B, C)
    for beat in range(1, 6):
        hear(neighbours, C, 20 * beat * MILLISECOND)
    assert neighbours.hears(120 * MILLISECOND) == (C,) and neighbours.peers(120 * MILLISECOND) == ()
    hear(neighbours, B, 130 * MILLISECOND)
    assert neighbours.hears(130 * MILLISECOND) == (B, C)
    neighbours.depart(C, REASON)
    assert neighbours.hears(130 * MILLISECOND) == (B,)


def test_a_heartbeat_is_repeated_until_the_next_one_or_the_next_view() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    hear(neighbours, C, 0)
    neighbours.on_heartbeat_body(B, b"beat")
    neighbours.on_heartbeat_body(C, b"beat")
    assert neighbours.on_repeated(B, b"beat", 0) and not neighbours.on_repeated(B, b"another", 0)
    assert not neighbours.on_repeated(C, b"beat", 0), "its heartbeat was not accepted"
    neighbours.on_view()
    assert not neighbours.on_repeated(B, b"beat", 0), "what it has received counts in the new view"


def test_a_repeated_heartbeat_shows_that_its_sender_is_alive() -> None:
    neighbours = acquainted(A, {B: heartbeat(A)})
    neighbours.on_heartbeat_body(B, b"beat")
    for beat in range(10):
        assert neighbours.on_repeated(B, b"beat", 20 * beat * MILLISECOND)
    assert neighbours.hears(200 * MILLISECOND) == (B,)
    assert hear(neighbours, B2, 1_000 * MILLISECOND), "it was silent for long"
    assert not neighbours.on_repeated(B, b"beat", 1_000 * MILLISECOND)
    assert not neighbours.on_repeated(B2, b"beat", 1_000 * MILLISECOND)
