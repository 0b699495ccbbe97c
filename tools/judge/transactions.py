"""The transactions that are judged: what clients ask for, and how a history shows it."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Annotated, NamedTuple

import msgspec

from priocast.core.identity import Number
from priocast.trace.edn import Keyword
from priocast.trace.transaction_history import APPEND, READ, TRANSFER, TXN, WRITE

ACCOUNTS = 8
BALANCE = 100
_STEPS_MAX = 4
_KEYS_AT_ONCE = 6
_TURN_TRANSACTIONS = 8
_VALUES_PER_PROCESS = 1_000_000

StepName = Annotated[str, msgspec.Meta(max_length=16)]
Step = tuple[StepName, Number, Number]
"""A kind, a key and a value; a transfer takes the amount from the first account: the second step has it."""


class Transaction(msgspec.Struct, frozen=True, array_like=True):
    """A transaction of a process, whose transactions are numbered from 0."""

    process: Number
    number: Number
    function: StepName
    steps: Annotated[tuple[Step, ...], msgspec.Meta(max_length=ACCOUNTS)]

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing."""
        return all(kind == "r" for kind, _, _ in self.steps)


Result = list[int] | int | None
"""What a step has read."""


class TransactionAnswer(NamedTuple):
    """Where a transaction was executed, and what it read, step by step; None if it was rejected there.

    One that was rolled back may have no place.
    """

    rank: int | None
    results: list[Result] | None


def value_of(transaction: Transaction, results: list[Result] | None = None) -> object:
    """The value of an event: with the results, if there are any."""
    found = results or [None] * len(transaction.steps)
    if transaction.function == TRANSFER:
        (_, source, amount), (_, target, _) = transaction.steps
        return {Keyword("from"): source, Keyword("to"): target, Keyword("amount"): amount}
    if transaction.function == READ:
        keys = [key for _, key, _ in transaction.steps]
        return None if results is None else dict(zip(keys, found, strict=True))
    return [
        [Keyword(kind), key, result if kind == "r" else value]
        for (kind, key, value), result in zip(transaction.steps, found, strict=True)
    ]


class Client:
    """Draws the transactions of one process after the other: `workload` decides what they look like."""

    def __init__(self, workload: str, random: Random, first_turn: int) -> None:
        self._draw = WORKLOADS[workload]
        self._random = random
        self._first_turn = first_turn
        self._drawn = 0

    def next(self, process: int, number: int) -> Transaction:
        """The next transaction. The keys in use move on slowly, so that lists stay short."""
        turn = self._first_turn + self._drawn // _TURN_TRANSACTIONS
        self._drawn += 1
        value = _VALUES_PER_PROCESS * process + _STEPS_MAX * number
        function, steps = self._draw(self._random, turn * _KEYS_AT_ONCE // 2, value)
        return Transaction(process, number, function, tuple(steps))


def opening(process: int) -> Transaction:
    """The first transaction of a bank: it fills the accounts."""
    return Transaction(process, 0, TXN, tuple((WRITE, account, BALANCE) for account in range(ACCOUNTS)))


def first_turn(transactions: int, clients: int) -> int:
    """The turn of a client that starts when all of them have executed so many transactions."""
    return transactions // (clients * _TURN_TRANSACTIONS)


def _reads_and(kind: str, random: Random, first_key: int, value: int) -> Iterator[Step]:
    for step in range(random.randint(1, _STEPS_MAX)):
        key = first_key + random.randrange(_KEYS_AT_ONCE)
        yield (kind, key, value + step) if random.random() < 0.5 else ("r", key, 0)


def _list_append(random: Random, first_key: int, value: int) -> tuple[str, Iterator[Step]]:
    return TXN, _reads_and(APPEND, random, first_key, value)


def _register(random: Random, first_key: int, value: int) -> tuple[str, Iterator[Step]]:
    return TXN, _reads_and(WRITE, random, first_key, value)


def _bank(random: Random, _first_key: int, _value: int) -> tuple[str, list[Step]]:
    if random.random() < 0.3:
        return READ, [("r", account, 0) for account in range(ACCOUNTS)]
    source, target = random.sample(range(ACCOUNTS), 2)
    amount = random.randint(1, BALANCE)
    return TRANSFER, [("take", source, amount), ("give", target, amount)]


Draw = Callable[[Random, int, int], tuple[str, Iterator[Step] | list[Step]]]
WORKLOADS: dict[str, Draw] = {"list-append": _list_append, "register": _register, "bank": _bank}
