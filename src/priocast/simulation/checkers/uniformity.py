"""Uniformity: a safe message that anybody delivered, even a process that then crashed, is delivered by all.

In a primary group that means all who continue from the view or stay in it. In a partitionable group each side
of a partition has its own order, and it means all who continue together with one that delivered the message.
That is Agreement and needs no check of its own.
"""

from priocast.core.guarantees import UNIFORMITY
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.rows import message_name, view_name


class Uniformity(Checker):
    """Looks, in a primary group, for safe messages that one delivered and another continued without."""

    GUARANTEE = UNIFORMITY

    def __init__(self, report: ReportViolation, history: RunHistory, all_safe: bool) -> None:
        super().__init__(report)
        self._history = history
        self._all_safe = all_safe

    def finish(self, now: int) -> None:
        for view, epochs in self._history.by_view().items():
            continued = [epoch for epoch in epochs if not epoch.dropped_out]
            for epoch in epochs:
                for key, delivered in epoch.delivered.items():
                    if not delivered.safe and not self._all_safe:
                        continue
                    missing = list(self._history.missing(continued, key, delivered))
                    if missing:
                        self.violated(
                            f"{epoch.process} delivered {message_name(key)}, which is safe, in view "
                            f"{view_name(view)}; {', '.join(missing)} continued without it",
                            now,
                            view=view,
                            position=delivered.position,
                            messages=[key],
                            members=[epoch.process, *missing],
                        )
                        return
