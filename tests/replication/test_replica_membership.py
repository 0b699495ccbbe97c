"""Replicas whose members are evicted, crash and join: exactly once, and nothing that was answered is lost."""

import asyncio

import pytest

import priocast
from replication.notes import Notes
from replication.replicas import replicated
from support.waiting import run, wait_until


def test_commands_of_an_evicted_member_are_applied_once_and_answered() -> None:
    """Some are ordered before the cut, some not; the next incarnation submits the rest again."""

    async def test() -> None:
        async with replicated("abc") as replicas:
            a = replicas["a"]
            await a.submit(b"first")
            submitting = [asyncio.create_task(a.submit(f"early {number}".encode())) for number in range(20)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            replicas.isolate("a")
            submitting += [asyncio.create_task(a.submit(f"late {number}".encode())) for number in range(20)]
            await wait_until(lambda: view_names(replicas["b"]) == "bc")
            assert await replicas["b"].submit(b"meanwhile")
            replicas.cluster.hub.heal()
            await a.wait_not_current()
            results = await asyncio.gather(*submitting)
            assert len(set(results)) == 40, "each has the result of its own place"
            await asyncio.gather(*(replicas[name].read(id) for name in "abc"))
            first, second, third = replicas.lines()
            assert first == second == third
            assert sorted(first) == sorted(
                [
                    "first",
                    "meanwhile",
                    *(f"{word} {number}" for word in ("early", "late") for number in range(20)),
                ]
            )
            assert a.machine.restored == 1

    run(test)


def view_names(replica: priocast.Replica[Notes]) -> str:
    return "".join(member.name for member in replica.view.members) if replica.view else ""


def test_a_result_that_was_ordered_while_the_submitter_was_away_comes_with_the_state() -> None:
    """The submitter is cut off in one direction only: its command is ordered, and no answer comes."""

    async def test() -> None:
        async with replicated("abc") as replicas:
            await replicas["b"].submit(b"first")
            for other in "ab":
                replicas.cluster.hub.cut(other, "c")
            submitting = asyncio.create_task(replicas["c"].submit(b"from c"))
            await wait_until(lambda: view_names(replicas["a"]) == "ab")
            await wait_until(lambda: "from c" in replicas["a"].machine.lines)
            assert not submitting.done()
            replicas.cluster.hub.heal()
            assert await submitting == b"2"
            assert replicas["c"].machine.restored == 1
            assert await replicas["c"].read(lambda notes: notes.lines) == ["first", "from c"]

    run(test)


def test_a_replica_that_joins_later_receives_the_state_and_is_current_from_then_on() -> None:
    async def test() -> None:
        async with replicated("ab", founders=2) as replicas:
            for number in range(10):
                await replicas["a"].submit(str(number).encode())
            replicas.cluster.names = "abc"
            await replicas.start("c")
            c = replicas["c"]
            await c.wait_current()
            assert c.machine.lines == [str(number) for number in range(10)]
            assert c.staleness_seconds is None, "nothing proves yet how recent it is"
            assert await c.submit(b"10") == b"11"
            assert c.staleness_seconds is not None

    run(test)


def test_the_state_says_which_commands_were_applied() -> None:
    """A joining replica skips the repetition of a command that it knows from the state alone."""

    async def test() -> None:
        async with replicated("ab", founders=2) as replicas:
            await replicas["a"].submit(b"once")
            replicas.cluster.names = "abc"
            await replicas.start("c")
            await replicas["c"].wait_current()
            outcome = await replicas["c"].settle(f"{replicas['a'].me}:0")
            assert (outcome.kind, outcome.body) == ("applied", b"1")

    run(test)


def test_a_crash_of_the_submitter_does_not_stop_its_long_command() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            await replicas["a"].submit(b"first")
            submitting = asyncio.create_task(replicas["c"].submit(b"long 2000"))
            await wait_until(lambda: len(replicas["a"].machine.lines) > 20)
            submitting.cancel()
            await replicas.replicas.pop("c").__aexit__(None, None, None)
            await wait_until(lambda: replicas["a"].machine.lines[-1] == "long 1")
            assert await replicas["b"].read(lambda notes: notes.lines) == [
                "first",
                *(f"long {number}" for number in range(2000, 0, -1)),
            ]

    run(test)


def test_a_full_disk_at_one_replica_stops_it_and_not_the_others() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            broken = replicas["c"]
            broken.machine.apply = full_disk  # type: ignore[method-assign]
            await replicas["a"].submit(b"1")
            with pytest.raises(priocast.GroupClosed, match="the replica c stopped: OSError"):
                await broken.wait_until(lambda: False)
            assert not broken.is_current
            await replicas["a"].submit(b"2")
            assert await replicas["b"].read(lambda notes: notes.lines) == ["1", "2"]
            with pytest.raises(OSError, match="No space left"):
                await replicas.replicas.pop("c").__aexit__(None, None, None)

    run(test)


def full_disk(command: bytes, at: priocast.Applied) -> bytes:
    raise OSError(28, "No space left on device")
