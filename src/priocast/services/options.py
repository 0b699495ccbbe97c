"""The options of the qualities of service, and what follows from the network's properties."""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.network_properties import NetworkProperties
from priocast.core.options import check_durations, check_types

_MILLISECOND = 1_000_000
_TRANSMISSIONS_USUAL = 4


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How long responses are awaited, and how much may be in flight.

    `response_ms` is the time after which a message is sent again. `precision_ms` is how far two clocks may be
    apart for *delta* (the paper's δ). `in_flight_max` is how many messages of one process are transmitted at
    the same time, `held_max` how many a recipient holds that the application has not taken.
    """

    network: NetworkProperties = NetworkProperties()
    response_ms: float = 50.0
    precision_ms: float = 10.0
    in_flight_max: int = 256
    held_max: int = 4096

    def __post_init__(self) -> None:
        check_types(self)
        check_durations(self, "response_ms", "precision_ms")
        for name in ("in_flight_max", "held_max"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} is {getattr(self, name)}: it must be 1 or more")

    def agreed_on(self) -> dict[str, object]:
        """What all members of a group must share."""
        network = self.network
        return {
            "response_ms": self.response_ms,
            "precision_ms": self.precision_ms,
            "in_network_order": self.in_network_order,
            "omission_degree": network.omission_degree,
            "delay_ns": network.delay_ns,
            "inaccessibility_ns": network.inaccessibility_ns,
        }

    @property
    def response_ns(self) -> int:
        """How long responses are awaited before a message is sent again."""
        return int(self.response_ms * _MILLISECOND)

    @property
    def precision_ns(self) -> int:
        """How far two clocks may be apart."""
        return int(self.precision_ms * _MILLISECOND)

    @property
    def in_network_order(self) -> bool:
        """Whether the order in which the network transmits frames can be that of atomic messages."""
        return self.network.broadcast and self.network.network_order and self.network.full_duplex

    @property
    def is_synchronised(self) -> bool:
        """Whether messages can be delivered by the clock, so that clocks are worth synchronising."""
        return self.network.omission_degree is not None and self.network.delay_ns is not None

    @property
    def transmissions_max(self) -> int | None:
        """How often a message is sent: once more than transmissions can fail, if that is bounded."""
        degree = self.network.omission_degree
        return None if degree is None else degree + 1

    @property
    def decision_ns(self) -> int:
        """How long a recipient waits for a decision: longer than a sender collects responses."""
        return self.response_ns * ((self.transmissions_max or _TRANSMISSIONS_USUAL) + 1)

    def patience_ns(self, rank: int) -> int:
        """How long the recipient of this rank waits before it sends a message of another process again."""
        return self.response_ns * 3 // 2 + rank * self.response_ns // 4

    def dissemination_ns(self, recipients: int) -> int | None:
        """After what time a reliable message has arrived everywhere, even if its sender fails.

        None: the network bounds neither its omissions nor its delay. Each of k omissions costs the patience
        of the last recipient, which is the last one to notice it. The network may also be inaccessible.
        """
        degree, delay = self.network.omission_degree, self.network.delay_ns
        if degree is None or delay is None:
            return None
        rounds_ns = degree * (self.patience_ns(recipients - 1) + delay) + delay
        return rounds_ns + self.network.inaccessibility_ns
