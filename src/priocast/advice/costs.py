"""The costs of each protocol: the table and the constants that predictions are computed from.

Counts are for a message that travels alone, in a group of `n` members of which `s` broadcast:

    hops    network hops until the last member delivers it
    frames  frames in total, if the sender is not the coordinator
    path    frames that are handled sequentially meanwhile: their time adds to that of the hops
    load    frames that the busiest member sends or receives: they use its processor. Where members work one
            at a time, because they pass a token, their frames count as those of one member
    copies  how often the busiest member handles the payload

They follow from the protocols; a test compares hops and frames with what the simulator counts
(`tools/message_costs.py`). Under load, messages share frames. `null_messages` says that members also send
when they have nothing to broadcast, because others would wait for them; one null message answers all messages
received since the last one. `waits_for_silent` says that they do so only after `acknowledge_ms`, and that a
message waits that long, or until the slowest sender sends.

The times were measured on a machine with two cores: `docs/performance/` says how, and `make bench` repeats
it. They differ on other machines, by a similar factor for all protocols.
"""

# ruff: noqa: ARG001, ARG005 - every function in the table takes both counts, whether it needs them or not

from collections.abc import Callable

import msgspec

Count = Callable[[int, int], float]

FRAME_US = 25.0
"""Processor time for a frame with one message: a sequencer of 4 makes 340 Python calls for 4 frames."""

WAKE_US = 60.0
"""From the arrival of a frame to the turn that answers it: 107 us and 92 us per hop were measured, of which
the network took 41."""

MESSAGE_US = 0.85
"""Processor time at each member for a delivered message of 64 bytes, frames not included: 590,746 messages
per second, broadcast one at a time, at 4 members on 2 cores."""

BYTE_NS = 0.97
"""Processor time for a byte of payload each time it is handled: 184,579 instead of 590,746 messages per
second with 1 KiB instead of 64 bytes, handled 8 times between the sender and 4 members."""

SHARING_MAX = 64
"""How many messages share a frame under high load: every protocol sent bursts of 64 in one frame."""

FRAME_BYTES = 64 * 1024
"""Largest size of a frame."""

BUSY = 0.8
"""Utilisation of a processor above which messages start to share frames."""


class ClassCosts(msgspec.Struct, frozen=True, kw_only=True):
    """The costs of one protocol. `message_us` is its processor time per message, measured under full load.

    It is `MESSAGE_US` plus the difference from `sequencer-ub` in bursts of 64 at 4 members, which is below a
    tenth of a microsecond for most protocols.
    """

    order: str
    family: str
    hops: Count
    frames: Count
    path: Count
    load: Count
    copies: Count
    null_messages: bool = False
    waits_for_silent: bool = False
    message_us: float = MESSAGE_US


def _relayed(n: int, s: int) -> float:
    """Relayed by one member: a second hop for all messages but its own."""
    return 2 - 1 / n


def _by_sender(n: int, s: int) -> float:
    """Each sender sends its messages to all others, and every member receives those of the others."""
    return (n - 1) / s + (s - 1) / s


