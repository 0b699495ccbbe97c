"""Priorities from constraints: which rule applies, what it decides, and how it explains itself."""

import pytest

from priocast.core.errors import InvalidInput, PriorityOutOfRange
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.sql.engine import SqlValue
from priocast.sql.policy import (
    PriorityDecision,
    PriorityPolicy,
    ProcedureRule,
    RaisesFirst,
    SmallestFirst,
    TableRule,
    TransactionFacts,
)

BOUNDS = [("Accounts", "balance")]


def facts(*statements: str, procedure: str = "", **arguments: SqlValue) -> TransactionFacts:
    return TransactionFacts(procedure, arguments, [(sql, arguments) for sql in statements], BOUNDS)


def test_without_rules_everything_is_routine() -> None:
    assert PriorityPolicy().decide(facts()) == PriorityDecision(ROUTINE, "no rule applies")
    assert PriorityPolicy(default=5).decide(facts()).priority == 5


def test_the_first_rule_that_applies_decides() -> None:
    policy = PriorityPolicy(ProcedureRule("stop", URGENT), TableRule("Log", BACKGROUND), TableRule("log", 7))
    assert policy.decide(facts(procedure="stop")) == PriorityDecision(URGENT, "procedure stop")
    written = policy.decide(facts("INSERT INTO log VALUES (1)"))
    assert written == PriorityDecision(BACKGROUND, "writes to Log")
    assert policy.decide(facts("SELECT * FROM log")).reason == "no rule applies"


@pytest.mark.parametrize(
    ("seats", "priority"), [(0, 160), (1, 160), (2, 128), (3, 96), (5, 32), (50, 32), (1.5, 144)]
)
def test_the_fewer_the_earlier(seats: float, priority: int) -> None:
    policy = PriorityPolicy(SmallestFirst("seats", largest=5))
    decision = policy.decide(facts(procedure="buy", seats=seats))
    assert decision == PriorityDecision(priority, f"seats = {seats:g}: the fewer, the earlier")


def test_smallest_first_needs_its_parameter_and_procedure() -> None:
    policy = PriorityPolicy(SmallestFirst("seats", largest=5, procedure="buy"))
    for other in (facts(seats=1), facts(procedure="buy"), facts(procedure="buy", seats="one")):
        assert policy.decide(other).reason == "no rule applies"
    assert policy.decide(facts(procedure="buy", seats=5)).priority == BACKGROUND


@pytest.mark.parametrize(
    ("sql", "priority"),
    [
        ("UPDATE accounts SET balance = balance + :n", ELEVATED),
        ("UPDATE accounts SET balance = balance - :n", ROUTINE),
        ("UPDATE accounts SET balance = balance - :negative", ELEVATED),
        ("UPDATE accounts SET balance = balance + :negative", ROUTINE),
    ],
)
def test_deposits_come_before_withdrawals(sql: str, priority: int) -> None:
    decision = PriorityPolicy(RaisesFirst()).decide(facts(sql, n=5, negative=-5))
    assert decision.priority == priority
    assert "accounts.balance, which is bounded below" in decision.reason


def test_one_withdrawal_makes_a_transaction_lower() -> None:
    both = facts("UPDATE accounts SET balance = balance + 5", "UPDATE accounts SET balance = balance - 1")
    assert PriorityPolicy(RaisesFirst(lowering=3)).decide(both).priority == 3


def test_columns_without_a_bound_do_not_matter() -> None:
    other = facts("UPDATE accounts SET limits = limits - 5", "UPDATE seats SET balance = balance - 1")
    assert PriorityPolicy(RaisesFirst()).decide(other).reason == "no rule applies"


def test_rules_are_checked() -> None:
    for build in (
        lambda: ProcedureRule("a", 256),
        lambda: TableRule("a", -1),
        lambda: RaisesFirst(raising=300),
    ):
        with pytest.raises(PriorityOutOfRange):
            build()
    with pytest.raises(InvalidInput, match="must be less than largest"):
        SmallestFirst("seats", largest=1)
    with pytest.raises(PriorityOutOfRange):
        PriorityPolicy(default=-1)
