"""Clients: each request is broadcast once by the member that is asked, and answered when it was delivered."""

import pytest

from membership.builders import A, B, batch
from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.core.message import TO_ALL, Scope
from priocast.membership.clients import Clients
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.packets import ClientReply, ClientRequest

X = ProcessId("x")


def request(number: int, priority: int = 0, settled: int = 0) -> ClientRequest:
    return ClientRequest(number, priority, TO_ALL, b"please", settled)


def scope(number: int) -> Scope:
    return Scope(client="x#1", request=number)


def test_a_request_is_broadcast_once_however_often_it_comes() -> None:
    clients = Clients(DeliveryTable(), A, 64)
    assert clients.is_new(X, request(1)) and not clients.is_new(X, request(1))
    assert clients.is_new(X, request(2)) and clients.is_new(X, request(1, priority=9))
    assert clients.replies == []


def test_a_request_after_a_gap_has_to_wait() -> None:
    clients = Clients(DeliveryTable(), A, 64)
    assert not clients.is_new(X, request(2)), "the first one was lost, or comes later"
    assert clients.is_new(X, request(2, settled=1)), "unless the client does not wait for it"


def test_the_client_is_told_the_position() -> None:
    clients = Clients(DeliveryTable(), A, 64)
    clients.is_new(X, request(1))
    clients.on_ordered(batch(A, 0, scope=scope(1)), 17)
    assert clients.replies == [("x", ClientReply(1, 0, 17, ""))]


def test_a_client_that_asked_elsewhere_is_not_answered() -> None:
    clients = Clients(DeliveryTable(), A, 64)
    clients.on_ordered(batch(A, 0, scope=scope(1)), 17)
    assert clients.replies == []


def test_a_request_that_was_delivered_is_answered_at_once() -> None:
    delivery_table = DeliveryTable()
    clients = Clients(delivery_table, A, 64)
    delivery_table.add(batch(A, 0, scope=scope(1)), 1, 1)
    assert not clients.is_new(X, request(1))
    assert clients.replies == [("x", ClientReply(1, 0, -1, ""))]


def test_when_the_view_has_ended_requests_may_be_broadcast_again() -> None:
    clients = Clients(DeliveryTable(), A, 64)
    clients.is_new(X, request(1))
    clients.on_view()
    assert clients.is_new(X, request(1))


def test_a_client_gets_an_eighth_of_the_room_until_its_requests_are_delivered() -> None:
    clients = Clients(DeliveryTable(), A, 24)
    assert all(clients.is_new(X, request(number)) for number in (1, 2, 3))
    with pytest.raises(Rejected, match="client quota"):
        clients.is_new(X, request(4))
    with pytest.raises(Rejected, match="client quota"):
        clients.is_new(ProcessId("x", 2), request(1))
    clients.on_ordered(batch(B, 0, scope=scope(1)), 16)
    with pytest.raises(Rejected, match="client quota"):
        clients.is_new(X, request(4))
    clients.on_ordered(batch(A, 0, scope=scope(1)), 17)
    assert clients.is_new(X, request(4))


def test_all_clients_together_get_half_of_the_room() -> None:
    clients = Clients(DeliveryTable(), A, 16)
    names = [ProcessId(f"client-{number}") for number in range(5)]
    assert all(clients.is_new(name, request(number)) for name in names[:4] for number in (1, 2))
    with pytest.raises(Rejected, match="client quota"):
        clients.is_new(names[4], request(1))


def test_a_member_with_little_room_still_serves_a_client() -> None:
    assert Clients(DeliveryTable(), A, 1).is_new(X, request(1))
