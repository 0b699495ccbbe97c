"""Round trips: from a member's message to the packets in which the others have passed its slot."""

from priocast.protocols.adaptive.policies.policy import AdaptationPolicy
from priocast.protocols.adaptive.sender_slots import SlotKey


class RoundTrips:
    """Measures one round trip to each member at a time, for a policy that wants them.

    A member that had passed the slot before does not answer, and is not measured then.
    """

    def __init__(self, policy: AdaptationPolicy, size: int) -> None:
        self._policy = policy
        self._measures = policy.MEASURES_ROUND_TRIPS
        self._pending: list[tuple[SlotKey, int] | None] = [None] * size
        self._clocks: list[SlotKey] = [(0, 0, 0)] * size

    def sent(self, key: SlotKey, now: int) -> None:
        """This member's message goes to the slot with this key."""
        if not self._measures:
            return
        for rank, clock in enumerate(self._clocks):
            if rank != self._policy.rank and clock <= key and self._pending[rank] is None:
                self._pending[rank] = key, now

    def passed(self, rank: int, clock: SlotKey, now: int) -> None:
        """A member has passed all slots before this one."""
        if not self._measures:
            return
        self._clocks[rank] = clock
        pending = self._pending[rank]
        if pending is not None and pending[0] < clock:
            self._pending[rank] = None
            self._policy.on_round_trip(rank, now - pending[1])
