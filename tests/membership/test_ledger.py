"""The ledger: what has its place, from view to view."""

import pytest

from membership.builders import A, B, batch
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.membership.ledger import CLIENTS_MAX, Ledger, merged
from priocast.membership.packets import Placed, Standing


def request(number: int, client: str = "x#1") -> Scope:
    return Scope(client=client, request=number)


def test_messages_are_placed_in_their_order() -> None:
    ledger = Ledger()
    ledger.place(batch(A, 0, 3), 2)
    ledger.place(batch(A, 0, 3), 3)
    ledger.place(batch(A, 0, level=7), 1)
    assert ledger.standing(4).placed == (Placed(A, {0: 3, 7: 1}),)
    with pytest.raises(AssertionError, match="was placed before"):
        ledger.place(batch(A, 1, 2), 2)


def test_a_later_life_begins_anew() -> None:
    ledger = Ledger()
    ledger.place(batch(A, 0, 3), 3)
    again = ProcessId("a", 2)
    ledger.place(batch(again, 0), 1)
    assert ledger.standing(4).placed == (Placed(again, {0: 1}),)


def test_a_request_is_repeated_once_it_has_its_place() -> None:
    ledger = Ledger()
    first = batch(A, 0, scope=request(1))
    assert not ledger.is_repeated(first)
    ledger.place(first, 1)
    assert ledger.is_repeated(batch(B, 5, scope=request(1))), "whoever broadcasts it"
    assert not ledger.is_repeated(batch(B, 5, scope=request(2)))
    assert not ledger.is_repeated(batch(B, 0, level=9, scope=request(1))), "each priority counts for itself"
    assert not ledger.is_repeated(batch(B, 5)), "what is of no client repeats nothing"
    assert ledger.last_request("x#1/0") == 1 and ledger.last_request("y#1/0") == 0


def test_who_adopts_where_the_group_stands_knows_what_it_knows() -> None:
    ledger, joiner = Ledger(), Ledger()
    ledger.place(batch(A, 0, scope=request(1)), 1)
    joiner.place(batch(B, 0), 1)
    joiner.adopt(ledger.standing(1))
    assert joiner.standing(1) == ledger.standing(1)
    assert joiner.is_repeated(batch(B, 0, scope=request(1)))


def test_a_copy_lives_its_own_life() -> None:
    ledger = Ledger()
    ledger.place(batch(A, 0), 1)
    copy = ledger.copy()
    copy.place(batch(A, 1), 1)
    assert ledger.standing(1).placed == (Placed(A, {0: 1}),)
    assert copy.standing(2).placed == (Placed(A, {0: 2}),)


def test_clients_that_were_not_heard_for_long_are_forgotten() -> None:
    ledger = Ledger()
    for number in range(CLIENTS_MAX + 1):
        ledger.place(batch(A, number, scope=request(1, f"x{number}#1")), 1)
    assert ledger.last_request("x0#1/0") == 0 and ledger.last_request("x1#1/0") == 1


def test_when_views_become_one_the_highest_of_all_counts() -> None:
    one = Standing(7, {"x#1/0": 4, "y#1/0": 1}, (Placed(A, {0: 3, 5: 1}), Placed(B, {0: 1})))
    other = Standing(9, {"x#1/0": 2}, (Placed(A, {0: 2, 6: 1}), Placed(ProcessId("b", 2), {0: 1})))
    assert merged([one, other]) == merged([other, one])
    assert merged([one, other]) == Standing(
        9, {"x#1/0": 4, "y#1/0": 1}, (Placed(A, {0: 3, 5: 1, 6: 1}), Placed(ProcessId("b", 2), {0: 1}))
    )
