"""SQLite's errors, by who is at fault: the statement, a constraint, or the replica's machine."""

from types import TracebackType

import apsw

from priocast.core.errors import DatabaseUnusable, PayloadTooLarge, StatementRejected, TransactionAborted
from priocast.sql.statements import shortened

_CONSTRAINT_FAILED = " constraint failed"
_OF_THE_MACHINE = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.ConnectionClosedError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.InternalError,
    apsw.IOError,
    apsw.LockedError,
    apsw.MisuseError,
    apsw.NoLFSError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
    apsw.ThreadingViolationError,
)
_OF_THE_STATEMENT = (apsw.Error, TypeError, OverflowError, UnicodeError)


class SqliteErrors:
    """A context in which Priocast's errors are raised instead of SQLite's.

    It is entered four times per transaction: a class costs a third of what a generator does.
    """

    __slots__ = ("_sql",)

    def __init__(self, sql: str = "") -> None:
        self._sql = sql

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            found = self._translated(error)
            if found is not None:
                raise found from (error if isinstance(found, DatabaseUnusable) else None)

    def _translated(self, error: BaseException) -> Exception | None:
        where = f" ({shortened(self._sql)})" if self._sql else ""
        found: Exception | None = None
        if isinstance(error, apsw.ConstraintError):
            found = TransactionAborted(str(error), constraint_of(str(error)))
        elif isinstance(error, apsw.TooBigError):
            found = PayloadTooLarge(f"a value is too long: {error}{where}")
        elif isinstance(error, apsw.InterruptError):
            found = TransactionAborted(f"the transaction takes too many steps{where}", "steps")
        elif isinstance(error, KeyError):
            found = StatementRejected(f"the parameter {error} has no value{where}")
        elif isinstance(error, _OF_THE_MACHINE):
            found = DatabaseUnusable(
                f"the database of this replica failed: {type(error).__name__}: {error}{where}"
            )
        elif isinstance(error, _OF_THE_STATEMENT):
            found = StatementRejected(f"{error}{where}")
        return found


def constraint_of(text: str) -> str:
    """The name of a violated constraint in SQLite's message; without a name, its kind or columns."""
    kind, failed, name = text.partition(_CONSTRAINT_FAILED)
    return name.removeprefix(": ") or kind if failed else text
