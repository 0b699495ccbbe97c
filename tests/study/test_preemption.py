"""The drill: what is made of the replicas' times, and one small run on real processes."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from priocast.core.errors import InvalidOption
from priocast.study.preemption import RUNS, Drill, carry_out, finished
from priocast.study.preemption_worker import PreemptionReport

MS = 1_000_000


def executed(begun_ms: list[int], urgent: int, sent_ms: int = 0, digest: str = "same") -> PreemptionReport:
    begun_ns = [MS * each for each in begun_ms]
    return PreemptionReport(
        delivered=len(begun_ms), digest=digest, begun_ns=begun_ns, urgent=urgent, sent_ns=MS * sent_ms
    )


def test_what_was_begun_before_the_urgent_command_is_counted_at_each_replica() -> None:
    ahead = executed([0, 10, 20, 30, 40, 41], urgent=4)
    behind = executed([5, 15, 25, 35, 45, 46], urgent=4, sent_ms=12)
    run = finished(RUNS[0], ["a", "b"], [ahead, behind])
    assert [(each.replica, each.began, each.waited_ms) for each in run.replicas] == [
        ("a", 2, 28),
        ("b", 3, 33),
    ]
    assert (run.avoidable, run.overtaken, run.same_digest) == (2, 1, True)


def test_replicas_that_differ_are_found() -> None:
    one, other = executed([0, 10], urgent=1, sent_ms=5), executed([0, 10], urgent=1, digest="another")
    assert not finished(RUNS[0], ["a", "b"], [one, other]).same_digest


def test_all_commands_are_shared_out() -> None:
    drill = Drill(members=3, commands=200)
    assert [drill.share(index) for index in range(3)] == [67, 67, 66]


@pytest.mark.parametrize(
    "bad",
    [
        {"members": 0},
        {"members": 17},
        {"commands": 10},
        {"commands": 10_001},
        {"handling_ms": 0},
        {"handling_ms": nan},
        {"handling_ms": inf},
    ],
)
def test_an_invalid_drill_is_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Drill(**bad)


@pytest.mark.processes
def test_with_reordering_the_urgent_command_overtakes_what_nobody_has_begun(tmp_path: Path) -> None:
    drill = Drill(members=3, commands=400, handling_ms=50)  # far more than begin while it is on its way
    run = carry_out(RUNS[0], drill, tmp_path, lambda _: None)
    assert run.same_digest
    assert run.overtaken > run.avoidable
    assert [replica.replica for replica in run.replicas] == ["a", "b", "c"]
    assert all(0 < replica.longest_stall_ms < replica.waited_ms for replica in run.replicas)
