"""Causal history: members stamp their messages with Lamport clocks, and the timestamps are the order.

Gives: Integrity, Total order, Agreement, FIFO among equals, Causal order; prioritised: the most urgent first
    of what has one timestamp or is in one bucket, Bounded overtaking by the bucket and, at the sender, by the
    chosen starvation policy. Plain: FIFO order. Causal order is that of applications: if a member has
    delivered a message and then broadcasts another one, all deliver that one later, whatever the bucket. With
    a bucket of 1 even a message that a member has only received precedes what it sends after that.
Costs: two hops, and up to n frames from each of the n members for a message of one of them, because a member
    that has nothing to send says so in a null message. One slow member delays all. A bucket waits until every
    clock has passed its end: each member advances its own clock there when it has nothing more to send.
Orders: every member by itself, from the timestamps.
Assumes: reliable FIFO links, a fixed view.
Priorities act: in the sender's outgoing queue (priority sending), and where messages of one timestamp, or of
    one bucket, are delivered (priority delivering).
Reference: the techniques paper, sections 5.4.1 and 6.3, figure 4; the cost paper, figure 3.
Diverges: figure 4 delivers in increasing order of priority; here the more urgent goes first. A message is
    stamped when it leaves the send queue and not before, or an urgent one would be stamped later than those
    that it overtakes. A member's own clock counts as that of its last packet that it received itself, like
    the clocks of others: no decision leaves out what is on its way to the member itself. Figure 4 has no null
    messages, and stops when a member is silent. Few messages have one timestamp, so priorities do little
    there; `bucket` timestamps together are delivered as one, from each sender in the order in which it sent
    them. The price is time, and that a message that was received, but not delivered, no longer precedes what
    its receiver then sends. Every sender has a share of the window, and the backlog waits in its queue.
"""

from priocast.protocols.history.timestamped import TimestampedHistory


class CausalHistory(TimestampedHistory):
    """A member's part in the protocol: a silent member sends null messages at once."""

    NAME = "causal-history"

    def null_is_due(self, now: int) -> bool:
        return True
