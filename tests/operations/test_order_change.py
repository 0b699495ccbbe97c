"""Changing the order of a running group over the admin endpoint."""

from contextlib import AsyncExitStack

import msgspec
import pytest

from priocast.core.errors import DeadlineExceeded, GroupClosed, InvalidInput
from priocast.network.address import Address, is_loopback
from priocast.operations.order_change import request_order_change
from priocast.runtime.admin import access
from priocast.runtime.admin.endpoint import Admin
from priocast.runtime.admin.order_request import OrderChangeRequest
from priocast.runtime.admin.token_file import read_token
from priocast.runtime.node import Node
from priocast.testing.addresses import free_addresses
from runtime.admin.test_endpoint import ask
from support.nodes import QUICK, nodes
from support.waiting import run, wait_until

AUTHORISED = ("Authorization: Bearer TOKEN", "Content-Type: application/json")


def post(body: bytes, path: str = "/order", *more: str, host: str = "localhost") -> bytes:
    """A request to change something, with the token that `asked` fills in."""
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *AUTHORISED, *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def change_request(*more: str, **fields: object) -> bytes:
    return post(msgspec.json.encode({"group": "tickets", "order": "sequencer-ub"} | fields), "/order", *more)


async def asked(address: Address, request: bytes) -> tuple[str, bytes]:
    """The response to a request, with the token of the node in it."""
    return await ask(address, request.replace(b"TOKEN", read_token(address).encode()))


def order_of(node: Node) -> tuple[str, bool, str]:
    ordering = node.groups["tickets"].member.membership.ordering
    return ordering.order, ordering.prioritised, ordering.starvation


def test_order_of_all_members_changes_with_the_next_view() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(nodes(2, "tickets"))
            await stack.enter_async_context(Admin(made[1], str(address)))
            change = OrderChangeRequest(
                group="tickets", order="time-parts/sequencer-ub", prioritised=True, starvation="ageing:20ms"
            )
            status, _ = await request_order_change(str(address), change)
            assert (status.order, status.prioritised) == ("time-parts/sequencer-ub", True)
            await wait_until(lambda: order_of(made[0]) == order_of(made[1]))
            assert order_of(made[0]) == ("time-parts/sequencer-ub", True, "ageing:20ms")
            ageing = OrderChangeRequest(
                group="tickets", order="time-parts/sequencer-ub", starvation="ageing:40ms"
            )
            status, _ = await request_order_change(str(address), ageing)
            assert status.starvation == "ageing:40ms"
            plain = OrderChangeRequest(group="tickets", order="sequencer-ub", prioritised=False)
            await request_order_change(str(address), plain)
            await wait_until(lambda: order_of(made[0]) == ("sequencer-ub", False, "ageing:40ms"))

    run(test)


@pytest.mark.parametrize(
    ("request_bytes", "status", "detail"),
    [
        (change_request(group="audit"), "422 Unprocessable Entity", b"a is not in the group 'audit'"),
        (change_request(order="paxos"), "422 Unprocessable Entity", b"'paxos'"),
        (change_request(starvation="never"), "422 Unprocessable Entity", b"'never'"),
        (change_request(urgency=1), "422 Unprocessable Entity", b"not an order change request"),
        (post(b"{"), "422 Unprocessable Entity", b"not an order change request"),
        (post(b'{"group":"\xff"}'), "422 Unprocessable Entity", b"not an order change request"),
        (post(b"", "/status"), "404 Not Found", b"the only path for POST is /order"),
        (
            post(b" " * 10_000, "/order"),
            "413 Request Entity Too Large",
            b"smaller than 10000 bytes",
        ),
        (post(b"{}", "/order", "Content-Length: 3"), "400 Bad Request", b"Content-Length"),
        (b"POST /order HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "400", b"Content-Length"),
        (change_request().replace(b"POST", b"PUT"), "405 Method Not Allowed", b"GET and POST"),
        (change_request().replace(b"localhost", b"evil.example"), "403 Forbidden", b"the Host must be"),
        (change_request("Origin: http://localhost:1"), "403 Forbidden", b"web pages of other sites"),
        (change_request("Origin: null"), "403 Forbidden", b"web pages of other sites"),
        (change_request("Sec-Fetch-Site: same-site"), "403 Forbidden", b"web pages of other sites"),
        (change_request().replace(b"TOKEN", b"guessed"), "403 Forbidden", b"needs the token"),
        (change_request().replace(b"Authorization", b"X"), "403 Forbidden", b"needs the token"),
        (change_request().replace(b"Bearer", b"Basic"), "403 Forbidden", b"needs the token"),
        (change_request("Authorization: Bearer TOKEN"), "403 Forbidden", b"needs the token"),
        (change_request().replace(b"application/json", b"text/plain"), "415", b"must be application/json"),
    ],
)
def test_invalid_requests_are_rejected(request_bytes: bytes, status: str, detail: bytes) -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(1, "tickets") as (node,), Admin(node, str(address)):
            line, body = await asked(address, request_bytes)
            assert line.startswith(f"HTTP/1.1 {status}")
            assert detail in body
            assert order_of(node) == ("sequencer-ub", True, "none")

    run(test)


def test_order_that_does_not_support_partitionable_groups_is_rejected() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        membership = msgspec.structs.replace(QUICK, policy="partitionable")
        async with (
            nodes(1, "tickets", membership=membership) as (node,),
            Admin(node, str(address)),
        ):
            change = OrderChangeRequest(group="tickets", order="agreement-skeen")
            with pytest.raises(InvalidInput, match="partitionable"):
                await request_order_change(str(address), change)

    run(test)


def test_changes_from_other_machines_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remote access is for reading only."""
    monkeypatch.setattr(access, "is_loopback", lambda host: is_loopback(host) and host != "127.0.0.1")

    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(1, "tickets") as (node,), Admin(node, str(address), allow_remote=True):
            line, body = await asked(address, change_request(prioritised=False))
            assert line == "HTTP/1.1 403 Forbidden"
            assert b"from the node's own machine only" in body
            assert order_of(node) == ("sequencer-ub", True, "none")

    run(test)


def test_change_that_times_out() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(3, "tickets") as made, Admin(made[0], str(address)):
            for node in made[1:]:
                node.groups["tickets"].stop(GroupClosed("is silent from here on"))
            change = OrderChangeRequest(group="tickets", order="time-parts/sequencer-ub")
            with pytest.raises(DeadlineExceeded, match=r"timed out after 0\.3 s: tickets is not ordered by"):
                await request_order_change(str(address), change, timeout_seconds=0.3)

    run(test)


def test_no_reply_from_the_address() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        with pytest.raises(InvalidInput, match=f"no node replies at {address}"):
            await request_order_change(
                str(address), OrderChangeRequest(group="tickets", order="sequencer-ub")
            )

    run(test)
