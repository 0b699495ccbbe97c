"""Stored procedures: SQL with named parameters, or a deterministic function in Python that gets a cursor.

The statements of SQL procedures travel with every call, so all replicas execute the same text. A function
does not: its source must be the same at every replica, which its digest shows; `function_registry` has what
the group has agreed on.
"""

import inspect
from collections.abc import Callable
from hashlib import blake2b
from textwrap import dedent
from types import CodeType
from typing import Any

import msgspec

from priocast.core.errors import DatabaseUnusable, InvalidInput, PriocastError, TransactionAborted
from priocast.replication.state_machine import Applied
from priocast.sql.engine import Engine, Parameters, SqlValue, StatementResult
from priocast.sql.requests import (
    DIGEST_BYTES,
    NAME_LENGTH_MAX,
    BoundStatement,
    CallProcedure,
    ExecuteStatements,
    bound_parameters,
)
from priocast.sql.statements import split_statements

_MACHINE_ERRORS = (OSError, MemoryError, RecursionError)


class ProcedureCursor:
    """What a procedure in Python gets: it executes statements of the transaction.

    `at` says where in the order the transaction is: `at.time_ns`, `at.seed`, `at.sender` and `at.priority`.
    """

    def __init__(self, engine: Engine, at: Applied) -> None:
        self.at = at
        self.last = StatementResult()
        self.failed: PriocastError | None = None
        self._engine = engine

    def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[SqlValue, ...]]:
        """Execute a statement and return its rows; an error aborts the transaction, even if it is caught."""
        if self.failed is not None:
            raise self.failed
        try:
            self.last = self._engine.execute(sql, bound_parameters(parameters))
        except PriocastError as error:
            self.failed = error
            raise
        return list(self.last.rows)

    @property
    def changed(self) -> int:
        """How many rows the last statement has changed."""
        return self.last.changed


class SqlProcedure(msgspec.Struct, frozen=True):
    """A procedure of one or more statements; the result is that of the last one."""

    name: str
    statements: tuple[str, ...]

    def request(self, arguments: dict[str, SqlValue]) -> ExecuteStatements:
        """What is broadcast for a call."""
        bound = bound_parameters(arguments)
        return ExecuteStatements(tuple(BoundStatement(sql, bound) for sql in self.statements))


class PythonProcedure(msgspec.Struct, frozen=True):
    """A procedure that is a function of a `ProcedureCursor` and named arguments."""

    name: str
    function: Callable[..., Any]
    digest: bytes

    def request(self, arguments: dict[str, SqlValue]) -> CallProcedure:
        """What is broadcast for a call; raises an error if the arguments do not fit the function."""
        try:
            bound = inspect.signature(self.function).bind(None, **arguments)
        except TypeError as error:
            raise InvalidInput(f"procedure {self.name}: {error}") from None
        bound.apply_defaults()
        given: Any = bound_parameters(dict(list(bound.arguments.items())[1:]))
        return CallProcedure(self.name, self.digest, given)

    def execute(
        self, engine: Engine, arguments: dict[str, SqlValue], at: Applied
    ) -> tuple[Any, StatementResult]:
        """Execute the function; return its result and that of its last statement.

        An exception of the function aborts the transaction, unless it depends on the machine.
        """
        cursor = ProcedureCursor(engine, at)
        try:
            value = self.function(cursor, **arguments)
        except (PriocastError, *_MACHINE_ERRORS):
            raise
        except Exception as error:
            raise TransactionAborted(f"{type(error).__name__}: {error}") from None
        if cursor.failed is not None:
            raise cursor.failed
        return value, cursor.last


Procedure = SqlProcedure | PythonProcedure


class ProcedureTable:
    """The procedures of one replica, by name."""

    def __init__(self) -> None:
        self._procedures: dict[str, Procedure] = {}

    def add_sql(self, name: str, sql: str) -> None:
        """Add a procedure of statements; a name can be used again for the same text only."""
        statements = tuple(split_statements(sql))
        if not statements:
            raise InvalidInput(f"procedure {name} has no statement")
        self._add(SqlProcedure(_checked_name(name), statements))

    def add_function(self, name: str, function: Callable[..., Any]) -> None:
        """Add a procedure in Python."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise InvalidInput(f"procedure {name} must not wait: write 'def' without 'async' and 'yield'")
        self._add(PythonProcedure(_checked_name(name), function, _digest_of(function)))

    def _add(self, procedure: Procedure) -> None:
        known = self._procedures.setdefault(procedure.name, procedure)
        if known != procedure:
            raise InvalidInput(f"there is another procedure {procedure.name} already: choose another name")

    def get(self, name: str) -> Procedure:
        """The procedure with this name; raises an error that lists the known ones."""
        found = self._procedures.get(name)
        if found is None:
            known = ", ".join(sorted(self._procedures)) or "none"
            raise InvalidInput(f"there is no procedure {name!r} (known: {known})")
        return found

    def digests(self) -> dict[str, bytes]:
        """The functions, by name, with the digests of their sources."""
        return {
            name: each.digest for name, each in self._procedures.items() if isinstance(each, PythonProcedure)
        }

    def function_of(self, call: CallProcedure) -> PythonProcedure:
        """The function that a call is for; if this replica has another one, it must stop."""
        found = self._procedures.get(call.name)
        if not isinstance(found, PythonProcedure) or found.digest != call.digest:
            missing = "is missing" if found is None else "has another source"
            raise DatabaseUnusable(
                f"procedure {call.name} {missing} here: all members need the same procedures before they join"
            )
        return found


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LENGTH_MAX:
        raise InvalidInput(f"the name of a procedure must have 1 to {NAME_LENGTH_MAX} characters: {name!r}")
    return name


def _digest_of(function: Callable[..., Any]) -> bytes:
    """A digest of a function's source, without its indentation; where there is no source, of its code."""
    try:
        text = dedent(inspect.getsource(function))
    except (OSError, TypeError):
        text = _code_text(getattr(function, "__code__", None))
    return blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def _code_text(code: Any) -> str:
    """What a code object does, without where it is."""
    if not isinstance(code, CodeType):
        return repr(code)
    constants = ", ".join(map(_code_text, code.co_consts))
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} ({constants})"
