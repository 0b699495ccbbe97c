"""A station: one member of the group while one view lasts, and what it and its application have done.

It is what `Member` and `Epoch` are, without links, clock and membership: the same inputs in the same order,
acted on in the same steps. Whatever a later step or check may depend on is an attribute, and nothing else is:
so the digest of a station is its state.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from priocast.core.assembler import Assembler
from priocast.core.guarantees import FIFO_AMONG_EQUALS, INTEGRITY, TOTAL_ORDER
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import (
    Broadcast,
    CancelTimer,
    Consume,
    Input,
    MoreToDo,
    Packet,
    Received,
    Send,
    SendAll,
    SendEach,
    SetTimer,
    TimerFired,
    Turn,
)
from priocast.core.view import View
from priocast.exploration.scenario import ExplorationScenario, ScenarioMessage
from priocast.exploration.violation import PropertyViolation

#: By what a step sends: to whom, by rank, and what.
Sent = list[tuple[int, Packet]]


class ViewEnd(NamedTuple):
    """How the view ended at one member: all that it consumes of it, and what it has to send again."""

    consumed: tuple[int, ...]
    unordered: tuple[int, ...]


class MemberModel:
    """One member. Messages are known by their index in the scenario, members by their rank."""

    def __init__(self, scenario: ExplorationScenario, rank: int) -> None:
        view = View(1, tuple(map(ProcessId, scenario.members)))
        self.rank = rank
        self.scenario = scenario
        self.protocol = scenario.protocol(view.members[rank], view, scenario.options)
        self.to_say = [index for index, said in enumerate(scenario.messages) if said.sender == rank]
        self.consumed: list[int] = []
        #: By message: which less urgent ones were consumed here, or had a place here, when it came.
        self.placed_before: dict[int, frozenset[int]] = {}
        self.held = [0] * scenario.processes
        self.sent_to_all: list[Packet] = []
        self.restless = False
        self.timers: dict[str, int] = {}
        self._assembler = Assembler(view.members[rank], scenario.options.prioritised)
        self._to_myself: deque[Packet] = deque()
        self._now = 0
        self._sent: Sent = []

    @property
    def name(self) -> str:
        return self.scenario.members[self.rank]

    @property
    def has_work(self) -> bool:
        """Whether a step of a turn would act on anything."""
        return self.restless or bool(self._assembler.count or self._to_myself)

    @property
    def said(self) -> tuple[int, ...]:
        """The messages that its application has broadcast."""
        own = [index for index, said in enumerate(self.scenario.messages) if said.sender == self.rank]
        return tuple(own[: len(own) - len(self.to_say)])

    def head(self) -> int | None:
        """The message that the application may consume next; asking changes nothing."""
        ordered_batch = self.protocol.head()
        if ordered_batch is None:
            return None
        message = self._index(ordered_batch.batch, ordered_batch.taken)
        place = ordered_batch.position + ordered_batch.taken
        if place != len(self.consumed):
            raise PropertyViolation(
                TOTAL_ORDER, f"{self.name} is offered place {place} after {len(self.consumed) - 1}"
            )
        if message in self.consumed:
            raise PropertyViolation(INTEGRITY, f"{self.name} is offered {self._said(message).name} twice")
        return message

    # Moves

    def say(self) -> Sent:
        """The application broadcasts its next message."""
        said = self._said(self.to_say.pop(0))
        self._assembler.add(said.name.encode(), said.priority)
        return self._act_on_it()

    def receive(self, sender: int, packet: Packet) -> Sent:
        """A packet comes from another member."""
        self._hear(sender, packet)
        self.restless = True
        return self._act_on_it()

    def consume(self) -> Sent:
        """The application consumes the next message."""
        message = self.head()
        assert message is not None
        self._check_fifo(message)
        self._step(Consume(1))
        self.consumed.append(message)
        if not self.scenario.free_turns:
            self._come_to_rest()
        return self._take_sent()

    def act(self) -> Sent:
        """One step of a turn."""
        for batch in self._assembler.close():
            self._step(Broadcast(batch))
        self.restless = False
        self._hear_myself()
        self._step(Turn())
        return self._take_sent()

    def fire(self, timer: str) -> Sent:
        """A timer is due."""
        self._now = max(self._now, self.timers.pop(timer))
        self.restless = True
        self._step(TimerFired(timer))
        return self._act_on_it()

    # The end of the view

    def end(self, missing: Sequence[tuple[int, Packet]]) -> ViewEnd:
        """The view is over; others hand over packets to all that they hold, by the rank of their sender."""
        self._hear_myself()
        for sender, packet in missing:
            self._hear(sender, packet)
        self.protocol.close()
        for ordered_batch in self.protocol.unconsumed():
            self.consumed += self._indices(ordered_batch.batch)[ordered_batch.taken :]
        unsaid = [message for batch in self._assembler.close() for message in self._indices(batch)]
        unordered = [message for batch in self.protocol.unordered() for message in self._indices(batch)]
        return ViewEnd(tuple(self.consumed), (*unordered, *unsaid))

    # Within a move

    def _act_on_it(self) -> Sent:
        if not self.scenario.free_turns:
            self.restless = True
            self._come_to_rest()
        return self._take_sent()

    def _come_to_rest(self) -> None:
        sent = self._take_sent()
        while self.has_work:
            sent += self.act()
        self._sent = sent

    def _take_sent(self) -> Sent:
        sent, self._sent = self._sent, []
        return sent

    def _hear_myself(self) -> None:
        while self._to_myself:
            self._hear(self.rank, self._to_myself.popleft())

    def _hear(self, sender: int, packet: Packet) -> None:
        self.held[sender] += packet.TO_ALL
        packet_id = (sender, self.held[sender] if packet.TO_ALL else 0)
        self._step(Received(self.protocol.view.members[sender], packet, packet_id))
        if self.scenario.judges_priority:
            for batch in getattr(packet, "batches", ()):
                self._note_coming(batch)

    def _step(self, event: Input) -> None:
        for output in self.protocol.step(event, self._now):
            match output:
                case SendAll(packet=packet):
                    if self.scenario.view_ends:
                        self.sent_to_all.append(packet)
                    self._send_to_all(packet)
                case SendEach(packet=packet):
                    self._send_to_all(packet)
                case Send(to=to, packet=packet):
                    self._send(self.protocol.ranks[to], packet)
                case SetTimer(name=name, at=at):
                    self.timers[name] = at
                case CancelTimer(name=name):
                    self.timers.pop(name, None)
                case MoreToDo():
                    self.restless = True

    def _send_to_all(self, packet: Packet) -> None:
        for rank in range(self.scenario.processes):
            self._send(rank, packet)

    def _send(self, rank: int, packet: Packet) -> None:
        if rank == self.rank:
            self._to_myself.append(packet)
        else:
            self._sent.append((rank, packet))

    def _note_coming(self, batch: Batch) -> None:
        """Note what had its place when messages came; a place that they brought about came before them."""
        placed = {*self.consumed}
        for ordered_batch in self.protocol.unconsumed():
            placed.update(self._indices(ordered_batch.batch))
        for message in self._indices(batch):
            if message not in self.placed_before:
                priority = self._said(message).priority
                lower = [other for other in placed if self._said(other).priority < priority]
                self.placed_before[message] = frozenset(lower)

    def _check_fifo(self, message: int) -> None:
        said = self._said(message)
        for other in self.consumed:
            before = self._said(other)
            equal = before.priority == said.priority or not self.scenario.options.prioritised
            if before.sender == said.sender and equal and other > message:
                raise PropertyViolation(
                    FIFO_AMONG_EQUALS, f"{self.name} consumes {said.name} after {before.name}, said later"
                )

    def _said(self, message: int) -> ScenarioMessage:
        return self.scenario.messages[message]

    def _indices(self, batch: Batch) -> list[int]:
        return [self.scenario.index_of(payload) for payload in batch.payloads()]

    def _index(self, batch: Batch, taken: int) -> int:
        return self._indices(batch)[taken]
