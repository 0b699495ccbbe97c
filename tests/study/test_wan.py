"""The study of five regions: what the times are, and that they follow from the distances."""

import pytest

from priocast.core.errors import InvalidOption, UnknownProtocol
from priocast.study.wan import RATES, REGIONS, ROUND_TRIPS_MS, WanPlan, measure_wan, percentile


def test_round_trips_are_the_same_in_both_directions() -> None:
    assert [*zip(*ROUND_TRIPS_MS, strict=True)] == [*ROUND_TRIPS_MS]
    assert len(REGIONS) == len(ROUND_TRIPS_MS) == len(RATES)


def test_a_region_s_load_is_shared_by_its_members() -> None:
    scenario = WanPlan(orders=("sequencer-ub",)).scenario("sequencer-ub", 15)
    assert scenario.network.regions[:6] == (0, 1, 2, 3, 4, 0)
    rates = [phase.rate_per_second for phase in scenario.workload.phases]
    for region, rate in enumerate(RATES):
        assert sum(rates[region::5]) == pytest.approx(rate, rel=1e-3)


def test_times_follow_from_the_distance_to_the_sequencer() -> None:
    rows = measure_wan(WanPlan(members=(5,), orders=("sequencer-ub",), seconds=3), lambda *_: None)
    near, far = ({row.region: row for row in rows}[region] for region in ("Washington", "Tokyo"))
    assert near.p50_ms < far.p50_ms < far.p99_ms
    to_all = max(ROUND_TRIPS_MS[0]) / 2
    assert to_all < near.p99_ms < to_all + 20
    assert ROUND_TRIPS_MS[0][2] / 2 + to_all < far.p99_ms < ROUND_TRIPS_MS[0][2] / 2 + to_all + 20


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2
    assert percentile([4, 1, 3, 2], 99) == 4
    assert percentile([7], 50) == 7


def test_invalid_plans_are_rejected() -> None:
    with pytest.raises(InvalidOption, match="members"):
        WanPlan(members=(4,))
    with pytest.raises(InvalidOption, match="seconds"):
        WanPlan(seconds=0)
    with pytest.raises(UnknownProtocol):
        WanPlan(orders=("nonsense",))
