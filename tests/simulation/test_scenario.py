"""Scenarios: a seed generates every option, all faults heal, and the description names every option."""

import msgspec
import pytest

from priocast.core.errors import InvalidOption
from priocast.core.starvation import Strict
from priocast.protocols import LAYERS, PROTOCOLS, all_orders
from priocast.protocols.adaptive.policies import POLICIES
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.simulation.choice import Choice
from priocast.simulation.fault_generator import NOT_DRAWN
from priocast.simulation.faults import (
    LOSS_PERCENT_MAX,
    Crash,
    CutKind,
    FaultOptions,
    Leave,
    NetworkCut,
    Pause,
    PlannedOrderChange,
    Stall,
)
from priocast.simulation.scenario import Scenario
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.seeded_random import SeededRandom
from simulation.scenarios import group


def test_every_fault_heals() -> None:
    for seed in range(300):
        faults = generate_scenario(seed).faults
        assert 0 <= faults.loss_percent <= LOSS_PERCENT_MAX
        assert all(outage.until_us <= faults.healed_at_us for outage in faults.outages)
        assert all(
            crash.at_us + (crash.back_after_us or 0) <= faults.healed_at_us for crash in faults.crashes
        )


def test_generated_scenarios_differ_and_reach_the_bounds() -> None:
    scenarios = [generate_scenario(seed) for seed in range(300)]
    assert {len(scenario.members) for scenario in scenarios} == {1, 2, 3, 4, 5, 6, 7}
    assert {scenario.network.latency_shape for scenario in scenarios} == {
        "constant",
        "uniform",
        "exponential",
    }
    assert any(0 in scenario.workload.messages for scenario in scenarios), "some members broadcast nothing"
    assert any(scenario.ordering.window is None for scenario in scenarios)
    assert any(scenario.ordering.window == 1 for scenario in scenarios)
    calm = [scenario for scenario in scenarios if not (scenario.faults.outages or scenario.faults.crashes)]
    assert len(calm) > 60, "runs in one view are tested, too"


def test_founders_of_a_primary_group_are_a_majority() -> None:
    """Otherwise processes that start late could found a second group."""
    for seed in range(300):
        scenario = generate_scenario(seed)
        if scenario.membership.primary:
            assert 2 * scenario.membership.founders > len(scenario.members)


def test_choosing_an_order_changes_nothing_else() -> None:
    """The protocols after order changes do not affect the other options, either.

    Only starvation policies depend on the protocol, because some take none, and what is adapted to in the
    adaptive order.
    """

    def without_orders(scenario: Scenario) -> Scenario:
        changes = [
            msgspec.structs.replace(change, order="", starvation="")
            for change in scenario.faults.order_changes
        ]
        faults = msgspec.structs.replace(scenario.faults, order_changes=tuple(changes))
        ordering = msgspec.structs.replace(scenario.ordering, starvation=Strict(), adaptation="equal")
        workload = msgspec.structs.replace(scenario.workload, phases=())
        return msgspec.structs.replace(
            scenario, order="", faults=faults, ordering=ordering, workload=workload
        )

    for seed in range(20):
        for order in all_orders(layered_over=["sequencer-ub"]):
            chosen = generate_scenario(seed, Choice(order, "primary"))
            assert chosen.order == order
            assert without_orders(chosen) == without_orders(generate_scenario(seed, Choice(policy="primary")))


def test_every_protocol_is_generated_and_changed_to() -> None:
    scenarios = [generate_scenario(seed) for seed in range(600)]
    drawn = set(PROTOCOLS) - set(NOT_DRAWN)
    assert {scenario.order for scenario in scenarios} >= drawn
    assert {scenario.order.rpartition("/")[0] for scenario in scenarios} == {"", *LAYERS}
    changes = [(one, change) for one in scenarios for change in one.faults.order_changes]
    assert {change.order.rpartition("/")[2] for _, change in changes} == drawn
    assert {change.order == scenario.order for scenario, change in changes} == {True, False}
    for name in ("burst", "bucket", "acknowledge_ms", "part_ms", "part_count"):
        assert len({getattr(scenario.ordering, name) for scenario in scenarios}) > 3


def test_rates_change_and_policies_differ_in_runs_of_the_adaptive_order() -> None:
    scenarios = [generate_scenario(seed, Choice("adaptive")) for seed in range(100)]
    policies = {scenario.ordering.adaptation.partition(":")[0] for scenario in scenarios}
    assert policies == {
        name for name, policy in POLICIES.items() if policy.__module__.startswith("priocast.")
    }
    assert {bool(scenario.workload.phases) for scenario in scenarios} == {True, False}
    assert {change.order for each in scenarios for change in each.faults.order_changes} > {"adaptive"}


def test_options_of_reordering_are_generated_in_some_runs() -> None:
    drawn = [generate_scenario(seed).ordering for seed in range(300)]
    assert 0.05 < sum(ordering.distributed for ordering in drawn) / len(drawn) < 0.25
    bounds = {ordering.overtakes_max for ordering in drawn}
    assert {None, 1} < bounds and len(bounds) > 10


