"""What both forms of queue re-ordering have in common: joining, answering, agreeing, and consuming the head.

A sender sends its messages to all: they *join* the queues. Every member answers with what it knows at that
very moment, either to the sender, which decides when all have answered and tells everybody, or to all
(`distributed`), and then everybody decides alike. What is answered and decided, and how it orders a queue, is
the form's own.

A message has its place when the application consumes it: until then more urgent ones may overtake it.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.inspection import ProtocolInspection
from priocast.core.message import Batch, OrderedBatch
from priocast.core.protocol import (
    WINDOW_MAX,
    Broadcast,
    Consume,
    OrderingOptions,
    Packet,
    PacketId,
    Received,
    Turn,
)
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumed
from priocast.protocols.flow.frames import FRAMES_PER_TURN, Batches, BottleneckName
from priocast.protocols.flow.paced import PacedProtocol
from priocast.protocols.reorder.answers import (
    TOGETHER_MAX,
    AnswerT,
    Collector,
    Count,
    Key,
    PerBatch,
    together,
)
from priocast.protocols.reorder.level_order import Join, JoinT
from priocast.protocols.reorder.overtaking import Overtaking

#: What is offered at once: enough to share the cost of a step, and few to copy when it is overtaken.
_OFFERED_MAX = 64


class Data(Packet, frozen=True, tag="data"):
    """From a sender to all: these join; `number` counts the sender's packets of this kind."""

    TO_ALL = True

    number: Count
    batches: Batches
    bottleneck: BottleneckName = ""


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """What is agreed on for a packet of data: the number of each batch in its level, to begin with."""

    number: Count
    finals: PerBatch

    @property
    def weight(self) -> int:
        """Of how many entries it consists, if they are many."""
        return 0


DecisionT = TypeVar("DecisionT", bound=Decision)
_Together = msgspec.Meta(min_length=1, max_length=TOGETHER_MAX)


class Answers(Packet, Generic[AnswerT], frozen=True, tag="answers"):
    """From a member to a sender: where its messages may go."""

    answers: Annotated[tuple[AnswerT, ...], _Together]


class AnswersToAll(Packet, Generic[AnswerT], frozen=True, tag="answers-to-all"):
    """From a member to all, where nobody collects for the others."""

    TO_ALL = True

    answers: Annotated[tuple[AnswerT, ...], _Together]


class Decided(Packet, Generic[DecisionT], frozen=True, tag="decided"):
    """From a sender to all: where its messages go."""

    TO_ALL = True

    decisions: Annotated[tuple[DecisionT, ...], _Together]


class Queues(Protocol[JoinT]):
    """What a form keeps of the messages that were received and not consumed."""

    @property
    def waiting(self) -> int:
        """How many there are."""

    def consumable(self) -> tuple[JoinT, int] | None:
        """What may be consumed next, if anything may, and how many messages of it."""

    def blocked(self) -> JoinT | None:
        """What could be consumed if more were known about more urgent messages."""

    def consume(self, join: JoinT, count: int) -> None:
        """Messages were consumed that were consumable."""

    def end(self) -> None:
        """Nothing more will be agreed on: forget what is open."""

    def first_left(self) -> tuple[JoinT, int]:
        """What is next after the end, where something is left."""


