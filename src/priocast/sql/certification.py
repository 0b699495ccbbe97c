"""Certification: whether an interactive transaction may commit at its place in the order.

A transaction was executed at one replica, statement by statement, and its client saw what each one returned.
It may commit at a place where every statement returns the same again: then its client, executed there, would
have done the same, and the order is a serial execution. Predicates are certified with the statements that
have them: a row that would newly match, or that has changed, changes what the statement returns.

If no transaction has committed since the one that it saw last, nothing needs to be executed again, and its
write-set is applied as it is.
"""

from collections.abc import Sequence

from priocast.core.errors import TransactionConflict
from priocast.sql.engine import Engine
from priocast.sql.requests import CommitTransaction, ObservedStatement, digest_of_result
from priocast.sql.statements import shortened


def certify_and_apply(engine: Engine, transaction: CommitTransaction) -> None:
    """Make the changes of a transaction, in the transaction of the engine that has begun.

    Raises `TransactionConflict` if it may not commit here, and what its statements raise here.
    """
    if engine.position == transaction.snapshot:
        engine.apply_write_set(transaction.write_set)
    else:
        repeat_statements(engine, transaction.statements)


def repeat_statements(engine: Engine, statements: Sequence[ObservedStatement]) -> None:
    """Execute statements again; raise `TransactionConflict` if one returns something else than before."""
    for number, statement in enumerate(statements, 1):
        result = engine.execute(statement.sql, statement.parameters)
        if digest_of_result(result) != statement.observed:
            raise TransactionConflict(
                f"statement {number} of {len(statements)} gives another result now, another transaction was "
                f"first: {shortened(statement.sql)}",
                shortened(statement.sql),
            )
