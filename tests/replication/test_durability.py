"""Durable replicas: answers wait for the disks of a majority, and nothing that was answered is lost."""

import asyncio
from pathlib import Path

import pytest

import priocast
from log.simulated_directory import SimulatedDirectory
from replication.durable_replicas import DurableReplicas, flip
from replication.notes import Notes
from replication.power_cuts import cut_power
from support.waiting import run, wait_until


def test_a_group_begins_again_with_everything_that_was_answered() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            for number in range(20):
                assert (
                    await replicas["abc"[number % 3]].submit(str(number).encode()) == str(number + 1).encode()
                )
            session = str(replicas["a"].me)
            await replicas.fail_power()
            await replicas.start()
            assert await replicas.lines() == [[str(number) for number in range(20)]] * 3
            known = await replicas["b"].settle(f"{session}:6")
            assert (known.kind, known.body) == ("applied", b"19"), "what was applied is known as well"
            assert await replicas["b"].submit(b"more") == b"21"

    run(test)


def test_power_cuts_in_the_middle_of_work_lose_and_repeat_nothing() -> None:
    async def test() -> None:
        assert await cut_power(8, seed=7) >= 8

    run(test)


def test_a_majority_is_enough_and_who_comes_later_receives_the_state() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"1")
            await replicas.fail_power()
            await replicas.start("b", "c")
            assert await replicas["b"].submit(b"2") == b"2"
            await replicas.start("a", founders=2)
            await replicas["a"].wait_current()
            assert await replicas["a"].submit(b"3") == b"3"
            await replicas.fail_power()
            await replicas.start("a", "b")
            assert await replicas.lines() == [["1", "2", "3"]] * 2

    run(test)


def test_entries_that_were_not_answered_may_be_dropped_and_do_not_come_back() -> None:
    """Only the disk of a has them, and a is not there when the others begin the next generation."""

    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"1")
            for name in "bc":
                replicas.disks[name].hold_syncs()
            unanswered = [asyncio.create_task(replicas["a"].submit(b"only at a")) for _ in range(30)]
            await wait_until(lambda: replicas.disks["a"].synced.count(b"only at a") == 30)
            await wait_until(lambda: len(replicas["b"].machine.lines) == 31)
            assert not any(each.done() for each in unanswered), "they are applied, and not answered"
            await replicas.fail_power()
            await asyncio.wait(unanswered)
            assert not any(b"only at a" in replicas.disks[name].synced for name in "bc")
            await replicas.start("b", "c")
            await replicas["b"].submit(b"2")
            await replicas.fail_power()
            await replicas.start("a", "b")
            assert await replicas.lines() == [["1", "2"]] * 2
            await replicas.start("c", founders=2)
            assert await replicas["c"].submit(b"3") == b"3"

    run(test)


def test_a_disk_that_was_behind_is_brought_up_to_date() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            replicas.disks["c"].hold_syncs()
            for number in range(5):
                await replicas["c"].submit(str(number).encode() * 300_000)
            await replicas.fail_power()
            await replicas.start()
            first, *others = await replicas.lines()
            assert [line[0] for line in first] == ["0", "1", "2", "3", "4"]
            assert others == [first] * 2
            await replicas["a"].submit(b"5")
            await replicas.fail_power()
            await replicas.start("b", "c")
            assert [line[0] for line in (await replicas.lines())[1]] == ["0", "1", "2", "3", "4", "5"]

    run(test)


def test_a_damaged_log_is_refilled_by_the_others() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            for number in range(5):
                await replicas["a"].submit(str(number).encode())
            await replicas.fail_power()
            flip(replicas.disks["b"], ".segment", 30)
            await replicas.start()
            assert await replicas.lines() == [["0", "1", "2", "3", "4"]] * 3
            await replicas["b"].submit(b"5")
            await replicas.wait_synced("b")
            await replicas.fail_power()
            flip(replicas.disks["a"], ".segment", 30)
            await replicas.start("a", "b", "c")
            assert (await replicas.lines())[1] == ["0", "1", "2", "3", "4", "5"], (
                "the log of b is whole again"
            )

    run(test)


