"""What each class costs: the one table that advice about orders rests on, and the constants beside it.

Counts are of a message that travels alone, in a group of `n` members of which `s` broadcast:

    hops    how often it has to cross the network until the last member delivers it
    frames  how many frames that takes in all, if it is not the coordinator's own
    path    frames that somebody handles one after the other meanwhile: that is the time it takes besides
    load    frames that the busiest member handles, sent or received: that is what fills its processor. Where
            only one member at a time works, because it has the token, its frames count as those of one member
    copies  how often the busiest member handles the payload itself

They follow from the protocols; a test holds hops and frames against what the simulator counts
(`tools/message_costs.py`). Under load messages share frames. `words` says that members also speak when they
have nothing to send, or the message would wait for them: one word is for all that has come meanwhile.

The times are measured, on a machine with two cores: `docs/performance.md` says how, and `make bench` measures
them again. On another machine they differ, for all classes alike.
"""

# ruff: noqa: ARG001, ARG005 - a cell of the table is given both counts, whatever it makes of them

from collections.abc import Callable

import msgspec

Count = Callable[[int, int], float]

FRAME_US = 25.0
"""Processor time for a frame that travels alone: a sequencer of 4 takes 340 Python calls for its 4 frames."""

WAKE_US = 60.0
"""From the arrival of a frame to the turn that answers it, beside the network: 107 us and 92 us a hop were
measured, of which the network had 41."""

MESSAGE_US = 0.85
"""Processor time at each member for a delivered message of 64 bytes, whatever it shares its frames with:
590,746 messages a second, one by one, at 4 members on 2 cores."""

BYTE_NS = 0.97
"""Processor time for a byte of payload each time it is handled: 184,579 instead of 590,746 messages a second
with 1 KiB instead of 64 bytes, each handled 8 times on its way to 4 members."""

SHARING_MAX = 64
"""How many messages share a frame when much waits: bursts of 64 were carried whole by every class."""

FRAME_BYTES = 64 * 1024
"""What is in a frame at most."""

BUSY = 0.8
"""The part of a processor beyond which messages begin to share frames."""


class ClassCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What one class costs. `message_us` is its own processor time for a message, measured under full load.

    It is `MESSAGE_US` and what the class takes more than `sequencer-ub` in bursts of 64 at 4 members; most
    classes are within a tenth of a microsecond of it.
    """

    order: str
    family: str
    hops: Count
    frames: Count
    path: Count
    load: Count
    copies: Count
    words: bool = False
    message_us: float = MESSAGE_US


def _relayed(n: int, s: int) -> float:
    """Over one member: one hop more for all messages but its own."""
    return 2 - 1 / n


def _by_sender(n: int, s: int) -> float:
    """Each sender sends its own to all others, and everybody receives them."""
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
            words=True,
        ),
        ClassCosts(
            order="deterministic-merge",
            family="communication history",
            hops=lambda n, s: 2 - 1 / n,
            frames=lambda n, s: n * (n - 1),
            path=lambda n, s: 3 * n - 2,
            load=_by_sender,
            copies=_by_sender,
            words=True,
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
