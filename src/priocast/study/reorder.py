"""How long it takes to insert an urgent message into the queues of a group (reorder paper, Figure 5).

The time is from the broadcast until the message has its position: with re-ordering, at the head of the queue;
in the unprioritised group, at its end. Consumption is not part of it. Every round measures all variants in
the same processes, alternately; ratios are taken within a round, and the figures are medians over the rounds.
"""

import statistics
from collections.abc import Callable, Sequence

import msgspec

from priocast.core.errors import GroupClosed, InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.membership.options import MEMBERS_MAX
from priocast.study.reorder_worker import ROUND_TRIP, InsertionReport, InsertionTask, OrderVariant
from priocast.testing.addresses import free_addresses
from priocast.testing.process_group import WorkerProgram, loopback_members, run_tasks

BASE = OrderVariant(name="agreement-skeen", order="agreement-skeen", prioritised=False)
VARIANTS = (
    BASE,
    OrderVariant(name="reorder", order="reorder"),
    OrderVariant(name="reorder-distributed", order="reorder", distributed=True),
    OrderVariant(name="reorder-locks", order="reorder-locks"),
)
ROUNDS_MAX = 1_000
MESSAGES_MAX = 100_000
QUEUED_MAX = 256
_WORKER = WorkerProgram("priocast.study.reorder_worker", InsertionReport)
_NS = 1e6


class InsertionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements: sizes of groups, rounds, messages, and the length of the queues."""

    members: tuple[int, ...] = (2, 3, 4, 6, 8)
    rounds: int = 5
    messages: int = 200
    payload_bytes: int = 1024
    queued: int = 8

    def __post_init__(self) -> None:
        if not self.members or not all(2 <= count <= MEMBERS_MAX for count in self.members):
            raise InvalidOption(f"members is {self.members}: name sizes from 2 to {MEMBERS_MAX}")
        if not 1 <= self.rounds <= ROUNDS_MAX:
            raise InvalidOption(f"rounds is {self.rounds}: from 1 to {ROUNDS_MAX:,}")
        if not 1 <= self.messages <= MESSAGES_MAX:
            raise InvalidOption(f"messages is {self.messages}: from 1 to {MESSAGES_MAX:,}")
        if not 1 <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise InvalidOption(f"payload_bytes is {self.payload_bytes}: from 1 to {PAYLOAD_BYTES_MAX}")
        if not 0 <= self.queued <= QUEUED_MAX:
            raise InvalidOption(f"queued is {self.queued}: it must be from 0 to {QUEUED_MAX}")

    @property
    def total(self) -> int:
        """How many messages are sent with each variant."""
        return len(self.members) * self.rounds * self.messages


class InsertionTimes(msgspec.Struct, frozen=True):
    """Medians of one variant in one round: until the sender knows the position, and until all replicas do."""

    at_sender_ms: float
    everywhere_ms: float


Round = dict[str, InsertionTimes]


class InsertionRow(msgspec.Struct, frozen=True, kw_only=True):
    """The times of one variant in a group of one size: medians over the rounds.

    `round_trips` is the time at the sender as a multiple of the raw round trip; `overhead` is the additional
    time over the unprioritised variant, as a fraction of it; the raw round trip has none.
    """

    members: int
    way: str
    at_sender_ms: float
    everywhere_ms: float
    round_trips: float
    overhead_ms: float | None
    overhead: float | None


def measure_round(members: int, plan: InsertionPlan, on_progress: Callable[[int], None]) -> Round:
    """One round on processes of this machine, over TCP on the loopback network."""
    echo = str(free_addresses(1)[0])
    tasks = [
        InsertionTask(
            **member,
            ways=list(VARIANTS),
            messages=plan.messages,
            payload_bytes=plan.payload_bytes,
            queued=plan.queued,
            echo=echo,
            echoes=index == 0,
            sends=index == members - 1,
        )
        for index, member in enumerate(loopback_members(members))
    ]
    return times_of(run_tasks(_WORKER, tasks, on_progress))


def times_of(results: Sequence[InsertionReport]) -> Round:
    """The medians of a round, from the reports of its replicas; the sender is the last one."""
    if len({result.digest for result in results}) > 1:
        raise GroupClosed("the replicas did not consume the same messages in the same order")
    if overtaken := sum(result.overtaken for result in results):
        raise GroupClosed(f"{overtaken} times an urgent message was not the next one to be consumed")
    sender = results[-1]
    found = {}
    for way, sent in sender.sent.items():
        at_each = [result.placed[way] for result in results if way in result.placed]
        last = [max(times) for times in zip(*at_each, strict=True)]
        found[way] = InsertionTimes(_median_ms(sent, sender.placed[way]), _median_ms(sent, last))
    return found


def rows_of(rounds: dict[int, list[Round]]) -> list[InsertionRow]:
    """The results of each size; the raw round trip first, then the variants."""
    return [
        _row(members, way, of_size)
        for members, of_size in rounds.items()
        for way in (ROUND_TRIP, *(each.name for each in VARIANTS))
    ]


def _row(members: int, way: str, rounds: list[Round]) -> InsertionRow:
    def median(read: Callable[[Round], float]) -> float:
        return statistics.median(map(read, rounds))

    over = way != ROUND_TRIP
    return InsertionRow(
        members=members,
        way=way,
        at_sender_ms=median(lambda each: each[way].at_sender_ms),
        everywhere_ms=median(lambda each: each[way].everywhere_ms),
        round_trips=median(lambda each: each[way].at_sender_ms / each[ROUND_TRIP].at_sender_ms),
        overhead_ms=median(lambda each: _more(each, way)) if over else None,
        overhead=median(lambda each: _more(each, way) / each[BASE.name].at_sender_ms) if over else None,
    )


def _more(of_round: Round, way: str) -> float:
    """The additional time of a variant over the unprioritised one."""
    return of_round[way].at_sender_ms - of_round[BASE.name].at_sender_ms


def _median_ms(begun: Sequence[int], ended: Sequence[int]) -> float:
    return statistics.median(end - begin for begin, end in zip(begun, ended, strict=True)) / _NS
