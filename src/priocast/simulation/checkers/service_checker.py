"""The base of the checkers of the qualities of service.

Each looks at the messages of the qualities that promise its guarantee; tests also show it others.
"""

from collections.abc import Collection, Iterator

from priocast.core.quality import QualityKind
from priocast.core.service_promises import promising
from priocast.core.violation import Violation
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.service_history import (
    SentService,
    ServiceHistory,
    ServiceKey,
    service_key,
    service_name,
)
from priocast.trace.schema import ServiceRow


class ServiceChecker(Checker):
    """Judges the messages of these kinds of quality when the run is over."""

    def __init__(
        self,
        report: ReportViolation,
        history: ServiceHistory,
        kinds: Collection[QualityKind] | None = None,
    ) -> None:
        super().__init__(report)
        self._history = history
        self._kinds = promising(self.GUARANTEE) if kinds is None else kinds

    def _messages(self) -> Iterator[SentService]:
        """The messages that are judged, in the order of sending."""
        return (each for each in self._history.sent.values() if each.quality.kind in self._kinds)

    def _judged(self, row: ServiceRow) -> SentService | None:
        """The message of a row, if it was sent and is judged."""
        message = self._history.sent.get(service_key(row))
        return message if message is not None and message.quality.kind in self._kinds else None

    def _broken(self, summary: str, now: int, *messages: ServiceKey, members: Collection[str] = ()) -> None:
        self._report(
            Violation(
                guarantee=self.GUARANTEE,
                summary=summary,
                members=tuple(members),
                messages=tuple(map(service_name, messages)),
                details={"time_ns": now},
            )
        )
