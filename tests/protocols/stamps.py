"""Timestamp order: the stamps of messages, where an order has them (the adaptive paper, section 1.1)."""

from priocast.core.guarantees import TIMESTAMP_ORDER
from priocast.core.identity import MessageId
from priocast.core.stamp import Stamp
from priocast.core.view import ViewId
from protocols.harness import Broadcast, Journal, Stamped, Violation


def check_stamps(journal: Journal) -> None:
    """In a view a message has one stamp; a stamp has one message; members deliver in the order of stamps.

    What a member broadcasts after it has delivered a message has a greater stamp than that message.
    """
    stamp_of: dict[tuple[ViewId, MessageId], Stamp] = {}
    message_of: dict[Stamp, MessageId] = {}
    last: dict[str, Stamp] = {}
    known: dict[bytes, Stamp | None] = {}
    for happened in journal:
        if isinstance(happened, Broadcast):
            known[happened.payload] = last.get(happened.member)
        if not isinstance(happened, Stamped):
            continue
        member, stamp, message = happened
        before, preceding = last.get(member), known.get(message.payload)
        if before is not None and stamp <= before:
            raise Violation(TIMESTAMP_ORDER, f"{member} delivers {stamp} after {before}")
        if preceding is not None and stamp <= preceding:
            raise Violation(TIMESTAMP_ORDER, f"{message.id} has {stamp}, it was broadcast after {preceding}")
        if stamp_of.setdefault((stamp.view, message.id), stamp) != stamp:
            raise Violation(TIMESTAMP_ORDER, f"{message.id} has two stamps, one at {member} is {stamp}")
        if message_of.setdefault(stamp, message.id) != message.id:
            raise Violation(TIMESTAMP_ORDER, f"{message.id} and {message_of[stamp]} have the stamp {stamp}")
        last[member] = stamp
