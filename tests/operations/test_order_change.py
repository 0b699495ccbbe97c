"""Another order for a group that runs, asked for over the admin endpoint."""

from contextlib import AsyncExitStack

import msgspec
import pytest

from operations.nodes import QUICK, nodes
from operations.test_admin import ask
from priocast.core.errors import DeadlineExceeded, GroupClosed, InvalidInput
from priocast.operations import admin as admin_module
from priocast.operations.admin import Admin
from priocast.operations.order_change import OrderChange, ask_for_order
from priocast.runtime.node import Node
from priocast.testing.addresses import free_addresses
from support.waiting import run, wait_until


def put(body: bytes, path: str = "/order", *more: str) -> bytes:
    lines = [f"PUT {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more, "", ""]
    return "\r\n".join(lines).encode() + body


def asked(**fields: object) -> bytes:
    return put(msgspec.json.encode({"group": "tickets", "order": "sequencer-ub"} | fields))


def order_of(node: Node) -> tuple[str, bool, str]:
    ordering = node.groups["tickets"].member.membership.ordering
    return ordering.order, ordering.prioritised, ordering.starvation


def test_all_members_are_ordered_otherwise_from_the_next_view_on() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(nodes(2, "tickets"))
            await stack.enter_async_context(Admin(made[1], str(address)))
            change = OrderChange(
                group="tickets", order="time-parts/sequencer-ub", prioritised=True, starvation="ageing:20ms"
            )
            status, _ = await ask_for_order(str(address), change)
            assert (status.order, status.prioritised) == ("time-parts/sequencer-ub", True)
            await wait_until(lambda: order_of(made[0]) == order_of(made[1]))
            assert order_of(made[0]) == ("time-parts/sequencer-ub", True, "ageing:20ms")
            plain = OrderChange(group="tickets", order="sequencer-ub", prioritised=False)
            await ask_for_order(str(address), plain)
            await wait_until(lambda: order_of(made[0]) == ("sequencer-ub", False, "ageing:20ms"))

    run(test)


@pytest.mark.parametrize(
    ("request_bytes", "answer", "words"),
    [
        (asked(group="audit"), "422 Unprocessable Entity", b"a is not in the group 'audit'"),
        (asked(order="paxos"), "422 Unprocessable Entity", b"no protocol 'paxos'"),
        (asked(starvation="never"), "422 Unprocessable Entity", b"is not a starvation policy"),
        (asked(urgency=1), "422 Unprocessable Entity", b"this is no change of order"),
        (put(b"{"), "422 Unprocessable Entity", b"this is no change of order"),
        (put(b"", "/status"), "404 Not Found", b"there is PUT /order"),
        (put(b"{}", "/order", "Content-Length: 2"), "413 Request Entity Too Large", b"some kilobytes"),
        (b"PUT /order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n", "413", b"kilobytes"),
        (b"PUT /order HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "413", b"kilobytes"),
        (b"PUT /order HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421 Misdirected Request", b"ask for"),
    ],
)
def test_what_cannot_be_is_refused(request_bytes: bytes, answer: str, words: bytes) -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(1, "tickets") as (node,), Admin(node, str(address)):
            line, body = await ask(address, request_bytes)
            assert line.startswith(f"HTTP/1.1 {answer}")
            assert words in body
            assert order_of(node) == ("sequencer-ub", True, "none")

    run(test)


def test_an_order_that_is_not_for_partitionable_groups_is_refused_there() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        membership = msgspec.structs.replace(QUICK, policy="partitionable")
        async with (
            nodes(1, "tickets", membership=membership) as (node,),
            Admin(node, str(address)),
        ):
            change = OrderChange(group="tickets", order="agreement-skeen")
            with pytest.raises(InvalidInput, match="not for partitionable groups"):
                await ask_for_order(str(address), change)

    run(test)


def test_changes_are_not_taken_from_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is allowed to read from elsewhere may not change anything."""
    real = admin_module._is_loopback
    monkeypatch.setattr(admin_module, "_is_loopback", lambda host: real(host) and host != "127.0.0.1")

    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(1, "tickets") as (node,), Admin(node, str(address), allow_remote=True):
            line, body = await ask(address, asked(prioritised=False))
            assert line == "HTTP/1.1 403 Forbidden"
            assert b"from the node's own machine only" in body
            assert order_of(node) == ("sequencer-ub", True, "none")

    run(test)


def test_what_does_not_come_about_in_time_is_told() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        async with nodes(3, "tickets") as made, Admin(made[0], str(address)):
            for node in made[1:]:
                node.groups["tickets"].stop(GroupClosed("is silent from here on"))
            change = OrderChange(group="tickets", order="time-parts/sequencer-ub")
            with pytest.raises(DeadlineExceeded, match=r"is not after 0\.3 s"):
                await ask_for_order(str(address), change, timeout_seconds=0.3)

    run(test)


def test_nobody_answers() -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        with pytest.raises(InvalidInput, match=f"nobody answers at {address}"):
            await ask_for_order(str(address), OrderChange(group="tickets", order="sequencer-ub"))

    run(test)
