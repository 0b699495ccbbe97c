"""PostgreSQL as the database of a replica: a database of its own on any server, that nobody else uses.

    engine = PostgresEngine("postgresql://localhost/bank_a")
    async with connect("bank", member="a", engine=engine, schema=...) as database: ...

Each member needs its own database, in UTF-8 and with the collation C or C.UTF-8, and the right to create
schemas in it. Its contents are deleted at every start, if Priocast made them; a database with other tables is
rejected.
"""

import time
from collections.abc import Iterator

from priocast.core.errors import DatabaseUnusable, InvalidInput, StatementRejected
from priocast.sql.engine import (
    NO_POSITION,
    DatabaseIdentity,
    Parameters,
    StatementResult,
    TransactionContext,
)
from priocast.sql.postgres_changes import apply_changes, recorded_changes
from priocast.sql.postgres_connection import PostgresConnection, with_numbered_parameters
from priocast.sql.postgres_rules import PostgresJudgement, PostgresRules, check_values
from priocast.sql.postgres_schema import (
    FORMAT,
    OWN_SCHEMA,
    SETTINGS,
    PostgresTable,
    bounded_below,
    check_tables,
    rows_of,
    tables_of,
)
from priocast.sql.postgres_snapshot import (
    contents_of,
    decode_contents,
    encode_contents,
    load_contents,
    schema_statements,
)
from priocast.sql.statements import shortened

_LOCK_SECONDS = 10
_COLLATIONS = ("C", "POSIX", "C.UTF-8", "C.utf8")


