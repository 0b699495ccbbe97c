"""What is measured in a launch."""

import msgspec


class PeerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds of so many messages per member, and delivery times at a steady rate."""

    members: int = 4
    size: int = 64
    messages: int = 100_000
    warm_ups: int = 4
    deliveries: int = 300
    rate: int = 100
