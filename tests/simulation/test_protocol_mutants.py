"""The simulator catches broken protocols and links, in runs that the real ones pass.

`MUTANTS` is the table of all of them: what is replaced, in which runs, and which guarantee it breaks. A
mutant replaces the real class only within its test.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

import priocast.membership.epoch
import priocast.protocols.reorder.reordering
from priocast.core.guarantees import (
    BOUNDED_OVERTAKING,
    BOUNDED_WINDOW,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    PRIORITY,
    PRIORITY_ACCOUNTING,
    TIMESTAMP_ORDER,
    TOTAL_ORDER,
)
from priocast.core.protocol import OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.links.fifo_link import FifoLink
from priocast.protocols import PROTOCOLS
from priocast.protocols.reorder.overtaking_bound import OvertakingBound
from priocast.protocols.sequencer.ub import SequencerUb
from priocast.simulation.choice import Choice
from priocast.simulation.faults import FaultOptions
from priocast.simulation.scenario import Scenario
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from simulation.protocol_mutants import (
    CreditKeeper,
    ExceedingSender,
    ExceedingSequencer,
    ForgetfulLink,
    HastyLink,
    IndifferentHolder,
    IndifferentSender,
    IndifferentSequencer,
    OneLevel,
    OneLevelWithLocks,
    ReceiptReporter,
    RepeatingLink,
    SkippingAtTheEnd,
    TrustingDestination,
    UnboundedOvertaking,
    UnnamedDistributions,
    UnstableSequencer,
)
from simulation.scenarios import group

#: Every mutant is found with one of the first five; the others have a policy against starvation.
SEEDS = (0, 1, 2, 3, 4, 5, 12, 20)
FEW_SEEDS = SEEDS[:5]
BOUND = 3


def generated(order: str, seeds: Sequence[int] = SEEDS) -> list[Scenario]:
    return [generate_scenario(seed, Choice(order)) for seed in seeds]


def adaptive(order: str) -> list[Scenario]:
    """Groups with the default window."""
    scenarios = [
        scenario
        for scenario in generated(order)
        if scenario.ordering.window is None and len(scenario.members) > 1
    ]
    assert scenarios
    return scenarios


def partitioned() -> list[Scenario]:
    """Partitionable groups with the adaptive order that a cut divides."""
    scenarios = [generate_scenario(seed, Choice("adaptive", "partitionable")) for seed in range(100, 160)]
    return [scenario for scenario in scenarios if scenario.faults.cuts and len(scenario.members) > 2]


def overtaken(order: str, delivery: str) -> list[Scenario]:
    """Members that consume more slowly than messages arrive, with a bound on overtaking."""
    return [
        group(
            (60, 60, 60),
            rate_per_second=600,
            order=order,
            ordering=OrderingOptions(overtakes_max=BOUND, distributed=delivery == "safe"),
            membership={"delivery": delivery},
            load={"consume_us": (1_000, 1_000, 5_000)},
            seed=5,
        )
    ]


def lossy() -> list[Scenario]:
    """Frames are lost, and links are not given up before the run ends."""
    faults = FaultOptions(loss_percent=20, healed_at_us=500_000)
    return [group((30, 30, 30), rate_per_second=200, faults=faults)]


class Mutant(NamedTuple):
    """What is replaced, in which runs, and what that breaks; `only` if it breaks nothing else."""

    guarantee: str
    scenarios: Callable[[], Iterable[Scenario]]
    protocol: type[Protocol] | None = None
    link: type[FifoLink] = FifoLink
    overtaking: type[OvertakingBound] = OvertakingBound
    says: str = ""
    only: bool = False
    of: str = ""

    @property
    def name(self) -> str:
        parts = (self.protocol, self.link, self.overtaking)
        names = [part.__name__ for part in parts if part not in (None, FifoLink, OvertakingBound)]
        return " ".join(filter(None, ["+".join(filter(None, names)), self.of]))


def in_generated(guarantee: str, protocol: type[Protocol], **options: Any) -> Mutant:
    return Mutant(guarantee, partial(generated, protocol.NAME), protocol, **options)


MUTANTS = [
    Mutant(FIFO_AMONG_EQUALS, partial(generated, UnstableSequencer.NAME, (15, 44)), UnstableSequencer),
    in_generated(PRIORITY, IndifferentSequencer),
    in_generated(PRIORITY, IndifferentSender),
    in_generated(PRIORITY, IndifferentHolder),
    in_generated(TOTAL_ORDER, TrustingDestination, link=HastyLink),
    in_generated(TOTAL_ORDER, SequencerUb, link=HastyLink),
    in_generated(INTEGRITY, TrustingDestination, link=RepeatingLink),
    in_generated(BOUNDED_WINDOW, ReceiptReporter),
    in_generated(LIVENESS, CreditKeeper),
    Mutant(LIVENESS, lossy, SequencerUb, link=ForgetfulLink),
    Mutant(
        BOUNDED_WINDOW,
        partial(adaptive, "sequencer-ub"),
        ReceiptReporter,
        says="messages as consumed",
        of="with an adaptive window",
    ),
    Mutant(BOUNDED_WINDOW, partial(adaptive, "sequencer-ub"), ExceedingSequencer, says="has granted"),
    Mutant(BOUNDED_WINDOW, partial(adaptive, "causal-history"), ExceedingSender, says="has granted"),
    Mutant(TOTAL_ORDER, partitioned, SkippingAtTheEnd),
    Mutant(TIMESTAMP_ORDER, partitioned, UnnamedDistributions),
    *(
        Mutant(PRIORITY_ACCOUNTING, partial(generated, mutant.NAME, FEW_SEEDS), mutant, only=True)
        for mutant in (OneLevel, OneLevelWithLocks)
    ),
    *(
        Mutant(
            BOUNDED_OVERTAKING,
            partial(overtaken, order, delivery),
            overtaking=UnboundedOvertaking,
            says=f"has sent {BOUND + 1} more urgent messages",
            of=f"{order} {delivery}",
        )
        for order in ("reorder", "reorder-locks")
        for delivery in ("agreed", "safe")
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.name}, {mutant.guarantee}")
def test_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = mutant.scenarios()
    if mutant.protocol is not None:
        monkeypatch.setitem(PROTOCOLS, mutant.protocol.NAME, mutant.protocol)
    monkeypatch.setattr(priocast.membership.epoch, "FifoLink", mutant.link)
    monkeypatch.setattr(priocast.protocols.reorder.reordering, "OvertakingBound", mutant.overtaking)
    found = set()
    for scenario in scenarios:
        for violation in run_scenario(scenario).violations:
            found.add(violation.guarantee)
            if violation.guarantee == mutant.guarantee and not mutant.only:
                assert str(violation).startswith(f"seed {scenario.seed}: {mutant.guarantee} violated")
                assert mutant.says in violation.summary
                return
    assert found == {mutant.guarantee}


@pytest.mark.parametrize(
    "order", ["sequencer-ub", "token-ring", "causal-history", "adaptive", "reorder", "reorder-locks"]
)
def test_real_protocol_passes_the_same_runs(order: str) -> None:
    seeds = FEW_SEEDS if order.startswith(("reorder", "adaptive")) else SEEDS
    scenarios = generated(order, seeds)
    if order == "adaptive":
        scenarios += partitioned()[:5]
    if order.startswith("reorder"):
        scenarios += overtaken(order, "agreed") + overtaken(order, "safe")
    assert [str(violation) for each in scenarios for violation in run_scenario(each).violations] == []


def test_seeds_cover_the_options_that_the_mutants_need() -> None:
    scenarios = [generate_scenario(seed) for seed in SEEDS]
    assert {scenario.ordering.window is None for scenario in scenarios} == {True, False}
    assert {str(scenario.ordering.starvation).partition(":")[0] for scenario in scenarios} == {
        "none", "ageing", "flush",
    }  # fmt: skip
    assert {scenario.ordering.prioritised for scenario in scenarios} == {True, False}


def test_names_are_unique() -> None:
    assert len({(mutant.name, mutant.guarantee) for mutant in MUTANTS}) == len(MUTANTS)
