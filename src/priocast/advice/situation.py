"""The situation of a group: the input of the advisor."""

from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.membership.options import MEMBERS_MAX

Priorities = Literal["group", "sender", "none"]
_RATE_MAX = 1e8


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A group, its load and the required properties.

    `rate` is the number of messages per second of all members together, `senders` the number of members that
    broadcast (None: all). `rtt_ms` is the round-trip time of the network, `payload_bytes` the size of a
    message. `processors` is the number of processors that all members share (None: one each). `priorities`
    says which messages an urgent one overtakes: those of the whole *group*, of the same *sender*, or *none*.
    """

    members: int
    rate: float = 0.0
    senders: int | None = None
    rtt_ms: float = 0.1
    payload_bytes: int = 64
    processors: int | None = None
    priorities: Priorities = "group"
    causal: bool = False
    partitionable: bool = False
    safe: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.members <= MEMBERS_MAX:
            raise InvalidOption(f"members is {self.members}: must be between 1 and {MEMBERS_MAX}")
        if not 0 <= self.rate <= _RATE_MAX:
            raise InvalidOption(
                f"rate is {self.rate:g}: must be between 0 and {_RATE_MAX:g} messages per second"
            )
        if self.senders is not None and not 1 <= self.senders <= self.members:
            raise InvalidOption(
                f"senders is {self.senders}: must be between 1 and {self.members}, the number of members"
            )
        if not 0 <= self.rtt_ms <= 60_000:
            raise InvalidOption(f"rtt_ms is {self.rtt_ms:g}: must be between 0 and 60000")
        if not 0 <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise InvalidOption(
                f"payload_bytes is {self.payload_bytes}: must be between 0 and {PAYLOAD_BYTES_MAX}"
            )
        if self.processors is not None and self.processors < 1:
            raise InvalidOption(f"processors is {self.processors}: must be at least 1")
        if self.priorities not in ("group", "sender", "none"):
            raise InvalidOption(
                f"priorities is {self.priorities!r}: must be 'group' (overtake messages of all members), "
                "'sender' (only those of the same sender) or 'none'"
            )

    @property
    def active(self) -> int:
        """The number of members that broadcast."""
        return self.senders or self.members
