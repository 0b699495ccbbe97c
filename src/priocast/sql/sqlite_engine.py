"""A replica's database in SQLite: in memory, or in a file beside the log of its member.

SQLite is asked for nothing that could differ between replicas: `sqlite_functions` replaces clocks and random
numbers, `sqlite_rules` rejects the rest. Write-sets are changesets of SQLite's session extension. The file is
a cache of what the log can rebuild, so it is not synced.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from priocast.core.errors import (
    DatabaseUnusable,
    PayloadTooLarge,
    StatementRejected,
    TransactionAborted,
    TransactionConflict,
)
from priocast.sql.engine import (
    NO_POSITION,
    RESULT_BYTES_MAX,
    DatabaseIdentity,
    Parameters,
    SqlValue,
    StatementResult,
    TransactionContext,
)
from priocast.sql.sqlite_errors import SqliteErrors
from priocast.sql.sqlite_files import (
    OWN_SCHEMA,
    check_group,
    decode_snapshot,
    encode_snapshot,
    make_directory_of,
    remove_own_file,
)
from priocast.sql.sqlite_functions import OrderedFunctions
from priocast.sql.sqlite_rules import OWN_TABLES, Judgement, StatementJudge
from priocast.sql.sqlite_schema import bounded_below, check_keys, check_tables, dump_of

VALUE_BYTES_MAX = 16 * 1024 * 1024
STEPS_MAX = 50_000_000
_STEPS_AT_ONCE = 1_000_000
_VALUE_BYTES = 9


class SqliteEngine:
    """An `Engine` on SQLite; without a path, the database is in memory."""

    name = "sqlite"

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._opened: apsw.Connection | None = None
        self._session: apsw.Session | None = None
        self._changes_schema = False
        self._bounds: list[tuple[str, str]] | None = None
        self._is_limited = False
        self._steps = 0

    # From start to stop

    def open(self, identity: DatabaseIdentity) -> None:
        """Begin with an empty database; a file of another member, or of another program, is rejected."""
        if self._path is not None:
            make_directory_of(self._path)
            remove_own_file(self._path, identity)
        with SqliteErrors():
            connection = apsw.Connection(":memory:" if self._path is None else str(self._path))
            self._opened = connection
            for setting in ("locking_mode = EXCLUSIVE", "journal_mode = MEMORY", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
            connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
            connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
            connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
            connection.set_progress_handler(self._on_steps, _STEPS_AT_ONCE)
            self._functions = OrderedFunctions(connection)
            self._judge = StatementJudge(connection)
            connection.execute(OWN_SCHEMA)
            row = (NO_POSITION, identity.group, identity.member)
            connection.execute("INSERT INTO priocast_database VALUES (1, ?, ?, ?)", row)
            connection.execute("PRAGMA synchronous = OFF")  # from here on; what is ours can be told by now
        self._identity = identity
        self._position = NO_POSITION

    def close(self) -> None:
        """Close the connection."""
        connection, self._opened = self._opened, None
        if connection is not None:
            self._end_session()
            self._functions.close()
            connection.close(True)

    @property
    def _connection(self) -> apsw.Connection:
        if self._opened is None:
            raise DatabaseUnusable("the database is not open")
        return self._opened

    @property
    def position(self) -> int:
        """That of the last transaction that was committed."""
        return self._position

    def _forget_schema(self) -> None:
        """The schema has changed, or may have."""
        self._judge.forget()
        self._bounds = None

    def _on_steps(self) -> bool:
        """Whether to interrupt the statement; own statements, between those of the application, never are."""
        self._steps += _STEPS_AT_ONCE
        return self._is_limited and self._steps > STEPS_MAX

    # Statements

    def check(self, sql: str) -> None:
        """Raise if a statement is not allowed in a transaction, as far as this database can tell now."""
        try:
            rejected = self._judge.judge(sql).rejected
        except apsw.Error:
            return
        if rejected:
            raise StatementRejected(rejected)

    def query(
        self, sql: str, parameters: Parameters, context: TransactionContext | None = None
    ) -> StatementResult:
        """Execute a query outside of a transaction."""
        with SqliteErrors(sql):
            judgement = self._judge.judge(sql)
        if judgement.rejected_query:
            raise StatementRejected(judgement.rejected_query)
        seed = int.from_bytes(os.urandom(7))
        self._functions.begin(context or TransactionContext(time.time_ns(), seed))
        self._steps = 0
        return self._run(sql, parameters, judgement)

    def _run(self, sql: str, parameters: Parameters, judgement: Judgement) -> StatementResult:
        connection = self._connection
        before = connection.total_changes()
        with SqliteErrors(sql):
            rows = self._rows(sql, parameters)
            changed = 0
            if connection.total_changes() != before:
                changed = connection.changes()
                check_keys(connection, judgement.tables)
        return StatementResult(judgement.columns, rows, changed)

    def _rows(self, sql: str, parameters: Parameters) -> tuple[tuple[SqlValue, ...], ...]:
        """Execute a statement of the application, with limits, and return its rows."""
        rows, size = [], 0
        cursor = self._connection.cursor()
        self._is_limited = True
        try:
            # A cached statement goes on counting its steps, and the limit would depend on what it did before.
            cursor.execute(sql, parameters or None, can_cache=False)
            for row in cursor:
                rows.append(row)
                size += _size_of(row)
                if size > RESULT_BYTES_MAX:
                    raise PayloadTooLarge(
                        f"the rows of a statement must have at most {RESULT_BYTES_MAX:,} bytes: ask for fewer"
                    )
        finally:
            self._is_limited = False
            cursor.close(True)
        return tuple(rows)

    # Transactions

    def begin(self, context: TransactionContext, *, recording: bool = False) -> None:
        """Begin a transaction; with `recording`, a session of SQLite records it."""
        connection = self._connection
        assert not connection.in_transaction, "one transaction at a time"
        self._functions.begin(context)
        self._steps = 0
        self._changes_schema = False
        with SqliteErrors():
            connection.execute("BEGIN IMMEDIATE")
            if recording:
                self._session = apsw.Session(connection, "main")
                self._session.table_filter(_is_recorded)
                self._session.attach()

    def execute(self, sql: str, parameters: Parameters) -> StatementResult:
        """Execute one statement of the transaction."""
        with SqliteErrors(sql):
            judgement = self._judge.judge(sql)
        if judgement.rejected:
            raise StatementRejected(judgement.rejected)
        if judgement.changes_schema:
            if self._session is not None:
                raise StatementRejected(
                    "the schema cannot be changed in an interactive transaction: use execute, outside of it"
                )
            self._changes_schema = True
            self._forget_schema()
        return self._run(sql, parameters, judgement)

    def write_set(self) -> bytes:
        """The changeset of the transaction so far."""
        assert self._session is not None, "the transaction is recorded"
        with SqliteErrors():
            return self._session.changeset()

    def apply_write_set(self, write_set: bytes) -> None:
        """Apply a changeset; triggers and cascades are in it already."""
        _check_write_set(write_set)
        connection, reasons = self._connection, []

        def on_conflict(reason: int, change: apsw.TableChange) -> int:
            reasons.append((reason, change.name))
            return apsw.SQLITE_CHANGESET_ABORT

        try:
            with SqliteErrors():
                connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
                flags = apsw.SQLITE_CHANGESETAPPLY_FKNOACTION
                apsw.Changeset.apply(write_set, connection, conflict=on_conflict, flags=flags)
        except (StatementRejected, TransactionAborted):
            reason, table = reasons[0] if reasons else (0, "")
            if reason == apsw.SQLITE_CHANGESET_FOREIGN_KEY:
                raise TransactionAborted("FOREIGN KEY constraint failed", "FOREIGN KEY") from None
            if reason == apsw.SQLITE_CHANGESET_CONSTRAINT:
                raise TransactionAborted(f"a constraint of {table} failed", table) from None
            raise TransactionConflict(
                f"a row of {table or 'a table'} is not as the transaction saw it", table
            ) from None
        finally:
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)

    def commit(self, position: int) -> None:
        """Commit the changes and the position."""
        connection = self._connection
        assert connection.in_transaction, "there is a transaction"
        if self._changes_schema:
            self._forget_schema()
            check_tables(connection)
        with SqliteErrors():
            connection.execute("UPDATE priocast_database SET position = ?", (position,))
            self._end_session()
            connection.execute("COMMIT")
        self._position = position

    def rollback(self) -> None:
        """Undo the transaction, if there is one; a statement may have ended it already."""
        self._end_session()
        connection = self._connection
        with SqliteErrors():
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if self._changes_schema:
            self._forget_schema()

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # The whole database

    def snapshot(self) -> bytes:
        """The file as bytes."""
        with SqliteErrors():
            return encode_snapshot(self._connection.serialize("main"))

    def restore(self, data: bytes) -> None:
        """Replace the database by another replica's."""
        connection, file = self._connection, decode_snapshot(data)
        with SqliteErrors():
            source = apsw.Connection(":memory:")
            try:
                source.deserialize("main", file)
                check_group(source, self._identity)
                with connection.backup("main", source, "main") as backup:
                    backup.step(-1)
            finally:
                source.close()
            connection.execute("UPDATE priocast_database SET member = ?", (self._identity.member,))
            self._position = connection.execute("SELECT position FROM priocast_database").get
        self._forget_schema()

    def dump(self) -> Iterator[str]:
        """The schema and all rows as text."""
        with SqliteErrors():
            yield from dump_of(self._connection)

    def lower_bounds(self) -> list[tuple[str, str]]:
        """Tables and columns that a CHECK bounds below."""
        if self._bounds is None:
            with SqliteErrors():
                self._bounds = bounded_below(self._connection)
        return self._bounds


def _is_recorded(table: str) -> bool:
    return not table.startswith(OWN_TABLES)


def _check_write_set(write_set: bytes) -> None:
    """Raise `StatementRejected` if a write-set cannot be read: SQLite would blame the database."""
    try:
        tables = {change.name for change in apsw.Changeset.iter(write_set) if change.new or change.old}
    except (apsw.Error, UnicodeError, ValueError) as error:
        raise StatementRejected(f"a write-set cannot be read: {error}") from None
    if not all(map(_is_recorded, tables)):
        raise StatementRejected(f"a write-set changes {OWN_TABLES}* tables, which belong to the replication")


def _size_of(row: tuple[SqlValue, ...]) -> int:
    return sum(_VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0) for value in row)
