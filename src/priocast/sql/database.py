"""A replicated database, as one member's program uses it: procedures, statements, queries and transactions.

database = connect("bank", member="a", listen=..., peers=[...], schema="CREATE TABLE accounts (...)")

@database.procedure
def transfer(cursor, source: int, target: int, amount: int) -> None:
    cursor.execute("UPDATE accounts SET balance = balance - ? WHERE id = ?", (amount, source))
    cursor.execute("UPDATE accounts SET balance = balance + ? WHERE id = ?", (amount, target))

async with database:
    await database.call("transfer", source=1, target=2, amount=5)
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, TypeVar, overload

import msgspec

from priocast.core.errors import DeadlineExceeded, InvalidInput, OutcomeUnknown, TransactionConflict
from priocast.core.priority import ROUTINE
from priocast.core.view import View
from priocast.replication.replica import SUBMIT_SECONDS, Replica
from priocast.sql.database_machine import DatabaseMachine, QueryCursor
from priocast.sql.engine import DatabaseIdentity, Parameters, SqlValue
from priocast.sql.policy import PriorityDecision, PriorityPolicy, TransactionFacts
from priocast.sql.procedures import PythonProcedure, SqlProcedure
from priocast.sql.requests import (
    BoundStatement,
    DefineSchema,
    ExecuteStatements,
    bound_parameters,
)
from priocast.sql.result import SqlResult, statement_result
from priocast.sql.statements import is_query, only_statement, split_statements
from priocast.sql.submitter import TransactionSubmitter
from priocast.sql.transaction import Transaction

ATTEMPTS = 10

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Database:
    """One member's copy of a replicated database; `connect` makes it, entering it joins the group."""

    def __init__(
        self,
        identity: DatabaseIdentity,
        replica: Replica[DatabaseMachine],
        schema: str,
        invariants: Mapping[str, str],
        priorities: PriorityPolicy,
        start_seconds: float = SUBMIT_SECONDS,
    ) -> None:
        self.replica = replica
        self._start_seconds = start_seconds
        self._submitter = TransactionSubmitter(replica, priorities)
        self._identity = identity
        self._schema = DefineSchema(tuple(split_statements(schema)), dict(invariants))
        self._is_open = False

    # From start to stop

    async def __aenter__(self) -> "Database":
        if self._is_open:
            raise InvalidInput("the database is open already")
        self.replica.machine.engine.open(self._identity)
        self._is_open = True
        try:
            await self.replica.__aenter__()
        except BaseException:
            self.replica.machine.engine.close()
            raise
        try:
            await self._define_own()
        except BaseException:
            await self.close()
            raise
        return self

    async def _define_own(self) -> None:
        """Define what this member was opened with; it must have all functions that the group has."""
        machine = self.replica.machine
        schema = msgspec.structs.replace(self._schema, procedures=machine.procedures.digests())
        if schema.statements or schema.invariants or schema.procedures:
            await self._submitter.submit(schema, ROUTINE, self._start_seconds)
            missing = sorted(machine.functions.agreed.keys() - schema.procedures.keys())
            if missing:
                raise InvalidInput(f"the group has procedures that this member has not: {', '.join(missing)}")

    def __await__(self) -> Generator[Any, None, "Database"]:
        return self.__aenter__().__await__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.replica.__aexit__(kind, error, trace)
        finally:
            self.replica.machine.engine.close()

    async def close(self) -> None:
        """Leave the group and close the database."""
        await self.__aexit__(None, None, None)

    @property
    def view(self) -> View | None:
        """The members that have a copy now."""
        return self.replica.view

    @property
    def position(self) -> int:
        """That of the last transaction that was committed in this copy; -1 before the first."""
        return self.replica.machine.engine.position

    # Procedures

    @overload
    def procedure(self, name: F, /) -> F: ...
    @overload
    def procedure(self, name: str, /) -> Callable[[F], F]: ...
    @overload
    def procedure(self, name: str, sql: str, /) -> None: ...
    def procedure(self, name: Any, sql: str | None = None, /) -> Any:
        """Define a stored procedure: `procedure(name, sql)`, or a decorator of a function.

        - `name`: how it is called; by default that of the function.
        - `sql`: one or more statements with named parameters. The result is that of the last statement.

        A function gets a `ProcedureCursor` and named arguments, is executed at every replica, and must be
        deterministic. Define functions before the database is opened, the same at every member.
        """
        table = self.replica.machine.procedures
        if isinstance(sql, str):
            table.add_sql(name, sql)
            return None
        if self._is_open:
            raise InvalidInput(
                "define procedures in Python before the database is opened: others may call them"
            )

        def add(function: F) -> F:
            table.add_function(name if isinstance(name, str) else function.__name__, function)
            return function

        return add if isinstance(name, str) else add(name)

    async def call(
        self,
        name: str,
        /,
        *,
        priority: int | None = None,
        timeout_seconds: float = SUBMIT_SECONDS,
        **arguments: SqlValue,
    ) -> Any:
        """Execute a procedure as one transaction, at every replica, at its place in the order.

        - `name`, `arguments`: the procedure, and the values of its parameters.
        - `priority`: 0 to 255, higher is more urgent; by default what the policy says.
        - `timeout_seconds`: how long to wait. Then `OutcomeUnknown` is raised.

        Returns what a function returned, or the `SqlResult` of SQL. `TransactionAborted` is raised if a
        constraint or the function aborted it.
        """
        procedure = self.replica.machine.procedures.get(name)
        statements: list[tuple[str, Any]] = []
        if isinstance(procedure, SqlProcedure):
            statements = [(sql, arguments) for sql in procedure.statements]
        else:
            await self._wait_agreed(procedure, timeout_seconds)
        decision = self._submitter.decide(priority, TransactionFacts(name, arguments, statements))
        verdict = await self._submitter.submit(
            procedure.request(arguments), decision.priority, timeout_seconds
        )
        if isinstance(procedure, SqlProcedure):
            return SqlResult(statement_result(verdict), verdict.position, decision)
        return msgspec.msgpack.decode(verdict.value)

    async def _wait_agreed(self, procedure: PythonProcedure, timeout_seconds: float) -> None:
        """Wait until all members have announced a function; the error names those that have not."""
        machine, name, digest = self.replica.machine, procedure.name, procedure.digest
        if machine.functions.agreed.get(name) == digest:
            return
        try:
            await self.replica.wait_until(
                lambda: machine.functions.agreed.get(name) == digest, timeout_seconds
            )
        except DeadlineExceeded:
            machine.functions.check_call(name, digest)

    # Statements

    async def execute(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        priority: int | None = None,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> SqlResult:
        """Execute one statement as a transaction, at every replica; a query is answered by this copy alone.

        - `sql`: one statement. What is not deterministic is rejected.
        - `parameters`: the values of its parameters, by position or by name.
        - `priority`: 0 to 255; by default what the policy says.
        - `timeout_seconds`: how long to wait. Then `OutcomeUnknown` is raised.

        Queries are linearizable: they see every transaction that was answered before, at any member.
        """
        statement = only_statement(sql)
        if is_query(statement):
            level = ROUTINE if priority is None else priority
            return await self.query(sql, parameters, priority=level, timeout_seconds=timeout_seconds)
        self.replica.machine.workspace.suspend()
        self.replica.machine.engine.check(statement)
        bound = bound_parameters(parameters)
        named = bound if isinstance(bound, dict) else {}
        decision = self._submitter.decide(priority, TransactionFacts("", named, [(statement, bound)]))
        request = ExecuteStatements((BoundStatement(statement, bound),))
        verdict = await self._submitter.submit(request, decision.priority, timeout_seconds)
        return SqlResult(statement_result(verdict), verdict.position, decision)

    async def query(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        priority: int = ROUTINE,
        staleness_seconds: float = 0.0,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> SqlResult:
        """Read this member's copy; a statement that writes is rejected.

        - `sql`, `parameters`: the query.
        - `priority`: that of the barrier that makes it linearizable.
        - `staleness_seconds`: a copy that is at most this old is good enough, and answers at once.
        - `timeout_seconds`: how long to wait. Then `DeadlineExceeded` is raised.
        """
        bound = bound_parameters(parameters)
        result = await self.read(
            lambda cursor: cursor.result(sql, bound),
            priority=priority,
            staleness_seconds=staleness_seconds,
            timeout_seconds=timeout_seconds,
        )
        return SqlResult(result, None, PriorityDecision(priority, "a query"))

    async def read(
        self,
        function: Callable[[QueryCursor], T],
        *,
        priority: int = ROUTINE,
        staleness_seconds: float = 0.0,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> T:
        """Execute several queries on one state of this member's copy: there is never a conflict.

        - `function`: gets a `QueryCursor`; what it returns is returned. Nothing else happens meanwhile, so it
          must be short.
        - `priority`, `staleness_seconds`, `timeout_seconds`: those of `query`.
        """
        return await self.replica.read(
            lambda machine: function(QueryCursor(machine)),
            priority,
            staleness_seconds=staleness_seconds,
            timeout_seconds=timeout_seconds,
        )

    async def define(
        self,
        schema: str = "",
        invariants: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> None:
        """Execute a script that creates or alters tables, once in the group, and declare invariants.

        - `schema`: statements. If the same text was defined before, by any member, nothing happens.
        - `invariants`: queries by name that must return no row after any transaction.
        - `timeout_seconds`: how long to wait. Then `OutcomeUnknown` is raised.
        """
        request = DefineSchema(tuple(split_statements(schema)), dict(invariants or {}))
        await self._submitter.submit(request, ROUTINE, timeout_seconds)

    # Interactive transactions

    def transaction(
        self,
        *,
        priority: int | None = None,
        staleness_seconds: float = 0.0,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> Transaction:
        """An interactive transaction, for `async with`: executed here, certified at every replica.

        - `priority`: that of its message; by default what the policy says.
        - `staleness_seconds`: how old the state may be that it begins with. What it has read is certified in
          any case; one that only reads is as recent as this.
        - `timeout_seconds`: how long to wait for the begin, and for the commit.
        """
        return Transaction(self._submitter, priority, staleness_seconds, timeout_seconds)

    async def in_transaction(
        self,
        function: Callable[[Transaction], Awaitable[T]],
        *,
        attempts: int = ATTEMPTS,
        priority: int | None = None,
        timeout_seconds: float = SUBMIT_SECONDS,
    ) -> T:
        """Execute a coroutine function in a transaction, again after each `TransactionConflict`.

        - `function`: gets the transaction; what it returns is returned.
        - `attempts`: how often at most. The last conflict is raised.
        - `priority`, `timeout_seconds`: those of each transaction.
        """
        for remaining in reversed(range(attempts)):
            try:
                async with self.transaction(
                    priority=priority, timeout_seconds=timeout_seconds
                ) as transaction:
                    result = await function(transaction)
            except TransactionConflict:
                if not remaining:
                    raise
            else:
                return result
        raise InvalidInput(f"attempts must be at least 1, not {attempts}")

    async def settle(self, unknown: OutcomeUnknown) -> int | None:
        """What became of a transaction whose caller timed out: its position, or None if it never commits.

        - `unknown`: the error that the call raised. The error of one that was rolled back is raised.
        """
        return await self._submitter.settle(unknown)
