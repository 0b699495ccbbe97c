"""Checks that a priority queue releases messages in the order of their sort keys."""

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import MessageId
from priocast.core.message import Batch, Reference
from priocast.core.starvation import Starvation
from protocols.harness import Violation


class RankedQueue:
    """The messages that wait in one queue, with their sort keys."""

    def __init__(self, policy: Starvation) -> None:
        self._policy = policy
        self._waiting: dict[MessageId, int] = {}
        self._gone: set[MessageId] = set()

    def enter(self, batch: Batch, now: int) -> None:
        """Messages enter, unless they are ordered already."""
        coming = [message for message in ids(batch) if message not in self._gone]
        self._waiting.update(dict.fromkeys(coming, self._policy.sort_key(batch.urgency, now)))

    def leave(self, messages: Batch | Reference) -> None:
        for message in ids(messages):
            rank, best = self._waiting.pop(message, None), min(self._waiting.values(), default=None)
            if rank is not None and best is not None and best < rank:
                raise Violation(PRIORITY, f"{message} leaves before a message with a lower sort key")

    def forget(self, messages: Batch | Reference, for_good: bool) -> None:
        for message in ids(messages):
            self._waiting.pop(message, None)
        if for_good:
            self._gone.update(ids(messages))


def ids(messages: Batch | Reference) -> list[MessageId]:
    """The ids of these messages."""
    numbers = range(messages.first, messages.first + messages.count)
    return [MessageId(messages.sender, messages.level, number) for number in numbers]
