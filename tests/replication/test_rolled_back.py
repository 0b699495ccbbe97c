"""Directories that were rolled back, swapped or of another group are noticed and named; nothing is lost."""

import pytest

import priocast
from log.simulated_directory import SimulatedDirectory
from priocast.log.entries import MessageEntry
from priocast.log.ordered_log import OrderedLog
from replication.durable_replicas import DurableReplicas
from replication.test_catching_up import numbers, submit
from support.waiting import run, wait_until


def directory_of(replicas: DurableReplicas, name: str) -> SimulatedDirectory:
    """A backup of a member's directory, made while it runs."""
    copy = replicas.disks[name].copy()
    copy.fail_power(replicas.random)
    return copy


async def wait_acknowledged(replicas: DurableReplicas, name: str) -> None:
    """Wait until all logs know on disk how far those of the others are."""

    def is_known() -> bool:
        states = [each._state for each in replicas.running.values()]
        tips = [each.lineage.acknowledged[name].index for each in states]
        logs = [each._driver.durability._log.durable for each in replicas.running.values()]  # type: ignore[union-attr]
        return min(tips) == max(tips) and all(
            durable == each.index for durable, each in zip(logs, states, strict=True)
        )

    await wait_until(is_known)


def test_a_voter_that_was_rolled_back_does_not_count() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 5)
            backup = directory_of(replicas, "c")
            await submit(replicas, "a", 5, 5)
            await wait_acknowledged(replicas, "c")
            await replicas.fail_power()
            replicas.disks["c"] = backup
            await replicas.start("b", "c")
            reason = "must be here with whole logs.*here: b; older than what it acknowledged: c"
            await replicas.wait_unanswered("c", reason)
            await replicas.start("a", founders=2)
            assert await replicas.lines() == [numbers(10)] * 3

    run(test)


def test_a_member_that_was_rolled_back_is_told_so_by_the_group(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            backup = directory_of(replicas, "c")
            await submit(replicas, "a", 3, 3)
            await wait_acknowledged(replicas, "c")
            await replicas.fail_power("c")
            replicas.disks["c"] = backup
            await replicas.start("c", founders=3)
            assert await replicas.lines() == [numbers(6)] * 3

    run(test)
    assert "was it lost, or restored from a backup?" in caplog.text


def test_a_member_keeps_what_a_group_of_rolled_back_members_has_lost() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            backups = {name: directory_of(replicas, name) for name in "bc"}
            await submit(replicas, "a", 3, 3)
            await wait_acknowledged(replicas, "a")
            await replicas.fail_power()
            replicas.disks |= backups
            await replicas.start("b", "c")
            assert (await replicas.lines())[0] == numbers(3), "a majority was rolled back: nobody here knows"
            with pytest.raises(
                priocast.UnusableLog, match="answered as durable, and the group does not have"
            ):
                await join_until_it_fails(replicas, "a")
            kept = OrderedLog(replicas.disks["a"], "test", "a", b"").recover()
            bodies = [entry.payload for entry in kept if isinstance(entry, MessageEntry)]
            assert any(body.endswith(b"5") for body in bodies), "its log was not touched"

    run(test)


async def join_until_it_fails(replicas: DurableReplicas, name: str) -> None:
    """Start a member, and raise what stops it."""
    await replicas.start(name, founders=2)
    with pytest.raises(priocast.GroupClosed):
        await replicas[name].wait_until(lambda: False)
    await replicas.running.pop(name).__aexit__(None, None, None)


@pytest.mark.parametrize("is_running", [False, True])
def test_the_directory_of_another_group_of_the_same_name_is_refused(is_running: bool) -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas, DurableReplicas("abc") as others:
            for each in (replicas, others):
                await each.start()
                await submit(each, "a", 0, 3)
            await others.fail_power()
            await replicas.fail_power(*("c" if is_running else "abc"))
            replicas.disks["c"] = others.disks["c"]
            if is_running:
                with pytest.raises(priocast.UnusableLog, match="another group that had the same name"):
                    await join_until_it_fails(replicas, "c")
                assert await replicas.lines() == [numbers(3)] * 2
                return
            await replicas.start()
            await replicas.wait_unanswered("a", "of different groups that had the same name")

    run(test)


def test_members_with_empty_directories_do_not_overwrite_what_another_has() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await replicas.wait_synced("a")
            await replicas.fail_power()
            whole = replicas.disks["a"].names()
            replicas.disks |= {name: SimulatedDirectory() for name in "bc"}
            await replicas.start("b", "c")
            assert await replicas.lines() == [[], []], "a new group: nobody here knows of another"
            with pytest.raises(priocast.UnusableLog, match="another group that had the same name"):
                await join_until_it_fails(replicas, "a")
            assert replicas.disks["a"].names() == whole

    run(test)


def test_swapped_directories_are_refused() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await replicas.fail_power()
            disks = replicas.disks
            disks["a"], disks["b"] = disks["b"], disks["a"]
            for name, other in ("ab", "ba"):
                with pytest.raises(priocast.UnusableLog, match=f"of {other} in group 'test', not of {name}"):
                    await replicas.start(name, founders=3)
            disks["a"], disks["b"] = disks["b"], disks["a"]
            await replicas.start()
            assert await replicas.lines() == [numbers(3)] * 3

    run(test)


def test_a_generation_is_begun_once() -> None:
    """Two foundings in a row that lose power at once have different numbers, whoever takes part."""

    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            begun = [replicas["a"]._state.lineage.generation]
            for pair in ("ab", "bc", "ac", "ab"):
                await replicas.fail_power()
                for name in pair:
                    replicas.disks[name].hold_syncs()
                await replicas.start(*pair)
                first, second = (replicas[name]._state for name in pair)
                await wait_until(lambda: first.reports is None and second.reports is None)  # noqa: B023
                assert first.lineage.generation == second.lineage.generation
                begun.append(first.lineage.generation)
            assert len(set(begun)) == len(begun), "none of these generations is on a disk"
            await replicas.fail_power()
            await replicas.start()
            assert await replicas.lines() == [numbers(3)] * 3

    run(test)
