"""Snapshots of PostgreSQL: the statements that made the schema, and all rows, for another replica.

The files of a server cannot be copied to one that runs, and its own dump is a program; rows as text are exact
for every type.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Annotated

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import DatabaseUnusable, ForeignFrame
from priocast.core.identity import Name
from priocast.sql.postgres_changes import RowChange, TableName, change_rows
from priocast.sql.postgres_connection import PostgresConnection
from priocast.sql.postgres_schema import (
    FORMAT,
    PostgresTable,
    check_tables,
    drop_foreign_keys,
    rows_of,
    tables_of,
)
from priocast.sql.requests import StatementText

_DIGEST_BYTES = 16
_ROWS_AT_ONCE = 1000
_ROWS_MAX = 1 << 32
_TABLES_MAX = 100_000
_ROW_LENGTH_MAX = 1 << 30


class TableRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All rows of a table."""

    name: TableName
    rows: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=_ROW_LENGTH_MAX)]], msgspec.Meta(max_length=_ROWS_MAX)
    ]


class PostgresContents(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A whole database: the statements that made its schema, in order, and the rows of its tables."""

    group: Name
    position: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)]
    statements: Annotated[list[StatementText], msgspec.Meta(max_length=_TABLES_MAX)]
    tables: Annotated[list[TableRows], msgspec.Meta(max_length=_TABLES_MAX)]


class PostgresSnapshot(msgspec.Struct, frozen=True, array_like=True, tag="postgresql", gc=False):
    """Encoded contents, with their digest."""

    format: Annotated[int, msgspec.Meta(ge=0, le=255)]
    digest: Annotated[bytes, msgspec.Meta(max_length=_DIGEST_BYTES)]
    data: Annotated[bytes, msgspec.Meta(max_length=1 << 40)]


_encode = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(PostgresSnapshot).decode
_decode_contents = msgspec.msgpack.Decoder(PostgresContents).decode


def contents_of(
    connection: PostgresConnection, tables: Iterable[PostgresTable], group: str, position: int
) -> PostgresContents:
    """Everything that is in a database now."""
    statements = schema_statements(connection)
    rows = [TableRows(table.name, list(rows_of(connection, table))) for table in tables]
    return PostgresContents(group, position, statements, rows)


def schema_statements(connection: PostgresConnection) -> list[str]:
    """The statements that made the schema, in order."""
    return [sql for (sql,) in connection.texts("SELECT sql FROM priocast.statements ORDER BY number")]


def load_contents(connection: PostgresConnection, contents: PostgresContents) -> None:
    """Make the schema and insert all rows, in a transaction that has emptied the database."""
    for number, sql in enumerate(contents.statements):
        connection.execute(sql)
        connection.execute("INSERT INTO priocast.statements VALUES ($1, $2)", (number, sql))
    check_tables(connection)
    foreign_keys = drop_foreign_keys(connection)
    tables = tables_of(connection)
    for found in contents.tables:
        for first in range(0, len(found.rows), _ROWS_AT_ONCE):
            rows = found.rows[first : first + _ROWS_AT_ONCE]
            inserted = [RowChange("INSERT", found.name, "", row) for row in rows]
            change_rows(connection, tables[found.name], inserted)
    connection.script(foreign_keys + "SET CONSTRAINTS ALL IMMEDIATE")


def encode_contents(contents: PostgresContents) -> bytes:
    """A snapshot."""
    data = _encode(contents)
    return _encode(PostgresSnapshot(FORMAT, _digest(data), data))


def decode_contents(snapshot: bytes) -> PostgresContents:
    """What a snapshot holds; `DatabaseUnusable` if it is damaged or of another version."""
    try:
        found = decode(_decode_snapshot, snapshot, "another replica", "a database")
        if found.format != FORMAT:
            raise DatabaseUnusable(f"a snapshot has format {found.format}: this version reads {FORMAT}")
        if found.digest != _digest(found.data):
            raise DatabaseUnusable("a snapshot of the database was damaged on its way: join again")
        return decode(_decode_contents, found.data, "another replica", "a database")
    except ForeignFrame as error:
        raise DatabaseUnusable(str(error)) from None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()
