"""The situation of a group: what advice about its order rests on."""

from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.membership.options import MEMBERS_MAX

Priorities = Literal["group", "sender", "none"]
_RATE_MAX = 1e8


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its load, as far as they are known.

    `rate` is how many messages a second all members together broadcast, `senders` how many of them do
    (None: all). `rtt_ms` is the network's round trip time, `payload_bytes` the size of a message.
    `processors` is how many processors all members share (None: each has one of its own). `priorities` says
    what may be overtaken: messages of the whole *group*, of the same *sender*, or *none*.
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
            raise InvalidOption(f"members is {self.members}: a group has 1 to {MEMBERS_MAX}")
        if not 0 <= self.rate <= _RATE_MAX:
            raise InvalidOption(
                f"rate is {self.rate:g}: it must be from 0 to {_RATE_MAX:g} messages a second"
            )
        if self.senders is not None and not 1 <= self.senders <= self.members:
            raise InvalidOption(
                f"senders is {self.senders}: it must be from 1 to {self.members}, the members"
            )
        if not 0 <= self.rtt_ms <= 60_000:
            raise InvalidOption(f"rtt_ms is {self.rtt_ms:g}: it must be from 0 to 60000")
        if not 0 <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise InvalidOption(
                f"payload_bytes is {self.payload_bytes}: it must be from 0 to {PAYLOAD_BYTES_MAX}"
            )
        if self.processors is not None and self.processors < 1:
            raise InvalidOption(f"processors is {self.processors}: members need at least 1")
        if self.priorities not in ("group", "sender", "none"):
            raise InvalidOption(
                f"priorities is {self.priorities!r}: choose 'group' (overtake anybody's messages), 'sender' "
                "(overtake one's own) or 'none'"
            )

    @property
    def active(self) -> int:
        """How many members broadcast."""
        return self.senders or self.members
