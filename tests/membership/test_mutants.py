"""Every mutant of membership is caught by the simulator's checkers, in a storm that the real code survives.

A row says in which storm a mutant is caught, from which seed on it is looked for (a few are tried, so that
the row outlives small changes), and which promise it breaks. Mutants that storms meet by chance only have a
script each, in `test_scripted_mutants.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from membership import mutants, storms
from membership.mutants import Mutant
from membership.test_scripted_mutants import SCRIPTED
from priocast.core.guarantees import (
    AGREEMENT,
    BOUNDED_MEMORY,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    LIVENESS,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.simulation.scenario import Scenario
from priocast.simulation.simulator import run_scenario

SEEDS_TRIED = 30
PARTITIONABLE = {"policy": "partitionable"}


class Catch(NamedTuple):
    """Where a mutant is caught."""

    mutant: Mutant
    storm: Callable[..., Scenario]
    life: dict[str, Any]
    seed: int
    broken: str


CATCHES = [
    Catch(mutants.keeps_stable_packets, storms.cuts, {}, 0, BOUNDED_MEMORY),
    Catch(mutants.sends_nothing_again, storms.returns, {}, 0, FIFO_AMONG_EQUALS),
    Catch(mutants.a_quorum_is_one_less, storms.returns, {}, 0, VIEW_SYNCHRONY),
    Catch(mutants.both_halves_are_a_quorum, storms.cuts, {}, 0, VIEW_SYNCHRONY),
    Catch(mutants.decides_without_a_quorum, storms.unheard_proposals, {}, 0, VIEW_SYNCHRONY),
    Catch(mutants.two_proposals_in_one_ballot, storms.crashes, PARTITIONABLE, 0, LIVENESS),
    Catch(mutants.installs_something_else_than_it_accepted, storms.crashes, {}, 0, VIEW_SYNCHRONY),
    Catch(mutants.sender_need_not_know, storms.cuts, PARTITIONABLE, 1, TOTAL_ORDER),
    Catch(mutants.merged_view_begins_at_the_lowest_position, storms.cuts, PARTITIONABLE, 0, TOTAL_ORDER),
    Catch(mutants.restart_has_the_same_incarnation, storms.crashes, {}, 4, VIEW_SYNCHRONY),
    Catch(mutants.incarnations_are_not_distinguished, storms.restarts, {}, 0, LIVENESS),
    Catch(mutants.evicted_members_stay, storms.returns, {}, 0, LIVENESS),
    Catch(mutants.nobody_is_ever_suspected, storms.crashes, {}, 0, LIVENESS),
    Catch(mutants.digest_is_not_adopted, storms.requests, {}, 10, AGREEMENT),
    Catch(mutants.resubmits_delivered_messages, storms.cuts, {}, 4, INTEGRITY),
    Catch(mutants.resubmits_nothing, storms.returns, {}, 0, LIVENESS),
    Catch(mutants.repeated_requests_are_delivered, storms.requests, {}, 0, INTEGRITY),
    Catch(mutants.older_messages_follow_the_state, storms.joins, {}, 0, INTEGRITY),
    Catch(mutants.snapshot_is_one_message_too_old, storms.joins, {}, 0, AGREEMENT),
    Catch(mutants.new_member_does_not_wait_for_the_state, storms.joins, {}, 0, AGREEMENT),
    Catch(mutants.donor_is_never_replaced, storms.joins, {}, 0, LIVENESS),
    Catch(mutants.decision_is_announced_once, storms.duels, {}, 0, LIVENESS),
]


def first_seed_that_catches(catch: Catch, patch: pytest.MonkeyPatch) -> int | None:
    catch.mutant(patch)
    for seed in range(catch.seed, catch.seed + SEEDS_TRIED):
        violations = run_scenario(catch.storm(seed, **catch.life)).violations
        if any(violation.guarantee == catch.broken for violation in violations):
            return seed
    return None


@pytest.mark.parametrize("catch", CATCHES, ids=lambda catch: catch.mutant.__name__)
def test_mutant_is_caught(catch: Catch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_seed_that_catches(catch, monkeypatch) is not None


@pytest.mark.parametrize(
    ("storm", "life", "seed"),
    sorted(
        {(catch.storm.__name__, tuple(catch.life.items()), catch.seed) for catch in CATCHES},
    ),
)
def test_the_real_code_survives_the_same_storm(
    storm: str, life: tuple[tuple[str, str], ...], seed: int
) -> None:
    run = run_scenario(getattr(storms, storm)(seed, **dict(life)))
    assert [str(violation) for violation in run.violations] == []


def test_every_mutant_has_a_row() -> None:
    scripted = {mutant for mutant, _, _ in SCRIPTED}
    assert {catch.mutant for catch in CATCHES} | scripted == set(mutants.ALL)
    assert len(CATCHES) >= 20
