"""Saturation curves: what each order delivers, and how long it takes, against the load that is offered.

A cell is one group that gets messages at a fixed rate, whether or not it keeps up. It runs on processes of
this machine, or in the simulator, on a LAN or between five regions of the world. The rate of a cell is what
its slowest member delivers while messages are sent; the first quarter of that time is a warm-up.
"""

from collections.abc import Iterable, Iterator, Sequence

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
LOAD_MAX = 1_000_000
MESSAGES_MIN, MESSAGES_MAX = 40, 1_000_000
#: A payload of a process has the time at which it is due, its number and its sender.
PAYLOAD_BYTES_MIN = 16
BURST = 64
#: What the application of the slow member takes for each message: it can handle a thousand a second.
SLOW_US = 1_000
#: For how many seconds messages are sent at least: many times as long as one takes.
_SECONDS_MIN = {LAN: 0.1, WAN: 4.0, PROCESSES: 1.0}
#: Between regions, a window that hides their distance; elsewhere the default.
_WINDOWS = {WAN: 1_024}
#: The first part of the time in which messages are sent does not count.
WARM_UP = 0.25
_SAMPLE_MAX = 200_000


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
    def burst(self) -> int:
        """How many messages a member broadcasts at once."""
        return BURST if self.shape == BURSTS else 1


class SaturationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured: all combinations. A group gets `messages`, or more if they would last too short."""

    orders: tuple[str, ...]
    places: tuple[str, ...] = (LAN,)
    shapes: tuple[str, ...] = (STEADY,)
    variants: tuple[str, ...] = (PRIORITISED,)
    members: tuple[int, ...] = (4, 16)
    payload_bytes: tuple[int, ...] = (64,)
    loads: tuple[int, ...] = (1_000, 4_000, 16_000, 64_000, 256_000)
    messages: int = 4_000
    seed: int = 1

    def __post_init__(self) -> None:
        for order in self.orders:
            check_order(order, primary=True, policy=OrderingOptions().policy)
        for name, known in (("places", PLACES), ("shapes", SHAPES), ("variants", VARIANTS)):
            _check_choices(name, getattr(self, name), known)
        members_max = PROCESSES_MAX if PROCESSES in self.places else MEMBERS_MAX
        _check_numbers("members", self.members, 2, members_max)
        _check_numbers("payload_bytes", self.payload_bytes, PAYLOAD_BYTES_MIN, PAYLOAD_BYTES_MAX)
        _check_numbers("loads", self.loads, max(self.members), LOAD_MAX)
        _check_numbers("messages", (self.messages,), MESSAGES_MIN, MESSAGES_MAX)

    def cells(self) -> Iterator[SaturationCell]:
        """All groups; those that differ by their load alone follow each other."""
        for place in self.places:
            for shape in self.shapes:
                for members in self.members:
                    for payload_bytes in self.payload_bytes:
                        for order in self.orders:
                            for variant in self.variants:
                                for load in self.loads:
                                    yield SaturationCell(
                                        place, shape, members, payload_bytes, order, variant, load
                                    )

    def messages_of(self, cell: SaturationCell) -> int:
        """How many messages each member broadcasts: whole bursts."""
        messages = max(self.messages, round(cell.load * _SECONDS_MIN[cell.place]))
        return max(1, messages // (cell.members * cell.burst)) * cell.burst


def _check_choices(name: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    for each in chosen:
        if each not in known:
            raise InvalidOption(f"{name} has {each!r}: choose among {', '.join(known)}")


def _check_numbers(name: str, chosen: Sequence[int], least: int, most: int) -> None:
    if not chosen or not all(least <= each <= most for each in chosen):
        text = ", ".join(map(str, chosen)) or "empty"
        raise InvalidOption(f"{name} is {text}: from {least:,} to {most:,}")


def counted_period(due_ns: Iterable[tuple[object, int]]) -> tuple[int, int]:
    """The time that counts, by sender and due time of all messages: after the warm-up, while all send."""
    first: int | None = None
    last: dict[object, int] = {}
    for sender, due in due_ns:
        first = due if first is None else min(first, due)
        last[sender] = max(due, last.get(sender, due))
    assert first is not None
    ended = min(last.values())
    return first + round(WARM_UP * (ended - first)), ended


class SaturationResult(msgspec.Struct, frozen=True):
    """What one group did: its rate, and a sample of its deliveries after the warm-up, at all members."""

    delivered_per_second: float
    priorities: list[int]
    took_ns: list[int]

    def sample(self) -> "SaturationResult":
        """The same with every k-th delivery, if there are very many."""
        step = 1 + len(self.took_ns) // _SAMPLE_MAX
        return SaturationResult(self.delivered_per_second, self.priorities[::step], self.took_ns[::step])
