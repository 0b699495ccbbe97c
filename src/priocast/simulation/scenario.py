"""A scenario: every option of one simulated run, each with its unit in its name.

`generate_scenario` draws all of them from one seed; `describe()` prints them. A scenario that is written by
hand has no faults and no processing time unless it states them.
"""

import string
from collections.abc import Iterator
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import ROUTINE
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Starvation
from priocast.links.frame import LinkOptions
from priocast.membership.options import MembershipOptions
from priocast.simulation.faults import FaultOptions
from priocast.simulation.load_phases import LoadPhase

MILLISECOND = 1_000_000

Scalar = int | float | str | bool | None


class WorkloadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the applications do; the tuples have one entry per member.

    A member starts at `start_us`. From then on, but not before `broadcast_from_us`, it broadcasts `burst`
    messages at once, at times that are on average `burst / rate_per_second` apart, until it has broadcast
    its `messages`. If it is `regular`, they are exactly so far apart, from a random phase on. With `phases`,
    the rates are those. With `until_us`, members broadcast one message at a time, at nearly regular
    intervals by the `phases`, until then, and `messages` has no effect.

    `priorities` are pairs of a priority and its weight in the mix. `safe_percent` of the bursts ask for safe
    delivery, and `addressed_percent` are addressed to some members only. Consuming a message takes
    `consume_us`. A state has `state_bytes` of padding. With a `quality`, all messages are sent with that
    quality of service instead of being ordered.

    A client that is not a member sends `client_requests`, of each priority one after the other. It waits
    `client_patience_us` for each answer before it asks another member.
    """

    messages: tuple[int, ...]
    rate_per_second: tuple[float, ...]
    consume_us: tuple[int, ...]
    start_us: tuple[int, ...]
    broadcast_from_us: int = 0
    burst: int = 1
    priorities: tuple[tuple[int, int], ...] = ((ROUTINE, 1),)
    payload_bytes_min: int = 8
    payload_bytes_max: int = 64
    safe_percent: int = 0
    addressed_percent: int = 0
    state_bytes: int = 0
    client_requests: int = 0
    client_patience_us: int = 50_000
    phases: tuple[LoadPhase, ...] = ()
    until_us: int = 0
    quality: str = ""
    regular: bool = False


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long a frame is in flight.

    That is `latency_us` plus a random time of the given shape with the mean `latency_spread_us`. Before that,
    the sender's interface writes one frame after the other. If the members are in `regions` (an index for
    each), the latency between two members is that between their regions, in `region_latency_us`.
    """

    latency_us: int = 100
    latency_spread_us: int = 0
    latency_shape: Literal["constant", "uniform", "exponential"] = "constant"
    bandwidth_bytes_per_second: int | None = None
    regions: tuple[int, ...] = ()
    region_latency_us: tuple[tuple[int, ...], ...] = ()

    @property
    def latency_us_max(self) -> int:
        """The longest latency between any two processes, without the random time."""
        return max((self.latency_us, *(each for row in self.region_latency_us for each in row)))


class LanOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A LAN as the xAMp paper assumes it.

    A frame occupies the medium for `frame_us` and arrives `latency_us` later. At most `omission_degree`
    rounds of an exchange have omissions. A frame arrives within `delay_us`, and the medium is inaccessible
    for up to `inaccessibility_us`: these are the bounds that the network declares.
    """

    omission_degree: int = 2
    frame_us: int = 10
    latency_us: int = 500
    delay_us: int = 20_000
    inaccessibility_us: int = 0


class ServiceLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The messages with a quality of service that the applications send: `messages` each.

    They are sent at random times from `from_us` on, for `for_us`, with one of the `qualities`, written as
    `parse_quality` reads them. `addressed_percent` of them are for some members only. A message that is not
    answered within `response_us` is sent again; clocks differ by up to `precision_us`; a recipient holds up
    to `held_max` messages.
    """

    messages: int = 0
    qualities: tuple[str, ...] = ()
    from_us: int = 0
    for_us: int = 0
    addressed_percent: int = 0
    response_us: int = 20_000
    precision_us: int = 10_000
    held_max: int = 4096


class ProcessorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long a turn keeps a process busy, by the frames, bytes and messages that it handles."""

    frame_us: int = 0
    byte_ns: int = 0
    message_ns: int = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one run."""

    seed: int
    workload: WorkloadOptions
    membership: MembershipOptions
    order: str = "sequencer-ub"
    ordering: OrderingOptions = OrderingOptions()
    link: LinkOptions = LinkOptions()
    network: NetworkOptions = NetworkOptions()
    processor: ProcessorOptions = ProcessorOptions()
    faults: FaultOptions = FaultOptions()
    lan: LanOptions | None = None
    services: ServiceLoad = ServiceLoad()

    def __post_init__(self) -> None:
        workload = self.workload
        sizes = {
            len(workload.messages),
            len(workload.rate_per_second),
            len(workload.consume_us),
            len(workload.start_us),
        }
        if len(sizes) != 1 or 0 in sizes:
            raise InvalidOption(
                "messages, rate_per_second, consume_us and start_us must have one entry per member"
            )
        if not workload.until_us and not all(phase.rate_per_second for phase in workload.phases):
            raise InvalidOption(
                "a member that pauses in one of the phases broadcasts until until_us: name it"
            )
        regions, between = self.network.regions, self.network.region_latency_us
        if regions and (len(regions) not in sizes or not all(0 <= each < len(between) for each in regions)):
            raise InvalidOption(
                f"regions is {regions}: it must have an index below {len(between)} for each member"
            )

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the processes: the letters of the alphabet, and after them `a1`, `b1` and so on."""
        count, letters = len(self.workload.messages), string.ascii_lowercase
        rounds = ("", *map(str, range(1, 1 + count // len(letters))))
        return tuple(letter + number for number in rounds for letter in letters)[:count]

    def flat(self) -> dict[str, Scalar]:
        """Every option by its full name."""
        return dict(_flat("", self))

    def describe(self) -> str:
        """The text of all options, one per line."""
        options = self.flat()
        width = max(map(len, options))
        members = f"{'members':{width}}  {' '.join(self.members)}"
        return "\n".join([members, *(f"{name:{width}}  {value}" for name, value in options.items())])


def _flat(prefix: str, options: msgspec.Struct) -> Iterator[tuple[str, Scalar]]:
    for name in options.__struct_fields__:
        value = getattr(options, name)
        if isinstance(value, Starvation):
            yield f"{prefix}{name}", str(value)
        elif isinstance(value, msgspec.Struct):
            yield from _flat(f"{prefix}{name}.", value)
        elif isinstance(value, tuple):
            parts = (":".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value)
            yield f"{prefix}{name}", " ".join(parts) or "none"
        else:
            yield f"{prefix}{name}", "none" if value == "" else value
