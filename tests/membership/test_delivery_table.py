"""The delivery_table: what has its place, from view to view."""

import pytest

from membership.builders import A, B, batch
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.membership.delivery_table import CLIENTS_MAX, DeliveryTable, merged
from priocast.membership.packets import OrderDigest, SenderDigest


def request(number: int, client: str = "x#1") -> Scope:
    return Scope(client=client, request=number)


def test_messages_are_placed_in_their_order() -> None:
    delivery_table = DeliveryTable()
    delivery_table.place(batch(A, 0, 3), 2)
    delivery_table.place(batch(A, 0, 3), 3)
    delivery_table.place(batch(A, 0, level=7), 1)
    assert delivery_table.digest(4).ordered == (SenderDigest(A, {0: 3, 7: 1}),)
    with pytest.raises(AssertionError, match="was placed before"):
        delivery_table.place(batch(A, 1, 2), 2)


def test_a_later_life_begins_anew() -> None:
    delivery_table = DeliveryTable()
    delivery_table.place(batch(A, 0, 3), 3)
    again = ProcessId("a", 2)
    delivery_table.place(batch(again, 0), 1)
    assert delivery_table.digest(4).ordered == (SenderDigest(again, {0: 1}),)


def test_a_request_is_repeated_once_it_has_its_place() -> None:
    delivery_table = DeliveryTable()
    first = batch(A, 0, scope=request(1))
    assert not delivery_table.is_repeated(first)
    delivery_table.place(first, 1)
    assert delivery_table.is_repeated(batch(B, 5, scope=request(1))), "whoever broadcasts it"
    assert not delivery_table.is_repeated(batch(B, 5, scope=request(2)))
    assert not delivery_table.is_repeated(batch(B, 0, level=9, scope=request(1))), (
        "each priority counts for itself"
    )
    assert not delivery_table.is_repeated(batch(B, 5)), "what is of no client repeats nothing"
    assert delivery_table.last_request("x#1/0") == 1 and delivery_table.last_request("y#1/0") == 0


def test_who_adopts_where_the_group_stands_knows_what_it_knows() -> None:
    delivery_table, joiner = DeliveryTable(), DeliveryTable()
    delivery_table.place(batch(A, 0, scope=request(1)), 1)
    joiner.place(batch(B, 0), 1)
    joiner.adopt(delivery_table.digest(1))
    assert joiner.digest(1) == delivery_table.digest(1)
    assert joiner.is_repeated(batch(B, 0, scope=request(1)))


def test_a_copy_lives_its_own_life() -> None:
    delivery_table = DeliveryTable()
    delivery_table.place(batch(A, 0), 1)
    copy = delivery_table.copy()
    copy.place(batch(A, 1), 1)
    assert delivery_table.digest(1).ordered == (SenderDigest(A, {0: 1}),)
    assert copy.digest(2).ordered == (SenderDigest(A, {0: 2}),)


def test_clients_that_were_not_heard_for_long_are_forgotten() -> None:
    delivery_table = DeliveryTable()
    for number in range(CLIENTS_MAX + 1):
        delivery_table.place(batch(A, number, scope=request(1, f"x{number}#1")), 1)
    assert delivery_table.last_request("x0#1/0") == 0 and delivery_table.last_request("x1#1/0") == 1


def test_when_views_become_one_the_highest_of_all_counts() -> None:
    one = OrderDigest(7, {"x#1/0": 4, "y#1/0": 1}, (SenderDigest(A, {0: 3, 5: 1}), SenderDigest(B, {0: 1})))
    other = OrderDigest(
        9, {"x#1/0": 2}, (SenderDigest(A, {0: 2, 6: 1}), SenderDigest(ProcessId("b", 2), {0: 1}))
    )
    assert merged([one, other]) == merged([other, one])
    assert merged([one, other]) == OrderDigest(
        9,
        {"x#1/0": 4, "y#1/0": 1},
        (SenderDigest(A, {0: 3, 5: 1, 6: 1}), SenderDigest(ProcessId("b", 2), {0: 1})),
    )
