"""The replay of one key of a history in the witness order: what each transaction must have seen of it.

Plain Python on the rows of a partition, sorted by key, rank and step, so that only one key is in memory.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

STALE = "stale read"
EARLY = "early read"
LOST = "lost update"
WRONG = "wrong answer"
_SHOWN = 8


class ReplayedStep(NamedTuple):
    """A step of a transaction on a key; the transaction is named by its process and its invocation."""

    key: int
    rank: int
    step: int
    kind: str
    values: list[int]
    process: int
    invoked: int


class FoundAnomaly(NamedTuple):
    """Something that no serial execution in the witness order and in real time gives."""

    kind: str
    rank: int
    process: int
    invoked: int
    summary: str


class KeyReplay:
    """The values of one key, as they become; a balance is a list of one."""

    def __init__(self, key: int) -> None:
        self._key = key
        self._values: list[int] = []
        self._past: set[int] = set()
        self._is_list = False

    def apply(self, step: ReplayedStep) -> FoundAnomaly | None:
        """Execute a step; returns what is wrong with its result."""
        match step.kind:
            case "append":
                self._is_list = True
                self._values.extend(step.values)
            case "w":
                self._past.update(self._values)
                self._values = list(step.values)
            case "add":
                self._past.update(self._values)
                self._values = [(self._values or [0])[0] + step.values[0]]
                if self._values[0] < 0:
                    return _found(WRONG, step, f"a transfer left {self._values[0]} in account {self._key}")
            case "less":
                if (self._values or [0])[0] >= step.values[0]:
                    return _found(
                        WRONG,
                        step,
                        f"a transfer of {step.values[0]} was rejected with {self._values[0]} left",
                    )
            case _:
                return self._check_read(step)
        return None

    def _check_read(self, step: ReplayedStep) -> FoundAnomaly | None:
        seen, expected = list(step.values), self._values
        if seen == expected:
            return None
        summary = f"read {_text(seen)} of key {self._key}, and the order gives {_text(expected)}"
        return _found(self._anomaly(seen, expected), step, summary)

    def _anomaly(self, seen: list[int], expected: list[int]) -> str:
        if seen == expected[: len(seen)] or (not self._is_list and self._past.issuperset(seen)):
            return STALE
        if set(seen) - set(expected):
            return EARLY
        return LOST


def replay(steps: Iterable[ReplayedStep]) -> Iterator[FoundAnomaly]:
    """The anomalies of the steps on some keys; those of one key follow each other, in the witness order."""
    key, state = None, KeyReplay(0)
    for step in steps:
        if step.key != key:
            key, state = step.key, KeyReplay(step.key)
        if (found := state.apply(step)) is not None:
            yield found


def _found(kind: str, step: ReplayedStep, summary: str) -> FoundAnomaly:
    return FoundAnomaly(kind, step.rank, step.process, step.invoked, summary)


def _text(values: list[int]) -> str:
    if not values:
        return "nothing"
    shown = ", ".join(map(str, values[-_SHOWN:]))
    return f"[{'… ' if len(values) > _SHOWN else ''}{shown}]"
