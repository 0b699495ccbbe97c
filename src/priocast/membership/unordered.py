"""What an incarnation of a process leaves to the next one: its own messages without a known position."""

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.message import Batch
from priocast.membership.packets import OrderDigest


class UnorderedMessages(msgspec.Struct, frozen=True):
    """Messages of earlier incarnations that they did not deliver, so they may have no position."""

    batches: list[Batch]


def resubmit(
    assembler: Assembler, unordered_messages: UnorderedMessages, digest: OrderDigest, prioritised: bool
) -> None:
    """Put messages of earlier incarnations first, unless the group has delivered them."""
    own = assembler.restart()
    assembler.prioritised = prioritised
    next_numbers = {each.process: each.next_numbers for each in digest.ordered}
    for batch in unordered_messages.batches + own:
        number = next_numbers.get(batch.sender, {}).get(batch.level, 0)
        for index, payload in enumerate(batch.payloads()):
            if batch.first + index >= number:
                assembler.add_many([payload], batch.priority_of(index), batch.scope)
