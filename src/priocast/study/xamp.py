"""How long each quality of service takes, by message size and number of members (xAMp, Figures 7 to 9).

The *indication* of a message is its delivery at the last recipient, its *confirmation* the receipt at the
sender. The paper gives the indication as a formula (its Table 4), with Γ, the time of one message on the
network, and Tr(d), that of a message and d responses. Both are measured here over bare TCP between the same
processes, so that a quality can be compared with what its formula says for this machine. The curves of the
paper's figures are pictures: its text has no values to compare with.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.message_times import MessageTimes
from priocast.core.protocol import OrderingOptions
from priocast.core.quality import QualityKind, parse_quality
from priocast.membership.options import MEMBERS_MAX
from priocast.study.xamp_worker import RAW, TOTAL_ORDER, WARM_UP, XampReport, XampTask
from priocast.testing.addresses import free_addresses
from priocast.testing.process_group import WorkerProgram, loopback_members, run_tasks

ORDER = "sequencer-ub"
SIZE_MIN = 16
SIZE_MAX = PAYLOAD_BYTES_MAX // 4
MESSAGES_MAX = 10_000
WITHIN_MS_MAX = 10_000.0
_WORKER = WorkerProgram("priocast.study.xamp_worker", XampReport)
_MILLISECOND = 1e6


class XampPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements: sizes of groups and of messages, and how many messages of each.

    `delta_ms` and `precision_ms` are the paper's Δ and δ. What δ bounds is not the clocks alone: a process
    that the machine does not run delivers later than it should.
    """

    members: tuple[int, ...] = (2, 3, 4, 6, 8)
    sizes: tuple[int, ...] = (64, 1024, 4096, 16384)
    messages: int = 40
    delta_ms: float = 100.0
    precision_ms: float = 50.0

    def __post_init__(self) -> None:
        if not self.members or not all(2 <= count <= MEMBERS_MAX for count in self.members):
            raise InvalidOption(f"members is {self.members}: name sizes from 2 to {MEMBERS_MAX}")
        if not self.sizes or not all(SIZE_MIN <= size <= SIZE_MAX for size in self.sizes):
            raise InvalidOption(f"sizes is {self.sizes}: from {SIZE_MIN} to {SIZE_MAX:,} bytes")
        if not 1 <= self.messages <= MESSAGES_MAX:
            raise InvalidOption(f"messages is {self.messages}: from 1 to {MESSAGES_MAX:,}")
        for name in ("delta_ms", "precision_ms"):
            if not 1 <= getattr(self, name) <= WITHIN_MS_MAX:
                raise InvalidOption(f"{name} is {getattr(self, name):g}: from 1 to {WITHIN_MS_MAX:g}")

    def qualities(self, members: int) -> list[str]:
        """All qualities; those with a number ask for all other members."""
        others = members - 1
        counted = [f"best-effort:{others}", f"at-least:{others}"]
        clocked = str(parse_quality(f"delta:{self.delta_ms:g}ms"))
        return ["best-effort:0", *counted, "reliable", "causal", "atomic", "tight", clocked]

    def ways(self, members: int) -> list[str]:
        """Bare TCP, the total order, and all qualities."""
        return [RAW, TOTAL_ORDER, *self.qualities(members)]

    def total(self, members: int) -> int:
        """How many messages are sent in a group of this size."""
        return (WARM_UP + self.messages) * len(self.sizes) * len(self.ways(members))


class ExecutionTime(MessageTimes, frozen=True, kw_only=True):
    """The times of one way of sending, in a group of one size, with messages of one size."""

    members: int
    size: int
    way: str


def measure_group(
    members: int, plan: XampPlan, trace: str, on_progress: Callable[[int], None]
) -> list[XampReport]:
    """Send all messages in a group of this size, on processes of this machine; the sender comes last."""
    raw = [str(address) for address in free_addresses(members)]
    tasks = [
        XampTask(
            **member,
            run=run_name(members),
            order=ORDER,
            options=OrderingOptions(),
            trace=trace,
            labels={"title": f"{members} members"},
            rank=rank,
            raw=raw,
            ways=plan.ways(members),
            sizes=list(plan.sizes),
            messages=plan.messages,
            precision_ms=plan.precision_ms,
        )
        for rank, member in enumerate(loopback_members(members))
    ]
    return run_tasks(_WORKER, tasks, on_progress)


def run_name(members: int) -> str:
    """The name of the run of a group of this size."""
    return f"xamp-{members}"


