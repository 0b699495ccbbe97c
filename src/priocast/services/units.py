"""Units, as the application takes them: each is an event of its own, made when its transmission can be taken.

A transmission of several units is taken apart in one pass. The queues hold the events themselves, so what is
left to do for each unit is to pass it on.
"""

from collections.abc import Sequence

from priocast.core.events import ServiceDelivery
from priocast.services.packets import STREAMS, ServiceData, ServiceStream, TransmissionId


def deliveries_of(data: ServiceData) -> list[ServiceDelivery]:
    """The units of a transmission, each as one of its own message."""
    if not data.unit_counts:
        return _deliveries_of_message(data, data.id.number, data.units)
    deliveries, start = [], 0
    for number, count in enumerate(data.unit_counts, data.id.number):
        deliveries += _deliveries_of_message(data, number, data.units[start : start + count])
        start += count
    return deliveries


def _deliveries_of_message(data: ServiceData, number: int, units: Sequence[bytes]) -> list[ServiceDelivery]:
    sender, quality, priority, recipients = data.id.sender, data.quality, data.priority, data.recipients
    count = len(units)
    return [
        ServiceDelivery(sender, number, quality, priority, unit, recipients, index, count)
        for index, unit in enumerate(units)
    ]


def message_of(delivery: ServiceDelivery) -> TransmissionId:
    """The message that a unit is of."""
    stream = STREAMS.get(delivery.quality.kind, ServiceStream.DISSEMINATED)
    return TransmissionId(delivery.sender, stream, delivery.number)
