"""The delivery table: which messages were delivered, from view to view."""

from membership.builders import A, B, batch
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.membership.delivery_table import CLIENTS_MAX, DeliveryTable, merged
from priocast.membership.packets import ClientDigest, OrderDigest, SenderDigest


def request(number: int, client: str = "x#1") -> Scope:
    return Scope(client=client, request=number)


def test_messages_are_delivered_in_the_order_of_their_numbers() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 2, 2)
    delivery_table.add(batch(A, 0, 3), 3, 3)
    delivery_table.add(batch(A, 0, level=7), 1, 4)
    assert delivery_table.digest(4).ordered == (SenderDigest(A, {0: 3, 7: 1}, 4),)


def test_the_table_does_not_go_back_for_what_was_delivered_before() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 3, 3)
    delivery_table.add(batch(A, 0, 2), 2, 5)
    assert delivery_table.digest(5).ordered == (SenderDigest(A, {0: 3}, 5),)


def test_a_later_incarnation_is_counted_from_the_start() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0, 3), 3, 3)
    again = ProcessId("a", 2)
    delivery_table.add(batch(again, 0), 1, 4)
    assert delivery_table.digest(4).ordered == (SenderDigest(again, {0: 1}, 4),)


def test_a_request_that_was_delivered_counts_as_repeated() -> None:
    delivery_table = DeliveryTable()
    first = batch(A, 0, scope=request(1))
    assert not delivery_table.is_repeated(first)
    delivery_table.add(first, 1, 1)
    assert delivery_table.is_repeated(batch(B, 5, scope=request(1))), "whoever broadcasts it"
    assert not delivery_table.is_repeated(batch(B, 5, scope=request(2)))
    assert not delivery_table.is_repeated(batch(B, 0, level=9, scope=request(1))), (
        "each priority is counted separately"
    )
    assert not delivery_table.is_repeated(batch(B, 5)), "a message of no client repeats nothing"
    assert delivery_table.last_request("x#1/0") == 1 and delivery_table.last_request("y#1/0") == 0


def test_a_joining_member_adopts_the_digest_of_the_group() -> None:
    delivery_table, joiner = DeliveryTable(), DeliveryTable()
    delivery_table.add(batch(A, 0, scope=request(1)), 1, 1)
    joiner.add(batch(B, 0), 1, 1)
    joiner.adopt(delivery_table.digest(1))
    assert joiner.digest(1) == delivery_table.digest(1)
    assert joiner.is_repeated(batch(B, 0, scope=request(1)))


def test_a_copy_is_independent() -> None:
    delivery_table = DeliveryTable()
    delivery_table.add(batch(A, 0), 1, 1)
    copy = delivery_table.copy()
    copy.add(batch(A, 1), 1, 2)
    assert delivery_table.digest(1).ordered == (SenderDigest(A, {0: 1}, 1),)
    assert copy.digest(2).ordered == (SenderDigest(A, {0: 2}, 2),)


def test_a_client_does_not_make_the_group_forget_what_others_have_requested() -> None:
    """A client names its incarnation itself: each new one has an entry of its own."""
    delivery_table = DeliveryTable()
    honest = batch(A, 0, scope=request(1, "honest#1"))
    delivery_table.add(honest, 1, 1)
    for number in range(2 * CLIENTS_MAX):
        delivery_table.add(batch(A, 1 + number, scope=request(1, f"greedy#{number}")), 1, 2 + number)
        if number == CLIENTS_MAX:
            adopted = DeliveryTable()
            adopted.adopt(delivery_table.digest(2 + number))
            delivery_table = adopted.copy()
    clients = delivery_table.digest(0).clients
    assert delivery_table.is_repeated(honest)
    assert len(clients) == 1 + CLIENTS_MAX // 4, "all priorities of one incarnation"
    assert f"greedy#{2 * CLIENTS_MAX - 1}/0" in clients


def test_the_clients_that_were_silent_for_longest_are_forgotten() -> None:
    delivery_table = DeliveryTable()
    for number in range(CLIENTS_MAX):
        delivery_table.add(batch(A, number, scope=request(1, f"x{number}#1")), 1, number)
    delivery_table.add(batch(A, 2000, scope=request(2, "x0#1")), 1, 2000)
    delivery_table.add(batch(A, 2001, scope=request(1, "new#1")), 1, 2001)
    assert delivery_table.last_request("x0#1/0") == 2 and delivery_table.last_request("x1#1/0") == 0


def test_a_view_change_keeps_the_order_in_which_clients_are_forgotten() -> None:
    """The clients with the first names in the alphabet asked last."""
    delivery_table = DeliveryTable()
    for number in reversed(range(CLIENTS_MAX)):
        delivery_table.add(batch(A, 5000 - number, scope=request(1, f"x{number:04}#1")), 1, 5000 - number)
    delivery_table.adopt(merged([delivery_table.digest(5000)]))
    delivery_table.add(batch(A, 5001, scope=request(1, "new#1")), 1, 5001)
    last = f"x{CLIENTS_MAX - 1:04}#1/0"
    assert delivery_table.last_request("x0000#1/0") == 1 and delivery_table.last_request(last) == 0


def test_of_too_many_merged_clients_and_senders_those_that_were_silent_for_longest_are_forgotten() -> None:
    one = OrderDigest(
        5000,
        {f"a{number}#1/0": ClientDigest(1, 4000 + number) for number in range(CLIENTS_MAX)},
        tuple(SenderDigest(ProcessId(f"a{number}"), {0: 1}, 4000 + number) for number in range(600)),
    )
    other = OrderDigest(
        200,
        {f"z{number}#1/0": ClientDigest(1, number) for number in range(200)},
        tuple(SenderDigest(ProcessId(f"z{number}"), {0: 1}, number) for number in range(600)),
    )
    digest = merged([other, one])
    assert digest == merged([one, other])
    assert list(digest.clients) == list(one.clients)
    assert [sender.process.name for sender in digest.ordered] == [f"a{number}" for number in range(216, 600)]


def test_a_merged_digest_has_the_highest_numbers() -> None:
    one = OrderDigest(
        7,
        {"x#1/0": ClientDigest(4, 5), "y#1/0": ClientDigest(1, 6)},
        (SenderDigest(A, {0: 3, 5: 1}, 5), SenderDigest(B, {0: 1}, 7)),
    )
    again = ProcessId("b", 2)
    other = OrderDigest(
        9, {"x#1/0": ClientDigest(2, 9)}, (SenderDigest(A, {0: 2, 6: 1}, 9), SenderDigest(again, {0: 1}, 8))
    )
    assert merged([one, other]) == merged([other, one])
    assert merged([one, other]) == OrderDigest(
        9,
        {"y#1/0": ClientDigest(1, 6), "x#1/0": ClientDigest(4, 9)},
        (SenderDigest(again, {0: 1}, 8), SenderDigest(A, {0: 3, 5: 1, 6: 1}, 9)),
    )
