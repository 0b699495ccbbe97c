"""The state machine of a replicated database: every request is one transaction, at its place in the order."""

from hashlib import blake2b
from typing import Annotated, Any

import msgspec

from priocast.core.decoding import decode
from priocast.core.errors import (
    DatabaseUnusable,
    ForeignFrame,
    PayloadTooLarge,
    StatementRejected,
    TransactionAborted,
    TransactionConflict,
)
from priocast.core.view import View
from priocast.replication.state_machine import Applied
from priocast.sql.certification import certify_and_apply
from priocast.sql.engine import (
    RESULT_BYTES_MAX,
    Engine,
    Parameters,
    SqlValue,
    StatementResult,
    TransactionContext,
)
from priocast.sql.function_registry import FunctionRegistry
from priocast.sql.procedures import ProcedureTable
from priocast.sql.requests import (
    DIGEST_BYTES,
    INVARIANTS_MAX,
    TEXT_LENGTH_MAX,
    CallProcedure,
    Committed,
    CommitTransaction,
    DefineSchema,
    Digest,
    ExecuteStatements,
    ProcedureName,
    RolledBack,
    SqlRequest,
    StatementText,
    Verdict,
    bound_parameters,
    decode_request,
    encode_request,
    encode_verdict,
)
from priocast.sql.statements import is_query
from priocast.sql.workspace import Workspace

SCHEMAS_MAX = 10_000
_ABORTS = (StatementRejected, TransactionAborted, PayloadTooLarge)


class SavedDatabase(msgspec.Struct, frozen=True, array_like=True, tag="database"):
    """A whole replicated database: what the engine saved, and what was defined besides."""

    engine: Annotated[str, msgspec.Meta(max_length=64)]
    data: Annotated[bytes, msgspec.Meta(max_length=1 << 40)]
    schemas: Annotated[list[Digest], msgspec.Meta(max_length=SCHEMAS_MAX)]
    invariants: Annotated[dict[ProcedureName, StatementText], msgspec.Meta(max_length=INVARIANTS_MAX)]
    functions: FunctionRegistry


_encode = msgspec.msgpack.Encoder().encode
_decode_saved = msgspec.msgpack.Decoder(SavedDatabase).decode


