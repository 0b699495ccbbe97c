"""The study of execution times: what is made of the times, and one small group of real processes."""

from pathlib import Path

import msgspec
import pytest

from priocast.core.errors import InvalidOption
from priocast.study.xamp import (
    ExecutionTime,
    StoredGroup,
    XampPlan,
    expected_ms,
    indication_formula,
    keeps_window,
    measure_group,
    short_name,
    store_group,
    stored_group,
    times_of,
    window_of,
)
from priocast.study.xamp_worker import RAW, TOTAL_ORDER, WARM_UP, XampReport

MS = 1_000_000
PLAN = XampPlan(members=(3,), sizes=(64, 1024), messages=1)


def execution_time(**changes: float | str) -> ExecutionTime:
    time = ExecutionTime(
        members=3,
        size=64,
        way="delta:100ms",
        count=5,
        incomplete=0,
        indication_ms=150.0,
        confirmation_ms=1.0,
        spread_ms=1.0,
        spread_max_ms=2.0,
        shortest_ms=149.0,
        longest_ms=152.0,
    )
    return msgspec.structs.replace(time, **changes)


def test_times_run_from_the_sending_to_the_last_recipient_without_the_warm_up() -> None:
    ways = PLAN.ways(3)
    number = (WARM_UP * 2 + 1) * len(ways) + ways.index("reliable")  # of 1024 bytes, after the warm-up
    warm_up = ways.index("reliable") + len(ways)
    sent = {warm_up: 0, number: 100 * MS}
    for each in range(WARM_UP * 2 * len(ways), (WARM_UP + 1) * 2 * len(ways)):
        sent.setdefault(each, 0)
    sender = XampReport(delivered=0, sent=sent, confirmed=dict.fromkeys(sent, 0) | {number: 109 * MS})
    arrivals = {warm_up: 900 * MS, number: 104 * MS}
    first = XampReport(delivered=0, delivered_at=arrivals)
    second = XampReport(delivered=0, delivered_at=arrivals | {number: 107 * MS})
    times = times_of(3, PLAN, [first, second, sender], ["reliable", "atomic"])
    found = {(each.way, each.size): each for each in times}
    measured = found["reliable", 1024]
    assert (measured.count, measured.incomplete) == (1, 0)
    assert (measured.indication_ms, measured.confirmation_ms, measured.spread_ms) == (7, 9, 3)
    assert (measured.shortest_ms, measured.longest_ms) == (4, 7)
    assert (found["atomic", 64].count, found["atomic", 64].incomplete) == (0, 1), "not delivered everywhere"


def test_the_formulas_are_those_of_table_4() -> None:
    raw = execution_time(way=RAW, indication_ms=2.0, confirmation_ms=5.0)
    expected = {way: expected_ms(way, raw) for way in PLAN.ways(3)}
    assert expected == {
        RAW: None,
        TOTAL_ORDER: None,
        "best-effort:0": 2,
        "best-effort:2": 2,
        "at-least:2": 2,
        "reliable": 2,
        "causal": 2,
        "atomic": 7,
        "tight": 7,
        "delta:100ms": None,
    }
    assert indication_formula("atomic") == indication_formula("tight")
    assert [short_name(way) for way in PLAN.ways(3)][2:5] == ["unreliable", "best-effort", "at-least"]


@pytest.mark.parametrize(
    "changes", [{"shortest_ms": 99.9}, {"longest_ms": 200.1}, {"spread_max_ms": 50.1}, {"incomplete": 1}]
)
def test_delta_keeps_its_window_only_if_every_delivery_is_in_it(changes: dict[str, float]) -> None:
    assert window_of(PLAN) == (100, 200)
    assert keeps_window(execution_time(), PLAN)
    assert not keeps_window(execution_time(**changes), PLAN)


def test_a_finished_group_is_found_again_by_a_study_with_the_same_plan(tmp_path: Path) -> None:
    assert stored_group(tmp_path, 3, PLAN) is None
    group = StoredGroup(plan=PLAN, members=3, times=[execution_time()])
    store_group(tmp_path / "out", group)
    more_members = msgspec.structs.replace(PLAN, members=(2, 3))
    assert stored_group(tmp_path / "out", 3, PLAN) == stored_group(tmp_path / "out", 3, more_members) == group
    assert stored_group(tmp_path / "out", 2, more_members) is None
    assert stored_group(tmp_path / "out", 3, msgspec.structs.replace(PLAN, messages=2)) is None
    (tmp_path / "out" / "xamp-3.json").write_bytes(b"{")
    assert stored_group(tmp_path / "out", 3, PLAN) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"members": ()},
        {"members": (1,)},
        {"sizes": (8,)},
        {"sizes": ()},
        {"messages": 0},
        {"delta_ms": 0.5},
        {"precision_ms": float("nan")},
    ],
)
def test_impossible_plans_are_rejected(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=f"{next(iter(bad))} is "):
        XampPlan(**bad)  # type: ignore[arg-type]


@pytest.mark.processes
def test_every_quality_is_measured_on_real_processes() -> None:
    plan = XampPlan(members=(3,), sizes=(64,), messages=2, delta_ms=1000, precision_ms=500)
    counts: list[int] = []
    times = times_of(3, plan, measure_group(3, plan, "", counts.append))
    assert [each.way for each in times] == plan.ways(3)
    assert [(each.count, each.incomplete) for each in times] == [(2, 0)] * len(times)
    assert all(0 < each.shortest_ms <= each.indication_ms <= each.longest_ms for each in times)
    assert keeps_window(times[-1], plan)
    assert counts[-1] == plan.total(3)
