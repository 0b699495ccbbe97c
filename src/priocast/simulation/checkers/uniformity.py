"""Uniformity: what anybody delivered of what is safe, even if it then crashed, those who go on delivered.

In a primary group that is everybody who goes on from the view, or stays in it. In a partitionable one, where
each side of a cut has its own order, it is everybody who goes on together with one that delivered it; that is
Agreement, and needs no check of its own.
"""

from priocast.core.guarantees import UNIFORMITY
from priocast.simulation.checkers.checker import Checker, Report, name_of, text_of
from priocast.simulation.checkers.process_history import FELL_OUT, RunHistory


class Uniformity(Checker):
    """Asks all who went on for what one who did not had delivered; for a primary group."""

    PROPERTY = UNIFORMITY

    def __init__(self, report: Report, chronicle: RunHistory, all_safe: bool) -> None:
        super().__init__(report)
        self._chronicle = chronicle
        self._all_safe = all_safe

    def finish(self, now: int) -> None:
        for view, stays in self._chronicle.by_view().items():
            went_on = [stay for stay in stays if stay.onward != FELL_OUT]
            for stay in stays:
                for key, delivered in stay.delivered.items():
                    if not delivered.safe and not self._all_safe:
                        continue
                    missing = list(self._chronicle.lacking(went_on, key, delivered))
                    if missing:
                        text = (
                            f"{stay.process} delivered {name_of(key)}, which is safe, in view "
                            f"{text_of(view)}; {', '.join(missing)} went on without it"
                        )
                        members = [stay.process, *missing]
                        self.violated(text, now, position=delivered.position, messages=[key], members=members)
                        return
