"""The destination's side of the window: what the application consumes, and when to report it."""

from collections import deque

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.flow.window import WINDOW_FIRST, ConsumptionWindow

_MILLISECOND = 1_000_000
_KEEP_ALIVE_NS = 500 * _MILLISECOND


def share(limit: int, shares: int) -> int:
    """One of several equal shares of a limit, but at least 1."""
    return max(1, limit // shares)


class Consumption:
    """What one member's application consumes, and what to report to those who put messages into the order.

    Each of them (a `source`) has its own account and, if there are several, its share of the window.
    """

    def __init__(self, options: OrderingOptions, shares: int = 1) -> None:
        self.window = ConsumptionWindow(options.window, int(options.window_ms * _MILLISECOND))
        self._shares = shares
        self._bytes_max = share(options.window_bytes, shares)
        # What a source may send before the first report, however large the window is by then.
        self._granted_first = share(options.window or WINDOW_FIRST, shares)
        self._accounts: dict[ProcessId, _SourceAccount] = {}

    def announced(self, source: ProcessId, count: int, size: int) -> None:
        """A source has put messages of this size into the order, which it counts as one."""
        account = self._accounts.get(source)
        if account is None:
            account = self._accounts[source] = _SourceAccount(self._granted_first)
        account.announced += count
        account.waiting.append((account.announced, size))

    def consumed(self, source: ProcessId, count: int, now: int) -> Consumed | None:
        """The application consumed messages of a source; return the report to send to it, if one is due.

        The source waits for messages or for bytes, so a quarter of either window is worth a report. If it
        waits for this member, a report also serves as a keep-alive, however slow the application is.
        """
        self.window.consumed(count, now)
        account = self._accounts[source]
        account.consumed += count
        while account.waiting and account.waiting[0][0] <= account.consumed:
            account.unreported_bytes += account.waiting.popleft()[1]
        is_due = (
            4 * (account.consumed - account.reported) >= account.granted
            or 4 * account.unreported_bytes >= self._bytes_max
            or (self.window.is_bottleneck and now - account.reported_at >= _KEEP_ALIVE_NS)
        )
        if not is_due:
            return None
        account.reported_at = now
        account.reported, account.granted = account.consumed, share(self.window.grant(), self._shares)
        account.unreported_bytes = 0
        return Consumed(account.reported, account.granted)


class _SourceAccount:
    """What one source has announced, what was consumed of it here and what was reported.

    Source and destination must free bytes at the same counts. Otherwise the source may wait for bytes that
    the destination does not consider worth a report. So a destination counts the same pieces as the source.
    """

    __slots__ = ("announced", "consumed", "granted", "reported", "reported_at", "unreported_bytes", "waiting")

    def __init__(self, granted: int) -> None:
        self.granted = granted
        self.announced = 0
        self.consumed = 0
        self.reported = 0
        self.reported_at = 0
        self.unreported_bytes = 0
        self.waiting: deque[tuple[int, int]] = deque()
