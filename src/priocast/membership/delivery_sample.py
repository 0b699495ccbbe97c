"""What those who watch a member see of a delivery."""

import msgspec

UNKNOWN_WAIT = -1


class DeliverySample(msgspec.Struct, frozen=True, gc=False):
    """Consecutive messages of one batch that were delivered together.

    `waited_ns` is the delivery time of the first, or UNKNOWN_WAIT for messages of others. `overtaken` counts
    this member's own less urgent messages that were broadcast before it and still wait.
    """

    at: int
    position: int
    count: int
    priority: int
    sender: str
    waited_ns: int
    overtaken: int
