"""Slow members: the order waits for the slowest application, but only for so long."""

from priocast.core.identity import ProcessId
from priocast.core.protocol_interface import Protocol


class SlowMemberDetector:
    """Detects that one member has kept the order waiting for too long."""

    def __init__(self, patience_ns: int, now: int) -> None:
        self._patience_ns = patience_ns
        self._seen: tuple[ProcessId | None, int] = (None, 0)
        self._since = now

    def found(self, protocol: Protocol, could_consume: bool, now: int) -> ProcessId | None:
        """The member that the order has waited for too long although it could consume, if there is one."""
        seen = (protocol.inspect(now).bottleneck if could_consume else None, protocol.position_next)
        if seen != self._seen or seen[0] is None:
            self._seen = seen
            self._since = now
        return seen[0] if now - self._since >= self._patience_ns else None

    def waited(self, now: int) -> tuple[ProcessId | None, int]:
        """The member that the order waits for, if any, and for how long (ns)."""
        return self._seen[0], now - self._since if self._seen[0] else 0
