"""Probation: a member that was evicted as slow must not be able to make the group wait for it again.

While it is on probation, what is ordered is kept at the member until its application takes it, and counts as
consumed. So the others do not wait for its application, however slow it is. If the application takes nothing
for `slow_ms`, or if there is no more room to keep what is ordered, the member withdraws from the group, which
costs the others a view change. Once the application has taken messages for three times `slow_ms` without
falling behind, the probation is over.
"""

from priocast.membership.stream import Stream

_PROBATION_FACTOR = 3
_LAG_DIVISOR = 10


class Probation:
    """The probation of one member, from the start of its incarnation on."""

    def __init__(self, slow_ns: int, now: int) -> None:
        self._slow_ns = slow_ns
        self._joined_at: int | None = None
        self._seen = (0, True)
        self._moved_at = now
        self._keeps_up_since: int | None = None

    def has_failed(self, stream: Stream, now: int) -> bool:
        """Whether the application does not take what is kept for it; to be asked regularly."""
        seen = (stream.position, stream.is_empty)
        if seen != self._seen or stream.is_empty or stream.awaits_state:
            self._seen = seen
            self._moved_at = now
        if self._joined_at is None and stream.view is not None:
            self._joined_at = stream.position
        waits_ns = now - self._moved_at
        if waits_ns > self._slow_ns // _LAG_DIVISOR:
            self._keeps_up_since = None
        elif self._keeps_up_since is None and self._has_taken_messages(stream):
            self._keeps_up_since = now
        return stream.is_full or waits_ns >= self._slow_ns

    def is_over(self, stream: Stream, now: int) -> bool:
        """Whether the application has kept up for long enough."""
        since = self._keeps_up_since
        return since is not None and stream.is_empty and now - since >= _PROBATION_FACTOR * self._slow_ns

    def _has_taken_messages(self, stream: Stream) -> bool:
        return self._joined_at is not None and stream.position > self._joined_at
