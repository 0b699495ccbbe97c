"""The tool that judges replicas: its record survives kills, and a short run under faults has no anomaly."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import SparkSession
from tools.judge.group import JudgedGroup, JudgedRun, judged_task
from tools.judge.recorder import EventRecorder, merge_history
from tools.judge.stores import engine_of, open_sql_store
from tools.judge.transaction_table import TransactionTable, decode_answer
from tools.judge.transactions import ACCOUNTS, WORKLOADS, Client, Transaction, TransactionAnswer, opening
from tools.judge.witness import WitnessLog, read_witness

from priocast.core.errors import GroupClosed
from priocast.core.identity import ProcessId
from priocast.network.memory import MemoryHub
from priocast.pipeline.serialisability import judge_history
from priocast.replication.commands import CommandId
from priocast.replication.state_machine import Applied
from priocast.testing.addresses import free_addresses
from priocast.trace.transaction_history import read_event, settled_of, steps_of
from support.waiting import run


def _apply(table: TransactionTable, transaction: Transaction, position: int) -> TransactionAnswer:
    at = Applied(position, CommandId("a#1", position), ProcessId("a", 1), 0, 0)
    return decode_answer(table.apply(msgspec.msgpack.encode(transaction), at))


def test_the_table_executes_and_rejects() -> None:
    executed: list[tuple[int, int, int]] = []
    table = TransactionTable(lambda *each: executed.append(each))
    assert table.read(Transaction(0, 0, "txn", (("r", 1, 0),))) == TransactionAnswer(-1, [None])
    _apply(table, opening(1), 5)
    transfer = Transaction(2, 0, "transfer", (("take", 0, 60), ("give", 1, 60)))
    assert _apply(table, transfer, 6) == TransactionAnswer(12, [None, None])
    assert _apply(table, transfer, 7) == TransactionAnswer(14, None)
    read = Transaction(3, 0, "read", tuple(("r", account, 0) for account in range(ACCOUNTS)))
    assert table.read(read) == TransactionAnswer(15, [40, 160, *[100] * (ACCOUNTS - 2)])
    copy = TransactionTable(lambda *_: None)
    copy.restore(table.snapshot())
    assert copy.read(read) == table.read(read)
    assert executed == [(1, 0, 5), (2, 0, 6)]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_history_is_what_the_clients_recorded(workload: str, tmp_path: Path) -> None:
    """One of two clients is killed while it writes: its last transaction is settled by the table."""
    paths = [tmp_path / "a", tmp_path / "b"]
    witness = WitnessLog(tmp_path / "witness")
    table = TransactionTable(witness.record)
    recorders = [EventRecorder(path) for path in paths]
    clients = [Client(workload, Random(seed), 0) for seed in range(2)]
    for number in range(50):
        for process, (recorder, client) in enumerate(zip(recorders, clients, strict=True)):
            transaction = client.next(process, number)
            recorder.invoke(transaction)
            answer = _apply(table, transaction, 2 * number + process)
            recorder.answer(transaction, answer)
    for recorder in recorders:
        recorder.close()
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    history = tmp_path / "history.edn"
    witness.close()
    merge_history(paths, [tmp_path / "witness"], history)
    events = [read_event(line) for line in history.read_text().splitlines()]
    assert [event.index for event in events] == list(range(200))
    assert [event.time_ns for event in events] == sorted(event.time_ns for event in events)
    was_executed = read_witness([tmp_path / "witness"], {1})[1] == (49, 99)
    assert settled_of(events[-1]) == [(1, 198 if was_executed else None)]
    assert sum(bool(steps_of(event)) for event in events if event.type == "ok") > 20


def test_a_database_executes_the_same_transactions_in_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "witness"

    async def test() -> None:
        witness = WitnessLog(path)
        async with open_sql_store(
            witness, engine_of("sqlite", ""), member="a", hub=MemoryHub(), size=1
        ) as store:
            for number, another_way in enumerate((False, True)):
                append = Transaction(number, 0, "txn", (("append", 50, number), ("r", 50, 0), ("r", 60, 0)))
                answer = await store.execute(append, 96, another_way=another_way)
                assert answer.results == [None, list(range(number + 1)), None]
                assert read_witness([path], {number}) == {number: (0, (answer.rank or 0) // 2)}
                await store.execute(opening(10 + number), 96, another_way=another_way)
                transfer = Transaction(20 + number, 0, "transfer", (("take", 0, 101), ("give", 1, 101)))
                assert await store.execute(transfer, 96, another_way=another_way) == (None, None)
                read = Transaction(30 + number, 0, "read", (("r", 0, 0), ("r", 1, 0)))
                answer = await store.execute(read, 96, another_way=another_way)
                assert answer.results == [100, 100]
                assert (answer.rank or 0) % 2 == another_way, (
                    "a read that is not broadcast follows a position"
                )
        witness.close()

    run(test)


@pytest.mark.processes
def test_a_member_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    """Its error is raised, instead of a view that did not come about."""
    task = judged_task("list-append", clients=1, seed=3, engine="postgresql")
    addresses = dict(zip("ab", map(str, free_addresses(2)), strict=True))
    nowhere = dict.fromkeys("ab", "postgresql://127.0.0.1:1/nothing")
    with JudgedGroup(addresses, task, tmp_path, databases=nowhere) as group:
        group.start("a", "b")
        with pytest.raises(GroupClosed, match=r"member [ab] ended early: .*server running"):
            group.wait_view("ab", 120)


@pytest.mark.processes
@pytest.mark.spark
def test_replicas_under_faults_are_strictly_serialisable(spark: SparkSession, tmp_path: Path) -> None:
    run = JudgedRun(judged_task("list-append", clients=3, seed=3), tmp_path, cuts=False)
    verdict = judge_history(run.record(100, 1, lambda _: None))
    assert len(run.faults) == 1
    assert verdict.examples == ()
    assert verdict.answered >= 100
