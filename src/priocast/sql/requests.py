"""What is broadcast for a replicated database, and what becomes of it: structs with bounded lengths.

One transaction is one message: the statements of a stored procedure, the name of a procedure in Python with
its arguments, or what an interactive transaction has read and written.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec

from priocast.core.errors import InvalidInput
from priocast.core.identity import Number
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.sql.engine import Parameters, SqlValue, StatementResult, TransactionContext
from priocast.sql.statements import STATEMENT_LENGTH_MAX, shortened

DIGEST_BYTES = 16
NAME_LENGTH_MAX = 128
STATEMENTS_MAX = 1000
PARAMETERS_MAX = 32_766
ROWS_MAX = 1_000_000
INVARIANTS_MAX = 256
PROCEDURES_MAX = 1024
TEXT_LENGTH_MAX = 2000

Digest = Annotated[bytes, msgspec.Meta(max_length=DIGEST_BYTES)]
ProcedureName = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
ProcedureDigests = Annotated[dict[ProcedureName, Digest], msgspec.Meta(max_length=PROCEDURES_MAX)]
StatementText = Annotated[str, msgspec.Meta(max_length=STATEMENT_LENGTH_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
Blob = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
Value = Any  # None, int, float, str or bytes: msgspec has no union of str and bytes; engines reject the rest
BoundParameters = (
    Annotated[list[Value], msgspec.Meta(max_length=PARAMETERS_MAX)]
    | Annotated[dict[ProcedureName, Value], msgspec.Meta(max_length=PARAMETERS_MAX)]
)
Row = Annotated[tuple[Value, ...], msgspec.Meta(max_length=PARAMETERS_MAX)]
Columns = Annotated[tuple[Text, ...], msgspec.Meta(max_length=PARAMETERS_MAX)]
ShortText = Annotated[str, msgspec.Meta(max_length=TEXT_LENGTH_MAX)]


class BoundStatement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A statement with its parameters."""

    sql: StatementText
    parameters: BoundParameters


class ObservedStatement(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A statement of an interactive transaction, with the digest of what it returned there."""

    sql: StatementText
    parameters: BoundParameters
    observed: Digest


class ExecuteStatements(msgspec.Struct, frozen=True, array_like=True, tag="execute"):
    """A transaction of statements that every replica executes; the result is that of the last one."""

    statements: Annotated[tuple[BoundStatement, ...], msgspec.Meta(min_length=1, max_length=STATEMENTS_MAX)]


class CallProcedure(msgspec.Struct, frozen=True, array_like=True, tag="call"):
    """A transaction that a function in Python makes, at every replica; `digest` is that of its source."""

    name: ProcedureName
    digest: Digest
    arguments: Annotated[dict[ProcedureName, Value], msgspec.Meta(max_length=PARAMETERS_MAX)]


class CommitTransaction(msgspec.Struct, frozen=True, array_like=True, tag="commit"):
    """An interactive transaction: executed after the position `snapshot`, and to be certified.

    `statements` has all that it executed, in order, with what it observed; `write_set` has its changes.
    """

    snapshot: Annotated[int, msgspec.Meta(ge=-1, le=(1 << 63) - 1)]
    context: TransactionContext
    statements: Annotated[tuple[ObservedStatement, ...], msgspec.Meta(max_length=STATEMENTS_MAX)]
    write_set: Blob


class DefineSchema(msgspec.Struct, frozen=True, array_like=True, tag="define"):
    """Statements that are executed once, however often they are submitted, and invariants.

    `procedures` are the functions that a member has, by name, with the digests of their sources.
    """

    statements: Annotated[tuple[StatementText, ...], msgspec.Meta(max_length=STATEMENTS_MAX)]
    invariants: Annotated[dict[ProcedureName, StatementText], msgspec.Meta(max_length=INVARIANTS_MAX)]
    procedures: ProcedureDigests = {}


SqlRequest = ExecuteStatements | CallProcedure | CommitTransaction | DefineSchema


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """A transaction was committed; `value` is what a function returned, encoded."""

    position: Number
    columns: Columns = ()
    rows: Annotated[tuple[Row, ...], msgspec.Meta(max_length=ROWS_MAX)] = ()
    changed: Number = 0
    value: Blob = b""


class RolledBack(msgspec.Struct, frozen=True, array_like=True, tag="aborted"):
    """A transaction was rolled back, for a reason that is the same at every replica."""

    kind: Literal["rejected", "aborted", "conflict", "too-large"]
    text: ShortText
    constraint: ShortText = ""


Verdict = Committed | RolledBack

encode_request = msgspec.msgpack.Encoder().encode
decode_request: Callable[[bytes], SqlRequest] = msgspec.msgpack.Decoder(SqlRequest).decode
encode_verdict = msgspec.msgpack.Encoder().encode
decode_verdict: Callable[[bytes], Verdict] = msgspec.msgpack.Decoder(Verdict).decode


def bound_parameters(parameters: Parameters) -> list[SqlValue] | dict[str, SqlValue]:
    """The parameters of a statement as they are broadcast; raises an error if a value is not one of SQL."""
    plain: Any
    if isinstance(parameters, dict):
        plain = {name: _plain(value) for name, value in parameters.items()}
    elif isinstance(parameters, list | tuple):
        plain = [_plain(value) for value in parameters]
    else:
        raise InvalidInput(f"parameters must be a list, a tuple or a dict, not {type(parameters).__name__}")
    if len(plain) > PARAMETERS_MAX:
        raise InvalidInput(f"a statement must have at most {PARAMETERS_MAX:,} parameters, not {len(plain):,}")
    bound: list[SqlValue] | dict[str, SqlValue] = plain
    return bound


def _plain(value: Any) -> SqlValue:
    """A value of SQL; raises an error if it is something else."""
    if value is None or isinstance(value, float | bytes) or (isinstance(value, str) and _is_unicode(value)):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return int(value)
    raise InvalidInput(
        f"{shortened(repr(value))} cannot be a parameter: values are None, integers of 64 bits, floats, text "
        "and bytes"
    )


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def digest_of_result(result: StatementResult) -> bytes:
    """A digest of what a statement returned; the order of the rows does not count.

    A statement with ORDER BY gives equal rows in an equal order, up to rows that are equal to it.
    """
    rows = sorted(map(_encode, result.rows))
    return blake2b(_encode((rows, result.changed)), digest_size=DIGEST_BYTES).digest()


_encode = msgspec.msgpack.Encoder().encode
