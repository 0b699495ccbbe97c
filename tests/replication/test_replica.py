"""Replicas: commands exactly once, reads, slots, failures, and calls that cannot be served."""

import asyncio
import math

import pytest

import priocast
from priocast.replication.commands import COMMAND_BYTES_MAX, Command, encode_envelope
from replication.notes import Notes
from replication.replicas import replicated
from support.groups import Cluster, entered
from support.waiting import run, wait_until


def test_every_replica_applies_the_same_commands_and_the_caller_gets_the_result() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            results = await asyncio.gather(
                *(
                    replicas[name].submit(f"{name} {number}".encode())
                    for name in "abc"
                    for number in range(20)
                )
            )
            assert sorted(map(int, results)) == list(range(1, 61))
            for name in "abc":
                await replicas[name].read(count)
            first, second, third = replicas.lines()
            assert first == second == third
            assert len(first) == len(set(first)) == 60

    run(test)


def count(notes: Notes) -> int:
    return len(notes.lines)


def test_a_read_sees_every_command_that_was_answered_before_it_began() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            for number in range(30):
                writer, reader = replicas["abc"[number % 3]], replicas["abc"[(number + 1) % 3]]
                await writer.submit(str(number).encode())
                assert await reader.read(lambda notes: notes.lines[-1]) == str(number)

    run(test)


def test_reads_that_begin_together_share_a_barrier() -> None:
    async def test() -> None:
        async with replicated("ab") as replicas:
            a = replicas["a"]
            await a.submit(b"1")
            position = a.position
            assert await asyncio.gather(*(a.read(count) for _ in range(50))) == [1] * 50
            assert a.position == position + 1

    run(test)


def test_a_stale_read_is_answered_at_once_if_the_replica_is_recent_enough() -> None:
    async def test() -> None:
        async with replicated("ab") as replicas:
            a, b = replicas["a"], replicas["b"]
            assert b.staleness_seconds is None
            await a.submit(b"1")
            position = a.position
            assert await a.read(count, staleness_seconds=60) == 1
            assert a.position == position, "no barrier was ordered"
            assert await b.read(count, staleness_seconds=60) == 1, (
                "it does not know how recent it is: a barrier"
            )
            assert b.position == position + 1
            assert await b.read(count, staleness_seconds=math.inf) == 1
            await asyncio.sleep(0.05)
            assert await a.read(count, staleness_seconds=0.001) == 1
            assert a.position > position, "it was too old"

    run(test)


def test_a_cut_off_replica_answers_no_linearizable_read_and_no_command() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            a = replicas["a"]
            await a.submit(b"before")
            replicas.isolate("a")
            with pytest.raises(priocast.DeadlineExceeded):
                await a.read(count, timeout_seconds=0.5)
            assert await a.read(count, staleness_seconds=60) == 1, "a stale read is answered"
            await replicas["b"].submit(b"without a")
            submitting = asyncio.create_task(a.submit(b"late"))
            await asyncio.sleep(0.1)
            assert not submitting.done()
            replicas.cluster.hub.heal()
            assert await submitting == b"3"
            assert await a.read(lambda notes: notes.lines) == ["before", "without a", "late"]

    run(test)


def test_an_exception_of_the_state_machine_is_the_result_of_the_command() -> None:
    async def test() -> None:
        async with replicated("ab") as replicas:
            with pytest.raises(priocast.CommandFailed, match="ValueError: no such seat") as raised:
                await replicas["a"].submit(b"fail no such seat")
            assert raised.value.kind == "ValueError"
            assert await replicas["a"].submit(b"next") == b"1", "the replicas go on"
            assert await replicas["b"].read(lambda notes: notes.lines) == ["next"]

    run(test)


def test_an_urgent_command_is_applied_between_the_slots_of_a_long_one() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            a, b = replicas["a"], replicas["b"]
            long = asyncio.create_task(a.submit(b"long 500"))
            await wait_until(lambda: len(a.machine.lines) > 10)
            await b.submit(b"urgent", priority=priocast.URGENT)
            assert not long.done()
            assert await long == b"501"
            for name in "abc":
                lines = await replicas[name].read(lambda notes: notes.lines)
                assert lines == a.machine.lines
                assert [line for line in lines if line != "urgent"] == [
                    f"long {number}" for number in range(500, 0, -1)
                ]
                assert 10 < lines.index("urgent") < 500

    run(test)


def test_a_command_whose_outcome_is_unknown_can_be_settled() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            a = replicas["a"]
            await a.submit(b"first")
            replicas.isolate("a")
            with pytest.raises(priocast.OutcomeUnknown, match="may have been applied or not") as raised:
                await a.submit(b"second", timeout_seconds=0.2)
            unknown = raised.value.command
            settled = await replicas["b"].settle(unknown)
            assert settled.kind == "void", "it was not applied, and never will be"
            replicas.cluster.hub.heal()
            await a.submit(b"third")
            assert await replicas["c"].read(lambda notes: notes.lines) == ["first", "third"]
            assert (await a.settle(unknown)).kind in {"void", "forgotten"}
            assert (await a.settle("x#1:7")).kind == "forgotten", "nothing is known of such a session"

    run(test)


