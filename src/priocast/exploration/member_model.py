"""One member while one view lasts, with its application, as the model checker steps it.

It is what `Member` and `Epoch` are, without links, clock and membership: the same inputs in the same order,
acted on in the same steps. Everything that a later step or check depends on is an attribute, and nothing else
is: so the digest of a member model is its state.
"""

from collections.abc import Sequence
from typing import NamedTuple

from priocast.core.assembler import Assembler
from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, TOTAL_ORDER
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import Broadcast, Packet
from priocast.core.view import View
from priocast.exploration.scenario import ExplorationScenario, ScenarioMessage
from priocast.exploration.violation import PropertyViolation
from priocast.testing.protocol_runner import ProtocolRunner

#: What a step sends: the rank of the receiver, and the packet.
SentPackets = list[tuple[int, Packet]]


class ViewEnd(NamedTuple):
    """How the view ended at one member: all messages that it consumes, and its own unordered messages."""

    consumed: tuple[int, ...]
    unordered: tuple[int, ...]


class MemberModel(ProtocolRunner):
    """One member. Messages are known by their index in the scenario, members by their rank."""

    def __init__(self, scenario: ExplorationScenario, rank: int) -> None:
        view = View(1, tuple(map(ProcessId, scenario.members)))
        super().__init__(scenario.protocol(view.members[rank], view, scenario.options))
        self.rank = rank
        self.scenario = scenario
        self.to_broadcast = [
            index for index, message in enumerate(scenario.messages) if message.sender == rank
        ]
        self.consumed: list[int] = []
        #: By message: which less urgent ones were consumed or had a position here when it was received.
        self.ordered_before: dict[int, frozenset[int]] = {}
        self.sent_to_all: list[Packet] = []
        self._assembler = Assembler(view.members[rank], scenario.options.prioritised)
        self._now = 0

    @property
    def name(self) -> str:
        return self.scenario.members[self.rank]

    @property
    def has_work(self) -> bool:
        """Whether a step of a turn would act on anything."""
        return bool(self._assembler.count) or super().has_work

    @property
    def broadcast_messages(self) -> tuple[int, ...]:
        """The messages that its application has broadcast."""
        own = [index for index, message in enumerate(self.scenario.messages) if message.sender == self.rank]
        return tuple(own[: len(own) - len(self.to_broadcast)])

    def head(self) -> int | None:
        """The message that the application may consume next; asking changes nothing."""
        ordered_batch = self.protocol.head()
        if ordered_batch is None:
            return None
        message = self._indices(ordered_batch.batch)[ordered_batch.taken]
        position = ordered_batch.position + ordered_batch.taken
        if position != len(self.consumed):
            raise PropertyViolation(
                TOTAL_ORDER, f"{self.name} is offered position {position} after {len(self.consumed) - 1}"
            )
        if message in self.consumed:
            raise PropertyViolation(INTEGRITY, f"{self.name} is offered {self._message(message).name} twice")
        return message

    # Actions

    def broadcast_next(self) -> SentPackets:
        """The application broadcasts its next message."""
        message = self._message(self.to_broadcast.pop(0))
        self._assembler.add(message.name.encode(), message.priority)
        return self._complete()

    def receive_packet(self, sender: int, packet: Packet) -> SentPackets:
        """A packet arrives from another member."""
        self.receive(self.protocol.view.members[sender], packet, self._now)
        return self._complete()

    def consume_next(self) -> SentPackets:
        """The application consumes the next message."""
        message = self.head()
        assert message is not None
        self._check_fifo(message)
        self.consume(1, self._now)
        self.consumed.append(message)
        if not self.scenario.free_turns:
            self.run_until_idle(self._now)
        return self._take_sent()

    def take_turn_step(self) -> SentPackets:
        """One step of a turn."""
        self.act(self._now)
        return self._take_sent()

    def fire_timer(self, timer: str) -> SentPackets:
        """A timer expires."""
        self._now = max(self._now, self.timers[timer])
        self.fire(timer, self._now)
        return self._complete()

    # The end of the view

    def end_view(self, missing: Sequence[tuple[int, Packet]]) -> ViewEnd:
        """The view ends; the flush brings the packets to all that are missing, with their senders' ranks."""
        self.receive_own_packets(self._now)
        for sender, packet in missing:
            self.receive(self.protocol.view.members[sender], packet, self._now)
        self.protocol.close()
        for ordered_batch in self.protocol.unconsumed():
            self.consumed += self._indices(ordered_batch.batch)[ordered_batch.taken :]
        unsent = [message for batch in self._assembler.close() for message in self._indices(batch)]
        unordered = [message for batch in self.protocol.unordered() for message in self._indices(batch)]
        return ViewEnd(tuple(self.consumed), (*unordered, *unsent))

    # Within an action

    def act(self, now: int) -> None:
        """One step of a turn; what the application has broadcast comes first."""
        for batch in self._assembler.close():
            self.step(Broadcast(batch), now)
        super().act(now)

    def on_packet_sent(self, packet: Packet, to: ProcessId | None, now: int) -> None:
        """Keep packets to all for the flush."""
        if packet.TO_ALL and self.scenario.view_ends:
            self.sent_to_all.append(packet)

    def _receive(self, sender: ProcessId, packet: Packet, now: int) -> None:
        super()._receive(sender, packet, now)
        if self.scenario.checks_priority:
            for batch in getattr(packet, "batches", ()):
                self._note_received(batch)

    def _complete(self) -> SentPackets:
        """Act on the input, unless turns are actions of their own."""
        if not self.scenario.free_turns:
            self.needs_turn = True
            self.run_until_idle(self._now)
        return self._take_sent()

    def _take_sent(self) -> SentPackets:
        ranks = [rank for rank in range(self.scenario.processes) if rank != self.rank]
        sent: SentPackets = []
        for to, packet in self.take_outbox():
            sent += [(rank, packet) for rank in (ranks if to is None else [self.protocol.ranks[to]])]
        return sent

    def _note_received(self, batch: Batch) -> None:
        """Note what had a position when messages came; a position that they caused came before them."""
        ordered = {*self.consumed}
        for ordered_batch in self.protocol.unconsumed():
            ordered.update(self._indices(ordered_batch.batch))
        for message in self._indices(batch):
            if message not in self.ordered_before:
                priority = self._message(message).priority
                lower = [other for other in ordered if self._message(other).priority < priority]
                self.ordered_before[message] = frozenset(lower)

    def _check_fifo(self, index: int) -> None:
        message = self._message(index)
        for other in self.consumed:
            before = self._message(other)
            equal = before.priority == message.priority or not self.scenario.options.prioritised
            if before.sender == message.sender and equal and other > index:
                raise PropertyViolation(
                    FIFO_AMONG_EQUALS,
                    f"{self.name} consumes {message.name} after {before.name}, which was broadcast later",
                )

    def _message(self, index: int) -> ScenarioMessage:
        return self.scenario.messages[index]

    def _indices(self, batch: Batch) -> list[int]:
        return [self.scenario.index_of(payload) for payload in batch.payloads()]
