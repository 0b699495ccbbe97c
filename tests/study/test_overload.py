"""The demo's runs, on real processes of this machine."""

import os
import signal
from math import inf, nan
from pathlib import Path

import pytest

from priocast.core.errors import GroupClosed, InvalidOption
from priocast.core.priority import URGENT
from priocast.core.protocol import OrderingOptions
from priocast.study.overload import PlannedRun, carry_out, plan
from priocast.study.workload import Workload
from priocast.trace.run_directory import find_segments, read_manifest

SMALL = Workload(members=3, load=2.0, seconds=0.4, handling_us=500)


def planned(workload: Workload, prioritised: bool = True) -> PlannedRun:
    options = OrderingOptions(prioritised=prioritised)
    return PlannedRun(name="run", title="a run", workload=workload, order="sequencer-ub", options=options)


def children() -> set[int]:
    """The processes that this one has started and that still run."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for listed in lists for pid in listed.read_text().split()}


@pytest.mark.processes
@pytest.mark.parametrize("prioritised", [True, False])
def test_members_deliver_everything_alike_and_end(tmp_path: Path, prioritised: bool) -> None:
    counted: list[int] = []
    before = children()
    finished = carry_out(planned(SMALL, prioritised), tmp_path, counted.append)
    assert finished.same_digest
    assert finished.messages == SMALL.total == counted[-1]
    assert counted == sorted(counted)
    assert read_manifest(tmp_path / "run").prioritised is prioritised
    assert {path.name.partition("-")[0] for path in find_segments(tmp_path / "run").messages} == {
        "a",
        "b",
        "c",
    }
    assert children() <= before


@pytest.mark.processes
def test_when_a_member_dies_the_run_says_so_and_ends_the_others(tmp_path: Path) -> None:
    before = children()

    def kill_one(delivered: int) -> None:
        victims = sorted(children() - before)
        if delivered > 10 and len(victims) == 3:
            os.kill(victims[0], signal.SIGKILL)

    long = Workload(members=3, load=2.0, seconds=20.0, handling_us=500)
    with pytest.raises(GroupClosed, match=r"member \w ended early"):
        carry_out(planned(long), tmp_path, kill_one)
    assert children() <= before


@pytest.mark.processes
def test_when_a_member_is_put_out_the_run_says_so_and_ends(tmp_path: Path) -> None:
    before = children()
    stopped: set[int] = set()

    def stop_one(delivered: int) -> None:
        """A process that stands still is taken for failed, and the group goes on without it."""
        victims = sorted(children() - before)
        if delivered > 10 and len(victims) == 3 and not stopped:
            os.kill(victims[1], signal.SIGSTOP)
            stopped.add(victims[1])

    long = Workload(members=3, load=2.0, seconds=30.0, handling_us=500)

    with pytest.raises(GroupClosed, match=r"member \w ended early: .* failed"):
        carry_out(planned(long), tmp_path, stop_one)
    assert children() <= before


def test_the_plan_compares_variants_and_a_calm_run() -> None:
    half, plain, prioritised = plan(Workload(), "sequencer-ub", OrderingOptions())
    assert (half.workload.load, plain.workload.load, prioritised.workload.load) == (0.5, 3.0, 3.0)
    assert [run.options.prioritised for run in (half, plain, prioritised)] == [True, False, True]
    assert plain.workload == prioritised.workload


@pytest.mark.parametrize(
    "bad",
    [
        {"members": 0},
        {"members": 65},
        {"load": 0},
        {"load": nan},
        {"load": inf},
        {"seconds": -1},
        {"seconds": nan},
        {"seconds": inf},
        {"seconds": 0.001},
        {"handling_us": 0},
        {"handling_us": 10**9},
        {"payload_bytes": -1},
        {"payload_bytes": 1 << 40},
        {"load": 1000, "seconds": 3600},
    ],
)
def test_an_invalid_workload_is_rejected(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidOption):
        Workload(**bad)  # type: ignore[arg-type]


def test_the_work_is_as_much_as_it_says() -> None:
    work = Workload(members=4, load=3.0, seconds=2.0, handling_us=250)
    assert work.saturating_rate == 4000
    assert work.total == pytest.approx(24_000, rel=0.001)
    assert work.counts[URGENT] == 120
