"""What can be fixed for the runs of all seeds: the size of the group, its load, the kind of fault."""

from typing import get_args

import pytest

from priocast.core.errors import InvalidOption
from priocast.simulation.choice import ALL_GENERATED, Choice, replay_command
from priocast.simulation.faults import FaultKind
from priocast.simulation.scenario import Scenario
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.swarm import run_seed

SEEDS = range(40)


def kinds_in(scenario: Scenario) -> set[str]:
    """The kinds of fault that are planned in a run."""
    faults = scenario.faults
    planned = {
        "network": faults.loss_percent or faults.duplication_percent or faults.reordering_percent,
        "crash": faults.crashes,
        "cut": faults.cuts,
        "pause": faults.pauses,
        "stall": faults.stalls,
        "leave": faults.leaves,
        "order-change": faults.order_changes,
    }
    return {kind for kind, found in planned.items() if found}


@pytest.mark.parametrize("kind", get_args(FaultKind))
def test_chosen_kind_of_fault_is_the_only_one_in_every_run(kind: FaultKind) -> None:
    for seed in SEEDS:
        expected = set() if kind == "none" else {kind}
        assert kinds_in(generate_scenario(seed, Choice(fault=kind, members=3))) == expected


def test_chosen_size_is_kept_with_any_fault() -> None:
    for size in (1, 2, 9):
        for seed in SEEDS:
            assert len(generate_scenario(seed, Choice(members=size)).members) == size


def test_load_is_a_percentage_of_what_is_drawn() -> None:
    for seed in SEEDS:
        drawn = generate_scenario(seed).workload
        assert generate_scenario(seed, Choice(load=100)).workload == drawn
        double = generate_scenario(seed, Choice(load=200)).workload
        assert double.messages == tuple(2 * count for count in drawn.messages)
        assert double.rate_per_second == tuple(2 * rate for rate in drawn.rate_per_second)
        tenth = generate_scenario(seed, Choice(load=10)).workload
        assert [count > 0 for count in tenth.messages] == [count > 0 for count in drawn.messages]


def test_guarantees_hold_in_every_cell_of_a_small_matrix() -> None:
    for kind in get_args(FaultKind):
        assert not run_seed(1, Choice(members=3, load=150, fault=kind)).violations


def test_choice_is_written_as_options_of_simulate() -> None:
    choice = Choice("token-ring", members=3, load=50, fault="cut")
    assert replay_command(7, str(choice)) == (
        "priocast simulate --seeds 7 --order token-ring --members 3 --load 50 --fault cut --show"
    )
    assert replay_command(7, str(ALL_GENERATED)) == "priocast simulate --seeds 7 --show"
    assert str(Choice(qualities=("atomic", "tight"))) == "--quality atomic --quality tight"


def test_impossible_choices_are_rejected() -> None:
    for size in (0, 27):
        with pytest.raises(InvalidOption, match=rf"members is {size}: it must be between 1 and 26"):
            Choice(members=size)
    with pytest.raises(InvalidOption, match="load is 0"):
        Choice(load=0)
    with pytest.raises(InvalidOption, match="give only the order and the quality"):
        Choice(members=3, qualities=("tight",))
