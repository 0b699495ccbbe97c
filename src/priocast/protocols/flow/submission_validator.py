"""What members hold the senders of messages to: own messages, each once and in order, within their credit."""

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch, Reference
from priocast.core.view import View


class SubmissionValidator:
    """What each sender has sent that has no place yet, and which numbers come next.

    There may be `gaps` in the numbers where senders send some of their messages to other members.
    """

    def __init__(self, view: View, count_max: int, gaps: bool = False) -> None:
        self._coordinator = view.coordinator
        self._count_max = count_max
        self._gaps = gaps
        self._unordered = dict.fromkeys(view.members, 0)
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def check(self, sender: ProcessId, batch: Batch) -> None:
        """Accept a batch, or say what is wrong with it."""
        if batch.sender != sender:
            raise PeerFault(f"{sender} submits a message of {batch.sender}")
        if batch.level == CONTROL and sender != self._coordinator:
            raise PeerFault(f"{sender} submits a control message, which only {self._coordinator} does")
        if len(batch.priorities) not in (0, batch.count):
            raise PeerFault(f"{sender} submits {batch} with {len(batch.priorities)} priorities")
        expected = self._number_next.get((sender, batch.level), batch.first)
        if batch.first < expected or (batch.first > expected and not self._gaps):
            raise PeerFault(f"{sender} submits {batch}, where number {expected} of that level is next")
        self._number_next[sender, batch.level] = batch.first + batch.count
        self._unordered[sender] += batch.count
        if self._unordered[sender] > self._count_max:
            raise PeerFault(
                f"{sender} submits more than the {self._count_max} messages that it has credit for"
            )

    def came(self, batch: Batch) -> bool:
        """Whether these messages, or some of them, came from their sender."""
        return batch.first < self._number_next.get((batch.sender, batch.level), 0)

    def placed(self, batch: Batch | Reference) -> None:
        """Messages of a sender have their place."""
        self._unordered[batch.sender] -= batch.count
        assert self._unordered[batch.sender] >= 0