class DatabaseMachine:
    """A database that changes by transactions alone; a `StateMachine` on an `Engine`.

    `procedures` are those of this member, `functions` says which ones in Python the group has agreed on.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.procedures = ProcedureTable()
        self.workspace = Workspace(engine)
        self.invariants: dict[str, str] = {}
        self.functions = FunctionRegistry()
        self._schemas: list[bytes] = []

    # The state machine

    def apply(self, command: bytes, at: Applied) -> bytes:
        """Execute one transaction; the result is its verdict, encoded."""
        self.workspace.suspend()
        if at.position <= self.engine.position:
            raise DatabaseUnusable(
                f"the database is at position {self.engine.position}, beyond {at.position} of the order: it "
                "was changed from outside"
            )
        request = decode(decode_request, command, at.sender, "a transaction")
        return encode_verdict(self._verdict(request, at))

    def snapshot(self) -> bytes:
        """The whole database."""
        self.workspace.suspend()
        data = self.engine.snapshot()
        return _encode(SavedDatabase(self.engine.name, data, self._schemas, self.invariants, self.functions))

    def restore(self, data: bytes) -> None:
        """Replace the database by another replica's."""
        self.workspace.suspend()
        try:
            saved = decode(_decode_saved, data, "another replica", "a database")
        except ForeignFrame as error:
            raise DatabaseUnusable(f"{error}: was it damaged on its way?") from None
        if saved.engine != self.engine.name:
            raise DatabaseUnusable(
                f"the group's database is {saved.engine}, not {self.engine.name}: use the same everywhere"
            )
        self.engine.restore(saved.data)
        self._schemas, self.invariants, self.functions = saved.schemas, saved.invariants, saved.functions

    def on_view(self, view: View) -> None:
        """The group has these members from here on."""
        self.functions.on_members(member.name for member in view.members)

    # Reads

    def query(self, sql: str, parameters: Parameters) -> StatementResult:
        """Execute a query on this copy, as it is now."""
        self.workspace.suspend()
        return self.engine.query(sql, parameters)

    # Transactions

    def _verdict(self, request: SqlRequest, at: Applied) -> Verdict:
        engine = self.engine
        of_order = TransactionContext(at.time_ns, at.seed >> 1)
        engine.begin(request.context if isinstance(request, CommitTransaction) else of_order)
        try:
            result, value = self._execute(request, at)
            if not _only_reads(request):
                self._check_invariants()
            engine.commit(at.position)
        except _ABORTS as error:
            engine.rollback()
            return _rolled_back(error)
        except Exception:
            engine.rollback()
            raise
        if isinstance(request, DefineSchema):
            self._define(request, at.sender.name)
        return Committed(at.position, result.columns, result.rows, result.changed, value)

    def _execute(self, request: SqlRequest, at: Applied) -> tuple[StatementResult, bytes]:
        match request:
            case ExecuteStatements():
                results = [self.engine.execute(each.sql, each.parameters) for each in request.statements]
                return results[-1], b""
            case CallProcedure():
                self.functions.check_call(request.name, request.digest)
                procedure = self.procedures.function_of(request)
                value, result = procedure.execute(self.engine, request.arguments, at)
                return StatementResult(changed=result.changed), _encoded_value(request.name, value)
            case CommitTransaction():
                certify_and_apply(self.engine, request)
            case DefineSchema():
                self._execute_schema(request)
        return StatementResult(), b""

    def _execute_schema(self, schema: DefineSchema) -> None:
        """Execute a schema, unless it was executed before; its invariants must hold already."""
        self.functions.check_announced(schema.procedures)
        if _digest_of(schema) in self._schemas:
            return
        if len(self._schemas) >= SCHEMAS_MAX:
            raise PayloadTooLarge(f"at most {SCHEMAS_MAX:,} schemas can be defined")
        if len({*self.invariants, *schema.invariants}) > INVARIANTS_MAX:
            raise PayloadTooLarge(f"at most {INVARIANTS_MAX} invariants can be declared")
        for statement in schema.statements:
            self.engine.execute(statement, ())
        for name, query in schema.invariants.items():
            if not is_query(query):
                raise StatementRejected(f"invariant {name} must be a query that returns no row: {query}")
            self._check_invariant(name, query)

    def _define(self, schema: DefineSchema, member: str) -> None:
        self.functions.announce(member, schema.procedures)
        digest = _digest_of(schema)
        if digest not in self._schemas:
            self._schemas.append(digest)
            self.invariants.update(schema.invariants)

    def _check_invariants(self) -> None:
        for name, query in self.invariants.items():
            self._check_invariant(name, query)

    def _check_invariant(self, name: str, query: str) -> None:
        rows = self.engine.execute(query, ()).rows
        if rows:
            raise TransactionAborted(f"invariant {name} would be violated: {rows[0]!r}", name)


class QueryCursor:
    """Executes queries on one state of a copy."""

    def __init__(self, machine: DatabaseMachine) -> None:
        self._machine = machine

    def execute(self, sql: str, parameters: Parameters = ()) -> list[tuple[SqlValue, ...]]:
        """The rows of a query; a statement that writes is rejected."""
        return list(self.result(sql, bound_parameters(parameters)).rows)

    def result(self, sql: str, parameters: Parameters) -> StatementResult:
        """What a query returns, with the names of its columns."""
        return self._machine.query(sql, parameters)


def _digest_of(schema: DefineSchema) -> bytes:
    only_schema = DefineSchema(schema.statements, schema.invariants)
    return blake2b(encode_request(only_schema), digest_size=DIGEST_BYTES).digest()


def _only_reads(request: SqlRequest) -> bool:
    return isinstance(request, ExecuteStatements) and all(is_query(each.sql) for each in request.statements)


def _encoded_value(name: str, value: Any) -> bytes:
    try:
        encoded = _encode(value)
    except (TypeError, OverflowError, ValueError) as error:
        raise TransactionAborted(f"the result of procedure {name} cannot be encoded: {error}") from None
    if len(encoded) > RESULT_BYTES_MAX:
        raise PayloadTooLarge(f"the result of procedure {name} must have at most {RESULT_BYTES_MAX:,} bytes")
    return encoded


def _rolled_back(error: Exception) -> RolledBack:
    text = str(error)[:TEXT_LENGTH_MAX]
    match error:
        case TransactionAborted():
            is_conflict = isinstance(error, TransactionConflict)
            constraint = error.constraint[:TEXT_LENGTH_MAX]
            return RolledBack("conflict" if is_conflict else "aborted", text, constraint)
        case PayloadTooLarge():
            return RolledBack("too-large", text)
    return RolledBack("rejected", text)
