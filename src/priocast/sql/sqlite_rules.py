"""Which statements SQLite may execute in a replicated transaction, decided from what their compilation needs.

SQLite reports every action and function of a statement while it prepares it, including those of triggers,
views, defaults and cascades. A statement is prepared once to be judged, and executed only if nothing in it
could make replicas differ.
"""

import apsw
import msgspec

from priocast.core.errors import StatementRejected
from priocast.sql.statements import has_unordered_limit, only_statement, shortened, verb_of

OWN_TABLES = "priocast_"

_ACTIONS = {
    apsw.SQLITE_ATTACH: "ATTACH",
    apsw.SQLITE_DETACH: "DETACH",
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT or ROLLBACK",
    apsw.SQLITE_SAVEPOINT: "SAVEPOINT",
    apsw.SQLITE_ANALYZE: "ANALYZE",
    apsw.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    apsw.SQLITE_DROP_VTABLE: "DROP of a virtual table",
    apsw.SQLITE_CREATE_TEMP_TABLE: "a temporary table",
    apsw.SQLITE_CREATE_TEMP_INDEX: "a temporary index",
    apsw.SQLITE_CREATE_TEMP_TRIGGER: "a temporary trigger",
    apsw.SQLITE_CREATE_TEMP_VIEW: "a temporary view",
}
_VERBS = {
    "vacuum": "VACUUM is not replicated",
    "explain": "EXPLAIN depends on the version of SQLite",
}
_SCHEMA_ACTIONS = {
    apsw.SQLITE_CREATE_TABLE,
    apsw.SQLITE_CREATE_INDEX,
    apsw.SQLITE_CREATE_TRIGGER,
    apsw.SQLITE_CREATE_VIEW,
    apsw.SQLITE_DROP_TABLE,
    apsw.SQLITE_DROP_INDEX,
    apsw.SQLITE_DROP_TRIGGER,
    apsw.SQLITE_DROP_VIEW,
    apsw.SQLITE_ALTER_TABLE,
}
_WRITE_ACTIONS = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}
_OF_THE_CONNECTION = "changes total_changes last_insert_rowid"
_OF_THE_VERSION = (
    "sqlite_version sqlite_source_id sqlite_compileoption_get sqlite_compileoption_used sqlite_offset "
    "sqlite_log"
)
_OF_THE_MACHINE = (
    "acos acosh asin asinh atan atan2 atanh cos cosh degrees exp ln log log10 log2 pow power radians sin "
    "sinh tan tanh"
)
_FUNCTIONS = {
    "load_extension": "loads code into this process alone",
    "fts3_tokenizer": "loads code into this process alone",
    **dict.fromkeys(_OF_THE_CONNECTION.split(), "depends on what this replica did before: use RETURNING"),
    **dict.fromkeys(_OF_THE_VERSION.split(), "depends on the version of SQLite"),
    **dict.fromkeys(
        _OF_THE_MACHINE.split(), "depends on the machine: calculate it before and pass it as a parameter"
    ),
}
_HIDDEN_KEY = "ROWID"  # how SQLite reports a rowid that is not a column
_MACHINE_TABLES = ("pragma_", "dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used", "carray")


class Judgement(msgspec.Struct, frozen=True):
    """What is known of a statement.

    `rejected` says why it must not be in a transaction, `rejected_query` why it must not be a query; both are
    empty if it may. `columns` are those of its rows, `tables` those that it writes and that have a rowid.
    """

    is_readonly: bool
    columns: tuple[str, ...]
    changes_schema: bool
    tables: tuple[str, ...]
    rejected: str
    rejected_query: str


