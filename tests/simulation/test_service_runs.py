"""Groups that send with qualities of service, on a simulated LAN with the faults that these tolerate."""

from collections import Counter

import pytest

from priocast.core.errors import InvalidOption
from priocast.core.guarantees import SERVICE_CAUSAL_ORDER, SERVICE_TOTAL_ORDER, UNANIMITY
from priocast.core.network_properties import NetworkProperties
from priocast.core.quality import QualityKind, parse_quality
from priocast.core.service_promises import PROMISES
from priocast.simulation.choice import Choice
from priocast.simulation.counters import SERVICE_FAULT_KINDS
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.lan import properties_of
from priocast.simulation.scenario import LanOptions
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.service_generator import (
    EVERY_QUALITY,
    ServiceFaults,
    generate_service_scenario,
)
from priocast.simulation.service_workload import service_options
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.trace.schema import ServiceRow
from services import mutants
from services.judgement import judge_services
from services.mutants import Mutant
from simulation.absences import PINNED_ABSENCES, PinnedAbsence

SEEDS = (1, 4, 5, 6)


def run(quality: str, seed: int, faults: ServiceFaults | None = None) -> SimulatedRun:
    return run_scenario(generate_service_scenario(seed, (quality,), faults or ServiceFaults()))


def services_of(simulated: SimulatedRun) -> list[ServiceRow]:
    return [row for row in simulated.rows if isinstance(row, ServiceRow)]


@pytest.mark.parametrize("quality", EVERY_QUALITY)
def test_promises_hold_with_the_faults_that_they_tolerate(quality: str) -> None:
    occurred: Counter[str] = Counter()
    for seed in SEEDS:
        simulated = run(quality, seed)
        assert simulated.violations == [], f"seed {seed}"
        events = Counter(row.event for row in services_of(simulated))
        assert events["sent"] and events["delivered"]
        occurred.update(simulated.counters.occurred)
    assert all(occurred[kind] for kind in SERVICE_FAULT_KINDS)


@pytest.mark.parametrize(
    ("quality", "seed"),
    [
        ("best-effort:2", 22),  # a recipient answered a message and dropped it: a later one was delivered
    ],
)
def test_seeds_that_failed_once(quality: str, seed: int) -> None:
    assert run(quality, seed).violations == []


@pytest.mark.parametrize("row", PINNED_ABSENCES, ids=lambda row: f"{row.quality} {row.guarantee}")
def test_what_is_not_promised_is_absent(row: PinnedAbsence) -> None:
    assert row.guarantee not in PROMISES[parse_quality(row.quality).kind]
    simulated = run(row.quality, row.seed)
    precision_ns = simulated.scenario.services.precision_us * MICROSECOND
    found = {each.guarantee for each in judge_services(simulated.rows, precision_ns, list(QualityKind))}
    assert row.guarantee in found
    assert simulated.violations == []


def test_every_no_of_table_3_has_a_seed() -> None:
    shown = {(parse_quality(row.quality).kind, row.guarantee) for row in PINNED_ABSENCES}
    every = PROMISES[QualityKind.DELTA]
    absent = {(kind, each) for kind, promised in PROMISES.items() for each in every if each not in promised}
    assert shown == absent


def test_promises_hold_if_all_qualities_are_mixed() -> None:
    for seed in SEEDS:
        assert run_scenario(generate_service_scenario(seed, EVERY_QUALITY)).violations == [], f"seed {seed}"


@pytest.mark.parametrize("quality", ["reliable", "atomic", "tight"])
def test_promises_hold_if_a_recipient_has_no_room(quality: str) -> None:
    rejected = 0
    for seed in SEEDS:
        simulated = run(quality, seed, ServiceFaults(crashes=0, no_room=True))
        assert simulated.violations == [], f"seed {seed}"
        rejected += sum(bool(row.rejected) for row in services_of(simulated))
    assert rejected


def test_a_run_is_determined_by_its_seed() -> None:
    one, other = (run_scenario(generate_scenario(3, Choice(qualities=EVERY_QUALITY))) for _ in range(2))
    assert one.digest == other.digest


def test_runs_without_a_quality_have_no_services() -> None:
    scenario = generate_scenario(3)
    assert service_options(scenario) is None and scenario.lan is None
    assert services_of(run_scenario(scenario)) == []


def test_the_order_of_the_group_can_be_chosen() -> None:
    assert generate_scenario(1, Choice("token-ring", qualities=("tight",))).order == "token-ring"
    with pytest.raises(InvalidOption, match="primary groups with agreed delivery"):
        Choice(policy="partitionable", qualities=("tight",))


def test_the_lan_declares_every_property() -> None:
    declared = properties_of(LanOptions(inaccessibility_us=5))
    nothing = NetworkProperties()
    assert all(getattr(declared, name) != getattr(nothing, name) for name in nothing.__struct_fields__)


@pytest.mark.parametrize(
    ("mutant", "quality", "guarantee"),
    [
        (mutants.recipients_do_not_transmit, "reliable", UNANIMITY),
        (mutants.an_unaccepted_head_does_not_block, "atomic", SERVICE_TOTAL_ORDER),
        (mutants.causes_are_not_waited_for, "causal", SERVICE_CAUSAL_ORDER),
    ],
)
def test_the_simulator_detects_a_mutant(
    mutant: Mutant, quality: str, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found = (each.guarantee for seed in range(40) for each in run(quality, seed).violations)
    assert guarantee in found
