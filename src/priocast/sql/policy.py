"""Priorities from constraints: rules that read a transaction and the schema, and say how urgent it is.

The order decides which transactions an integrity constraint aborts. Of the transactions that wait together,
those should be first that leave most room to the others: requests for one seat before those for many,
deposits before withdrawals from an account that must not become negative. A policy is a list of rules, the
first that applies decides, and it says why.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, check_priority
from priocast.sql.engine import SqlValue
from priocast.sql.statement_effects import ColumnChange, column_changes, tables_in


class PriorityDecision(msgspec.Struct, frozen=True):
    """The priority of a transaction, and why it has this one."""

    priority: int
    reason: str


class TransactionFacts(msgspec.Struct, frozen=True):
    """What a policy knows of a transaction.

    `procedure` is empty for statements without one. `statements` are its statements with their parameters:
    empty for a procedure in Python. `lower_bounds` are the columns that the schema bounds below.
    """

    procedure: str
    arguments: Mapping[str, SqlValue]
    statements: Sequence[tuple[str, Sequence[SqlValue] | Mapping[str, SqlValue]]]
    lower_bounds: Sequence[tuple[str, str]] = ()

    def changes(self) -> list[ColumnChange]:
        """The columns that statements raise or lower by a value that is known."""
        return [each for sql, parameters in self.statements for each in column_changes(sql, parameters)]


class PriorityRule(Protocol):
    """One rule of a policy."""

    def decide(self, facts: TransactionFacts) -> PriorityDecision | None:
        """The priority of a transaction, or None if the rule does not apply to it."""


class ProcedureRule(msgspec.Struct, frozen=True):
    """Calls of this procedure have this priority: critical before routine."""

    procedure: str
    priority: int

    def __post_init__(self) -> None:
        check_priority(self.priority)

    def decide(self, facts: TransactionFacts) -> PriorityDecision | None:
        """Applies to calls of the procedure."""
        if facts.procedure != self.procedure:
            return None
        return PriorityDecision(self.priority, f"procedure {self.procedure}")


class TableRule(msgspec.Struct, frozen=True):
    """Transactions that write to this table have this priority."""

    table: str
    priority: int

    def __post_init__(self) -> None:
        check_priority(self.priority)

    def decide(self, facts: TransactionFacts) -> PriorityDecision | None:
        """Applies to transactions with a statement that writes to the table."""
        if not any(self.table.lower() in tables_in(sql) for sql, _ in facts.statements):
            return None
        return PriorityDecision(self.priority, f"writes to {self.table}")


class SmallestFirst(msgspec.Struct, frozen=True):
    """The less a call asks for, the earlier: by the value of a parameter, from `smallest` to `largest`.

    A value of `smallest` or less has the priority `first`, one of `largest` or more the priority `last`;
    those between are spread evenly.
    """

    parameter: str
    largest: int
    procedure: str = ""
    smallest: int = 1
    first: int = ELEVATED
    last: int = BACKGROUND

    def __post_init__(self) -> None:
        check_priority(self.first)
        check_priority(self.last)
        if self.smallest >= self.largest:
            raise InvalidInput(f"smallest ({self.smallest}) must be less than largest ({self.largest})")

    def decide(self, facts: TransactionFacts) -> PriorityDecision | None:
        """Applies to transactions with a number as this parameter."""
        if self.procedure and facts.procedure != self.procedure:
            return None
        value = facts.arguments.get(self.parameter)
        if not isinstance(value, int | float):
            return None
        within = min(max(value, self.smallest), self.largest)
        share = (within - self.smallest) / (self.largest - self.smallest)
        priority = round(self.first + (self.last - self.first) * share)
        return PriorityDecision(priority, f"{self.parameter} = {value:g}: the fewer, the earlier")


class RaisesFirst(msgspec.Struct, frozen=True):
    """Before a column that a CHECK bounds below is lowered, it is raised: deposits before withdrawals.

    Applies to UPDATE statements of the form `SET column = column + value` (or `-`) on such columns. A
    transaction that only raises them has the priority `raising`, one that lowers any has `lowering`.
    """

    raising: int = ELEVATED
    lowering: int = ROUTINE

    def __post_init__(self) -> None:
        check_priority(self.raising)
        check_priority(self.lowering)

    def decide(self, facts: TransactionFacts) -> PriorityDecision | None:
        """Applies to transactions that raise or lower a column with a lower bound."""
        bounds = {(table.lower(), column.lower()) for table, column in facts.lower_bounds}
        bounded = [each for each in facts.changes() if (each.table, each.column) in bounds]
        if not bounded:
            return None
        lowered = next((each for each in bounded if each.amount < 0), None)
        if lowered is not None:
            return PriorityDecision(
                self.lowering, f"lowers {lowered.table}.{lowered.column}, which is bounded below"
            )
        raised = bounded[0]
        return PriorityDecision(
            self.raising, f"can only raise {raised.table}.{raised.column}, which is bounded below"
        )


class PriorityPolicy:
    """Rules, the first that applies decides; without one, the priority is `default`."""

    def __init__(self, *rules: PriorityRule, default: int = ROUTINE) -> None:
        self.rules = rules
        self.default = check_priority(default)

    def decide(self, facts: TransactionFacts) -> PriorityDecision:
        """The priority of a transaction, and the reason."""
        decisions = (rule.decide(facts) for rule in self.rules)
        found = next((decision for decision in decisions if decision is not None), None)
        return found or PriorityDecision(self.default, "no rule applies")