def test_protocol_without_partitions_is_not_generated_for_partitionable_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Undivided(SequencerUb):
        NAME = "undivided"
        PARTITIONABLE = False

    monkeypatch.setitem(PROTOCOLS, "undivided", Undivided)
    scenarios = [generate_scenario(seed) for seed in range(600)]
    used = {
        (order.rpartition("/")[2], scenario.membership.policy)
        for scenario in scenarios
        for order in (scenario.order, *(change.order for change in scenario.faults.order_changes))
    }
    assert ("undivided", "primary") in used and ("undivided", "partitionable") not in used
    assert {generate_scenario(seed, Choice("undivided")).membership.policy for seed in range(20)} == {
        "primary"
    }
    with pytest.raises(InvalidOption, match="undivided does not support partitionable groups"):
        Choice("undivided", "partitionable")


def test_chosen_policy_and_delivery_are_kept() -> None:
    for seed in range(30):
        scenario = generate_scenario(seed, Choice(policy="partitionable", delivery="safe"))
        assert (scenario.membership.policy, scenario.membership.delivery) == ("partitionable", "safe")


def test_description_names_every_option() -> None:
    scenario = msgspec.structs.replace(
        group((1, 2)),
        faults=FaultOptions(
            pauses=(Pause(member="a", from_us=5, for_us=10),),
            stalls=(Stall(member="b", from_us=6, for_us=10),),
            cuts=(NetworkCut(kind="one-way", members=("a", "b"), from_us=7, for_us=20),),
            crashes=(
                Crash(member="coordinator", at_us=8, back_after_us=9),
                Crash(at_us=8, change_packets=3),
            ),
            leaves=(Leave(member="b", at_us=9),),
            order_changes=(
                PlannedOrderChange(member="a", at_us=4, prioritised=False, starvation="none"),
                PlannedOrderChange(
                    member="b", at_us=5, prioritised=True, starvation="flush:5ms", order="token-ring"
                ),
            ),
            healed_at_us=30,
        ),
    )
    lines = dict(line.split(maxsplit=1) for line in scenario.describe().splitlines())
    assert lines["members"] == "a b"
    assert lines["workload.messages"] == "1 2" and lines["workload.priorities"] == "1:1 0:1"
    assert lines["membership.policy"] == "primary" and lines["membership.failure_ms"] == "100"
    assert lines["ordering.starvation"] == "none" and lines["ordering.window"] == "None"
    assert lines["faults.pauses"] == "a@5+10us" and lines["faults.stalls"] == "b@6+10us"
    assert lines["faults.cuts"] == "one-way:a-b@7+20us"
    assert lines["faults.crashes"] == "coordinator@8us,back+9us anybody@8us+3packets"
    assert lines["faults.leaves"] == "b@9us"
    assert lines["faults.order_changes"] == "a@4us:plain/none b@5us:token-ring,prioritised/flush:5ms"
    assert lines.keys() == {"members", *scenario.flat()}


def test_invalid_scenario_is_rejected() -> None:
    with pytest.raises(InvalidOption, match="ends after healed_at_us"):
        FaultOptions(pauses=(Pause(member="a", from_us=5, for_us=10),), healed_at_us=14)
    with pytest.raises(InvalidOption, match="is not over at healed_at_us"):
        FaultOptions(crashes=(Crash(member="a", at_us=5, back_after_us=10),), healed_at_us=14)
    with pytest.raises(InvalidOption, match="loss_percent is 31"):
        FaultOptions(loss_percent=31)
    scenario = group((1, 2))
    with pytest.raises(InvalidOption, match="one entry per member"):
        msgspec.structs.replace(
            scenario, workload=msgspec.structs.replace(scenario.workload, consume_us=(1,))
        )


EVERYBODY = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("kind", "members", "talking"),
    [
        ("halves", ("a", "b"), "ab ba cd dc ce ec de ed"),
        ("isolated", ("a",), "bc cb bd db be eb cd dc ce ec de ed"),
        ("ring", EVERYBODY, "ab ba bc cb cd dc de ed ea ae"),
    ],
)
def test_cut_does_not_block_these_directions(kind: CutKind, members: tuple[str, ...], talking: str) -> None:
    cut = NetworkCut(kind=kind, members=members, from_us=0, for_us=1)
    directions = {(one, other) for one in EVERYBODY for other in EVERYBODY if one != other}
    left = directions - cut.blocked(members, EVERYBODY)
    assert left == {(pair[0], pair[1]) for pair in talking.split()}


@pytest.mark.parametrize(
    ("kind", "blocked"), [("one-way", {("a", "c")}), ("bridge", {("a", "c"), ("c", "a")})]
)
def test_cut_blocks_these_directions(kind: CutKind, blocked: set[tuple[str, str]]) -> None:
    cut = NetworkCut(kind=kind, members=("a", "b", "c"), from_us=0, for_us=1)
    assert cut.blocked(cut.members, EVERYBODY) == blocked


def test_exponential_has_the_right_mean_and_tail() -> None:
    random = SeededRandom(1)
    drawn = [random.exponential(1_000) for _ in range(20_000)]
    assert 980 < sum(drawn) / len(drawn) < 1_020
    assert 0.045 < sum(one > 3_000 for one in drawn) / len(drawn) < 0.055, "exp(-3) is 0.0498"


def test_log_uniform_is_even_over_decades() -> None:
    random = SeededRandom(1)
    drawn = [random.log_uniform(10, 10_000) for _ in range(10_000)]
    assert min(drawn) == 10 and max(drawn) <= 10_000
    assert 0.25 < sum(one < 100 for one in drawn) / len(drawn) < 0.42, "a third in each decade"
