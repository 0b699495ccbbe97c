"""What a caller gets for a statement or a procedure: rows, and where in the order the transaction is."""

from collections.abc import Iterator

from priocast.core.errors import PayloadTooLarge, StatementRejected, TransactionAborted, TransactionConflict
from priocast.sql.engine import SqlValue, StatementResult
from priocast.sql.policy import PriorityDecision
from priocast.sql.requests import Committed, RolledBack, Verdict

Row = tuple[SqlValue, ...]


class SqlResult:
    """The result of a statement, with the methods of a cursor of Python's DB-API.

    `position` is that of the transaction in the order, None for a query that was not ordered itself.
    `decision` is its priority, and why it had this one; None within a transaction, which has one in all.
    """

    def __init__(
        self, result: StatementResult, position: int | None, decision: PriorityDecision | None
    ) -> None:
        self.columns = result.columns
        self.rowcount = result.changed
        self.position = position
        self.decision = decision
        self._rows = iter(result.rows)

    @property
    def description(self) -> list[tuple[str, None, None, None, None, None, None]]:
        """The columns, as the DB-API has them."""
        return [(name, None, None, None, None, None, None) for name in self.columns]

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return self._rows


def committed(verdict: Verdict) -> Committed:
    """The verdict of a transaction that was committed; raises the error of one that was rolled back."""
    if isinstance(verdict, Committed):
        return verdict
    raise _error_of(verdict)


def statement_result(verdict: Committed) -> StatementResult:
    """What the last statement of a transaction returned."""
    return StatementResult(verdict.columns, verdict.rows, verdict.changed)


def _error_of(verdict: RolledBack) -> Exception:
    match verdict.kind:
        case "conflict":
            return TransactionConflict(verdict.text, verdict.constraint)
        case "aborted":
            return TransactionAborted(verdict.text, verdict.constraint)
        case "too-large":
            return PayloadTooLarge(verdict.text)
    return StatementRejected(verdict.text)
