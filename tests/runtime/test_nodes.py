"""A node: one process on one network, in several groups."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import priocast
from own_network import UnixNetwork
from priocast.network.security import TlsSecurity
from support.groups import NETWORKS, Cluster, entered, ids, quick, reading, take
from support.waiting import PATIENCE_SECONDS, run, wait_until

over_every_network = pytest.mark.parametrize("network", NETWORKS)


@over_every_network
def test_two_groups_on_one_node_are_independent(network: str) -> None:
    async def test() -> None:
        cluster = Cluster(network, "abc")
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(cluster.open(name)) for name in "abc"]
            joined = await asyncio.gather(
                *(
                    stack.enter_async_context(node.join(group))
                    for group in ("test", "other")
                    for node in nodes
                )
            )
            test_group, other_group = joined[:3], joined[3:]
            for number in range(50):
                await test_group[number % 3].broadcast(b"test %d" % number)
                await other_group[number % 3].broadcast(b"other %d" % number, priority=number)
            seen = await asyncio.gather(*(take(group, 50) for group in joined))
            assert ids(seen[0]) == ids(seen[1]) == ids(seen[2])
            assert ids(seen[3]) == ids(seen[4]) == ids(seen[5])
            assert {d.message.payload.split()[0] for d in seen[1]} == {b"test"}
            assert {d.message.payload.split()[0] for d in seen[4]} == {b"other"}

    run(test)


@over_every_network
def test_leaving_one_group_changes_nothing_in_the_other(network: str) -> None:
    async def test() -> None:
        cluster = Cluster(network, "ab")
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(cluster.open(name)) for name in "ab"]
            staying = await asyncio.gather(*(stack.enter_async_context(n.join("test")) for n in nodes))
            leaving = [node.join("other", membership=quick(2)) for node in nodes]
            others = await asyncio.gather(*(joining.__aenter__() for joining in leaving))
            async with reading(*staying, *others) as readers:
                await leaving[1].__aexit__(None, None, None)
                await readers[2].wait_members("a")
                await staying[1].broadcast(b"still here")
                await readers[0].wait_payloads(b"still here")
                assert readers[0].members == "ab"
                await leaving[0].__aexit__(None, None, None)
                async with nodes[0].join("other", founders=1) as again:
                    assert [member.name for member in again.view.members] == ["a"]

    run(test)


def test_a_node_may_be_in_groups_with_different_others() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with AsyncExitStack() as stack:
            nodes = {name: await stack.enter_async_context(cluster.open(name)) for name in "abc"}
            left, right = await asyncio.gather(
                *(
                    asyncio.gather(
                        *(stack.enter_async_context(nodes[name].join(group, founders=2)) for name in names)
                    )
                    for group, names in (("test", "ab"), ("other", "bc"))
                )
            )
            assert [member.name for member in left[0].view.members] == ["a", "b"]
            assert [member.name for member in right[0].view.members] == ["b", "c"]

    run(test)


def test_a_group_can_be_joined_once_at_a_time() -> None:
    async def test() -> None:
        async with Cluster("memory", "a").open("a") as node, node.join("test"):
            with pytest.raises(priocast.InvalidInput, match="a is already in group 'test'"):
                await node.join("test").__aenter__()
            assert list(node.groups) == ["test"]
        assert not node.groups

    run(test)


def test_a_name_can_be_on_a_hub_once_at_a_time() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "a")
        async with cluster.open("a"):
            with pytest.raises(priocast.InvalidInput, match="a is already on this hub"):
                await cluster.open("a").__aenter__()

    run(test)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "give one of these: listen= and peers="),
        ({"listen": "127.0.0.1:7401"}, "give one of these: listen= and peers="),
        ({"hub": priocast.MemoryHub()}, "give one of these: listen= and peers="),
        (
            {"hub": priocast.MemoryHub(), "size": 1, "listen": "127.0.0.1:7401"},
            "give one of these: listen= and peers=",
        ),
        (
            {"network": 5, "size": 1},
            "network is 5, which has no link_options, .*: implement priocast.network",
        ),
        ({"network": 5}, "give one of these: listen= and peers="),
        ({"network": 5, "hub": priocast.MemoryHub(), "size": 1}, "give one of these: listen= and peers="),
        ({"network": 5, "size": 1, "tls": TlsSecurity("a", "b", "c")}, "tls requires listen="),
        ({"listen": "nowhere", "peers": []}, "is not an address"),
        ({"listen": "127.0.0.1:7401", "peers": ["nowhere"]}, "is not an address"),
        (
            {"listen": "127.0.0.1:7401", "peers": [], "transport": "pigeon"},
            "transport must be 'tcp' or 'udp'",
        ),
        ({"listen": "127.0.0.1:7401", "peers": [], "transport": "udp"}, "UDP requires keys="),
    ],
)
def test_invalid_nodes_are_rejected_at_the_call(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.open_node("a", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"group": "no spaces"}, "cannot be the name of a group"),
        ({"order": "ring"}, "there is no protocol 'ring'"),
        ({"founders": 257}, "founders is 257: it must be between 1 and 256"),
        ({"policy": "anarchy"}, "policy is 'anarchy': choose"),
        ({"delivery": "maybe"}, "delivery is 'maybe': choose"),
    ],
)
def test_invalid_groups_are_rejected_at_the_call(options: dict[str, object], complaint: str) -> None:
    arguments = {"group": "test", **options}
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.join(arguments.pop("group"), member="a", hub=priocast.MemoryHub(), size=1, **arguments)  # type: ignore[arg-type]


def test_a_join_that_fails_leaves_nothing_behind() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "ab")
        with pytest.raises(priocast.DeadlineExceeded):
            await cluster.join("a", start_seconds=0.1).__aenter__()
        assert not cluster.hub.networks
        async with cluster.open("a") as node:
            with pytest.raises(priocast.DeadlineExceeded):
                await node.join("test", start_seconds=0.1).__aenter__()
            assert not node.groups
            async with node.join("test", founders=1) as group:
                await wait_until(lambda: group.status().state == "active")

    run(test)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_groups_and_clients_run_over_a_network_of_the_user(tmp_path: Path) -> None:
    """An asyncio server that is closed between two steps of accepting a connection forgets its transport."""

    async def test() -> None:
        names = "abc"
        networks = [UnixNetwork(tmp_path, name) for name in names]
        joinings = [
            priocast.join("test", member=name, network=network, size=3)
            for name, network in zip(names, networks, strict=True)
        ]
        async with entered(*joinings) as members, reading(*members) as readers:
            await members[0].broadcast(b"from a member")
            network = UnixNetwork(tmp_path, "shop")
            async with priocast.open_client("test", client="shop", network=network) as client:
                assert await client.send(b"from a client", timeout_seconds=PATIENCE_SECONDS) == 1
            for reader in readers:
                await reader.wait_payloads(b"from a member", b"from a client")
                assert reader.payloads == [b"from a member", b"from a client"]

    run(test)
