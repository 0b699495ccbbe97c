"""Histories of transactions as clients saw them, in the form of Jepsen and Elle: one map a line, in EDN.

    {:index 0, :type :invoke, :process 3, :time 17, :f :txn, :value [[:append 5 1] [:r 5 nil]]}
    {:index 1, :type :ok, :process 3, :time 29, :f :txn, :value [[:append 5 1] [:r 5 [1]]], :position 8}

An event is the invocation of a transaction or its answer: `ok`, `fail` (it had no effect) or `info` (nobody
knows). A process has one transaction at a time, and none after one whose outcome is unknown. `txn` has the
steps `append` and `r` of lists, or `w` and `r` of registers; `transfer` and `read` are those of a bank.

The *witness* is ours. `:position` is where in the order a transaction was executed, and `:after` the position
of the command that precedes a read which has none (-1: no command does). The event `settled` of the nemesis
says it for those whose outcome was unknown: `[process position]`, or nil if the transaction had no effect by
the end of the history.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from priocast.core.errors import InvalidInput
from priocast.trace.edn import Keyword, read_edn, write_edn

EventType = Literal["invoke", "ok", "fail", "info"]
INVOKE: EventType = "invoke"
OK: EventType = "ok"
FAIL: EventType = "fail"
INFO: EventType = "info"
TXN, TRANSFER, READ, SETTLED = "txn", "transfer", "read", "settled"
APPEND, WRITE, ADD, LESS = "append", "w", "add", "less"
NEMESIS = Keyword("nemesis")
_TYPES: dict[object, EventType] = {"invoke": INVOKE, "ok": OK, "fail": FAIL, "info": INFO}


class HistoryStep(NamedTuple):
    """One effect or observation of a transaction on one key.

    `append` to a list, `w` of a register, `r` of either, `add` to a balance; `less`: the balance was less
    than this amount. `values` is what was written or read; an empty one was never written.
    """

    kind: str
    key: int
    values: list[int]


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a history. `rank` is the place in the witness order: two for each position.

    A command at a position has the rank 2 * position, and reads after it have the next one.
    """

    type: EventType
    process: int | None
    function: str
    value: object
    time_ns: int
    index: int = 0
    rank: int | None = None

    def to_edn(self) -> str:
        """The event as a line of a history."""
        fields: dict[object, object] = {
            Keyword("index"): self.index,
            Keyword("type"): Keyword(self.type),
            Keyword("process"): NEMESIS if self.process is None else self.process,
            Keyword("time"): self.time_ns,
            Keyword("f"): Keyword(self.function),
            Keyword("value"): self.value,
        }
        if self.rank is not None:
            fields[Keyword("after" if self.rank % 2 else "position")] = self.rank // 2
        return write_edn(fields)


def rank_of(position: int, *, after: bool = False) -> int:
    """The place in the witness order of the command at a position, or of reads that follow it."""
    return 2 * position + after


def read_event(line: str) -> HistoryEvent:
    """The event of a line; `InvalidInput` says what is wrong with it."""
    fields = read_edn(line)
    if not isinstance(fields, dict):
        raise InvalidInput("an event of a history is a map")
    kind, process, function = (fields.get(name) for name in ("type", "process", "f"))
    if kind not in _TYPES:
        raise InvalidInput(f":type is {write_edn(kind)}: it must be :invoke, :ok, :fail or :info")
    if not isinstance(function, Keyword):
        raise InvalidInput(f":f is {write_edn(function)}: it must be a keyword")
    if not isinstance(process, Keyword):
        process = _integer(fields, "process")
    rank = None
    if fields.get("position") is not None:
        rank = rank_of(_integer(fields, "position"))
    elif fields.get("after") is not None:
        rank = rank_of(_integer(fields, "after", least=-1), after=True)
    return HistoryEvent(
        type=_TYPES[kind],
        process=process if isinstance(process, int) else None,
        function=str(function),
        value=fields.get("value"),
        time_ns=_integer(fields, "time") if "time" in fields else 0,
        index=_integer(fields, "index"),
        rank=rank,
    )


def _integer(fields: dict[object, object], name: str, least: int = 0) -> int:
    value = fields.get(name)
    if type(value) is not int or value < least:
        raise InvalidInput(f":{name} is {write_edn(value)}: it must be a number from {least} on")
    return value


def steps_of(event: HistoryEvent) -> list[HistoryStep]:
    """What a transaction did, or would do, to each key; a read without a result is left out."""
    try:
        return list(_steps(event))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InvalidInput(f":value of :{event.function} is {write_edn(event.value)[:200]}") from error


def _steps(event: HistoryEvent) -> Iterator[HistoryStep]:
    value: object = event.value
    if event.function == TXN and isinstance(value, list):
        for kind, key, argument in value:
            if kind not in (APPEND, WRITE, "r"):
                raise ValueError(kind)
            if kind != "r" or event.type == OK:
                yield HistoryStep(str(kind), _number(key), _numbers(argument))
    elif event.function == READ and isinstance(value, dict):
        for key, balance in value.items():
            yield HistoryStep("r", _number(key), _numbers(balance))
    elif event.function == TRANSFER and isinstance(value, dict):
        amount = _number(value["amount"])
        if event.type == FAIL:
            yield HistoryStep(LESS, _number(value["from"]), [amount])
        else:
            yield HistoryStep(ADD, _number(value["from"]), [-amount])
            yield HistoryStep(ADD, _number(value["to"]), [amount])
    elif event.function not in (TXN, READ, TRANSFER) or value is not None:
        raise ValueError(event.function)


def settled_of(event: HistoryEvent) -> list[tuple[int, int | None]]:
    """The processes whose last transaction had an unknown outcome, each with its rank if it was executed."""
    if event.process is not None or event.function != SETTLED:
        return []
    if not isinstance(event.value, list):
        raise InvalidInput(":value of :settled is not a vector")
    found: list[tuple[int, int | None]] = []
    for each in event.value:
        if not isinstance(each, list) or len(each) != 2 or type(each[0]) is not int:
            raise InvalidInput(f":settled has {write_edn(each)}: it must be [process position]")
        found.append((each[0], None if each[1] is None else rank_of(_number(each[1]))))
    return found


def _numbers(value: object) -> list[int]:
    """The values of a step: of a list all, of a register the one, of nothing none."""
    if value is None:
        return []
    return [_number(each) for each in value] if isinstance(value, list) else [_number(value)]


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value
