"""Interactive transactions of a replicated database: executed here, certified everywhere.

    async with database.transaction() as transaction:
        (balance,) = (await transaction.execute("SELECT balance FROM accounts WHERE id = ?", (1,))).fetchone()
        await transaction.execute("UPDATE accounts SET balance = ? WHERE id = ?", (balance - 5, 1))

Leaving the block without an exception commits: one message, with what was read and written. It returns when
the transaction was applied here, in its place; `TransactionConflict` says that it was not.
"""

import secrets
import time
from types import TracebackType

from priocast.core.errors import InvalidInput
from priocast.sql.engine import Parameters, TransactionContext
from priocast.sql.policy import PriorityDecision, TransactionFacts
from priocast.sql.result import SqlResult
from priocast.sql.submitter import TransactionSubmitter
from priocast.sql.workspace import LocalTransaction


class Transaction:
    """One interactive transaction; `database.transaction()` makes it.

    After the block, `position` is its place in the order (None if it has only read) and `decision` its
    priority.
    """

    def __init__(
        self,
        submitter: TransactionSubmitter,
        priority: int | None,
        staleness_seconds: float,
        timeout_seconds: float,
    ) -> None:
        self.position: int | None = None
        self.decision: PriorityDecision | None = None
        self._submitter = submitter
        self._replica = submitter.replica
        self._priority = priority
        self._staleness_seconds = staleness_seconds
        self._timeout_seconds = timeout_seconds
        self._local: LocalTransaction | None = None

    async def __aenter__(self) -> "Transaction":
        if self._local is not None:
            raise InvalidInput("a transaction can be entered once: ask the database for another one")
        time_ns, seed = max(time.time_ns(), self._replica.time_ns), secrets.randbits(63)
        self._local = LocalTransaction(TransactionContext(time_ns, seed))
        await self._replica.read(
            lambda _: None,
            staleness_seconds=self._staleness_seconds,
            timeout_seconds=self._timeout_seconds,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        workspace = self._replica.machine.workspace
        if kind is not None:
            workspace.discard(self._entered)
            return
        await self._commit()

    @property
    def _entered(self) -> LocalTransaction:
        if self._local is None:
            raise InvalidInput("use the transaction within its 'async with'")
        return self._local

    @property
    def snapshot(self) -> int:
        """The position of the last transaction that this one sees; it may move on with every statement."""
        return self._entered.snapshot

    async def execute(self, sql: str, parameters: Parameters = ()) -> SqlResult:
        """Execute one statement on what the transaction sees; nobody else sees what it writes yet.

        - `sql`: one statement; what is not deterministic is rejected, and so are changes of the schema.
        - `parameters`: the values of its parameters, by position or by name.

        `TransactionConflict` is raised as soon as something that was read has changed, `TransactionAborted`
        if a constraint is violated. The transaction cannot be continued then.
        """
        result = self._replica.machine.workspace.execute(self._entered, sql, parameters)
        return SqlResult(result, None, None)

    async def _commit(self) -> None:
        local = self._entered
        statements = [(each.sql, each.parameters) for each in local.statements]
        self.decision = self._submitter.decide(self._priority, TransactionFacts("", {}, statements))
        request = self._replica.machine.workspace.finish(local)
        if request is not None:
            verdict = await self._submitter.submit(request, self.decision.priority, self._timeout_seconds)
            self.position = verdict.position
