"""The frames that two processes exchange, and the options of the links between them."""

import msgspec

from priocast.core.message import BATCH_BYTES_CUT

_MILLISECOND = 1_000_000


class LinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of a link, and how much it keeps.

    At most `window_bytes` are in flight, and in the beginning `window_bytes_first`. With more in flight than
    `congested_bytes`, the protocol is asked to wait although the window is open. Then what it sends in a turn
    never waits in a link, and goes to all members at the same time: it can be multicast. What is broadcast
    together is cut into batches of `batch_bytes`; a full one should fit into a datagram, if there are any.

    The defaults suit a network that loses frames. On one that does not (TCP), retransmission is needed only
    after a lost connection, and can wait longer; so can acknowledgements, which only free memory there: see
    `RELIABLE_NETWORK`. Most of them travel with what is sent anyway.
    """

    window_bytes: int = 4 * 1024 * 1024
    window_bytes_first: int = 64 * 1024
    congested_bytes: int = 64 * 1024 * 1024
    batch_bytes: int = BATCH_BYTES_CUT
    backlog_bytes_max: int = 64 * 1024 * 1024
    retransmit_ns_first: int = 50 * _MILLISECOND
    retransmit_ns_min: int = 10 * _MILLISECOND
    retransmit_ns_max: int = 1_000 * _MILLISECOND
    acknowledge_after_ns: int = 5 * _MILLISECOND
    acknowledge_after_frames: int = 8
    acknowledge_after_bytes: int = 1024 * 1024


RELIABLE_NETWORK = LinkOptions(
    window_bytes_first=4 * 1024 * 1024,
    batch_bytes=2 * BATCH_BYTES_CUT,
    retransmit_ns_first=3_000 * _MILLISECOND,
    retransmit_ns_min=3_000 * _MILLISECOND,
    retransmit_ns_max=12_000 * _MILLISECOND,
    acknowledge_after_ns=100 * _MILLISECOND,
)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """What two processes exchange: on channel 0 an independent datagram, on other channels a link's frame.

    A link's frame with sequence 0 is only an acknowledgement. Bit i of `selective` acknowledges frame
    `acknowledged + 1 + i`.
    """

    channel: int
    sequence: int
    acknowledged: int
    selective: int
    body: bytes = b""
