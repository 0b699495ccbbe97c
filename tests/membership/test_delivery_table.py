"""The delivery table: which messages were delivered, from view to view."""

from membership.builders import A, B, batch
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.membership.delivery_table import CLIENTS_MAX, DeliveryTable, merged
from priocast.membership.packets import OrderDigest, SenderDigest


def request(number: int, client: str = "x#1") -> Scope:
    return Scope(client=client, request=number)


def test_messages_are_delivered_in_the_order_of_their_numbers() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 2)
    delivery_table.add(batch(A, 0, 3), 3)
    delivery_table.add(batch(A, 0, level=7), 1)
    assert delivery_table.digest(4).ordered == (SenderDigest(A, {0: 3, 7: 1}),)


def test_the_table_does_not_go_back_for_what_was_delivered_before() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 3)
    delivery_table.add(batch(A, 0, 2), 2)
    assert delivery_table.digest(5).ordered == (SenderDigest(A, {0: 3}),)


def test_a_later_incarnation_is_counted_from_the_start() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 3)
    again = ProcessId("a", 2)
    delivery_table.add(batch(again, 0), 1)
    assert delivery_table.digest(4).ordered == (SenderDigest(again, {0: 1}),)


def test_a_request_that_was_delivered_counts_as_repeated() -> None:
    delivery_table = DeliveryTable()
    first = batch(A, 0, scope=request(1))
    assert not delivery_table.is_repeated(first)
    delivery_table.add(first, 1)
    assert delivery_table.is_repeated(batch(B, 5, scope=request(1))), "whoever broadcasts it"
    assert not delivery_table.is_repeated(batch(B, 5, scope=request(2)))
    assert not delivery_table.is_repeated(batch(B, 0, level=9, scope=request(1))), (
        "each priority is counted separately"
    )
    assert not delivery_table.is_repeated(batch(B, 5)), "a message of no client repeats nothing"
    assert delivery_table.last_request("x#1/0") == 1 and delivery_table.last_request("y#1/0") == 0


def test_a_joining_member_adopts_the_digest_of_the_group() -> None:
    delivery_table, joiner = DeliveryTable(), DeliveryTable()
    delivery_table.add(batch(A, 0, scope=request(1)), 1)
    joiner.add(batch(B, 0), 1)
    joiner.adopt(delivery_table.digest(1))
    assert joiner.digest(1) == delivery_table.digest(1)
    assert joiner.is_repeated(batch(B, 0, scope=request(1)))


def test_a_copy_is_independent() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0), 1)
    copy = delivery_table.copy()
    copy.add(batch(A, 1), 1)
    assert delivery_table.digest(1).ordered == (SenderDigest(A, {0: 1}),)
    assert copy.digest(2).ordered == (SenderDigest(A, {0: 2}),)


def test_the_oldest_clients_are_forgotten() -> None:
    delivery_table = DeliveryTable()
    for number in range(CLIENTS_MAX + 1):
        delivery_table.add(batch(A, number, scope=request(1, f"x{number}#1")), 1)
    assert delivery_table.last_request("x0#1/0") == 0 and delivery_table.last_request("x1#1/0") == 1


def test_a_merged_digest_has_the_highest_numbers() -> None:
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