class PostgresEngine:
    """An `Engine` on a database of PostgreSQL, at an address as libpq has it."""

    def __init__(self, address: str) -> None:
        if not isinstance(address, str) or not address:
            raise InvalidInput("the address of a database is text, such as postgresql://localhost/bank_a")
        self._address = address
        self._opened: PostgresConnection | None = None
        self._tables: dict[str, PostgresTable] | None = None
        self._volatile: dict[str, bool] = {}
        self._rules = PostgresRules(self._is_volatile, self._keys_of)
        self._position = NO_POSITION
        self._is_recording = False
        self._changes_schema = False
        self.name = "postgresql"

    # From start to stop

    def open(self, identity: DatabaseIdentity) -> None:
        """Begin with an empty database; one that Priocast did not make for this member is rejected."""
        connection = PostgresConnection(self._address)
        try:
            self._check_server(connection)
            self._lock(connection)
            connection.script(SETTINGS)
            _check_owner(connection, identity)
            connection.script(f"BEGIN; {_EMPTY}")
            self._identity = identity
            self._write_identity(connection, NO_POSITION)
        except BaseException:
            connection.close()
            raise
        self.name = f"postgresql {connection.server_version}"
        self._opened, self._position = connection, NO_POSITION
        self._forget()

    def close(self) -> None:
        """Close the connection."""
        connection, self._opened = self._opened, None
        if connection is not None:
            connection.close()

    @property
    def _connection(self) -> PostgresConnection:
        if self._opened is None:
            raise DatabaseUnusable("the database is not open")
        return self._opened

    @property
    def position(self) -> int:
        """That of the last transaction that was committed."""
        return self._position

    def _check_server(self, connection: PostgresConnection) -> None:
        ((encoding, collation),) = connection.texts(
            "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database "
            "WHERE datname = current_database()"
        )
        if encoding != "UTF8" or collation not in _COLLATIONS:
            raise DatabaseUnusable(
                f"the database has the encoding {encoding} and the collation {collation}: create it with "
                "ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0, so that all replicas sort alike"
            )

    def _lock(self, connection: PostgresConnection) -> None:
        """Wait until no other process uses the database: one that was killed may still have a connection."""
        connection.script(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
        try:
            connection.texts("SELECT pg_advisory_lock(1347571023)")
        except DatabaseUnusable:
            raise DatabaseUnusable("another process uses the database: give each member its own") from None

    # Statements

    def check(self, sql: str) -> None:
        """Raise if a statement is not allowed in a transaction, as far as this database can tell now."""
        self._judged(sql)

    def _judged(self, sql: str) -> PostgresJudgement:
        judgement = self._rules.judge(sql)
        if judgement.rejected:
            raise StatementRejected(judgement.rejected)
        return judgement

    def query(
        self, sql: str, parameters: Parameters, context: TransactionContext | None = None
    ) -> StatementResult:
        """Execute a query outside of a transaction, which may only read."""
        connection = self._connection
        judgement = self._rules.judge(sql)
        if not judgement.is_query:
            raise StatementRejected(f"this is no query, and only queries are allowed here: {shortened(sql)}")
        time_ns = context.time_ns if context else time.time_ns()
        connection.script(f"BEGIN READ ONLY; SET LOCAL priocast.time_us = {time_ns // 1000}")
        try:
            return connection.execute(*with_numbered_parameters(sql, judgement.marks, parameters))
        finally:
            connection.script("ROLLBACK")

    # Transactions

    def begin(self, context: TransactionContext, *, recording: bool = False) -> None:
        """Begin a transaction; with `recording`, triggers record its changes."""
        connection = self._connection
        assert not connection.in_transaction, "one transaction at a time"
        self._is_recording, self._changes_schema = recording, False
        recorded = "on" if recording else "off"
        connection.script(
            f"BEGIN; SET LOCAL priocast.time_us = {context.time_ns // 1000}; "
            f"SET LOCAL priocast.recording = '{recorded}'"
        )

    def execute(self, sql: str, parameters: Parameters) -> StatementResult:
        """Execute one statement of the transaction."""
        judgement = self._judged(sql)
        numbered, values = with_numbered_parameters(sql, judgement.marks, parameters)
        check_values(judgement, values, sql)
        connection = self._connection
        if not judgement.changes_schema:
            return connection.execute(numbered, values)
        if self._is_recording:
            raise StatementRejected(
                "the schema cannot be changed in an interactive transaction: use execute, outside of it"
            )
        self._changes_schema = True
        self._forget()
        result = connection.execute(numbered, values)
        connection.execute(
            "INSERT INTO priocast.statements SELECT count(*), $1 FROM priocast.statements", (sql,)
        )
        return result

    def write_set(self) -> bytes:
        """The changes that the triggers have recorded."""
        assert self._is_recording, "the transaction is recorded"
        return recorded_changes(self._connection)

    def apply_write_set(self, write_set: bytes) -> None:
        """Make the changes of a write-set."""
        if write_set:
            apply_changes(self._connection, self._known_tables, write_set)

    def commit(self, position: int) -> None:
        """Commit the changes and the position."""
        connection = self._connection
        assert connection.in_transaction, "there is a transaction"
        if self._changes_schema:
            check_tables(connection)
            self._forget()
        connection.script(f"UPDATE priocast.database SET position = {position}; COMMIT")  # noqa: S608
        self._position = position

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        connection = self._connection
        if connection.in_transaction:
            connection.script("ROLLBACK")
        if self._changes_schema:
            self._forget()

    # The whole database

    def snapshot(self) -> bytes:
        """The statements that made the schema, and all rows."""
        tables = self._known_tables.values()
        return encode_contents(contents_of(self._connection, tables, self._identity.group, self._position))

    def restore(self, data: bytes) -> None:
        """Replace the contents by another replica's; the old ones stay if that fails."""
        contents = decode_contents(data)
        if contents.group != self._identity.group:
            raise DatabaseUnusable(f"a snapshot is of group {contents.group}, not of {self._identity.group}")
        connection = self._connection
        connection.script(
            f"BEGIN; {_EMPTY}; SET LOCAL priocast.time_us = 0; SET LOCAL priocast.recording = 'off'"
        )
        try:
            load_contents(connection, contents)
            self._write_identity(connection, contents.position)
        except BaseException as error:
            connection.script("ROLLBACK")
            if isinstance(error, DatabaseUnusable):
                raise
            raise DatabaseUnusable(f"a snapshot cannot be restored: {error}") from error
        self._position = contents.position
        self._forget()

    def _write_identity(self, connection: PostgresConnection, position: int) -> None:
        """Say whose database this is, and commit."""
        owner = (FORMAT, position, self._identity.group, self._identity.member)
        connection.execute("INSERT INTO priocast.database VALUES (1, $1, $2, $3, $4)", owner)
        connection.script("COMMIT")

    def dump(self) -> Iterator[str]:
        """The schema and all rows as text."""
        connection = self._connection
        yield from (f"{sql};" for sql in schema_statements(connection))
        for table in self._known_tables.values():
            for row in rows_of(connection, table):
                yield f"{table.name}: {row}"

    def lower_bounds(self) -> list[tuple[str, str]]:
        """Tables and columns that a CHECK bounds below."""
        return bounded_below(self._connection)

    # What is known of the catalogue

    def _forget(self) -> None:
        self._tables = None
        self._rules.forget()

    @property
    def _known_tables(self) -> dict[str, PostgresTable]:
        if self._tables is None:
            self._tables = tables_of(self._connection)
        return self._tables

    def _keys_of(self, table: str) -> list[str] | None:
        found = self._known_tables.get(table)
        return [key.strip('"') for key in found.keys] if found else None

    def _is_volatile(self, function: str) -> bool:
        if function not in self._volatile:
            found = self._connection.texts(
                "SELECT count(*) FROM pg_catalog.pg_proc WHERE proname = $1 AND provolatile = 'v'", function
            )
            self._volatile[function] = found[0][0] != "0"
        return self._volatile[function]


_EMPTY = f"""
DROP SCHEMA IF EXISTS priocast, priocast_clock CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public;
{OWN_SCHEMA}"""


def _check_owner(connection: PostgresConnection, identity: DatabaseIdentity) -> None:
    """Raise if a database has tables that Priocast did not make for this member: then it is left alone."""
    if not connection.texts("SELECT 1 FROM pg_namespace WHERE nspname = 'priocast'"):
        ((others,),) = connection.texts(
            "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname != 'information_schema'"
        )
        if others != "0":
            raise DatabaseUnusable("the database has tables that are not Priocast's: give it an empty one")
        return
    try:
        ((format_found, group, member),) = connection.texts(
            "SELECT format, group_name, member FROM priocast.database"
        )
    except (StatementRejected, ValueError):
        raise DatabaseUnusable("the schema priocast of the database is not Priocast's") from None
    if format_found != str(FORMAT):
        raise DatabaseUnusable(
            f"the database was written by another version of Priocast (format {format_found}, not {FORMAT}): "
            "drop its schema priocast"
        )
    owner = DatabaseIdentity(group, member)
    if owner != identity:
        raise DatabaseUnusable(f"the database is that of {owner}, not of {identity}: were addresses swapped?")
