"""Write-sets of PostgreSQL: the rows that a transaction changed, and how another replica changes them.

Rows are texts as PostgreSQL writes and reads them (`(1,Ada,5.00)`), which is exact for every type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Literal

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame, StatementRejected, TransactionConflict
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.sql.postgres_connection import PostgresConnection
from priocast.sql.postgres_schema import PostgresTable

_CHANGES_MAX = 1_000_000
_RECORDED = "SELECT kind, name, old_row, new_row FROM priocast.changes ORDER BY number"

TableName = Annotated[str, msgspec.Meta(max_length=256)]
RowText = Annotated[str, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]


class RowChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row that was changed: as it was, and as it became; empty if there was none, or is none."""

    kind: Literal["INSERT", "UPDATE", "DELETE"]
    table: TableName
    old: RowText
    new: RowText


RowChanges = Annotated[list[RowChange], msgspec.Meta(max_length=_CHANGES_MAX)]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RowChanges).decode

# How changes are made: a row must be, to the letter, what the transaction saw. Names are quoted.
_CHANGED = (
    "(SELECT o AS old_text, nullif(o, '')::{table} AS old, nullif(n, '')::{table} AS new "
    "FROM unnest($1::text[], $2::text[]) AS u(o, n)) AS x"
)
_AS_SEEN = "WHERE {same_key} AND t::text = x.old_text"
_STATEMENTS = {
    "INSERT": " ".join(["INSERT INTO {table} ({columns}) SELECT {values} FROM", _CHANGED]),
    "UPDATE": " ".join(["UPDATE {table} AS t SET {changes} FROM", _CHANGED, _AS_SEEN]),
    "DELETE": " ".join(["DELETE FROM {table} AS t USING", _CHANGED, _AS_SEEN]),
}


def recorded_changes(connection: PostgresConnection) -> bytes:
    """The write-set of the transaction so far; empty if it has changed nothing."""
    changes = msgspec.convert(connection.texts(_RECORDED), RowChanges)
    return _encode(changes) if changes else b""


def apply_changes(
    connection: PostgresConnection, tables: Mapping[str, PostgresTable], write_set: bytes
) -> None:
    """Make the changes of a write-set; `TransactionConflict` if a row is not as the transaction saw it."""
    try:
        changes = decode(_decode, write_set, "a member", "a write-set")
    except ForeignFrame as error:
        raise StatementRejected(str(error)) from None
    for batch in batches_of(in_possible_order(changes, tables)):
        name = batch[0].table
        table = tables.get(name)
        if table is None or change_rows(connection, table, batch) != len(batch):
            raise TransactionConflict(f"a row of {name} is not as the transaction saw it", name)


def change_rows(connection: PostgresConnection, table: PostgresTable, batch: Sequence[RowChange]) -> int:
    """Make changes of one kind to one table, in one statement; returns how many rows were changed."""
    statement = _STATEMENTS[batch[0].kind].format(
        table=table.quoted,
        columns=", ".join(table.columns),
        values=", ".join(f"(x.new).{column}" for column in table.columns),
        changes=", ".join(f"{column} = (x.new).{column}" for column in table.columns),
        same_key=" AND ".join(f"t.{key} = (x.old).{key}" for key in table.keys),
    )
    rows = [_array([change.old for change in batch]), _array([change.new for change in batch])]
    return connection.execute(statement, rows).changed


def in_possible_order(
    changes: Sequence[RowChange], tables: Mapping[str, PostgresTable]
) -> Iterator[RowChange]:
    """The changes, but in each run of deletions those first that others refer to no more.

    A cascade is recorded after the deletion that caused it. Executed in that order, it would happen twice.
    """

    def rank(change: RowChange) -> int:
        return tables[change.table].rank if change.table in tables else 0

    for is_deletion, run in groupby(changes, lambda change: change.kind == "DELETE"):
        yield from sorted(run, key=rank if is_deletion else lambda _: 0)


def batches_of(changes: Iterable[RowChange]) -> Iterator[list[RowChange]]:
    """Consecutive changes of the same kind and table, none of which depends on another one of its batch."""
    batch: list[RowChange] = []
    made: set[str] = set()
    for change in changes:
        if batch and ((change.kind, change.table) != (batch[0].kind, batch[0].table) or change.old in made):
            yield batch
            batch, made = [], set()
        batch.append(change)
        if change.kind == "UPDATE":
            made.add(change.new)
    if batch:
        yield batch


def _array(texts: list[str]) -> str:
    """An array of texts, as PostgreSQL reads it."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
