"""Messages that wait for their transmission: consecutive ones that are alike travel together.

Messages of the same quality, recipients and priority share a transmission if one is sent directly after the
other before the first one is transmitted: in one turn, or while an earlier atomic message is undecided. They
are acknowledged and decided together, so that a transmission costs the same for one message as for
hundreds. Each of them is queued and delivered on its own as always, and has a receipt of its own.
"""

from collections import deque

import msgspec

from priocast.core.message import BATCH_BYTES_CUT, BATCH_COUNT_MAX
from priocast.services.outputs import SendReceipt
from priocast.services.packets import ServiceData


def take_joined(waiting: deque[ServiceData]) -> ServiceData:
    """The first of these messages, with those after it that travel in the same transmission."""
    first = waiting.popleft()
    if not waiting or not _are_alike(first, waiting[0]):
        return first
    units, counts = list(first.units), _counts_of(first)
    room = BATCH_BYTES_CUT - sum(map(len, units))
    while waiting and _are_alike(first, waiting[0]):
        following = waiting[0]
        room -= sum(map(len, following.units))
        is_next = following.id.number == first.id.number + len(counts)
        if not is_next or room < 0 or len(units) + len(following.units) > BATCH_COUNT_MAX:
            break
        units += following.units
        counts += _counts_of(following)
        waiting.popleft()
    if len(counts) == 1:
        return first
    return msgspec.structs.replace(first, units=tuple(units), unit_counts=tuple(counts))


def _counts_of(data: ServiceData) -> list[int]:
    return [*data.unit_counts] or [len(data.units)]


def _are_alike(one: ServiceData, other: ServiceData) -> bool:
    return (
        one.priority == other.priority and one.quality == other.quality and one.recipients == other.recipients
    )


def receipts_of(receipt: SendReceipt, message_count: int) -> list[SendReceipt]:
    """The receipt of a transmission, for each of its messages."""
    receipts = [receipt]
    for index in range(1, message_count):
        message = msgspec.structs.replace(receipt.message, number=receipt.message.number + index)
        receipts.append(msgspec.structs.replace(receipt, message=message))
    return receipts