CLASSES: dict[str, ClassCosts] = {
    costs.order: costs
    for costs in (
        ClassCosts(
            order="sequencer-ub",
            family="fixed sequencer",
            hops=_relayed,
            frames=lambda n, s: n,
            path=lambda n, s: n + 2,
            load=lambda n, s: n,
            copies=lambda n, s: n,
        ),
        ClassCosts(
            order="sequencer-bb",
            family="fixed sequencer",
            hops=_relayed,
            frames=lambda n, s: 2 * (n - 1),
            path=lambda n, s: 2 * n,
            load=lambda n, s: n + (n - 1) / s,
            copies=_by_sender,
        ),
        ClassCosts(
            order="sequencer-uub",
            family="fixed sequencer",
            hops=lambda n, s: 3 - 2 / n,
            frames=lambda n, s: n + 1,
            path=lambda n, s: n + 4,
            load=lambda n, s: max(3.0, 2 / s + _by_sender(n, s)),
            copies=_by_sender,
        ),
        ClassCosts(
            order="moving-ub",
            family="moving sequencer",
            hops=_relayed,
            frames=lambda n, s: n + 1,
            path=lambda n, s: n + 4,
            load=lambda n, s: n + 2,
            copies=lambda n, s: n,
        ),
        ClassCosts(
            order="moving-bb",
            family="moving sequencer",
            hops=_relayed,
            frames=lambda n, s: 2 * n - 1,
            path=lambda n, s: 2 * n + 2,
            load=lambda n, s: n + 2 + (n - 1) / s,
            copies=_by_sender,
        ),
        ClassCosts(
            order="moving-uub",
            family="moving sequencer",
            hops=lambda n, s: 3 - 2 / n,
            frames=lambda n, s: n + 2,
            path=lambda n, s: n + 6,
            load=lambda n, s: max(5.0, 2 / s + _by_sender(n, s)),
            copies=_by_sender,
            message_us=1.01,
        ),
        ClassCosts(
            order="token-ring",
            family="privilege",
            hops=lambda n, s: 1 if s == 1 else max(3 - 2 / n, 1 + s / 2),
            frames=lambda n, s: n - 1 if s == 1 else 2 * n - 1,
            path=lambda n, s: n + 1 if s == 1 else 2 * n + 1,
            load=lambda n, s: n - 1 if s == 1 else n + 1,
            copies=_by_sender,
        ),
        ClassCosts(
            order="causal-history",
            family="communication history",
            hops=lambda n, s: 2,
            frames=lambda n, s: n * (n - 1),
            path=lambda n, s: 3 * n - 2,
            load=_by_sender,
            copies=_by_sender,
            null_messages=True,
        ),
        ClassCosts(
            order="all-ack",
            family="communication history",
            hops=lambda n, s: 2,
            frames=lambda n, s: n * (n - 1),
            path=lambda n, s: 3 * n - 2,
            load=_by_sender,
            copies=_by_sender,
            null_messages=True,
            waits_for_silent=True,
        ),
        ClassCosts(
            order="deterministic-merge",
            family="communication history",
            hops=lambda n, s: 2 - 1 / n,
            frames=lambda n, s: n * (n - 1),
            path=lambda n, s: 3 * n - 2,
            load=_by_sender,
            copies=_by_sender,
            null_messages=True,
        ),
        # In the simulator, senders of equal rates wait as long as in deterministic-merge (1.5 hops with four,
        # 1.9 with eight of them), with half of the frames; if two of eight send, 0.9 instead of 1.0 hops.
        ClassCosts(
            order="adaptive",
            family="communication history",
            hops=lambda n, s: 2 - 1 / n,
            frames=lambda n, s: 2 * (n - 1),
            path=lambda n, s: 2 * n,
            load=_by_sender,
            copies=_by_sender,
            null_messages=True,
        ),
        ClassCosts(
            order="agreement-skeen",
            family="destinations agreement",
            hops=lambda n, s: 3,
            frames=lambda n, s: 3 * (n - 1),
            path=lambda n, s: 3 * n,
            load=lambda n, s: 3 * _by_sender(n, s),
            copies=_by_sender,
        ),
        ClassCosts(
            order="agreement-sets",
            family="destinations agreement",
            hops=lambda n, s: 4 - 1 / n,
            frames=lambda n, s: 4 * (n - 1),
            path=lambda n, s: 4 * n,
            load=lambda n, s: 3 * (n - 1) + _by_sender(n, s),
            copies=_by_sender,
        ),
        ClassCosts(
            order="agreement-proposal",
            family="destinations agreement",
            hops=lambda n, s: 6 - 1 / n,
            frames=lambda n, s: 6 * (n - 1),
            path=lambda n, s: 6 * n,
            load=lambda n, s: 5 * (n - 1) + _by_sender(n, s),
            copies=_by_sender,
            message_us=1.34,
        ),
    )
}
