"""The views that one incarnation has installed: how many, the last ones, and how long the changes took."""

from collections import deque

import msgspec

from priocast.core.time_histogram import TimeHistogram
from priocast.core.view import View
from priocast.core.view_reason import ViewReason

_KEPT = 32


class ViewInstallation(msgspec.Struct, frozen=True):
    """A view that was installed: why, when, and for how long nothing could be ordered before."""

    view: View
    reason: ViewReason
    at: int
    took_ns: int


class ViewHistory:
    """`count` views were installed; `recent` are the last of them, `durations` those of all changes."""

    def __init__(self) -> None:
        self.count = 0
        self.recent: deque[ViewInstallation] = deque(maxlen=_KEPT)
        self.durations = TimeHistogram()

    def add(self, view: View, reason: ViewReason, at: int, took_ns: int) -> None:
        """A view is installed; nothing could be ordered for this long before."""
        self.count += 1
        self.recent.append(ViewInstallation(view, reason, at, took_ns))
        self.durations.add(took_ns)
