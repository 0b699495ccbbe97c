"""Packets for unit tests of the qualities of service."""

from priocast.core.identity import ProcessId
from priocast.core.quality import RELIABLE, Quality
from priocast.services.insertion import Point
from priocast.services.packets import Predecessor, ServiceData, ServiceStream, TransmissionId

A, B, C, D = (ProcessId(name, 1) for name in "abcd")


def message(
    sender: ProcessId = A, number: int = 1, stream: ServiceStream = ServiceStream.DISSEMINATED
) -> TransmissionId:
    return TransmissionId(sender, stream, number)


def data(
    about: TransmissionId | None = None,
    quality: Quality = RELIABLE,
    *,
    recipients: tuple[ProcessId, ...] = (A, B, C),
    priority: int = 1,
    units: int = 1,
    retry: int = 1,
    previous: tuple[int, ...] = (),
    clock: Point = (),
    history: tuple[Predecessor, ...] = (),
    open_from: int = 0,
) -> ServiceData:
    payloads = tuple(b"%d" % index for index in range(units))
    return ServiceData(
        about or message(),
        retry,
        quality,
        recipients,
        priority,
        payloads,
        open_from,
        previous,
        clock,
        history,
    )
