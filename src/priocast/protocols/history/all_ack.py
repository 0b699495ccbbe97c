"""All-ack: a message is delivered when every member has sent something later; silent members take their time.

Gives: Integrity, Total order, Agreement, FIFO among equals, Causal order, as `causal-history` does;
    prioritised: the most urgent first of what has one timestamp or is in one bucket, Bounded overtaking by
    the bucket and, at the sender, by the chosen starvation policy. Plain: FIFO order.
Costs: one hop and n - 1 frames a message, shared by all messages of a frame, if all members send all the
    time: no message needs an acknowledgement of its own. Otherwise a message waits for the next one of the
    slowest sender, but at most `acknowledge_ms`: then each silent member sends n - 1 frames that acknowledge
    all that it has received. The delivery time follows the slowest sender, and varies with its intervals.
Orders: every member by itself, from the timestamps.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending), and where messages of one timestamp, or of
    one bucket, are delivered (priority delivering).
Reference: the adaptive paper, sections 1.2.1 and 6.2.1, where it is the symmetric protocol of the comparison;
    the techniques paper, section 5.4.1.
Diverges: the paper's members never acknowledge without a message, and a group with a silent member stops.
    Here a member that has nothing to send acknowledges after `acknowledge_ms`; a long time shows what the
    paper measured. The order and the packets are those of `causal-history`, where a silent member answers at
    once: that takes two hops and up to n (n - 1) frames a message, whoever sends how often.
"""

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions, TimerFired, Turn
from priocast.core.view import View
from priocast.protocols.history.timestamped import TimestampedHistory

_SILENCE = "acknowledge in silence"
_MILLISECOND = 1_000_000


class AllAck(TimestampedHistory):
    """A member's part in the protocol: it acknowledges with its next messages, or after a time."""

    NAME = "all-ack"

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._acknowledge_ns = int(options.acknowledge_ms * _MILLISECOND)
        self._null_at: int | None = None

    def on_turn(self, event: Turn, now: int) -> None:
        super().on_turn(event, now)
        if not self.is_awaited:
            if self._null_at is not None:
                self._null_at = None
                self.cancel_timer(_SILENCE)
        elif self._null_at is None:
            self._null_at = now + self._acknowledge_ns
            self.set_timer(_SILENCE, self._null_at)

    def null_is_due(self, now: int) -> bool:
        return self._null_at is not None and now >= self._null_at

    def on_timer(self, event: TimerFired, now: int) -> None:
        """The turn that follows sends the null message."""
        assert event.name == _SILENCE
