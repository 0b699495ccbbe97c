"""The schema of a replicated database in PostgreSQL: what the replication needs, and what tables must have.

The tables of the application are in the schema `public`; what the replication keeps is in the schema
`priocast`. Row triggers record the changes of interactive transactions: they see what cascades did, and cost
others only a look at a setting. Logical decoding would see a transaction only after its commit, and the
transaction is not to commit here.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from priocast.core.errors import StatementRejected
from priocast.sql.postgres_connection import PostgresConnection

FORMAT = 1

OWN_SCHEMA = """
CREATE SCHEMA priocast;
CREATE SCHEMA priocast_clock;
CREATE TABLE priocast.database (
    one int PRIMARY KEY CHECK (one = 1), format int NOT NULL, position bigint NOT NULL,
    group_name text NOT NULL, member text NOT NULL
);
CREATE TABLE priocast.statements (number bigint PRIMARY KEY, sql text NOT NULL);
CREATE UNLOGGED TABLE priocast.changes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, name text NOT NULL,
    old_row text, new_row text
);
CREATE FUNCTION priocast.record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO priocast.changes (kind, name, old_row, new_row)
    VALUES (TG_OP, TG_TABLE_NAME, OLD::text, NEW::text);
    RETURN NULL;
END $$;
CREATE FUNCTION priocast_clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT timestamptz 'epoch' + current_setting('priocast.time_us')::bigint * interval '1 microsecond'
$$;
CREATE FUNCTION priocast_clock.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT priocast_clock.now()';
CREATE FUNCTION priocast_clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT priocast_clock.now()';
CREATE FUNCTION priocast_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT priocast_clock.now()';
"""
SETTINGS = """
SET search_path = public, priocast_clock, pg_catalog; SET timezone = 'UTC'; SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres'; SET extra_float_digits = 1; SET bytea_output = 'hex';
SET client_encoding = 'UTF8';
SET lc_monetary = 'C'; SET lc_numeric = 'C'; SET lc_time = 'C'; SET standard_conforming_strings = on;
SET default_text_search_config = 'simple'; SET xmloption = 'content'; SET client_min_messages = 'error';
SET max_parallel_workers_per_gather = 0; SET jit = off; SET synchronous_commit = off;
SET statement_timeout = 0;
SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET transform_null_equals = off;
"""
"""All that a result could depend on. The search path puts our clock before PostgreSQL's."""

_TABLES = """
SELECT c.relname, c.relkind::text,
    coalesce((SELECT string_agg(quote_ident(a.attname), ',' ORDER BY k.n) FROM pg_index i,
        unnest(i.indkey) WITH ORDINALITY AS k(number, n), pg_attribute a
        WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid AND a.attnum = k.number), ''),
    coalesce((SELECT string_agg(quote_ident(a.attname), ',' ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''), ''),
    EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'priocast_record')
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'f', 'm', 'S')
ORDER BY c.relname
"""
_FLOAT_COLUMNS = """
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    AND a.atttypid IN ('float4'::regtype, 'float8'::regtype) ORDER BY 1, 2
"""
_FOREIGN_KEYS = """
SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), p.relname, k.confupdtype::text, k.confdeltype::text
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace ORDER BY 1, 2
"""
_CHECKS = """
SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'c' AND k.connamespace = 'public'::regnamespace ORDER BY 1, 2
"""
_KINDS = {"p": "a partitioned table", "f": "a foreign table", "m": "a materialized view"}
_BOUND = re.compile(r'"?(\w+)"? >=? \(?-?\d')
_ON_UPDATE = ("a", "r")  # nothing, or RESTRICT
_ON_DELETE = ("a", "r", "c")


class PostgresTable(NamedTuple):
    """A table: the columns of its primary key, and those that can be written, all quoted.

    Where rows of several tables are deleted, those of the lowest `rank` are first: others do not refer to it.
    """

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rank: int

    @property
    def quoted(self) -> str:
        """The name as SQL has it."""
        return f"public.{_quoted(self.name)}"


