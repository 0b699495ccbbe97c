"""The replicated state that transactions are executed on: lists, registers and balances by key."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.replication.state_machine import Applied
from priocast.trace.transaction_history import APPEND, rank_of
from tools.judge.transactions import Result, Transaction, TransactionAnswer

LENGTH_MAX = 1 << 24

Values = Annotated[list[int], msgspec.Meta(max_length=LENGTH_MAX)]
OnExecuted = Callable[[int, int, int], None]
"""Is told the process, the number and the position of every transaction that has an effect."""


class TableState(msgspec.Struct):
    """All lists and values; `position` is that of the last transaction, with or without an effect."""

    lists: Annotated[dict[int, Values], msgspec.Meta(max_length=LENGTH_MAX)] = {}
    values: Annotated[dict[int, int], msgspec.Meta(max_length=LENGTH_MAX)] = {}
    position: int = -1


class TransactionTable:
    """A state machine whose commands are transactions."""

    def __init__(self, on_executed: OnExecuted) -> None:
        self.state = TableState()
        self._on_executed = on_executed

    def apply(self, command: bytes, at: Applied) -> bytes:
        """Execute a transaction; its result says where, and what it read."""
        transaction = _decode_transaction(command)
        state = self.state
        state.position = at.position
        answer = TransactionAnswer(rank_of(at.position), None)
        if self._is_covered(transaction):
            self._on_executed(transaction.process, transaction.number, at.position)
            answer = answer._replace(results=self.execute(transaction))
        return msgspec.msgpack.encode(answer)

    def execute(self, transaction: Transaction) -> list[Result]:
        """The results of the steps."""
        return [self._step(*step) for step in transaction.steps]

    def read(self, transaction: Transaction) -> TransactionAnswer:
        """Execute a transaction that only reads, at the end of what was applied here."""
        assert transaction.only_reads
        return TransactionAnswer(rank_of(self.state.position, after=True), self.execute(transaction))

    def _is_covered(self, transaction: Transaction) -> bool:
        taken = [(key, amount) for kind, key, amount in transaction.steps if kind == "take"]
        return all(self.state.values.get(key, 0) >= amount for key, amount in taken)

    def _step(self, kind: str, key: int, value: int) -> Result:
        lists, values = self.state.lists, self.state.values
        if kind == APPEND:
            lists.setdefault(key, []).append(value)
        elif kind == "take":
            values[key] = values.get(key, 0) - value
        elif kind == "give":
            values[key] = values.get(key, 0) + value
        elif kind == "w":
            values[key] = value
        else:
            return list(lists[key]) if key in lists else values.get(key)
        return None

    def snapshot(self) -> bytes:
        """The whole state."""
        return msgspec.msgpack.encode(self.state)

    def restore(self, data: bytes) -> None:
        """Replace the state by that of another replica."""
        self.state = _decode_state(data)


encode_transaction = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(TransactionAnswer).decode
_decode_transaction = msgspec.msgpack.Decoder(Transaction).decode
_decode_state = msgspec.msgpack.Decoder(TableState).decode
