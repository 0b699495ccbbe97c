"""What a schema of SQLite needs so that it can be replicated, and what its constraints say."""

from collections.abc import Iterator, Sequence

import apsw

from priocast.core.errors import StatementRejected, TransactionAborted
from priocast.sql.sqlite_rules import OWN_TABLES
from priocast.sql.statements import SqlToken, tokens_of

KEY_MAX = (1 << 63) - 1


def tables_of(connection: apsw.Connection) -> list[tuple[str, str, bool]]:
    """Name, kind and whether there is a rowid, of every table of the application, in a fixed order."""
    found = connection.execute(
        "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND type != 'view' ORDER BY name"
    )
    return [
        (name, kind, not without_rowid)
        for name, kind, without_rowid in found
        if not name.startswith((OWN_TABLES, "sqlite_"))
    ]


def check_tables(connection: apsw.Connection) -> None:
    """Raise `StatementRejected` if a table cannot be replicated: its rows need keys that are never NULL.

    Write-sets identify rows by their primary keys; SQLite does not record a row without one.
    """
    own = connection.execute(
        "SELECT name FROM sqlite_schema "
        "WHERE name LIKE 'priocast\\_%' ESCAPE '\\' AND name != 'priocast_database'"
    )
    if own.get is not None:
        raise StatementRejected(f"names must not begin with {OWN_TABLES}: they belong to the replication")
    for name, kind, _ in tables_of(connection):
        if kind != "table":
            raise StatementRejected(f"{name} is a {kind} table, which cannot be replicated")
        columns = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,))
        keys = [(column, kind, is_not_null) for column, kind, is_not_null, pk in columns if pk]
        if not keys:
            raise StatementRejected(f"table {name} has no primary key: rows without one cannot be replicated")
        if len(keys) == 1 and keys[0][1].upper() == "INTEGER":
            continue
        for column, _, is_not_null in keys:
            if not is_not_null:
                raise StatementRejected(
                    f"{name}.{column} is part of the primary key and may be NULL: add NOT NULL"
                )


def check_keys(connection: apsw.Connection, tables: Sequence[str]) -> None:
    """Raise `TransactionAborted` if a row has the largest key: SQLite would choose the next one at random."""
    for table in tables:
        name = table.replace('"', '""')
        if connection.execute(f'SELECT 1 FROM "{name}" WHERE rowid = {KEY_MAX}').get is not None:  # noqa: S608
            raise TransactionAborted(f"a key of {table} must be less than {KEY_MAX}", table)


def dump_of(connection: apsw.Connection) -> Iterator[str]:
    """The schema and all rows, in a fixed order, with the rowids that are not columns."""
    for (sql,) in connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'priocast\\_%' ESCAPE '\\' "
        "ORDER BY type, name"
    ):
        yield f"{sql};"
    names = [(name, has_rowid) for name, _, has_rowid in tables_of(connection)]
    if connection.table_exists("main", "sqlite_sequence"):
        names.append(("sqlite_sequence", True))
    for name, has_rowid in names:
        table = '"' + name.replace('"', '""') + '"'
        columns = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))]
        values = ["rowid"] * has_rowid + ['"' + column.replace('"', '""') + '"' for column in columns]
        quoted = ", ".join(f"quote({value})" for value in values)
        order = "rowid" if has_rowid else ", ".join(values)
        for row in connection.execute(f"SELECT {quoted} FROM {table} ORDER BY {order}"):  # noqa: S608
            yield f"{name}: {', '.join(row)}"


def bounded_below(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Tables and columns with a CHECK like `balance >= 0`: their values must not become too small."""
    found = []
    for name, sql in connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL ORDER BY name"
    ):
        columns = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        found += [(name, column) for column in _lower_bounds(list(tokens_of(sql))) if column in columns]
    return found


def _lower_bounds(tokens: list[SqlToken]) -> Iterator[str]:
    """The names that a CHECK compares with a number from above, `name >= 0` or `0 <= name`."""
    check_depth: int | None = None
    for index, token in enumerate(tokens):
        if token.text == "check":
            check_depth = token.depth
        elif check_depth is not None and token.depth <= check_depth and token.text not in ("(", ")"):
            check_depth = None
        if check_depth is None or index == 0 or index + 1 == len(tokens):
            continue
        before, after = tokens[index - 1], tokens[index + 1]
        if token.text in (">", ">=") and after.kind == "number":
            yield before.text.strip('"`[]')
        elif token.text in ("<", "<=") and before.kind == "number":
            yield after.text.strip('"`[]')
