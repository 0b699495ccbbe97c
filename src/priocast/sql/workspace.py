"""Interactive transactions while they are executed: at one replica, without any lock.

The transaction is executed in the replica's own database, and rolled back whenever something else needs that:
a transaction that is delivered, a query, a snapshot. Then it is executed again, from its first statement, on
the state that is there now, before its next statement. If everything returns what it returned before, its
snapshot has moved on to that state. Otherwise it is in conflict already. So it sees one state, always, and
nobody waits for it.
"""

from priocast.core.errors import InvalidInput, PriocastError, TransactionAborted
from priocast.sql.certification import repeat_statements
from priocast.sql.engine import NO_POSITION, Engine, Parameters, StatementResult, TransactionContext
from priocast.sql.requests import (
    STATEMENTS_MAX,
    CommitTransaction,
    ObservedStatement,
    bound_parameters,
    digest_of_result,
)
from priocast.sql.statements import is_query


class LocalTransaction:
    """An interactive transaction: what it has executed so far, and why it has failed, if it has."""

    def __init__(self, context: TransactionContext) -> None:
        self.context = context
        self.statements: list[ObservedStatement] = []
        self.snapshot = NO_POSITION
        self.failed: PriocastError | None = None


class Workspace:
    """The interactive transactions of one replica: at most one of them is in the database at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._active: LocalTransaction | None = None

    def suspend(self) -> None:
        """Leave the database as the order has made it; must be called before anything else uses it."""
        if self._active is not None:
            self._active = None
            self._engine.rollback()

    def discard(self, transaction: LocalTransaction) -> None:
        """A transaction is not continued."""
        if self._active is transaction:
            self.suspend()

    def execute(self, transaction: LocalTransaction, sql: str, parameters: Parameters) -> StatementResult:
        """Execute the next statement of a transaction; after an error it can only be executed anew."""
        if transaction.failed is not None:
            raise transaction.failed
        if len(transaction.statements) >= STATEMENTS_MAX:
            raise InvalidInput(f"a transaction must have at most {STATEMENTS_MAX:,} statements")
        bound = bound_parameters(parameters)
        try:
            self._resume(transaction)
            result = self._engine.execute(sql, bound)
        except Exception as error:
            self.suspend()
            other = TransactionAborted(f"{type(error).__name__}: {error}")
            transaction.failed = error if isinstance(error, PriocastError) else other
            raise
        transaction.statements.append(ObservedStatement(sql, bound, digest_of_result(result)))
        return result

    def finish(self, transaction: LocalTransaction) -> CommitTransaction | None:
        """What to broadcast for a transaction; None if it has changed nothing."""
        if transaction.failed is not None:
            raise transaction.failed
        if all(is_query(each.sql) for each in transaction.statements):
            return None
        self._resume(transaction)
        write_set = self._engine.write_set()
        self.suspend()
        if not write_set:
            return None
        statements = tuple(transaction.statements)
        return CommitTransaction(transaction.snapshot, transaction.context, statements, write_set)

    def _resume(self, transaction: LocalTransaction) -> None:
        """Bring a transaction back into the database, on the state that is there now."""
        if self._active is transaction:
            return
        self.suspend()
        self._engine.begin(transaction.context, recording=True)
        self._active = transaction
        repeat_statements(self._engine, transaction.statements)
        transaction.snapshot = self._engine.position
