"""Members join, leave, fail and rejoin, and the others continue."""

import asyncio
import time

import pytest

import priocast
from priocast.core.errors import JoinRejected
from priocast.runtime.node import WithNode
from support.groups import NETWORKS, Cluster, Reader, entered, ids, quick, reading
from support.waiting import run, wait_until


def _kinds(reader: Reader) -> list[type[priocast.Event]]:
    """The events of a reader, except for messages."""
    return [type(event) for event in reader.events if not isinstance(event, priocast.Delivery)]


over_every_network = pytest.mark.parametrize("network", NETWORKS)


def trio(network: str, last: str) -> tuple[dict[str, WithNode[priocast.Group]], str]:
    """Three members that detect failures quickly, the one named `last`, and the names of the others."""
    cluster, staying = Cluster(network, "abc"), "abc".replace(last, "")
    return {name: cluster.join(name, membership=quick(3)) for name in (*staying, last)}, staying


async def crash(joining: WithNode[priocast.Group]) -> None:
    """Kill a process, as the others see it: it sends nothing any more."""
    await joining.node.network.close()


class TestJoiningAndFailing:
    @over_every_network
    @pytest.mark.parametrize("leaver", "abc")
    def test_when_a_member_leaves_the_others_continue_in_a_new_view(self, network: str, leaver: str) -> None:
        async def test() -> None:
            joinings, staying = trio(network, leaver)
            async with entered(*joinings.values()) as members:
                async with reading(*members[:2]) as readers:
                    await members[2].broadcast(b"goodbye")
                    await joinings[leaver].__aexit__(None, None, None)
                    await members[1].broadcast(b"and now?")
                    for reader in readers:
                        change = await reader.wait_members(staying)
                        assert str(change.reason) == f"{leaver} left"
                        await reader.wait_payloads(b"goodbye", b"and now?")
                assert readers[0].events[1:] == readers[1].events[1:]
                assert [d.position for d in readers[0].deliveries] == [0, 1]

        run(test)

    @over_every_network
    @pytest.mark.parametrize("leaver", "abc")
    def test_a_leave_after_a_pause_of_all_members_is_not_a_failure(self, network: str, leaver: str) -> None:
        async def test() -> None:
            joinings, staying = trio(network, leaver)
            async with (
                entered(*joinings.values()) as members,
                reading(*members[:2]) as readers,
            ):
                await readers[0].wait_members("abc")
                time.sleep(0.5)  # noqa: ASYNC251 - all of them are in this event loop, and stand still
                await joinings[leaver].__aexit__(None, None, None)
                for reader in readers:
                    change = await reader.wait_members(staying)
                    assert str(change.reason) == f"{leaver} left"

        run(test)

    @over_every_network
    @pytest.mark.parametrize("failing", "abc")
    def test_when_a_member_fails_the_others_continue_in_a_new_view(self, network: str, failing: str) -> None:
        async def test() -> None:
            joinings, staying = trio(network, failing)
            async with (
                entered(*joinings.values()) as members,
                reading(*members) as readers,
            ):
                await members[2].broadcast(b"before")
                await readers[0].wait_payloads(b"before")
                await crash(joinings[failing])
                await members[1].broadcast(b"after")
                for reader in readers[:2]:
                    change = await reader.wait_members(staying)
                    assert str(change.reason) == f"{failing} failed"
                    await reader.wait_payloads(b"after")
                assert readers[0].payloads == readers[1].payloads == [b"before", b"after"]
                assert readers[2].members == "abc", "one of three is no majority"

        run(test)

    @over_every_network
    def test_a_later_member_joins_and_delivers_what_follows(self, network: str) -> None:
        async def test() -> None:
            cluster = Cluster(network, "abc")
            founders = [cluster.join(name, founders=2) for name in "ab"]
            async with entered(*founders) as members, reading(*members) as readers:
                await members[0].broadcast_many([b"1", b"2", b"3"])
                await readers[1].wait_payloads(b"1", b"2", b"3")
                async with entered(cluster.join("c", founders=2)) as late, reading(*late) as (reader,):
                    change = await reader.wait_members("abc")
                    assert (change.position, str(change.reason)) == (3, "c joined")
                    await late[0].broadcast(b"hello")
                    await readers[0].wait_payloads(b"hello")
                    await reader.wait_payloads(b"hello")
                    assert reader.payloads == [b"hello"]
                    assert ids(readers[0].deliveries)[-1:] == ids(reader.deliveries)
                await readers[0].wait_members("ab")
            assert [str(event.reason) for event in readers[0].views] == [
                "the group was founded",
                "c joined",
                "c left",
            ]

        run(test)

    @over_every_network
    def test_a_restarted_member_has_a_new_incarnation(self, network: str) -> None:
        async def test() -> None:
            cluster = Cluster(network, "abc")
            first = cluster.join("c", membership=quick(3))
            async with (
                entered(*(cluster.join(name, membership=quick(3)) for name in "ab"), first) as members,
                reading(*members[:2]) as readers,
            ):
                before = members[2].me
                await crash(first)
                async with entered(cluster.join("c", membership=quick(3))) as again:
                    assert again[0].me.name == "c"
                    assert again[0].me > before
                    await again[0].broadcast(b"I am new")
                    for reader in readers:
                        await reader.wait_payloads(b"I am new")
                        assert reader.deliveries[-1].message.sender == again[0].me
                        assert reader.members == "abc"
                    assert before not in members[0].view.members

        run(test)

    def test_the_coordinator_of_two_members_continues_alone(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "ab")
            joinings = [cluster.join(name, membership=quick(2)) for name in "ab"]
            async with entered(*joinings) as members, reading(members[0]) as (reader,):
                await crash(joinings[1])
                await reader.wait_members("a")
                await members[0].broadcast(b"alone")
                await reader.wait_payloads(b"alone")
                assert [str(event.reason) for event in reader.views] == ["the group was founded", "b failed"]
                assert reader.payloads == [b"alone"]

        run(test)