def test_without_a_majority_of_whole_logs_nothing_is_answered() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"1")
            await replicas.wait_synced("a")
            await replicas.fail_power()
            flip(replicas.disks["b"], ".segment", 30)
            replicas.disks["c"] = SimulatedDirectory()
            await replicas.start()
            await replicas.wait_unanswered("c", "a majority of a, b, c must be here with whole logs")
            assert not replicas["a"].is_current

    run(test)


def test_a_disk_that_fails_stops_its_member_and_not_the_others() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"1")
            replicas.disks["c"].fails_on = "sync"
            await replicas["a"].submit(b"2")
            with pytest.raises(priocast.GroupClosed, match="its member must stop"):
                await replicas["c"].wait_until(lambda: False)
            with pytest.raises(priocast.UnusableLog, match="Input/output error"):
                await replicas.running.pop("c").__aexit__(None, None, None)
            assert await replicas["b"].submit(b"3") == b"3"

    run(test)


def test_full_disks_stop_their_members_and_nothing_answered_is_lost() -> None:
    """First a minority of the disks is full, then a majority; then there is room again."""

    async def stopped(replicas: DurableReplicas, name: str) -> None:
        with pytest.raises(priocast.GroupClosed, match="No space left on device; its member must stop"):
            await replicas[name].wait_until(lambda: False)
        with pytest.raises(priocast.UnusableLog, match="No space left"):
            await replicas.running.pop(name).__aexit__(None, None, None)

    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"0")
            replicas.disks["c"].free_bytes = 50
            await replicas["a"].submit(b"1")
            await stopped(replicas, "c")
            assert await replicas["b"].submit(b"2") == b"3", "a majority has room"
            replicas.disks["b"].free_bytes = 50
            submitting = asyncio.create_task(replicas["a"].submit(b"3"))
            await stopped(replicas, "b")
            await asyncio.sleep(0.05)
            assert not submitting.done(), "one disk is not enough"
            for name in "bc":
                replicas.disks[name].free_bytes = None
            await replicas.start("b", founders=3)
            assert await submitting == b"4"
            await replicas.start("c", founders=3)
            assert await replicas.lines() == [["0", "1", "2", "3"]] * 3
            await replicas.fail_power()
            await replicas.start()
            assert await replicas.lines() == [["0", "1", "2", "3"]] * 3

    run(test)


def test_an_answer_waits_for_a_majority_of_disks() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await replicas["a"].submit(b"1")
            for name in "ab":
                replicas.disks[name].hold_syncs()
            submitting = asyncio.create_task(replicas["c"].submit(b"2"))
            await wait_until(lambda: all(each.machine.lines[-1] == "2" for each in replicas.running.values()))
            reading = asyncio.create_task(replicas["c"].read(lambda notes: len(notes.lines)))
            await asyncio.sleep(0.05)
            assert not submitting.done() and not reading.done(), "what a read saw must not be lost either"
            replicas.disks["b"].release_syncs()
            assert await submitting == b"2" and await reading == 2
            replicas.disks["a"].release_syncs()

    run(test)


def test_an_object_on_a_real_disk_is_there_when_its_member_starts_again(tmp_path: Path) -> None:
    async def test() -> None:
        for expected in (1, 2, 3):
            async with priocast.replicate(
                "count",
                priocast.ReplicatedCounter(),
                member="a",
                hub=priocast.MemoryHub(),
                size=1,
                durability="disk",
                state_directory=tmp_path,
            ) as counter:
                assert await counter.add() == expected
        with pytest.raises(priocast.InvalidInput, match="needs a state_directory"):
            priocast.open_replica(
                "g", Notes(), member="a", hub=priocast.MemoryHub(), size=1, durability="disk"
            )

    run(test)
