"""One connection to PostgreSQL: statements and values in and out, and errors by who is at fault.

It is written against libpq, which psycopg wraps, so that the types of parameters and results are ours to
decide: what a statement returns must be the same at every replica. For the same reason the texts of errors
are made here, of codes and names: the server's depend on its language and version.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

from psycopg import errors, pq
from psycopg.pq.abc import PGresult

from priocast.core.errors import (
    DatabaseUnusable,
    PayloadTooLarge,
    StatementRejected,
    TransactionAborted,
)
from priocast.sql.engine import RESULT_BYTES_MAX, SqlValue, StatementResult
from priocast.sql.statements import shortened

_UNKNOWN, _BOOL, _BYTEA, _INT8, _TEXT, _NUMERIC = 0, 16, 17, 20, 25, 1700
_INTEGERS = {20, 21, 23, 26}
_FLOATS = {700, 701}
_BINARY, _AS_TEXT = 1, 0
_VALUE_BYTES = 9
_INTEGER_MAX = (1 << 63) - 1

#: Classes of SQLSTATE that the statement is to blame for, at every replica alike.
_OF_THE_STATEMENT = ("0A", "20", "21", "22", "26", "2B", "34", "42")
_OF_A_CONSTRAINT = ("23", "44")
_READ_ONLY = "25006"
_TOO_LARGE = "54000"


class PostgresConnection:
    """A connection that is used by one thread; every call waits for the server's answer."""

    def __init__(self, address: str) -> None:
        self._connection = pq.PGconn.connect(address.encode())
        if self._connection.status != pq.ConnStatus.OK:
            why = self._connection.error_message.decode(errors="replace").strip()
            raise DatabaseUnusable(f"cannot connect to PostgreSQL: {why}")

    def close(self) -> None:
        """End the connection."""
        self._connection.finish()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._connection.transaction_status != pq.TransactionStatus.IDLE

    @property
    def server_version(self) -> int:
        """The major version of the server."""
        return self._connection.server_version // 10_000

    def script(self, sql: str) -> None:
        """Execute statements of our own that return nothing; several make one round trip."""
        with _lost_connections(sql):
            found = self._connection.exec_(sql.encode())
        self._check(found, sql)

    def execute(
        self, sql: str, parameters: Sequence[SqlValue] = (), bytes_max: int = RESULT_BYTES_MAX
    ) -> StatementResult:
        """Execute one statement, with parameters $1, $2 and so on; its rows have at most `bytes_max`."""
        encoded = [_encoded(value) for value in parameters]
        with _lost_connections(sql):
            found = self._connection.exec_params(
                sql.encode(),
                [value for _, value, _ in encoded],
                [kind for kind, _, _ in encoded],
                [form for _, _, form in encoded],
            )
        self._check(found, sql)
        columns = tuple((found.fname(index) or b"").decode() for index in range(found.nfields))
        is_query = (found.command_status or b"").startswith(b"SELECT")
        changed = 0 if is_query else found.command_tuples or 0
        return StatementResult(columns, tuple(_rows(found, bytes_max)), changed)

    def texts(self, sql: str, *parameters: SqlValue) -> list[list[str]]:
        """The rows of a query of our own, as texts; NULL is an empty one."""
        rows = self.execute(sql, parameters, sys.maxsize).rows
        return [["" if value is None else str(value) for value in row] for row in rows]

    def _check(self, found: PGresult, sql: str) -> None:
        if found.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            return
        _raise(found, sql)


@contextmanager
def _lost_connections(sql: str) -> Iterator[None]:
    """Raise our error where there is not even a result: the connection is gone."""
    try:
        yield
    except errors.Error as error:
        raise DatabaseUnusable(f"the database of this replica failed: {error} ({shortened(sql)})") from error


def _rows(found: PGresult, bytes_max: int) -> list[tuple[SqlValue, ...]]:
    kinds = [found.ftype(index) for index in range(found.nfields)]
    rows, size = [], 0
    for number in range(found.ntuples):
        values = [found.get_value(number, index) for index in range(found.nfields)]
        size += sum(_VALUE_BYTES + len(value or b"") for value in values)
        if size > bytes_max:
            raise PayloadTooLarge(
                f"the rows of a statement must have at most {bytes_max:,} bytes: ask for fewer"
            )
        rows.append(tuple(_decoded(kind, value) for kind, value in zip(kinds, values, strict=True)))
    return rows