class Reordering(PacedProtocol, Generic[JoinT, AnswerT, DecisionT]):
    """A member's part in the agreement, and the application's side of the queues.

    A form says how its packets are called, what it does with messages that join (`_join`), what it decides
    when all have answered (`_decision`), and what it does when that is known (`_agreed`).
    """

    PRIORITIES_ACT = "consuming"
    PARTITIONABLE = False
    ANSWERS: ClassVar[type[Answers[Any]]]
    ANSWERS_TO_ALL: ClassVar[type[AnswersToAll[Any]]]
    DECIDED: ClassVar[type[Decided[Any]]]
    QUEUED_MAX: ClassVar[int] = WINDOW_MAX

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, _with_long_queues(options, len(view.members), self.QUEUED_MAX), position)
        self._tentative: OrderedBatch | None = None
        self._next: tuple[JoinT, int] | None = None
        self._next_is_known = False
        self._data_sent = 0
        self._data_received = [0] * len(view.members)
        self._joining: dict[Key, list[JoinT]] = {}
        self._answers_due: dict[int, list[AnswerT]] = {}
        self._collector = Collector[AnswerT](me, view.members)
        self._decisions_due: list[DecisionT] = []
        self._own_open = 0
        self._overtaking = Overtaking(options.overtakes_max) if options.overtakes_max is not None else None

    @property
    @abstractmethod
    def _queues(self) -> Queues[JoinT]: ...

    @abstractmethod
    def _join(self, rank: int, data: Data, packet_id: PacketId) -> None:
        """Messages came that were accepted: take them into the queues, and note the answer."""

    @abstractmethod
    def _decision(self, number: int, answers: list[AnswerT]) -> DecisionT:
        """What follows from the answers of all members, in order of their ranks."""

    @abstractmethod
    def _agreed(self, joins: list[JoinT], decision: DecisionT) -> None:
        """All members know, or will know, where these messages go."""

    @property
    def backlog(self) -> int:
        return self.outgoing.count + self._queues.waiting

    @property
    def idle(self) -> bool:
        return not (self.outgoing or self._own_open or self._answers_due or self._decisions_due)

    @property
    def settled(self) -> bool:
        return not (self.outgoing or self._own_open)

    def _changed(self, now: int) -> None:
        """The queues are not what they were."""
        self._tentative = None
        self._next_is_known = False
        self.stalls.note(bool(self._joining) and self._queues.blocked() is not None, now)

    def head(self) -> OrderedBatch | None:
        """What has its place already, or else what has the next one if it is consumed now."""
        if self._ordered_batches:
            return self._ordered_batches[0]
        if self._tentative is None and (found := self._consumable()):
            join, count = found
            batch = join.next(min(count, _OFFERED_MAX))
            self._tentative = OrderedBatch(
                self.view.id, self.position_next, batch, self._dependencies_with(join)
            )
        return self._tentative

    def _consumable(self) -> tuple[JoinT, int] | None:
        """What may be consumed next, and how many messages of it, until the queues change."""
        if not self._next_is_known:
            self._next, self._next_is_known = self._queues.consumable(), True
        return self._next

    def inspect(self, now: int) -> ProtocolInspection:
        inspection, blocked = super().inspect(now), self._queues.blocked()
        return msgspec.structs.replace(
            inspection,
            unconsumed=inspection.unconsumed + self._queues.waiting,
            bottleneck=self._bottleneck_of_own(),
            stall_reason=f"{blocked.batch} waits until more urgent messages have their places"
            if blocked
            else "",
        )

    def _bottleneck_of_own(self) -> ProcessId | None:
        """The member that could consume own messages; none as long as some of them are not agreed on."""
        if not self.outgoing or self._own_open:
            return None
        slowest = self._bottleneck()
        if slowest is not None:
            return slowest if self.grants.consumed_by(slowest) < self.grants.ordered_count else None
        return None if self._room(self.outgoing.head_level()) > 0 else self.me

    def close(self) -> None:
        """Consume nothing more, but give all that was agreed on its place."""
        self._queues.end()
        self._tentative = self._next = None
        self._next_is_known = True
        while self._queues.waiting:
            self._commit(*self._queues.first_left())

    # Sender

    def on_turn(self, event: Turn, now: int) -> None:
        if self._answers_due:
            self._answer()
        if self._decisions_due:
            self._decide()
        for _ in range(FRAMES_PER_TURN):
            if self.blocked or not self.outgoing:
                return
            batches, bottleneck = self.take_frame()
            if not batches:
                return
            self._send(batches, bottleneck)
        self.more_to_do()

    def on_broadcast(self, event: Broadcast, now: int) -> None:
        """In a plain view all are of one level, also those that come from a prioritised one."""
        self.outgoing.put(event.batch if self.options.prioritised else event.batch.in_line(), now)

    def _room(self, level: int) -> int:
        room = super()._room(level)
        return room if self._overtaking is None else min(room, self._overtaking.room(level))

    def _leaves(self, batch: Batch) -> None:
        super()._leaves(batch)
        if self._overtaking is not None:
            self._overtaking.sent(batch.urgency, batch.count)

    def _send(self, batches: tuple[Batch, ...], bottleneck: str) -> None:
        self._own_open += 1
        self.send_all(Data(self._data_sent, batches, bottleneck))
        self._data_sent += 1

    def _decide(self) -> None:
        due, self._decisions_due = self._decisions_due, []
        for decisions in together(due):
            self.send_all(self.DECIDED(decisions))

    # Destination

    def on_received(self, event: Received, now: int) -> None:
        sender, rank = event.sender, self.ranks[event.sender]
        match event.packet:
            case Data() as data:
                self._on_data(sender, rank, data, event.packet_id)
                self._changed(now)
            case Answers(answers=answers):
                self._check_form(sender, distributed=False)
                for answer in answers:
                    self._check_is_ours(sender, answer)
                    self._collect(rank, answer, event.packet_id)
            case AnswersToAll(answers=answers):
                self._check_form(sender, distributed=True)
                for answer in answers:
                    self._collect(rank, answer, event.packet_id)
                self._changed(now)
            case Decided(decisions=decisions):
                self._check_form(sender, distributed=False)
                for decision in decisions:
                    self._on_decision(sender, rank, decision, event.packet_id)
                self._changed(now)
            case Consumed(total=total, window=window):
                self.grants.granted(sender, total, window)

    def _on_data(self, sender: ProcessId, rank: int, data: Data, packet_id: PacketId) -> None:
        if data.number != self._data_received[rank]:
            raise PeerFault(f"{sender} sends data {data.number}, where {self._data_received[rank]} is next")
        self._data_received[rank] += 1
        self.accept(sender, data.batches, data.bottleneck)
        for batch in data.batches:
            self.has_safe |= batch.scope.safe
        self._join(rank, data, packet_id)

    def _joined(self, key: Key, joins: list[JoinT], answer: AnswerT, packet_ids: Sequence[PacketId]) -> None:
        """Messages have joined the queues here: answer that, and remember them until they are agreed on."""
        for join in joins:
            join.packet_ids += packet_ids
        self._joining[key] = joins
        self._answers_due.setdefault(key[0], []).append(answer)

    def _answer(self) -> None:
        due, self._answers_due = self._answers_due, {}
        if self.options.distributed:
            for answers in together([answer for owed in due.values() for answer in owed]):
                self.send_all(self.ANSWERS_TO_ALL(answers))
            return
        for rank, owed in due.items():
            for answers in together(owed):
                self.send(self.view.members[rank], self.ANSWERS(answers))

    def _check_form(self, sender: ProcessId, distributed: bool) -> None:
        if distributed != self.options.distributed:
            ways = ("with each sender", "distributed")
            raise PeerFault(f"{sender} agrees {ways[distributed]}, {self.me} {ways[not distributed]}")

    def _check_is_ours(self, sender: ProcessId, answer: AnswerT) -> None:
        if answer.sender != self.ranks[self.me] or answer.number >= self._data_sent:
            raise PeerFault(f"{sender} answers data {answer.number}, which {self.me} never sent")

    def _collect(self, rank: int, answer: AnswerT, packet_id: PacketId) -> None:
        self._check_answer(self.view.members[rank], answer)
        if not self.options.distributed:
            packet_id = (rank, 0)  # To one member alone: not kept.
        complete = self._collector.add(rank, answer, packet_id)
        if complete is None:
            return
        decision = self._decision(answer.number, complete.answers)
        if self.options.distributed:
            self._agree((answer.sender, answer.number), decision, complete.packet_ids)
        else:
            self._decisions_due.append(decision)

    def _check_answer(self, sender: ProcessId, answer: AnswerT) -> None:
        """Accept an answer, or say what is wrong with it."""

    def _on_decision(self, sender: ProcessId, rank: int, decision: DecisionT, packet_id: PacketId) -> None:
        if sender != self.me:
            self._check_decision(sender, self._joining.get((rank, decision.number), []), decision)
        self._agree((rank, decision.number), decision, [packet_id])

    def _check_decision(self, sender: ProcessId, joins: list[JoinT], decision: DecisionT) -> None:
        """Accept what another member has decided, or say what is wrong with it."""
        if len(joins) != len(decision.finals):
            raise PeerFault(f"{sender} decides on data {decision.number}, which does not wait for it")
        if any(final < join.proposal for join, final in zip(joins, decision.finals, strict=True)):
            raise PeerFault(f"{sender} gives data {decision.number} a lower number than {self.me} proposed")

    def _agree(self, key: Key, decision: DecisionT, packet_ids: list[PacketId]) -> None:
        if key[0] == self.ranks[self.me]:
            self._own_open -= 1
        joins = self._joining.pop(key)
        for join in joins:
            join.packet_ids += packet_ids
            if self._overtaking is not None:
                self._overtaking.waits(join)
        self._agreed(joins, decision)

    # Application

    def _on_consume(self, event: Consume, now: int) -> None:
        if not self._ordered_batches:
            found = self._consumable()
            assert found is not None and event.count <= found[1]
            self._commit(found[0], event.count)
        super()._on_consume(event, now)
        self._changed(now)
        if self.outgoing and self._overtaking is not None:
            self.more_to_do()  # What was consumed may have been all that more urgent messages waited for.

    def _commit(self, join: JoinT, count: int) -> None:
        """The next messages of a join have their places: nothing overtakes them any more."""
        batch = join.next(count)
        self._queues.consume(join, count)
        for packet_id in join.packet_ids:
            self.depends_on(packet_id)
        self.place_next(batch)

    def _dependencies_with(self, join: Join) -> tuple[int, ...]:
        dependencies = list(self._dependencies)
        for rank, number in join.packet_ids:
            dependencies[rank] = max(dependencies[rank], number)
        return tuple(dependencies)


def highest(proposals: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The largest number that anybody proposes for each batch."""
    return tuple(map(max, zip(*proposals, strict=True)))


def _with_long_queues(options: OrderingOptions, members: int, queued_max: int) -> OrderingOptions:
    """What is queued can be overtaken, so a sender may have as much under way as it may send at all."""
    return msgspec.structs.replace(
        options,
        window=min(queued_max, members * options.submit_max),
        window_bytes=members * options.submit_bytes_max,
    )
