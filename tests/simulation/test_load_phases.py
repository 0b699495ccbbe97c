"""Phases of a load: when members broadcast, and at which rate."""

from itertools import pairwise

import pytest

from priocast.core.errors import InvalidOption
from priocast.simulation.load_phases import (
    LoadPhase,
    broadcast_times_us,
    phases_by_turns,
    phases_of,
    rate_at,
)
from priocast.simulation.scenario import NetworkOptions
from priocast.simulation.seeded_random import SeededRandom
from priocast.simulation.workload import planned_broadcasts
from priocast.trace.schema import BROADCAST, DELIVERED
from simulation.scenarios import group, run_without_violation

SECOND = 1_000_000
DYNAMIC = (
    LoadPhase(0, 0, 10),
    LoadPhase(0, 2 * SECOND, 0),
    LoadPhase(0, 3 * SECOND, 20),
    LoadPhase(1, 0, 1 / 3),
)


def times(member: int, until_us: int = 5 * SECOND) -> list[int]:
    return broadcast_times_us(DYNAMIC, member, until_us, SeededRandom("phases"))


def test_intervals_are_nearly_regular_and_change_with_the_phase() -> None:
    found = times(0)
    by_second = [
        sum(begin <= each < begin + SECOND for each in found) for begin in range(0, 5 * SECOND, SECOND)
    ]
    assert by_second[2] == 0, "it pauses"
    assert all(8 <= count <= 11 for count in by_second[:2])
    assert all(17 <= count <= 22 for count in by_second[3:])
    first = [each for each in found if each < 2 * SECOND]
    assert all(0.94 <= (after - before) / (SECOND / 10) <= 1.06 for before, after in pairwise(first))


def test_nothing_is_broadcast_after_the_end() -> None:
    assert max(times(0, until_us=3_500_000)) < 3_500_000
    assert times(0, until_us=0) == []


def test_the_true_rate_is_known_at_any_time() -> None:
    found = [rate_at(DYNAMIC, 0, each) for each in (0, 2 * SECOND - 1, 2 * SECOND, 4 * SECOND)]
    assert found == [10, 10, 0, 20]
    assert rate_at(DYNAMIC, 1, SECOND) == pytest.approx(1 / 3)
    assert rate_at(DYNAMIC, 2, SECOND) == 0


def test_constant_rates() -> None:
    assert phases_of((20, 0, 0.5), 7) == (LoadPhase(0, 7, 20), LoadPhase(1, 7, 0), LoadPhase(2, 7, 0.5))


def test_rates_change_by_turns() -> None:
    phases = phases_by_turns((10, 30), (400, 20), SECOND, count=3)
    assert [rate_at(phases, 0, number * SECOND) for number in range(5)] == [40, 2, 40, 40, 40]
    assert [rate_at(phases, 1, number * SECOND) for number in range(5)] == [6, 120, 6, 6, 6]


def test_random_times_follow_the_phases_too() -> None:
    load = {"phases": phases_by_turns((100, 100), (400, 20), 500_000, count=2)}
    scenario = group((200, 200), rate_per_second=100, load=load)
    for member, fast in (("a", 0), ("b", 1)):
        planned = planned_broadcasts(scenario, member)
        by_phase = [sum(each.time // 500_000_000 == phase for each in planned) for phase in (0, 1)]
        assert by_phase[fast] > 5 * by_phase[1 - fast]


def test_a_pause_needs_an_end_of_the_load() -> None:
    """A number of messages would never be reached by a member that pauses for ever."""
    with pytest.raises(InvalidOption, match="until_us"):
        group((10, 10), load={"phases": phases_of((5, 0), 0)})


def test_a_simulated_group_broadcasts_as_its_phases_say() -> None:
    load = {"phases": phases_of((100, 0, 10), 50_000), "until_us": 550_000}
    run = run_without_violation(group((0, 0, 0), load=load))
    sent = [row.sender for row in run.messages if row.event == BROADCAST for _ in range(row.count)]
    assert 48 <= sent.count("a") <= 52
    assert sent.count("b") == 0
    assert 4 <= sent.count("c") <= 6


class TestRegions:
    BETWEEN = ((100, 30_000), (40_000, 100))

    def test_latencies_are_those_between_regions(self) -> None:
        network = NetworkOptions(regions=(0, 1, 0), region_latency_us=self.BETWEEN)
        membership = {"heartbeat_ms": 100, "failure_ms": 1_000}
        load = {"broadcast_from_us": 500_000}
        run = run_without_violation(group((1, 0, 0), network=network, membership=membership, load=load))
        (sent,) = [row.time_ns for row in run.messages if row.event == BROADCAST]
        took = {row.member: row.time_ns - sent for row in run.messages if row.event == DELIVERED}
        assert took == {"a": 0, "b": 30_000_000, "c": 100_000}

    @pytest.mark.parametrize("regions", [(0,), (0, 1, 2), (0, -1, 0)])
    def test_regions_that_do_not_exist_are_rejected(self, regions: tuple[int, ...]) -> None:
        with pytest.raises(InvalidOption, match="regions"):
            group((1, 0, 0), network=NetworkOptions(regions=regions, region_latency_us=self.BETWEEN))
