"""Priority accounting, exactly: what is less urgent goes first if, and only if, somebody had consumed it."""

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import MessageId
from protocols.harness import Delivered, Group, Received, Violation


def check_accounting(group: Group) -> None:
    """Of two messages the less urgent is first exactly if some member had it when the other came there."""
    levels: dict[MessageId, int] = {}
    came: dict[tuple[str, MessageId], int] = {}
    consumed: dict[tuple[str, MessageId], int] = {}
    for moment, happened in enumerate(group.journal):
        if isinstance(happened, Delivered):
            consumed[happened.member, happened.message.id] = moment
        elif isinstance(happened, Received):
            for batch in getattr(happened.packet, "batches", ()):
                for number in range(batch.first, batch.first + batch.count):
                    message = MessageId(batch.sender, batch.level, number)
                    levels[message] = batch.urgency
                    came[happened.member, message] = moment
    first = next(iter(group.members))
    order = [message for member, message in consumed if member == first]
    place = {message: place for place, message in enumerate(order)}
    for low in order:
        for high in order:
            if levels[low] >= levels[high]:
                continue
            had = [name for name in group.members if consumed[name, low] < came[name, high]]
            if (place[low] < place[high]) != bool(had):
                raise Violation(PRIORITY, f"{low} and {high} are at {place[low]} and {place[high]}: {had}")
