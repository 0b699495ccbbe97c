"""Which messages a member has received: none is delivered twice, or after it was given up."""

from priocast.core.identity import ProcessId
from priocast.services.packets import TransmissionId

_SENDERS_MAX = 1024


class ReceivedMessages:
    """The messages of each sender that were received, or will not be received any more.

    Numbers below the sender's `open_from` are not kept one by one: the sender no longer transmits them. The
    senders that were silent longest are forgotten first, and only when there are more than a thousand.
    """

    def __init__(self) -> None:
        self._open_from: dict[ProcessId, int] = {}
        self._numbers: dict[ProcessId, set[int]] = {}

    def add(self, message: TransmissionId, open_from: int = 0) -> None:
        """A message was received, or is given up."""
        sender, number = message.sender, message.number
        before = self._open_from.pop(sender, 0)
        floor = max(before, min(open_from, number))
        numbers = self._numbers.setdefault(sender, set())
        if number >= floor:
            numbers.add(number)
        if floor - before <= len(numbers):
            numbers.difference_update(range(before, floor))
        else:
            self._numbers[sender] = {each for each in numbers if each >= floor}
        self._open_from[sender] = floor  # the last one now
        if len(self._open_from) > _SENDERS_MAX:
            silent_longest = next(iter(self._open_from))
            del self._open_from[silent_longest], self._numbers[silent_longest]

    def has(self, message: TransmissionId) -> bool:
        """Whether a message was received or given up."""
        sender = message.sender
        return message.number < self._open_from.get(sender, 0) or message.number in self._numbers.get(
            sender, ()
        )