class StatementJudge:
    """Judges the statements of one connection; what it found is kept until the schema changes."""

    def __init__(self, connection: apsw.Connection, count_max: int = 1000) -> None:
        self._connection = connection
        self._count_max = count_max
        self._judged: dict[str, Judgement] = {}

    def forget(self) -> None:
        """The schema has changed: triggers and views may do something else now."""
        self._judged.clear()

    def judge(self, sql: str) -> Judgement:
        """What a statement does; raises an error of apsw if it cannot be prepared."""
        found = self._judged.get(sql)
        if found is None:
            if len(self._judged) >= self._count_max:
                self._judged.clear()
            found = self._judged[sql] = self._prepare(only_statement(sql))
        return found

    def _prepare(self, sql: str) -> Judgement:
        actions = _Actions()
        cursor = self._connection.cursor()
        is_readonly, columns = True, tuple[str, ...]()

        def trace(traced: apsw.Cursor, _: str, __: object) -> bool:
            nonlocal is_readonly, columns
            is_readonly = traced.is_readonly
            columns = tuple(column[0] for column in traced.get_description())
            return False

        cursor.exec_trace = trace
        self._connection.authorizer = actions.authorize
        try:
            cursor.execute(sql, apsw._null_bindings, can_cache=False)  # type: ignore[attr-defined]  # any parameters
        except apsw.ExecTraceAbort:
            pass
        except apsw.Error:
            if actions.rejected:
                raise StatementRejected(f"{actions.rejected}: {shortened(sql)}") from None
            raise
        finally:
            self._connection.authorizer = None
            cursor.close()
        rejected = actions.rejected or _VERBS.get(verb_of(sql), "")
        if not rejected and has_unordered_limit(sql):
            rejected = "LIMIT without ORDER BY is not deterministic"
        rejected_query = actions.rejected_query
        if not rejected_query and not is_readonly:
            rejected_query = "this writes, and only queries are allowed here"
        return Judgement(
            is_readonly,
            columns,
            actions.changes_schema,
            self._with_rowid(actions.tables),
            f"{rejected}: {shortened(sql)}" if rejected else "",
            f"{rejected_query}: {shortened(sql)}" if rejected_query else "",
        )

    def _with_rowid(self, tables: set[str]) -> tuple[str, ...]:
        """Those of these tables of the application that have a rowid."""
        if not tables:
            return ()
        found = self._connection.execute(
            "SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr"
        )
        return tuple(sorted(tables & {name for (name,) in found if not name.startswith("sqlite_")}))


class _Actions:
    """Collects what SQLite reports while it prepares a statement."""

    def __init__(self) -> None:
        self.rejected = ""
        self.rejected_query = ""
        self.changes_schema = False
        self.tables: set[str] = set()

    def authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, source: str | None
    ) -> int:
        """Record one action; PRAGMA is denied at once, because it may act while it is prepared."""
        self.changes_schema |= action in _SCHEMA_ACTIONS
        if action == apsw.SQLITE_PRAGMA:
            self._reject(f"PRAGMA {first} is not replicated", in_query=True)
            return apsw.SQLITE_DENY
        if action in _ACTIONS:
            self._reject(f"{_ACTIONS[action]} is not replicated", in_query=True)
        elif action == apsw.SQLITE_FUNCTION:
            name = (second or "").lower()
            if name in _FUNCTIONS:
                self._reject(f"{name}() {_FUNCTIONS[name]}", in_query=name == "load_extension")
        elif action in _WRITE_ACTIONS:
            self._on_write((first or "").lower())
        elif action == apsw.SQLITE_READ:
            self._on_read((first or "").lower(), second)
        if action in _SCHEMA_ACTIONS:
            name = (second if action == apsw.SQLITE_ALTER_TABLE else first) or ""
            self._on_write(name.lower())
        return apsw.SQLITE_OK

    def _on_read(self, table: str, column: str | None) -> None:
        if table.startswith(_MACHINE_TABLES):
            self._reject(f"{table} depends on this replica")
        if column == _HIDDEN_KEY and not table.startswith("sqlite_"):
            self._reject(f"the rowid of {table} is not replicated: declare a column as INTEGER PRIMARY KEY")

    def _on_write(self, table: str) -> None:
        self.tables.add(table)
        if table.startswith(OWN_TABLES):
            self._reject(f"{table} belongs to the replication: names must not begin with {OWN_TABLES}")
        if table == "sqlite_sequence" and not self.changes_schema:
            self._reject("sqlite_sequence is not replicated: let AUTOINCREMENT count")

    def _reject(self, why: str, in_query: bool = False) -> None:
        self.rejected = self.rejected or why
        if in_query:
            self.rejected_query = self.rejected_query or why
