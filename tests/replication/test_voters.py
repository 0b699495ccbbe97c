"""Which disks count, and how one that is gone for good is replaced."""

import pytest

import priocast
from log.simulated_directory import SimulatedDirectory
from replication.durable_replicas import DurableReplicas
from replication.notes import Notes
from replication.test_catching_up import numbers, submit
from support.waiting import run


def test_a_member_that_comes_back_with_an_empty_disk_counts_when_it_has_everything() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await replicas.fail_power("c")
            replicas.disks["c"] = SimulatedDirectory()
            await replicas.start("c", founders=3)
            replicas.disks["b"].hold_syncs()
            await submit(replicas, "a", 3, 3)
            await replicas.fail_power()
            await replicas.start("b", "c")
            assert await replicas.lines() == [numbers(6)] * 2, "a and c had the last entries, and c has them"

    run(test)


def test_a_lost_voter_is_replaced_by_another_member() -> None:
    async def test() -> None:
        async with DurableReplicas("abcd") as replicas:
            await replicas.start("a", "b", "c")
            await submit(replicas, "a", 0, 3)
            await replicas.fail_power("c")
            await replicas.start("d", founders=3)
            voters = replicas["a"].voters
            assert list(voters.names) == ["a", "b", "c"], "d has a log, and does not count"
            await voters.add("d")
            assert list(voters.names) == ["a", "b", "c", "d"]
            await voters.remove("c")
            assert list(replicas["a"].voters.names) == ["a", "b", "d"]
            replicas.disks["b"].hold_syncs()
            await submit(replicas, "a", 3, 3)
            await replicas.fail_power()
            await replicas.start("b", "d")
            assert await replicas.lines() == [numbers(6)] * 2, "two of three voters are a majority"
            await replicas.fail_power()
            await replicas.start("c", "b")
            await replicas.wait_unanswered("b", r"majority of a, b, d must be here.*: (c, b|b, c)$")

    run(test)


def test_voters_that_cannot_be_are_rejected() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start("a", "b")
            voters = replicas["a"].voters
            with pytest.raises(priocast.CommandFailed, match="not changed: c has no log in this group now"):
                await voters.add("c")
            await voters.add("b")
            await voters.remove("c")
            assert list(voters.names) == ["a", "b"], "nothing to change"
            await voters.remove("b")
            with pytest.raises(priocast.CommandFailed, match="a is the only voter"):
                await voters.remove("a")
            assert list(replicas["b"].voters.names) == ["a"]

    run(test)


def test_a_group_without_logs_has_no_voters() -> None:
    async def test() -> None:
        async with priocast.open_replica(
            "g", Notes(), member="a", hub=priocast.MemoryHub(), size=1
        ) as replica:
            with pytest.raises(priocast.InvalidInput, match="open its replicas with durability='disk'"):
                await replica.voters.add("b")

    run(test)


def test_members_must_have_the_same_durability(tmp_path: object) -> None:
    async def test() -> None:
        hub = priocast.MemoryHub()
        async with priocast.open_replica("g", Notes(), member="a", hub=hub, size=1) as replica:
            other = priocast.open_replica(
                "g",
                Notes(),
                member="b",
                hub=hub,
                size=2,
                durability="disk",
                state_directory=str(tmp_path),
            )
            with pytest.raises(priocast.PriocastError, match="durability is 'disk' here and 'memory' at a"):
                await other.__aenter__()
            assert await replica.submit(b"x") == b"1"

    run(test)
