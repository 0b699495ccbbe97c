"""How transactions are submitted to the group: their priority, their message, and what became of them."""

import msgspec

from priocast.core.errors import OutcomeUnknown, PayloadTooLarge
from priocast.core.priority import check_priority
from priocast.replication.commands import COMMAND_BYTES_MAX
from priocast.replication.replica import Replica
from priocast.sql.database_machine import DatabaseMachine
from priocast.sql.policy import PriorityDecision, PriorityPolicy, TransactionFacts
from priocast.sql.requests import Committed, SqlRequest, decode_verdict, encode_request
from priocast.sql.result import committed


class TransactionSubmitter:
    """Submits the transactions of one member, with the priorities of its policy."""

    def __init__(self, replica: Replica[DatabaseMachine], priorities: PriorityPolicy) -> None:
        self.replica = replica
        self.priorities = priorities

    def decide(self, given: int | None, facts: TransactionFacts) -> PriorityDecision:
        """The priority of a transaction: the one given by the caller, or that of the policy."""
        if given is not None:
            return PriorityDecision(check_priority(given), "given by the caller")
        bounds = self.replica.machine.engine.lower_bounds() if self.priorities.rules else []
        return self.priorities.decide(msgspec.structs.replace(facts, lower_bounds=bounds))

    async def submit(self, request: SqlRequest, priority: int, timeout_seconds: float) -> Committed:
        """Have every replica execute a transaction; raises its error if it was rolled back."""
        encoded = encode_request(request)
        if len(encoded) > COMMAND_BYTES_MAX:
            raise PayloadTooLarge(
                f"a transaction must have at most {COMMAND_BYTES_MAX:,} bytes, not {len(encoded):,}: "
                "write fewer rows at once"
            )
        answer = await self.replica.submit(encoded, priority, timeout_seconds=timeout_seconds)
        return committed(decode_verdict(answer))

    async def settle(self, unknown: OutcomeUnknown) -> int | None:
        """The position of a transaction whose caller timed out; None if it never commits."""
        outcome = await self.replica.settle(unknown.command)
        if outcome.kind == "void":
            return None
        if outcome.kind != "applied":
            raise unknown
        return committed(decode_verdict(outcome.body)).position
