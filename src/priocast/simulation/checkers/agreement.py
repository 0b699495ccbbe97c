"""Agreement: incarnations that continue together from a view, or stay in it, delivered the same there."""

from priocast.core.guarantees import AGREEMENT
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.process_history import EpochHistory, RunHistory
from priocast.simulation.checkers.rows import ViewKey, message_name, view_name


class Agreement(Checker):
    """Compares what was delivered in each view, when the run is over."""

    GUARANTEE = AGREEMENT

    def __init__(self, report: ReportViolation, history: RunHistory) -> None:
        super().__init__(report)
        self._history = history

    def finish(self, now: int) -> None:
        for view, epochs in self._history.by_view().items():
            together: dict[ViewKey, list[EpochHistory]] = {}
            for epoch in epochs:
                if not epoch.dropped_out:
                    together.setdefault(epoch.next_view, []).append(epoch)
            for next_view, group in together.items():
                self._compare(view, next_view, group, now)

    def _compare(self, view: ViewKey, next_view: ViewKey, group: list[EpochHistory], now: int) -> None:
        for epoch in group:
            for key, delivered in epoch.delivered.items():
                missing = list(self._history.missing(group, key, delivered))
                if missing:
                    summary = (
                        f"{epoch.process} delivered {message_name(key)} in view {view_name(view)} and "
                        f"continued to {view_name(next_view)}; {', '.join(missing)} did not deliver it"
                    )
                    members = [epoch.process, *missing]
                    position = delivered.position
                    self.violated(summary, now, view=view, position=position, messages=[key], members=members)
                    return
