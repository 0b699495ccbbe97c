"""The admin endpoint of a program's own node: `admin=` and `Node.serve_admin`."""

import logging

import pytest

import priocast
from priocast.core.errors import InvalidAddress
from priocast.network.address import parse_address
from priocast.operations.node_probe import probe_all, problems_of, status_at
from priocast.testing.addresses import free_addresses
from support.nodes import QUICK, nodes
from support.waiting import run, wait_until


def test_a_program_has_what_a_node_of_the_command_line_has(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        [address] = free_addresses(1)
        joining = priocast.join(
            "tickets", member="a", hub=priocast.MemoryHub(), size=1, membership=QUICK, admin=str(address)
        )
        async with joining:
            probed = await probe_all([str(address)])
            assert not problems_of(probed)
            assert probed[0].status is not None
            assert [group.group for group in probed[0].status.groups] == ["tickets"]
            await wait_until(lambda: "in view 1 of a" in caplog.text)
        with pytest.raises(priocast.DeadlineExceeded):
            await probe_all([str(address)])

    with caplog.at_level(logging.INFO, "priocast"):
        run(test)


def test_a_running_node_is_served_at_a_free_port() -> None:
    async def test() -> None:
        async with nodes(1, "tickets") as (node,), node.serve_admin("127.0.0.1:0") as admin:
            address = parse_address(admin.url.removeprefix("http://").removesuffix("/"))
            assert address.port != 0
            assert (await status_at(address)).node == "a"

    run(test)


def test_addresses_are_checked_at_the_call() -> None:
    hub = priocast.MemoryHub()
    with pytest.raises(InvalidAddress, match="can be reached from other machines"):
        priocast.open_node("a", hub=hub, size=1, admin="0.0.0.0:9401")
    with pytest.raises(InvalidAddress, match="admin must be an address"):
        priocast.join("tickets", member="a", hub=hub, size=1, admin=9401)  # type: ignore[arg-type]


def test_a_port_in_use_ends_the_start_and_leaves_nothing_running() -> None:
    async def test() -> None:
        async with nodes(1) as (node,), node.serve_admin("127.0.0.1:0") as admin:
            taken = admin.url.removeprefix("http://").removesuffix("/")
            hub = priocast.MemoryHub()
            with pytest.raises(InvalidAddress, match="cannot listen on the admin address"):
                await priocast.open_node("b", hub=hub, size=1, admin=taken).__aenter__()
            async with priocast.open_node("b", hub=hub, size=1):
                pass

    run(test)
