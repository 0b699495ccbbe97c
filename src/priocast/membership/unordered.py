"""What the lives of a process leave to each other."""

import msgspec

from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.membership.packets import OrderDigest


class UnorderedMessages(msgspec.Struct, frozen=True):
    """Messages of earlier lives of which they did not know whether they have a place."""

    batches: list[Batch]


def resubmit(
    me: ProcessId,
    unordered_messages: UnorderedMessages,
    own: list[Batch],
    digest: OrderDigest,
    prioritised: bool,
) -> Assembler:
    """Assemble anew what earlier lives left, unless the group has it, and then what this one has so far."""
    placed = {each.process: each.next_numbers for each in digest.ordered}
    assembler = Assembler(me, prioritised)
    for batch in unordered_messages.batches + own:
        number = placed.get(batch.sender, {}).get(batch.level, 0)
        for index, payload in enumerate(batch.payloads()):
            if batch.first + index >= number:
                assembler.add_many([payload], batch.priority_of(index), batch.scope)
    return assembler