class TestLeaving:
    @over_every_network
    def test_messages_of_a_leaving_member_are_delivered_by_the_others(self, network: str) -> None:
        async def test() -> None:
            cluster = Cluster(network, "abc")
            options = priocast.OrderingOptions(window=16, queue_max=4096, submit_max=64)
            joinings = [cluster.join(name, options=options) for name in "abc"]
            async with entered(*joinings) as members, reading(*members) as readers:
                await members[2].broadcast_many([b"%d" % number for number in range(1_000)])
                await joinings[2].__aexit__(None, None, None)
                for reader in readers[:2]:
                    await reader.wait_members("ab")
                    assert reader.payloads == [b"%d" % number for number in range(1_000)]
                assert readers[2].ended is not None

        run(test)

    def test_all_members_can_leave_at_once(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "abcd")
            async with entered(*(cluster.join(name) for name in "abcd")) as members:
                await members[0].broadcast(b"x")
            assert not cluster.hub.networks

        run(test)

    def test_leaving_by_an_exception_does_not_wait_for_the_others(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "ab")
            leaving = cluster.join("b")
            async with entered(cluster.join("a"), leaving) as members:
                cluster.hub.cut("a", "b")
                cluster.hub.cut("b", "a")
                await leaving.__aexit__(ValueError, ValueError("no reason"), None)
                with pytest.raises(priocast.GroupClosed):
                    await members[1].broadcast(b"x")

        run(test)


class TestRejoining:
    def test_an_evicted_member_rejoins_and_its_messages_are_delivered_once_and_in_order(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "abc")
            async with (
                entered(*(cluster.join(name, membership=quick(3)) for name in "abc")) as members,
                reading(*members) as readers,
            ):
                first_incarnation = members[2].me
                await members[2].broadcast(b"1")
                await readers[2].wait_payloads(b"1")
                cut_off(cluster, "c", "ab")
                await members[2].broadcast(b"2")
                await readers[0].wait_members("ab")
                await wait_until(lambda: members[2].status().state == "suspended")
                await members[2].broadcast(b"3")
                await members[0].broadcast(b"without c")
                await readers[1].wait_payloads(b"without c")
                cluster.hub.heal()
                await wait_until(lambda: members[2].me > first_incarnation)
                await members[2].broadcast(b"4")
                for reader in readers:
                    await reader.wait_payloads(b"2", b"3", b"4")
                assert readers[0].payloads == [b"1", b"without c", b"2", b"3", b"4"]
                stopped = next(event for event in readers[2].events if isinstance(event, priocast.Evicted))
                assert str(stopped.reason) == "c failed"
                assert readers[2].members == "abc"
                assert members[2].status().incarnations == 2

        run(test)

    def test_while_a_member_is_suspended_it_says_so_and_room_is_limited(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "ab")
            options = priocast.OrderingOptions(queue_max=16, submit_max=16)
            joinings = [cluster.join(name, membership=quick(2), options=options) for name in "ab"]
            async with entered(*joinings) as members, reading(*members):
                cut_off(cluster, "b", "a")
                await wait_until(lambda: members[1].status().state == "suspended")
                with pytest.raises(priocast.Overloaded, match="no quorum of the group can be reached"):
                    for number in range(100):
                        members[1].broadcast_nowait(b"%d" % number)
                        await asyncio.sleep(0)
                cluster.hub.heal()
                await wait_until(lambda: members[1].status().state == "active")

        run(test)

    def test_an_evicted_member_that_may_not_rejoin_closes_with_the_reason(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "abc")
            joinings = [cluster.join(name, membership=quick(3, rejoin=name != "c")) for name in "abc"]
            async with entered(*joinings) as members, reading(*members) as readers:
                cut_off(cluster, "c", "ab")
                await readers[0].wait_members("ab")
                cluster.hub.heal()
                await wait_until(lambda: readers[2].ended)
                assert str(readers[2].ended) == "c was evicted: c failed"
                assert isinstance(readers[2].events[-1], priocast.Evicted)
                with pytest.raises(priocast.GroupClosed, match="c was evicted"):
                    await members[2].broadcast(b"x")

        run(test)

    def test_a_member_whose_application_consumes_nothing_is_evicted_and_rejoins(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "abc")
            membership = quick(3, slow_ms=300.0)
            options = priocast.OrderingOptions(window=4)
            async with (
                entered(*(cluster.join(n, membership=membership, options=options) for n in "abc")) as members,
                reading(*members[:2]) as readers,
            ):
                await members[0].broadcast_many([b"%d" % number for number in range(50)])
                for reader in readers:
                    await reader.wait_payloads(*(b"%d" % number for number in range(50)))
                assert any(str(event.reason) == "c was evicted (slow)" for event in readers[0].views)
                assert readers[0].payloads == readers[1].payloads
                async with reading(members[2]) as (reader,):
                    # It may read the view without itself first, but not only that one.
                    await wait_until(lambda: _kinds(reader)[-2:] == [priocast.Evicted, priocast.ViewChange])
                    assert reader.members == "abc"
                    stopped = [event for event in reader.events if isinstance(event, priocast.Evicted)]
                    assert len(stopped) == 1
                    assert str(stopped[0].reason) == "c was evicted (slow)", (
                        "reported by the view or by the others"
                    )

        run(test)