def tables_of(connection: PostgresConnection) -> dict[str, PostgresTable]:
    """The tables of the application by name, in a fixed order."""
    ranks = _ranks(connection.texts(_FOREIGN_KEYS))
    return {
        name: PostgresTable(name, _names(keys), _names(columns), ranks.get(name, 0))
        for name, kind, keys, columns, _ in connection.texts(_TABLES)
        if kind == "r"
    }


def _ranks(foreign_keys: list[list[str]]) -> dict[str, int]:
    """The place of each table when rows are deleted: after the tables that refer to it."""
    sorter = TopologicalSorter[str]()
    for table, _, _, referred, _, _ in foreign_keys:
        if table != referred:
            sorter.add(referred, table)
    try:
        return {name: rank for rank, name in enumerate(sorter.static_order())}
    except CycleError as error:
        cycle = ", ".join(sorted(set(error.args[1])))
        raise StatementRejected(
            f"the foreign keys of {cycle} form a cycle, which is not replicated"
        ) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _names(joined: str) -> tuple[str, ...]:
    return tuple(joined.split(",")) if joined else ()


def check_tables(connection: PostgresConnection) -> None:
    """Raise `StatementRejected` if a table cannot be replicated; record the changes of the others."""
    for name, kind, keys, _, is_recorded in connection.texts(_TABLES):
        if kind == "S":
            raise StatementRejected(f"{name} is a sequence: it counts on when a transaction is rolled back")
        if kind != "r":
            raise StatementRejected(f"{name} is {_KINDS[kind]}, which is not replicated")
        if not keys:
            raise StatementRejected(f"table {name} has no primary key: rows without one cannot be replicated")
        if is_recorded == "0":
            connection.script(
                f"CREATE TRIGGER priocast_record AFTER INSERT OR UPDATE OR DELETE ON public.{_quoted(name)} "
                "FOR EACH ROW WHEN (current_setting('priocast.recording', true) = 'on') "
                "EXECUTE FUNCTION priocast.record()"
            )
    for name, column in connection.texts(_FLOAT_COLUMNS):
        raise StatementRejected(
            f"{name}.{column} is a float, whose sums depend on the order of the rows: use numeric"
        )
    foreign_keys = connection.texts(_FOREIGN_KEYS)
    for table, name, _, _, on_update, on_delete in foreign_keys:
        if on_update not in _ON_UPDATE or on_delete not in _ON_DELETE:
            raise StatementRejected(f"{name} of {table} has an action: only ON DELETE CASCADE is replicated")
    _ranks(foreign_keys)


def rows_of(connection: PostgresConnection, table: PostgresTable) -> Iterator[str]:
    """The rows of a table as PostgreSQL writes them, in the order of the primary key."""
    order = ", ".join(f"t.{key}" for key in table.keys)
    found = connection.texts(f"SELECT t::text FROM {table.quoted} t ORDER BY {order}")  # noqa: S608 - quoted
    return (row for (row,) in found)


def drop_foreign_keys(connection: PostgresConnection) -> str:
    """Remove all foreign keys, so that rows can be inserted in any order; returns what brings them back."""
    keys = connection.texts(_FOREIGN_KEYS)
    added = []
    for table, name, definition, *_ in keys:
        altered = f"ALTER TABLE public.{_quoted(table)}"
        connection.script(f"{altered} DROP CONSTRAINT {_quoted(name)}")
        added.append(f"{altered} ADD CONSTRAINT {_quoted(name)} {definition};")
    return "".join(added)


def bounded_below(connection: PostgresConnection) -> list[tuple[str, str]]:
    """Tables and columns with a CHECK like `balance >= 0`."""
    return [
        (table, column)
        for table, definition in connection.texts(_CHECKS)
        for column in _BOUND.findall(definition.replace("'", ""))
    ]
