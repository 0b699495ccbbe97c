"""Checks on what senders submit: own messages, each once and in order, within their credit."""

from priocast.core.errors import PeerFault
from priocast.core.identity import NUMBER_MAX, ProcessId
from priocast.core.message import CONTROL, Batch, Reference
from priocast.core.view import View


class SubmissionValidator:
    """How many messages of each sender have no position yet, and which numbers are next.

    Gaps in the numbers are allowed (`gaps`) where senders submit some of their messages to other members.
    """

    def __init__(self, view: View, count_max: int, gaps: bool = False) -> None:
        self._coordinator = view.coordinator
        self._count_max = count_max
        self._gaps = gaps
        self._unordered = dict.fromkeys(view.members, 0)
        self._number_next: dict[tuple[ProcessId, int], int] = {}

    def check(self, sender: ProcessId, batch: Batch) -> None:
        """Accept a batch, or raise an error that says what is wrong with it."""
        if batch.sender != sender:
            raise PeerFault(f"{sender} submits a message of {batch.sender}")
        if batch.level == CONTROL and sender != self._coordinator:
            raise PeerFault(f"{sender} submits a control message; only {self._coordinator} may")
        if len(batch.priorities) not in (0, batch.count):
            raise PeerFault(f"{sender} submits {batch} with {len(batch.priorities)} priorities")
        if batch.first + batch.count > NUMBER_MAX:
            raise PeerFault(f"{sender} submits {batch}, which uses up the numbers")
        expected = self._number_next.get((sender, batch.level), batch.first)
        if batch.first < expected or (batch.first > expected and not self._gaps):
            raise PeerFault(f"{sender} submits {batch}; number {expected} of that level is next")
        self._number_next[sender, batch.level] = batch.first + batch.count
        self._unordered[sender] += batch.count
        if self._unordered[sender] > self._count_max:
            raise PeerFault(f"{sender} submits more than its credit of {self._count_max} messages")

    def received(self, batch: Batch) -> bool:
        """Whether these messages, or some of them, were received from their sender."""
        return batch.first < self._number_next.get((batch.sender, batch.level), 0)

    def ordered(self, batch: Batch | Reference) -> None:
        """Messages of a sender have their position."""
        self._unordered[batch.sender] -= batch.count
        assert self._unordered[batch.sender] >= 0
