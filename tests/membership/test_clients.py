"""Clients: each request is broadcast once by the member that is asked, and answered when it was delivered."""

from membership.builders import A, batch
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
    clients = Clients(DeliveryTable())
    assert clients.is_new(X, request(1)) and not clients.is_new(X, request(1))
    assert clients.is_new(X, request(2)) and clients.is_new(X, request(1, priority=9))
    assert clients.replies == []


def test_a_request_after_a_gap_has_to_wait() -> None:
    clients = Clients(DeliveryTable())
    assert not clients.is_new(X, request(2)), "the first one was lost, or comes later"
    assert clients.is_new(X, request(2, settled=1)), "unless the client does not wait for it"


def test_the_client_is_told_the_position() -> None:
    clients = Clients(DeliveryTable())
    clients.is_new(X, request(1))
    clients.on_ordered(batch(A, 0, scope=scope(1)), 17)
    assert clients.replies == [("x", ClientReply(1, 0, 17, ""))]


def test_a_client_that_asked_elsewhere_is_not_told() -> None:
    clients = Clients(DeliveryTable())
    clients.on_ordered(batch(A, 0, scope=scope(1)), 17)
    assert clients.replies == []


def test_a_request_that_was_delivered_is_answered_at_once() -> None:
    delivery_table = DeliveryTable()
    clients = Clients(delivery_table)
    delivery_table.add(batch(A, 0, scope=scope(1)), 1)
    assert not clients.is_new(X, request(1))
    assert clients.replies == [("x", ClientReply(1, 0, -1, ""))]


def test_when_the_view_has_ended_requests_may_be_broadcast_again() -> None:
    clients = Clients(DeliveryTable())
    clients.is_new(X, request(1))
    clients.on_view()
    assert clients.is_new(X, request(1))
