"""A name belongs to the process that runs: a second one is rejected, until the first one is not heard."""

import asyncio
from typing import Any

import pytest

import priocast
from priocast.runtime.node import WithNode
from priocast.testing.addresses import free_addresses
from support.groups import Cluster, Reader, entered, quick, reading
from support.waiting import run, wait_until

over_real_networks = pytest.mark.parametrize("network", ["tcp", "tls", "udp"])


def second(cluster: Cluster, name: str, **options: Any) -> WithNode[priocast.Group]:
    """Another process with the name of a member, at another address."""
    arguments = cluster.arguments(name) | {"listen": str(free_addresses(1)[0])}
    return priocast.join("test", member=name, **arguments, membership=quick(3), **options)


def reasons(reader: Reader) -> list[str]:
    return [str(view.reason) for view in reader.views]


@over_real_networks
def test_a_second_process_is_rejected_with_the_address_of_the_first_which_is_not_disturbed(
    network: str,
) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        joinings = [cluster.join(name, membership=quick(3)) for name in "abc"]
        async with entered(*joinings) as members, reading(*members) as readers:
            address = cluster.factory.address("b")
            trying = second(cluster, "b")
            entering = asyncio.create_task(_enter(trying))
            missing = trying.node.network.unreached
            expected = f"it rejected us: the name is in use: by b at {address}, "
            await wait_until(
                lambda: sum(expected in text and " since 20" in text for text in missing()) == 2,
                lambda: str(missing()),
            )
            await members[1].broadcast(b"still b")
            for reader in readers:
                await reader.wait_payloads(b"still b")
                assert reasons(reader) == ["the group was founded"]
            assert members[0].status().network_rejections["the name is in use"] > 0
            entering.cancel()
            await asyncio.wait([entering])

    run(test)


@over_real_networks
def test_a_second_process_takes_over_when_the_first_one_has_ended(network: str) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        joinings = [cluster.join(name, membership=quick(3)) for name in "abc"]
        async with entered(*joinings) as members, reading(members[0]) as (reader,):
            taking_over = second(cluster, "b")
            entering = asyncio.create_task(_enter(taking_over))
            rejections = joinings[0].node.network.rejections
            await wait_until(lambda: rejections["the name is in use"])
            await joinings[1].node.network.close()
            group = await entering
            await reader.wait_members("acb")
            await group.broadcast(b"the new b")
            await reader.wait_payloads(b"the new b")
            assert reader.payloads == [b"the new b"]
            assert reader.deliveries[0].message.sender == group.me != members[1].me
            await taking_over.__aexit__(None, None, None)

    run(test)


async def _enter(joining: WithNode[priocast.Group]) -> priocast.Group:
    return await joining.__aenter__()


@over_real_networks
def test_a_restart_after_a_clean_leave_is_not_rejected(network: str) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        joinings = {name: cluster.join(name, membership=quick(3)) for name in "abc"}
        async with (
            entered(joinings["a"], joinings["c"], joinings["b"]) as members,
            reading(*members[:2]) as readers,
        ):
            await joinings["b"].__aexit__(None, None, None)
            async with cluster.join("b", membership=quick(3)):
                await readers[0].wait_members("acb")
                assert "the name is in use" not in joinings["a"].node.network.rejections

    run(test)