def test_a_call_that_is_cancelled_does_not_keep_its_number_open() -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(queue_max=16)
        async with replicated("abc", options=options) as replicas:
            a = replicas["a"]
            await a.submit(b"first")
            replicas.isolate("a")
            submitting = [asyncio.create_task(a.submit(f"{number}".encode())) for number in range(40)]
            await asyncio.sleep(0.05)
            for task in submitting:
                task.cancel()
            await asyncio.wait(submitting)
            replicas.cluster.hub.heal()
            await a.submit(b"last")
            driver = a._driver
            assert driver is not None
            await wait_until(lambda: driver.submissions.floor == 42, lambda: f"{driver.submissions.floor}")
            lines = await a.read(lambda notes: notes.lines)
            assert len(lines) == len(set(lines))

    run(test)


def test_messages_that_are_not_of_a_replica_are_skipped_by_all() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            b = replicas["b"]
            assert b._driver is not None
            await b._driver.group.broadcast(b"not a command")
            await b._driver.group.broadcast(encode_envelope(Command(_NO_ID, 0, 0, b"x"))[:-1])
            assert await replicas["a"].submit(b"1") == b"1"
            assert replicas["a"]._state.skipped == 2

    run(test)


_NO_ID = priocast.CommandId("x#1", 0)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"policy": "partitionable"}, "a replicated state needs 'primary'", id="partitionable"),
        pytest.param(
            {"membership": priocast.MembershipOptions(founders=1, policy="partitionable")},
            "a replicated state needs 'primary'",
            id="partitionable in the options",
        ),
        pytest.param({"delivery": "agreed"}, "a replica answers on safe delivery only", id="agreed"),
        pytest.param({"state": priocast.State(bytes, print)}, "state cannot be passed", id="state"),
    ],
)
def test_options_that_a_replica_cannot_have_are_rejected(options: dict[str, object], error: str) -> None:
    with pytest.raises(priocast.InvalidInput, match=error):
        priocast.open_replica("g", Notes(), member="a", hub=priocast.MemoryHub(), size=1, **options)  # type: ignore[arg-type]


def test_calls_with_bad_arguments_are_rejected() -> None:
    async def test() -> None:
        with pytest.raises(priocast.InvalidInput, match="must have the methods apply, snapshot and restore"):
            priocast.open_replica("g", object(), member="a", hub=priocast.MemoryHub(), size=1)  # type: ignore[type-var]
        async with replicated("a") as replicas:
            a = replicas["a"]
            with pytest.raises(priocast.InvalidInput, match="a command must be bytes, not str"):
                await a.submit("text")  # type: ignore[arg-type]
            with pytest.raises(priocast.PayloadTooLarge):
                await a.submit(bytes(COMMAND_BYTES_MAX + 1))
            with pytest.raises(priocast.PriorityOutOfRange):
                await a.submit(b"x", priority=256)
            with pytest.raises(priocast.InvalidOption, match="staleness_seconds must not be negative"):
                await a.read(count, staleness_seconds=-1)
            with pytest.raises(priocast.InvalidInput, match="is not the id of a command"):
                await a.settle("17")
            assert await a.submit(bytes(1000)) == b"1"
            assert await a.submit(b"x" * COMMAND_BYTES_MAX) == b"2", "the largest command fits a message"

    run(test)


def test_a_replica_that_was_closed_says_so() -> None:
    async def test() -> None:
        async with replicated("ab") as replicas:
            b = replicas.replicas.pop("b")
            waiting = asyncio.create_task(b.wait_until(lambda: False))
            await asyncio.sleep(0)
            await b.__aexit__(None, None, None)
            with pytest.raises(priocast.GroupClosed, match="the replica b was closed"):
                await waiting
            with pytest.raises(priocast.GroupClosed, match="the replica b was closed"):
                await b.submit(b"x")
            assert await replicas["a"].submit(b"x") == b"1"

    run(test)


def test_a_replica_that_cannot_join_says_why() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with entered(*(cluster.join(name, founders=2) for name in "ab")):
            with pytest.raises(priocast.PeerFault, match="has other group options"):
                async with priocast.open_replica(
                    "test", Notes(), member="c", founders=2, **cluster.arguments("c")
                ):
                    pass

    run(test)


def test_one_process_may_have_several_replicas() -> None:
    async def test() -> None:
        hub = priocast.MemoryHub()
        async with (
            priocast.open_node("a", hub=hub, size=1) as node,
            priocast.open_replica_on(node, "one", Notes()) as one,
            priocast.open_replica_on(node, "two", Notes()) as two,
        ):
            assert await one.submit(b"x") == b"1"
            assert await two.read(count) == 0

    run(test)