def _encoded(value: SqlValue) -> tuple[int, bytes | None, int]:
    """The type, bytes and format of a parameter. Text is text: no date or clock is read from it unasked."""
    if value is None:
        return _UNKNOWN, None, _AS_TEXT
    if isinstance(value, bytes):
        return _BYTEA, value, _BINARY
    if isinstance(value, str):
        return _TEXT, value.encode(), _BINARY
    return (_NUMERIC if isinstance(value, float) else _INT8), repr(+value).encode(), _AS_TEXT


def _decoded(kind: int, value: bytes | None) -> SqlValue:
    """A value of a result: a number with a fraction, and all that Python's five kinds have not, is text."""
    return None if value is None else _DECODERS.get(kind, bytes.decode)(value)


def _number(value: bytes) -> SqlValue:
    is_integer = value.lstrip(b"-").isdigit() and abs(int(value)) <= _INTEGER_MAX
    return int(value) if is_integer else value.decode()


_DECODERS: dict[int, Callable[[bytes], SqlValue]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_FLOATS, float),
    _BOOL: lambda value: int(value == b"t"),
    _BYTEA: lambda value: bytes.fromhex(value[2:].decode()),
    _NUMERIC: _number,
}


def _raise(found: PGresult, sql: str) -> NoReturn:
    field = pq.DiagnosticField
    code = (found.error_field(field.SQLSTATE) or b"").decode()
    name = _name_of(code)
    where = shortened(sql)
    if code.startswith(_OF_A_CONSTRAINT):
        constraint = _named(found, field.CONSTRAINT_NAME) or _named(found, field.COLUMN_NAME)
        table = _named(found, field.TABLE_NAME)
        raise TransactionAborted(f"{name}: {constraint} of {table}", constraint)
    if code == _READ_ONLY:
        raise StatementRejected(f"this writes, and only queries are allowed here: {where}")
    if code == _TOO_LARGE:
        raise PayloadTooLarge(f"a value is too long ({where})")
    if code.startswith(_OF_THE_STATEMENT):
        raise StatementRejected(f"{name} ({where})")
    text = found.error_message.decode(errors="replace").strip()
    raise DatabaseUnusable(f"the database of this replica failed: {text or name} ({where})")


def _named(found: PGresult, field: pq.DiagnosticField) -> str:
    return (found.error_field(field) or b"").decode(errors="replace")


def _name_of(code: str) -> str:
    """What PostgreSQL calls an error in its documentation, such as `UniqueViolation`."""
    try:
        return f"{errors.lookup(code).__name__} ({code})"
    except KeyError:
        return f"error {code}"


def with_numbered_parameters(
    sql: str, marks: Sequence[tuple[int, str]], parameters: Sequence[SqlValue] | Mapping[str, SqlValue]
) -> tuple[str, list[SqlValue]]:
    """A statement with $1, $2 … in place of its marks, each a place and a text, and their values in order."""
    parts, values, end = list[str](), list[SqlValue](), 0
    numbers: dict[str | int, int] = {}
    positional = 0
    for start, mark in marks:
        key: str | int = mark.strip(":@$?%()").removesuffix(")s")
        if mark in ("?", "%s"):
            key = str(positional + 1)
            positional += 1
        if key not in numbers:
            values.append(_value_of(str(key), parameters))
            numbers[key] = len(values)
        parts += [sql[end:start], f"${numbers[key]}"]
        end = start + len(mark)
    if not isinstance(parameters, Mapping) and len(parameters) > len(values):
        raise StatementRejected(f"{len(parameters)} parameters were passed for {len(values)}")
    return "".join([*parts, sql[end:]]), values


def _value_of(key: str, parameters: Sequence[SqlValue] | Mapping[str, SqlValue]) -> SqlValue:
    if isinstance(parameters, Mapping):
        if key in parameters:
            return parameters[key]
    elif key.isdecimal() and 0 < int(key) <= len(parameters):
        return parameters[int(key) - 1]
    raise StatementRejected(f"parameter {key} has no value")
