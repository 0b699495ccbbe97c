"""What a queue that goes by priority may let out: the judge of all places at which messages wait by rank."""

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import MessageId
from priocast.core.message import Batch, Reference
from priocast.core.starvation import Starvation
from protocols.harness import Violation


class RankedQueue:
    """What waits at one place, by rank."""

    def __init__(self, policy: Starvation) -> None:
        self._policy = policy
        self._waiting: dict[MessageId, int] = {}
        self._gone: set[MessageId] = set()

    def enter(self, batch: Batch, now: int) -> None:
        """Messages come, unless they have their places already."""
        coming = [message for message in ids(batch) if message not in self._gone]
        self._waiting.update(dict.fromkeys(coming, self._policy.sort_key(batch.urgency, now)))

    def leave(self, messages: Batch | Reference) -> None:
        for message in ids(messages):
            rank, best = self._waiting.pop(message, None), min(self._waiting.values(), default=None)
            if rank is not None and best is not None and best < rank:
                raise Violation(PRIORITY, f"{message} goes before what should overtake it")

    def forget(self, messages: Batch | Reference, for_good: bool) -> None:
        for message in ids(messages):
            self._waiting.pop(message, None)
        if for_good:
            self._gone.update(ids(messages))


def ids(messages: Batch | Reference) -> list[MessageId]:
    """The names of these messages, one by one."""
    numbers = range(messages.first, messages.first + messages.count)
    return [MessageId(messages.sender, messages.level, number) for number in numbers]
