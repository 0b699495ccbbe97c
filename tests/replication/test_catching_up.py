"""A member that was away begins with its own log, and asks the others for what it lacks only."""

import pytest

from log.simulated_directory import SimulatedDirectory
from priocast.replication import state_log
from replication.durable_replicas import DurableReplicas
from support.waiting import run, wait_until


async def submit(replicas: DurableReplicas, name: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        await replicas[name].submit(str(number).encode())


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_a_member_that_was_away_gets_the_entries_that_it_lacks() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 5)
            await replicas.fail_power("c")
            await submit(replicas, "a", 5, 5)
            await replicas.start("c", founders=3)
            assert await replicas.lines() == [numbers(10)] * 3
            assert replicas["c"].machine.restored == 0, "no state was transferred"
            await replicas["c"].submit(b"10")
            await replicas.fail_power()
            await replicas.start("b", "c")
            assert await replicas.lines() == [numbers(11)] * 2, "its log is as good as the others'"

    run(test)


def test_without_the_entries_the_whole_state_is_transferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_log, "ENTRIES_MAX", 40)

    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await replicas.fail_power("c")
            await submit(replicas, "a", 3, 60)
            await replicas.start("c", founders=3)
            assert await replicas.lines() == [numbers(63)] * 3
            assert replicas["c"].machine.restored == 1, "the others have trimmed what it lacks"
            await replicas.fail_power("c")
            await submit(replicas, "b", 63, 1)
            await replicas.start("c", founders=3)
            assert await replicas.lines() == [numbers(64)] * 3
            assert replicas["c"].machine.restored == 1, "once for the snapshot of its own log"

    run(test)


def test_founders_that_lack_the_end_get_only_that() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await wait_until(lambda: replicas.disks["c"].syncs > 0)
            replicas.disks["c"].hold_syncs()
            await submit(replicas, "a", 3, 5)
            await replicas.fail_power()
            await replicas.start()
            assert await replicas.lines() == [numbers(8)] * 3
            assert [each.machine.restored for each in replicas.running.values()] == [0, 0, 0]
            await replicas.fail_power()
            replicas.disks["b"] = SimulatedDirectory()
            await replicas.start()
            assert await replicas.lines() == [numbers(8)] * 3
            assert replicas["b"].machine.restored == 1, "who has nothing gets everything"

    run(test)


def test_an_evicted_member_gets_the_entries_that_it_lacks() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            for other in "ab":
                replicas.hub.cut("c", other)
                replicas.hub.cut(other, "c")
            await submit(replicas, "a", 3, 3)
            replicas.hub.heal()
            assert await replicas["c"].submit(b"6") == b"7"
            assert replicas["c"].machine.lines == numbers(7) and replicas["c"].machine.restored == 0

    run(test)


def test_a_member_that_has_not_synced_what_it_got_has_acknowledged_nothing_of_it() -> None:
    async def test() -> None:
        async with DurableReplicas("abc") as replicas:
            await replicas.start()
            await submit(replicas, "a", 0, 3)
            await replicas.fail_power()
            replicas.disks["c"].hold_syncs()
            await replicas.start()
            await submit(replicas, "a", 3, 2)
            await replicas.wait_synced("a")
            await replicas.fail_power()
            await replicas.start("a", "c")
            assert await replicas.lines() == [numbers(5)] * 2, "the log of c is of before, and is whole"

    run(test)
