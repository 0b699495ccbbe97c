"""Scenarios: one seed draws every option, faults heal, and the text names them all."""

from random import Random

import msgspec
import pytest

from priocast.core.errors import InvalidOption
from priocast.protocols import PROTOCOLS
from priocast.simulation.dice import exponential, log_uniform
from priocast.simulation.draw import draw
from priocast.simulation.scenario import LOSS_PERCENT_MAX, Cut, FaultOptions, Pause
from simulation.scenarios import group


def test_every_fault_heals() -> None:
    for seed in range(300):
        faults = draw(seed).faults
        assert 0 <= faults.loss_percent <= LOSS_PERCENT_MAX
        assert all(outage.until_us <= faults.healed_at_us for outage in faults.outages)


def test_draws_differ_and_reach_the_edges() -> None:
    scenarios = [draw(seed) for seed in range(300)]
    assert {len(scenario.members) for scenario in scenarios} == {1, 2, 3, 4, 5}
    assert {scenario.network.latency_shape for scenario in scenarios} == {
        "constant",
        "uniform",
        "exponential",
    }
    assert any(0 in scenario.workload.messages for scenario in scenarios), "some members are silent"
    assert any(scenario.ordering.window is None for scenario in scenarios)
    assert any(scenario.ordering.window == 1 for scenario in scenarios)


def test_order_replaces_nothing_else() -> None:
    for order in PROTOCOLS:
        assert msgspec.structs.replace(draw(3), order=order) == draw(3, order)


def test_description_names_every_option() -> None:
    scenario = msgspec.structs.replace(
        group((1, 2)),
        faults=FaultOptions(
            pauses=(Pause(member="a", from_us=5, for_us=10),),
            cuts=(Cut(source="a", target="b", from_us=7, for_us=20),),
            healed_at_us=30,
        ),
    )
    lines = dict(line.split(maxsplit=1) for line in scenario.describe().splitlines())
    assert lines["members"] == "a b"
    assert lines["workload.messages"] == "1 2" and lines["workload.priorities"] == "1:1 0:1"
    assert lines["ordering.starvation"] == "none" and lines["ordering.window"] == "None"
    assert lines["faults.pauses"] == "a@5+10us" and lines["faults.cuts"] == "a>b@7+20us"
    assert lines.keys() == {"members", *scenario.flat()}


def test_scenario_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidOption, match="lasts longer"):
        FaultOptions(pauses=(Pause(member="a", from_us=5, for_us=10),), healed_at_us=14)
    with pytest.raises(InvalidOption, match="loss_percent is 31"):
        FaultOptions(loss_percent=31)
    scenario = group((1, 2))
    with pytest.raises(InvalidOption, match="one entry for every member"):
        msgspec.structs.replace(
            scenario, workload=msgspec.structs.replace(scenario.workload, consume_us=(1,))
        )


def test_exponential_has_its_mean_and_tail() -> None:
    dice = Random(1)
    drawn = [exponential(dice, 1_000) for _ in range(20_000)]
    assert 980 < sum(drawn) / len(drawn) < 1_020
    assert 0.045 < sum(one > 3_000 for one in drawn) / len(drawn) < 0.055, "exp(-3) is 0.0498"


def test_log_uniform_favours_no_size() -> None:
    dice = Random(1)
    drawn = [log_uniform(dice, 10, 10_000) for _ in range(10_000)]
    assert min(drawn) == 10 and max(drawn) <= 10_000
    assert 0.25 < sum(one < 100 for one in drawn) / len(drawn) < 0.42, "a third in each decade"