class TestPartitions:
    def test_both_sides_of_a_partition_continue_and_merge(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "abcd")
            membership = quick(4, policy="partitionable")
            async with (
                entered(*(cluster.join(name, membership=membership) for name in "abcd")) as members,
                reading(*members) as readers,
            ):
                for one in "ab":
                    cut_off(cluster, one, "cd")
                for reader, side in zip(readers, ("ab", "ab", "cd", "cd"), strict=True):
                    await reader.wait_members(side)
                await members[1].broadcast(b"left")
                await members[2].broadcast(b"right")
                await readers[0].wait_payloads(b"left")
                await readers[3].wait_payloads(b"right")
                cluster.hub.heal()
                await wait_until(lambda: {len(reader.members) for reader in readers} == {4})
                merged = readers[0].views[-1].view
                assert [len(part.members) for part in merged.parts] == [2, 2]
                await members[3].broadcast(b"together")
                for reader in readers:
                    await reader.wait_payloads(b"together")
                assert readers[0].payloads == readers[1].payloads == [b"left", b"together"]
                assert readers[2].payloads == readers[3].payloads == [b"right", b"together"]
                assert {reader.deliveries[-1].position for reader in readers} == {1}

        run(test)


class TestRejectedJoins:
    @over_every_network
    def test_different_options_are_rejected_and_named(self, network: str) -> None:
        async def test() -> None:
            cluster = Cluster(network, "abc")
            async with entered(*(cluster.join(name, founders=2) for name in "ab")):
                with pytest.raises(JoinRejected, match=r"other group options: .*prioritised"):
                    async with cluster.join("c", founders=2, prioritised=False):
                        pass

        run(test)

    def test_a_different_number_of_founders_is_explained(self) -> None:
        async def test() -> None:
            cluster = Cluster("memory", "ab")
            with pytest.raises(priocast.DeadlineExceeded) as caught:
                await asyncio.gather(
                    enter_and_leave(cluster.join("a", membership=quick(2), start_seconds=3)),
                    enter_and_leave(cluster.join("b", membership=quick(3), start_seconds=9)),
                )
            assert "b expects 3 founders, not 2" in str(caught.value)

        run(test)

    @pytest.mark.parametrize("network", ["tcp", "udp"])
    def test_a_join_that_times_out_names_who_was_heard_and_which_addresses_are_missing(
        self, network: str
    ) -> None:
        async def test() -> None:
            cluster = Cluster(network, "abc")
            missing = str(cluster.factory.address("c"))
            async with cluster.open("b") as other:
                joining = asyncio.create_task(other.join("test").__aenter__())
                with pytest.raises(priocast.DeadlineExceeded) as caught:
                    await cluster.join("a", start_seconds=4).__aenter__()
                joining.cancel()
                await asyncio.wait([joining])
            assert str(caught.value).startswith(
                f"timed out after 4 s: no view of group 'test' contains a (heard: b; missing: {missing}"
            )

        run(test)

    def test_a_join_that_times_out_alone_names_all_addresses(self) -> None:
        async def test() -> None:
            cluster = Cluster("tcp", "ab")
            expected = rf"timed out after 0.2 s: .* \(heard: nobody; missing: {cluster.factory.address('b')}"
            with pytest.raises(priocast.DeadlineExceeded, match=expected):
                await cluster.join("a", start_seconds=0.2).__aenter__()

        run(test)


async def enter_and_leave(joining: WithNode[priocast.Group]) -> None:
    async with joining:
        pass


def cut_off(cluster: Cluster, one: str, others: str) -> None:
    """Cut the connections between a member and others."""
    for other in others:
        cluster.hub.cut(one, other)
        cluster.hub.cut(other, one)
