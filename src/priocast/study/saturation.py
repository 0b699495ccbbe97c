"""Saturation curves: what each order delivers, and how long it takes, against the load that is offered.

A cell is one group that gets messages at a fixed rate, whether or not it keeps up. It runs on processes of
this machine, or in the simulator, on a LAN or between five regions of the world. The rate of a cell is what
its slowest member delivers while messages are sent; the first quarter of that time is a warm-up. What a
backlog of the warm-up adds to it does not count: a rate is at most the load.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MEMBERS_MAX
from priocast.protocols import check_order

LAN, WAN, PROCESSES = PLACES = ("lan", "wan", "processes")
STEADY, BURSTS, SLOW_MEMBER = SHAPES = ("steady", "bursts", "slow-member")
PLAIN, PRIORITISED = VARIANTS = ("plain", "prioritised")
PROCESSES_MAX = 64
LOAD_MAX = 10_000_000
MESSAGES_MIN, MESSAGES_MAX = 40, 1_000_000
#: A payload of a process has the time at which it is due, its number and its sender.
PAYLOAD_BYTES_MIN = 16
BURST = 64
#: What the application of the slow member takes for each message: it can handle a thousand a second.
SLOW_US = 1_000
#: For how many seconds messages are sent at least: many times as long as one takes.
_SECONDS_MIN = {LAN: 0.3, WAN: 4.0, PROCESSES: 1.0}
#: A rate of fewer bursts of a group, or of fewer messages of a member, says little.
_BURSTS_MIN = 64
_EACH_MIN = 8
#: Between regions, a window that hides their distance; elsewhere the default.
_WINDOWS = {WAN: 1_024}
#: The first part of the time in which messages are sent does not count.
WARM_UP = 0.25
_SAMPLE_MAX = 40_000
_SECOND_NS = 1_000_000_000
#: Whose deliveries they are: those of the slow member are apart from those of the others.
EVERYBODY, SLOW, OTHERS = "all", "slow", "others"


class SaturationCell(msgspec.Struct, frozen=True, order=True):
    """One group; `load` is messages per second of all members together."""

    place: str
    shape: str
    members: int
    payload_bytes: int
    order: str
    variant: str
    load: int

    @property
    def options(self) -> OrderingOptions:
        """The options of its order."""
        return OrderingOptions(prioritised=self.variant == PRIORITISED, window=_WINDOWS.get(self.place))

    def handling_us(self) -> list[int]:
        """How long each member's application takes for a message."""
        slowest = SLOW_US if self.shape == SLOW_MEMBER else 0
        return [0] * (self.members - 1) + [slowest]

    @property
    def parts(self) -> tuple[str, ...]:
        """Whose deliveries are reported apart."""
        return (SLOW, OTHERS) if self.shape == SLOW_MEMBER else (EVERYBODY,)

    @property
    def burst(self) -> int:
        """How many messages a member broadcasts at once."""
        return BURST if self.shape == BURSTS else 1

    @property
    def rate(self) -> float:
        """Messages per second of each member."""
        return self.load / self.members

    @property
    def interval_ns(self) -> int:
        """The time between two bursts of a member."""
        return max(1, int(_SECOND_NS * self.burst / self.rate))

    @property
    def bursts_min(self) -> int:
        """How many bursts a member broadcasts at least."""
        return max(_EACH_MIN, _BURSTS_MIN // self.members if self.shape == BURSTS else 0)


class SaturationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured: all combinations, without groups of processes that are too large.

    A group gets `messages`. If they would last too short it gets more, up to `messages_max`; so does a group
    whose members would have too few.
    """

    orders: tuple[str, ...]
    places: tuple[str, ...] = (LAN,)
    shapes: tuple[str, ...] = (STEADY,)
    variants: tuple[str, ...] = (PRIORITISED,)
    members: tuple[int, ...] = (4, 16)
    payload_bytes: tuple[int, ...] = (64,)
    loads: tuple[int, ...] = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000)
    messages: int = 4_000
    messages_max: int = 100_000
    seed: int = 1

    def __post_init__(self) -> None:
        for order in self.orders:
            check_order(order, primary=True, policy=OrderingOptions().policy)
        for name, known in (("places", PLACES), ("shapes", SHAPES), ("variants", VARIANTS)):
            _check_choices(name, getattr(self, name), known)
        _check_numbers("members", self.members, 2, max(map(members_max, self.places), default=2))
        _check_numbers("payload_bytes", self.payload_bytes, PAYLOAD_BYTES_MIN, PAYLOAD_BYTES_MAX)
        _check_numbers("loads", self.loads, 1, LOAD_MAX)
        _check_numbers("messages", (self.messages, self.messages_max), MESSAGES_MIN, MESSAGES_MAX)

    def cells(self) -> Iterator[SaturationCell]:
        """All groups; those that differ by their load alone follow each other."""
        for place, shape, members, payload_bytes, order, variant, load in product(
            self.places,
            self.shapes,
            self.members,
            self.payload_bytes,
            self.orders,
            self.variants,
            self.loads,
        ):
            if members <= members_max(place):
                yield SaturationCell(place, shape, members, payload_bytes, order, variant, load)

    def messages_of(self, cell: SaturationCell) -> int:
        """How many messages each member broadcasts: whole bursts."""
        lasting = min(self.messages_max, round(cell.load * _SECONDS_MIN[cell.place]))
        bursts = max(self.messages, lasting) // (cell.members * cell.burst)
        return max(cell.bursts_min, bursts) * cell.burst


def members_max(place: str) -> int:
    """The size of the largest groups at a place."""
    return PROCESSES_MAX if place == PROCESSES else MEMBERS_MAX


def _check_choices(name: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    for each in chosen:
        if each not in known:
            raise InvalidOption(f"{name} has {each!r}: choose among {', '.join(known)}")


def _check_numbers(name: str, chosen: Sequence[int], least: int, most: int) -> None:
    if not chosen or not all(least <= each <= most for each in chosen):
        text = ", ".join(map(str, chosen)) or "empty"
        raise InvalidOption(f"{name} is {text}: from {least:,} to {most:,}")


class CountedPeriod(msgspec.Struct, frozen=True):
    """The time that counts, in nanoseconds: its first one, and the first one after it."""

    begin: int
    end: int

    def __contains__(self, time: int) -> bool:
        return self.begin <= time < self.end


def rate_of(load: float, delivered: int, due: int) -> float:
    """Messages per second: the part of those that fell due that was delivered, of the load.

    So neither a backlog of what was due before nor chance in the times at which messages are due counts.
    """
    return load * min(1.0, delivered / due)


def counted_period(due_ns: Iterable[tuple[object, int]], interval_ns: int) -> CountedPeriod:
    """The time that counts, by sender and due time of all messages: after the warm-up, while all send.

    It consists of whole intervals between bursts, and ends where the next burst of a sender would be due.
    """
    first: int | None = None
    last: dict[object, int] = {}
    for sender, due in due_ns:
        first = due if first is None else min(first, due)
        last[sender] = max(due, last.get(sender, due))
    assert first is not None
    end = min(last.values()) + interval_ns
    intervals = int((1 - WARM_UP) * (end - first) / interval_ns)
    return CountedPeriod(end - max(1, intervals) * interval_ns, end)


class Deliveries(msgspec.Struct, frozen=True):
    """The rate of a member, or of the slowest of several; and deliveries after the warm-up."""

    delivered_per_second: float
    priorities: list[int]
    took_ns: list[int]

    def sample(self) -> "Deliveries":
        """The same with every k-th delivery, if there are very many."""
        step = 1 + len(self.took_ns) // _SAMPLE_MAX
        return Deliveries(self.delivered_per_second, self.priorities[::step], self.took_ns[::step])


class SaturationResult(msgspec.Struct, frozen=True):
    """What one group did: a sample of the deliveries of all members, or of the slow one and of the others.

    `foreign_cores` is how many processors other programs kept busy meanwhile, if that matters.
    """

    deliveries: dict[str, Deliveries]
    foreign_cores: float | None = None


def result_of_members(
    cell: SaturationCell, members: Sequence[Deliveries], foreign_cores: float | None = None
) -> SaturationResult:
    """What a group did, by what its members did."""
    parts = {EVERYBODY: members}
    if cell.shape == SLOW_MEMBER:
        parts = {SLOW: members[-1:], OTHERS: members[:-1]}
    return SaturationResult({who: _together(of_part) for who, of_part in parts.items()}, foreign_cores)


def _together(members: Sequence[Deliveries]) -> Deliveries:
    return Deliveries(
        min(each.delivered_per_second for each in members),
        [priority for each in members for priority in each.priorities],
        [took for each in members for took in each.took_ns],
    ).sample()
