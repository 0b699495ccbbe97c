"""Agreement: lives that go on together from a view, or stay in it together, delivered the same in it."""

from priocast.core.guarantees import AGREEMENT
from priocast.simulation.checkers.checker import Checker, Report, ViewKey, name_of, text_of
from priocast.simulation.checkers.process_history import FELL_OUT, EpochHistory, RunHistory


class Agreement(Checker):
    """Compares what was delivered in each view, when the run is over."""

    PROPERTY = AGREEMENT

    def __init__(self, report: Report, chronicle: RunHistory) -> None:
        super().__init__(report)
        self._chronicle = chronicle

    def finish(self, now: int) -> None:
        for view, stays in self._chronicle.by_view().items():
            together: dict[ViewKey, list[EpochHistory]] = {}
            for stay in stays:
                if stay.onward != FELL_OUT:
                    together.setdefault(stay.onward, []).append(stay)
            for onward, group in together.items():
                self._compare(view, onward, group, now)

    def _compare(self, view: ViewKey, onward: ViewKey, group: list[EpochHistory], now: int) -> None:
        for stay in group:
            for key, delivered in stay.delivered.items():
                missing = list(self._chronicle.lacking(group, key, delivered))
                if missing:
                    text = (
                        f"{stay.process} delivered {name_of(key)} in view {text_of(view)} and went on to "
                        f"{text_of(onward)}; {', '.join(missing)} did not"
                    )
                    members = [stay.process, *missing]
                    self.violated(text, now, position=delivered.position, messages=[key], members=members)
                    return
