"""The judge of histories: what is strictly serialisable passes, and each planted anomaly is found alone."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.histories import HistoryBuilder, transfer
from priocast.core.errors import UnreadableTrace
from priocast.pipeline.serialisability import HistoryVerdict, judge_history
from priocast.pipeline.witness_replay import FoundAnomaly
from priocast.trace.transaction_history import rank_of

pytestmark = pytest.mark.spark


def _judged(history: HistoryBuilder, directory: Path) -> HistoryVerdict:
    return judge_history(history.write(directory / "history.edn"), "local[2]", examples_max=100)


def _clean() -> HistoryBuilder:
    """Lists, registers and a bank, with reads, transactions at once, and unknown outcomes of each kind."""
    history = HistoryBuilder()
    history.run(0, ("append", 1, 10), ("r", 1, [10]), at=3)
    history.run(1, ("r", 1, [10]), ("r", 2, None), after=3)
    history.invoke(0, ("append", 1, 11), ("append", 2, 20))
    history.invoke(1, ("append", 1, 12), ("r", 1, None))  # at once: the later one is first in the order
    history.ok(1, ("append", 1, 12), ("r", 1, [10, 12]), at=5)
    history.ok(0, ("append", 1, 11), ("append", 2, 20), at=6)
    history.run(2, ("w", 7, 1), ("r", 7, 1), ("w", 7, 2), at=8)
    history.run(3, ("r", 7, 2), ("r", 8, None), after=8)
    # One that was executed although nobody knew, one that never was, and one whose client was killed.
    history.invoke(4, ("append", 1, 13), ("r", 2, None))
    history.end("info", 4, ("append", 1, 13), ("r", 2, None))
    history.invoke(5, ("append", 1, 14))
    history.end("info", 5, ("append", 1, 14))
    history.invoke(6, ("append", 2, 21))
    history.run(0, ("r", 1, [10, 12, 11, 13]), ("r", 2, [20, 21]), at=12)
    history.invoke(7, ("append", 1, 99))
    history.end("fail", 7, ("append", 1, 99))
    history.run(0, ("w", 100, 50), ("w", 101, 0), at=13)
    history.other("invoke", 1, "transfer", transfer(100, 101, 20))
    history.other("ok", 1, "transfer", transfer(100, 101, 20), rank_of(14))
    history.other("invoke", 2, "transfer", transfer(101, 100, 30))
    history.other("fail", 2, "transfer", transfer(101, 100, 30), rank_of(15))
    history.other("invoke", 2, "read", None)
    history.other("ok", 2, "read", {100: 30, 101: 20}, rank_of(15, after=True))
    history.settled((4, 10), (5, None), (6, 11))
    return history


def test_what_is_strictly_serialisable_passes(spark: SparkSession, tmp_path: Path) -> None:
    verdict = _judged(_clean(), tmp_path)
    assert verdict.examples == ()
    assert verdict.holds
    outcomes = (verdict.transactions, verdict.answered, verdict.failed, verdict.unknown)
    assert outcomes == (15, 10, 2, 3)
    assert verdict.unknown_executed == 2


def test_planted_anomalies_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """Each has keys and positions of its own, in one history."""
    history = HistoryBuilder()
    history.run(0, ("append", 1, 1), at=1)
    history.run(1, ("append", 1, 2), at=2)
    history.run(2, ("r", 1, [1]), at=3)  # stale: the second one was answered
    history.run(0, ("w", 2, 0), at=4)
    history.invoke(0, ("r", 2, None), ("w", 2, 5))
    history.invoke(1, ("r", 2, None), ("w", 2, 7))
    history.ok(0, ("r", 2, 0), ("w", 2, 5), at=5)
    history.ok(1, ("r", 2, 0), ("w", 2, 7), at=6)  # the update of the first is lost
    history.run(0, ("w", 3, 1), ("w", 4, 1), at=7)
    history.invoke(0, ("r", 3, None), ("r", 4, None), ("w", 3, 2))
    history.invoke(1, ("r", 3, None), ("r", 4, None), ("w", 4, 2))
    history.ok(0, ("r", 3, 1), ("r", 4, 1), ("w", 3, 2), at=8)
    history.ok(1, ("r", 3, 1), ("r", 4, 1), ("w", 4, 2), at=9)  # write skew: both saw the state before
    history.run(0, ("append", 5, 1), at=10)
    history.run(0, ("append", 5, 2), at=11)
    history.run(0, ("r", 5, [2]), at=12)  # the first append is lost
    history.run(0, ("append", 6, 1), at=21)
    history.run(1, ("append", 7, 1), at=20)  # the order contradicts real time
    history.run(1, ("append", 8, 1), at=30)
    history.run(2, ("append", 9, 1), at=30)  # two at one place
    history.invoke(10, ("append", 11, 1))
    history.run(2, ("r", 11, [1]), at=40)  # of a transaction that was never executed
    history.run(2, ("append", 12, 1), at=41)
    history.invoke(11, ("append", 12, 2))  # executed at 39, before what had been answered
    history.run(2, ("w", 13, 5), ("w", 14, 0), at=50)
    history.other("invoke", 2, "transfer", transfer(13, 14, 6))
    history.other("ok", 2, "transfer", transfer(13, 14, 6), rank_of(51))  # overdraws
    history.other("invoke", 2, "transfer", transfer(14, 13, 6))
    history.other("fail", 2, "transfer", transfer(14, 13, 6), rank_of(52))  # is covered
    history.settled((10, None), (11, 39))
    verdict = _judged(history, tmp_path)
    assert [_place(found) for found in verdict.examples] == [
        (3, "stale read"),
        (6, "stale read"),
        (9, "stale read"),
        (12, "lost update"),
        (20, "real time"),
        (30, "same place"),
        (39, "real time"),
        (40, "early read"),
        (51, "wrong answer"),
        (52, "wrong answer"),
    ]
    assert not verdict.holds
    assert sum(verdict.anomalies.values()) == 10


def _place(found: FoundAnomaly) -> tuple[int, str]:
    return found.rank // 2, found.kind


def _without_a_position() -> HistoryBuilder:
    history = HistoryBuilder()
    history.run(0, ("w", 1, 1))
    return history


def _unsettled() -> HistoryBuilder:
    history = HistoryBuilder()
    history.invoke(0, ("w", 1, 1))
    return history


def _two_at_once() -> HistoryBuilder:
    history = HistoryBuilder()
    history.invoke(0, ("w", 1, 1))
    history.run(0, ("w", 1, 2), at=1)
    history.settled((0, None))
    return history


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        (_without_a_position, "no :position"),
        (_unsettled, "not :settled"),
        (_two_at_once, "second one at once"),
        (HistoryBuilder, "empty"),
    ],
)
def test_a_history_without_a_witness_is_rejected(
    history: type[HistoryBuilder], reason: str, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableTrace, match=reason):
        _judged(history(), tmp_path)


def test_a_line_that_is_no_event_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text("{:index 0, :type :begin, :process 0, :f :txn, :value nil}\n")
    with pytest.raises(UnreadableTrace, match=r":type is :begin.*in the line"):
        judge_history(path)
    with pytest.raises(UnreadableTrace, match="there is no history"):
        judge_history(tmp_path / "none.edn")
