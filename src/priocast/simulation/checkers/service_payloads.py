"""Px4 as far as only the simulator can see it: a unit that is delivered has the payload that was sent."""

from priocast.core.events import ServiceDelivery
from priocast.core.guarantees import NON_TRIVIALITY
from priocast.core.identity import ProcessId
from priocast.core.violation import Violation
from priocast.services.packets import TransmissionId
from priocast.services.units import message_of
from priocast.simulation.checkers.checker import ReportViolation


class ServicePayloads:
    """What was sent with a quality of service."""

    def __init__(self, report: ReportViolation) -> None:
        self._report = report
        self._sent: dict[TransmissionId, list[bytes]] = {}

    def on_sent(self, message: TransmissionId, units: list[bytes]) -> None:
        """An application sent a message."""
        self._sent[message] = units

    def on_taken(self, me: ProcessId, unit: ServiceDelivery, now: int) -> None:
        """An application takes a unit."""
        message = message_of(unit)
        if self._sent[message][unit.index] != unit.payload:
            self._report(
                Violation(
                    guarantee=NON_TRIVIALITY,
                    summary=f"{me} delivers another payload than that of {message}",
                    members=(str(me),),
                    messages=(str(message),),
                    details={"time_ns": now},
                )
            )
