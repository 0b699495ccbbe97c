"""The consumed-history of one member, and when messages can be left out of it.

A history says which messages an application had consumed when another one joined. Histories are exchanged
anyway, so members know what all have consumed: such a message goes before whatever joins from then on, at all
members, without any history saying so. It is *collected*: left out from then on.
"""

from priocast.protocols.reorder.message_sets import MessageSet, Stream


class ConsumedHistory:
    """What the application here has consumed and, as far as that was heard, those of the others."""

    def __init__(self, members: int) -> None:
        self._consumed: dict[Stream, int] = {}
        self._collected: dict[Stream, int] = {}
        self._heard: list[dict[Stream, int]] = [{} for _ in range(members)]

    def add(self, stream: Stream, count: int) -> None:
        """The application has consumed the next messages of a stream."""
        self._consumed[stream] = self._consumed.get(stream, 0) + count

    @property
    def messages(self) -> MessageSet:
        """What was consumed here and not collected."""
        return self._beyond_collected(self._consumed)

    def hear(self, rank: int, history: MessageSet) -> None:
        """What a member has said of its history."""
        heard = self._heard[rank]
        for stream, (_, end) in history.spans.items():
            heard[stream] = max(end, heard.get(stream, 0))

    @property
    def everywhere(self) -> MessageSet:
        """What every member is known to have consumed, and was not collected here."""
        counts = {stream: min(heard.get(stream, 0) for heard in self._heard) for stream in self._consumed}
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
