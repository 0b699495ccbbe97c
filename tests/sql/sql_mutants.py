"""Deliberate faults in replicated transactions: each is a rule that is missing."""

from collections.abc import Callable, Sequence

import apsw
import pytest

from priocast.sql import certification, database_machine, workspace
from priocast.sql.engine import Engine, StatementResult, TransactionContext
from priocast.sql.requests import CommitTransaction, ObservedStatement, digest_of_result
from priocast.sql.sqlite_engine import SqliteEngine

Mutant = Callable[[pytest.MonkeyPatch], None]


def reads_are_not_certified(patch: pytest.MonkeyPatch) -> None:
    def repeat(engine: Engine, statements: Sequence[ObservedStatement]) -> None:
        for statement in statements:
            engine.execute(statement.sql, statement.parameters)

    patch.setattr(certification, "repeat_statements", repeat)


def write_sets_are_applied_without_certification(patch: pytest.MonkeyPatch) -> None:
    def apply(engine: Engine, transaction: CommitTransaction) -> None:
        engine.apply_write_set(transaction.write_set)

    patch.setattr(database_machine, "certify_and_apply", apply)


def only_the_number_of_rows_is_certified(patch: pytest.MonkeyPatch) -> None:
    def digest(result: StatementResult) -> bytes:
        return b"%d/%d" % (len(result.rows), result.changed)

    patch.setattr(certification, "digest_of_result", digest)
    patch.setattr(workspace, "digest_of_result", digest)


def the_number_of_changed_rows_is_not_certified(patch: pytest.MonkeyPatch) -> None:
    def digest(result: StatementResult) -> bytes:
        return digest_of_result(StatementResult(result.columns, result.rows, 0))

    patch.setattr(certification, "digest_of_result", digest)
    patch.setattr(workspace, "digest_of_result", digest)


def writes_are_not_certified(patch: pytest.MonkeyPatch) -> None:
    honest = certification.repeat_statements

    def repeat(engine: Engine, statements: Sequence[ObservedStatement]) -> None:
        honest(engine, [each for each in statements if each.sql.startswith("SELECT")])
        for statement in statements:
            if not statement.sql.startswith("SELECT"):
                engine.execute(statement.sql, statement.parameters)

    patch.setattr(certification, "repeat_statements", repeat)


def a_transaction_continues_on_another_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(workspace, "repeat_statements", lambda *_: None)


def triggers_are_executed_with_a_write_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apsw, "SQLITE_DBCONFIG_ENABLE_TRIGGER", apsw.SQLITE_DBCONFIG_ENABLE_VIEW)


def every_replica_has_a_clock_of_its_own(patch: pytest.MonkeyPatch) -> None:
    honest = SqliteEngine.begin
    begun = [0]

    def begin(self: SqliteEngine, context: TransactionContext, *, recording: bool = False) -> None:
        begun[0] += 1
        later = TransactionContext(context.time_ns + begun[0] * 10**9, context.seed)
        honest(self, later, recording=recording)

    patch.setattr(SqliteEngine, "begin", begin)