def times_of(
    members: int, plan: XampPlan, reports: Sequence[XampReport], ways: Iterable[str] | None = None
) -> list[ExecutionTime]:
    """The times of these ways (all, if none are given), as the members themselves noted them."""
    sender, recipients = reports[-1], reports[:-1]
    names, sizes = plan.ways(members), plan.sizes
    found: dict[tuple[str, int], list[tuple[int, list[int], int]]] = {}
    for number, sent in sender.sent.items():
        turn, index = divmod(number, len(names))
        if turn >= WARM_UP * len(sizes):
            at = [each.delivered_at[number] for each in recipients if number in each.delivered_at]
            key = names[index], sizes[turn % len(sizes)]
            found.setdefault(key, []).append((sent, at, sender.confirmed[number]))
    wanted = names if ways is None else list(ways)
    return [_execution_time(members, way, size, found[way, size]) for size in sizes for way in wanted]


def _execution_time(
    members: int,
    way: str,
    size: int,
    messages: Sequence[tuple[int, list[int], int]],
) -> ExecutionTime:
    complete = [(sent, at, confirmed) for sent, at, confirmed in messages if len(at) == members - 1]
    spreads = [max(at) - min(at) for _, at, _ in complete] or [0]
    delays = [each - sent for sent, at, _ in messages for each in at] or [0]
    return ExecutionTime(
        members=members,
        size=size,
        way=way,
        count=len(complete),
        incomplete=len(messages) - len(complete),
        indication_ms=_median_ms([max(at) - sent for sent, at, _ in complete]),
        confirmation_ms=_median_ms([confirmed - sent for sent, _, confirmed in complete]),
        spread_ms=_median_ms(spreads),
        spread_max_ms=max(spreads) / _MILLISECOND,
        shortest_ms=min(delays) / _MILLISECOND,
        longest_ms=max(delays) / _MILLISECOND,
    )


def window_of(plan: XampPlan) -> tuple[float, float]:
    """When delta delivers, in milliseconds after the sending: at Δ + δ, up to δ earlier or later."""
    return plan.delta_ms, plan.delta_ms + 2 * plan.precision_ms


def keeps_window(time: ExecutionTime, plan: XampPlan) -> bool:
    """Whether all messages of delta were delivered by all recipients, in the window and within δ."""
    first, last = window_of(plan)
    in_window = first <= time.shortest_ms and time.longest_ms <= last
    return in_window and time.spread_max_ms <= plan.precision_ms and not time.incomplete


class PaperFormula(msgspec.Struct, frozen=True):
    """What the paper says about a quality in the best case, as multiples of Γ and Tr(d)."""

    text: str
    network_times: int
    rounds: int


_ONE_MESSAGE = PaperFormula("Γ", 1, 0)
_TWO_PHASES = PaperFormula("Tr+Γ", 1, 1)
_INDICATION = {QualityKind.ATOMIC: _TWO_PHASES, QualityKind.TIGHT: _TWO_PHASES}
"""Execution times T_e (best) of Table 4; Γ for those that are not named here."""


def indication_formula(way: str) -> PaperFormula | None:
    """T_e in the best case (Table 4); None for what has none: the total order, and delta, which waits."""
    if way in (RAW, TOTAL_ORDER):
        return None
    kind = parse_quality(way).kind
    return None if kind is QualityKind.DELTA else _INDICATION.get(kind, _ONE_MESSAGE)


def expected_ms(way: str, raw: ExecutionTime) -> float | None:
    """The indication time that the formula gives for the raw times of this machine."""
    formula = indication_formula(way)
    if formula is None:
        return None
    return formula.network_times * raw.indication_ms + formula.rounds * raw.confirmation_ms


def short_name(way: str) -> str:
    """A quality without its numbers."""
    return "unreliable" if way == "best-effort:0" else way.partition(":")[0]


def by_group(times: Iterable[ExecutionTime]) -> Mapping[tuple[int, int, str], ExecutionTime]:
    """The times by number of members, size and way."""
    return {(each.members, each.size, each.way): each for each in times}


def _median_ms(durations: Sequence[int]) -> float:
    return statistics.median(durations) / _MILLISECOND if durations else 0.0


class StoredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What a group of one size measured itself, kept so that an interrupted study can go on."""

    plan: XampPlan
    members: int
    times: list[ExecutionTime]


def stored_group(directory: Path, members: int, plan: XampPlan) -> StoredGroup | None:
    """The results of a group of this size, if an earlier study with the same plan has stored them."""
    path = directory / f"{run_name(members)}.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=StoredGroup)
    except (OSError, msgspec.DecodeError):
        return None
    same = msgspec.structs.replace(found.plan, members=plan.members) == plan
    return found if same and found.members == members else None


def store_group(directory: Path, group: StoredGroup) -> None:
    """Keep the results of a group."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{run_name(group.members)}.json").write_bytes(msgspec.json.encode(group))
