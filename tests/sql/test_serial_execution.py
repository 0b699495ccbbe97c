"""Any history of transactions is a serial execution in its order, and each missing rule is noticed."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql import sql_mutants
from sql.histories import violations_of

CHOICES = st.lists(st.integers(0, 8 * 18 - 1), max_size=40)
HISTORIES_MAX = 300
MUTANTS = [
    sql_mutants.reads_are_not_certified,
    sql_mutants.write_sets_are_applied_without_certification,
    sql_mutants.only_the_number_of_rows_is_certified,
    sql_mutants.the_number_of_changed_rows_is_not_certified,
    sql_mutants.writes_are_not_certified,
    sql_mutants.a_transaction_continues_on_another_state,
    sql_mutants.triggers_are_executed_with_a_write_set,
    sql_mutants.every_replica_has_a_clock_of_its_own,
]


@settings(max_examples=100, deadline=None)
@given(CHOICES)
def test_a_history_is_a_serial_execution(choices: list[int]) -> None:
    assert violations_of(choices) == []


def _random_choices(seed: int) -> list[int]:
    numbers = random.Random(seed)
    return [numbers.randrange(8 * 18) for _ in range(40)]


def test_random_histories_are_serial_executions() -> None:
    for seed in range(15):
        assert violations_of(_random_choices(seed)) == [], f"seed {seed}"


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_missing_rule_is_noticed(mutant: sql_mutants.Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert any(violations_of(_random_choices(seed)) for seed in range(HISTORIES_MAX))
