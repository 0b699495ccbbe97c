"""The consumed-history of one member, and its garbage collection.

A history says which messages an application had consumed when a member received another one. Members
exchange their histories anyway, so they learn what all of them have consumed. Such a message precedes
everything that is received later, at all members, and no history needs to say so: it is *collected*, that
is, left out from then on.
"""

from priocast.protocols.reorder.message_sets import MessageSet, Stream


class ConsumedHistory:
    """What the application of this member has consumed, and what the others are known to have consumed."""

    def __init__(self, members: int) -> None:
        self._consumed: dict[Stream, int] = {}
        self._collected: dict[Stream, int] = {}
        self._known: list[dict[Stream, int]] = [{} for _ in range(members)]

    def add(self, stream: Stream, count: int) -> None:
        """The application has consumed the next messages of a stream."""
        self._consumed[stream] = self._consumed.get(stream, 0) + count

    @property
    def messages(self) -> MessageSet:
        """What was consumed here and not collected."""
        return self._beyond_collected(self._consumed)

    def receive(self, rank: int, history: MessageSet) -> None:
        """A member has sent its history."""
        known = self._known[rank]
        for stream, (_, end) in history.spans.items():
            known[stream] = max(end, known.get(stream, 0))

    @property
    def everywhere(self) -> MessageSet:
        """What every member is known to have consumed, and was not collected here."""
        counts = {stream: min(known.get(stream, 0) for known in self._known) for stream in self._consumed}
        return self._beyond_collected(counts)

    def includes(self, messages: MessageSet) -> bool:
        """Whether all these were consumed here, collected or not."""
        return all(end <= self._consumed.get(stream, 0) for stream, (_, end) in messages.spans.items())

    def collect(self, messages: MessageSet) -> None:
        """Leave out what every member has consumed."""
        for stream, (_, end) in messages.spans.items():
            self._collected[stream] = max(end, self._collected.get(stream, 0))

    def _beyond_collected(self, counts: dict[Stream, int]) -> MessageSet:
        spans = {stream: (self._collected.get(stream, 0), end) for stream, end in counts.items()}
        return MessageSet({stream: span for stream, span in spans.items() if span[0] < span[1]})
