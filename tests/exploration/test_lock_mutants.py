"""Each rule of the lock form, removed: exploration finds the mutant, as it does for the cut form.

The mutants are those of `protocols/test_reorder_locks_mutants.py`, where scripts find them. Each row has the
smallest scenario that needs the rule, and the guarantees that may detect the mutant.
"""

from typing import Any

import pytest

from exploration.scenarios import assert_found, assert_holds, counterexample, explored, failed_assertion
from priocast.core.guarantees import LIVENESS, PRIORITY_ACCOUNTING, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.exploration import member_states
from protocols import test_reorder_locks_mutants as without
from protocols.mutants import Patch, name_of
from protocols.trusting import trusting

ORDER = "reorder-locks"
ORDER_OR_PRIORITY = (TOTAL_ORDER, PRIORITY_ACCOUNTING)

TWO, THREE, FREE = {"processes": 2}, {"processes": 3}, {"free_turns": True}
THREE_DISTRIBUTED = {"processes": 3, "distributed": True}
ENDS_OF_TWO = {"view_ends": True}
ENDS_OF_THREE = {"processes": 3, "view_ends": True}
THREE_LEVELS = "a:low b:middle a:high"
EQUALS = "a:low a:high b:high"

MUTANTS: list[tuple[Patch, str, dict[str, Any], tuple[str, ...]]] = [
    (without.nobody_waits_for_what_was_consumed_elsewhere, "a:low b:high", FREE, (TOTAL_ORDER,)),
    (without.nobody_waits_for_what_was_consumed_elsewhere, "a:low b:high", THREE, (TOTAL_ORDER,)),
    (without.nobody_waits_for_what_was_consumed_elsewhere, "a:low b:high", THREE_DISTRIBUTED, (TOTAL_ORDER,)),
    (without.nobody_waits_for_what_was_consumed_elsewhere, "a:low b:high", ENDS_OF_THREE, (VIEW_SYNCHRONY,)),
    (without.a_deferred_insertion_is_not_tried_again, "a:low b:high", THREE, (LIVENESS,)),
    (without.equals_are_inserted_as_they_become_known, EQUALS, TWO, (TOTAL_ORDER,)),
    (without.the_provisional_insertion_point_is_definitive, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (without.a_message_goes_before_what_others_have_consumed, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (without.the_lowest_level_goes_to_the_tail_as_it_arrives, "a:0 b:0", TWO, (TOTAL_ORDER,)),
    (without.the_lowest_level_is_free_and_waited_for_only_if_received, "a:0 b:high", THREE, (TOTAL_ORDER,)),
    (without.the_lowest_level_inherits_no_locks, "a:0 b:high", TWO, ORDER_OR_PRIORITY),
    (without.the_dummy_tail_has_no_locks, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (without.no_locks_are_inherited, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (without.a_message_that_was_inserted_keeps_its_locks, "a:low b:high", TWO, (LIVENESS,)),
    (without.one_acknowledgment_may_be_missing, "a:low b:high", THREE_DISTRIBUTED, (TOTAL_ORDER,)),
    (without.the_first_target_tail_is_taken_for_the_common_set, THREE_LEVELS, TWO, (TOTAL_ORDER,)),
    (without.the_first_history_is_taken_for_the_history_set, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (trusting(without.what_all_have_consumed_is_what_one_has), THREE_LEVELS, TWO, (TOTAL_ORDER,)),
    (
        trusting(without.the_end_of_a_view_leaves_locks_of_what_is_lost),
        "a:low b:high",
        ENDS_OF_TWO,
        (VIEW_SYNCHRONY,),
    ),
]
#: A message that waits for one that is not more urgent is still consumed: only its locks show that it waited.
HIDDEN: list[tuple[Patch, str]] = [
    (without.locks_of_less_urgent_messages_stay, THREE_LEVELS),
    (without.all_locks_are_inherited, EQUALS),
]
SCENARIOS = {str((messages, options)): (messages, options) for _, messages, options, _ in MUTANTS}


@pytest.mark.parametrize(("messages", "options"), SCENARIOS.values(), ids=list(SCENARIOS))
def test_the_unchanged_protocol_holds(messages: str, options: dict[str, Any]) -> None:
    """In every state, and in every member's queue."""
    assert_holds(ORDER, messages, **options)


@pytest.mark.parametrize(
    ("mutate", "messages", "options", "guarantees"), MUTANTS, ids=[name_of(mutant[:2]) for mutant in MUTANTS]
)
def test_exploration_finds_the_mutant(
    mutate: Patch,
    messages: str,
    options: dict[str, Any],
    guarantees: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_found(monkeypatch, mutate, guarantees, ORDER, messages, **options)


def test_the_end_asserts_that_nothing_waits_for_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise such a message would be sent again: late, but no guarantee would be broken."""
    assert_holds(ORDER, "a:low b:high", **ENDS_OF_THREE)
    without.the_end_of_a_view_waits_for_what_is_lost(monkeypatch)
    assert failed_assertion(ORDER, "a:low b:high", **ENDS_OF_THREE) == "what is decided has one order"


@pytest.mark.parametrize(("mutate", "messages"), HIDDEN, ids=map(name_of, HIDDEN))
def test_no_lower_lock_blocks_high(mutate: Patch, messages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the invariants find it."""
    mutate(monkeypatch)
    assert counterexample(ORDER, messages)[0] == PRIORITY_ACCOUNTING
    monkeypatch.setattr(member_states, "check_invariants", lambda _: None)
    assert explored(ORDER, messages).counterexample is None
