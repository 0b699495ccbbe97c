"""Queue re-ordering with lock-sets: the paper's own form, corrected.

Gives: Integrity, Total order, Agreement, FIFO among equals, Priority accounting: of two messages the less
    urgent one goes first exactly if some member had consumed it when the other one came there. With
    `overtakes_max`, Bounded overtaking: members send no more urgent ones than that while they have not
    consumed what they know to be queued. Plain: FIFO order.
Costs: three hops and 3 (n - 1) frames a message (data, answers, decision), shared by all messages of a frame;
    fully `distributed`: two hops and (n + 1) (n - 1) frames. One report of consumption per member and
    quarter of what a sender may have under way. Locking and inserting take time in proportion to the queue,
    so that no more than 1,024 messages are queued.
Orders: all members together, by what they had queued and consumed when a message came; the sender collects
    it.
Assumes: reliable FIFO links, a fixed view, applications for which a message takes longer than two hops.
Priorities act: in the sender's outgoing queue, and in every member's queue of messages to be consumed.
Reference: the reorder paper, section 4.4, with figures 1 and 4. Its section 4.3, one message at a time, is
    `ReorderLocksInTurn`, which tests compare with this one.
Diverges: the concurrent version, as written, does not keep the order total. Here a message is not inserted
    before all that its history-set names are inserted (the wait rule); one agreed order per level, by the
    largest number that members propose, governs insertion, the lowest level included; the dummy tail has a
    lock-set; a batch inserts its messages together. Target-tails and histories travel as one span of
    numbers per sender and level, and what all have consumed is left out of histories; the wait rule counts
    what was inserted, so a late answer that names such a message holds nothing up. A view's messages need
    the answers of all its members; if it ends before, what nobody can have consumed is sent again, and
    nobody goes on without an answer as in figure 4.
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_, or_
from typing import Annotated, ClassVar

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import CONTROL, Batch
from priocast.core.protocol import OrderingOptions, Packet, PacketId, Received, Turn
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumed
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX
from priocast.protocols.reorder.answers import Answer, Count, Key
from priocast.protocols.reorder.base import (
    Answers,
    AnswersToAll,
    Data,
    Decided,
    Decision,
    Reordering,
    highest,
)
from priocast.protocols.reorder.consumed_history import ConsumedHistory
from priocast.protocols.reorder.lock_queue import LockJoin, LockQueue
from priocast.protocols.reorder.message_sets import MessageSet, Run, Runs

_TURNS_MAX = 1024
_FOR_EACH_BATCH = msgspec.Meta(min_length=1, max_length=FRAME_BATCHES_MAX)

Tails = Annotated[tuple[Runs, ...], _FOR_EACH_BATCH]
Point = tuple[Annotated[int, msgspec.Meta(ge=0, le=CONTROL)], Count, Count]
Points = Annotated[tuple[Point | None, ...], _FOR_EACH_BATCH]


def _listed(runs: Iterable[Run]) -> str:
    return f"[{' '.join(map(str, runs))}]"


def _named(point: Point) -> str:
    level, sender, number = point
    return f"{sender}/{level}/{number}"


class LockAnswer(Answer, frozen=True, array_like=True):
    """With the target-tail that each batch has locked, and the consumed-history, both at that moment."""

    tails: Tails
    history: Runs

    @property
    def weight(self) -> int:
        return sum(map(len, self.tails)) + len(self.history)

    def __str__(self) -> str:
        tails = " ".join(map(_listed, self.tails))
        return f"{self.sender}:{self.number} {self.proposals} locks {tails} consumed {_listed(self.history)}"


class LockDecision(Decision, frozen=True, array_like=True):
    """With each batch's provisional insertion point (null: the tail), and the history-set of all of them.

    What is `collected` was consumed by all members.
    """

    points: Points
    history: Runs
    collected: Runs

    @property
    def weight(self) -> int:
        return len(self.history) + len(self.collected)

    def __str__(self) -> str:
        points = " ".join("tail" if point is None else _named(point) for point in self.points)
        after, collected = _listed(self.history), _listed(self.collected)
        return f"{self.number} {self.finals} before {points} after {after} collected {collected}"


class LockAnswers(Answers[LockAnswer], frozen=True, tag="answers"):
    """From a member to a sender: where its messages may go."""


class LockAnswersToAll(AnswersToAll[LockAnswer], frozen=True, tag="answers-to-all"):
    """From a member to all, where nobody collects for the others."""


class LockDecided(Decided[LockDecision], frozen=True, tag="decided"):
    """From a sender to all: where its messages go."""


class ReorderLocks(Reordering[LockJoin, LockAnswer, LockDecision]):
    """A member's part in the protocol."""

    NAME = "reorder-locks"
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, LockAnswers, LockAnswersToAll, LockDecided, Consumed)
    ANSWERS = LockAnswers
    ANSWERS_TO_ALL = LockAnswersToAll
    DECIDED = LockDecided
    QUEUED_MAX = 1024
    FRAME_BATCHES_MAX = 32

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._queue = LockQueue(self.ranks[me], len(view.members))
        self._history = ConsumedHistory(len(view.members))

    @property
    def _queues(self) -> LockQueue:
        return self._queue

    def _join(self, rank: int, data: Data, packet_id: PacketId) -> None:
        self._lock(rank, data, [packet_id])

    def _lock(self, rank: int, data: Data, packet_ids: list[PacketId]) -> None:
        """The lock phase: what is answered is the state of the queue at the moment of locking."""
        history = self._history.messages.runs
        locked = [
            self._queue.receive(batch, (rank, data.number, index)) for index, batch in enumerate(data.batches)
        ]
        proposals = tuple(join.proposal for join, _ in locked)
        tails = tuple(tail.runs for _, tail in locked)
        answer = LockAnswer(rank, data.number, proposals, tails, history)
        self._joined((rank, data.number), [join for join, _ in locked], answer, packet_ids)

    def _check_answer(self, sender: ProcessId, answer: LockAnswer) -> None:
        named = (run for runs in (*answer.tails, answer.history) for run in runs)
        if len(answer.tails) != len(answer.proposals) or any(
            run.sender >= len(self.view.members) for run in named
        ):
            raise PeerFault(
                f"{sender} answers data {answer.number} with messages of nobody, or not all of it"
            )

    def _decision(self, number: int, answers: list[LockAnswer]) -> LockDecision:
        """The common-sets (equation 4) and the history-set (equation 5)."""
        histories = [MessageSet.of(answer.history) for answer in answers]
        for rank, history in enumerate(histories):
            self._history.hear(rank, history)
        commons = [
            reduce(and_, map(MessageSet.of, tails))
            for tails in zip(*(answer.tails for answer in answers), strict=True)
        ]
        return LockDecision(
            number,
            highest([answer.proposals for answer in answers]),
            tuple(self._queue.first_of(common) for common in commons),
            reduce(or_, histories).runs,
            self._history.everywhere.runs,
        )

    def _check_decision(self, sender: ProcessId, joins: list[LockJoin], decision: LockDecision) -> None:
        super()._check_decision(sender, joins, decision)
        if len(decision.points) != len(joins) or not all(map(self._queue.has_locked, joins, decision.points)):
            raise PeerFault(f"{sender} inserts data {decision.number} before messages that it has not locked")
        if not self._history.includes(MessageSet.of(decision.collected)):
            raise PeerFault(f"{sender} says that all have consumed what {self.me} has not")

    def _agreed(self, joins: list[LockJoin], decision: LockDecision) -> None:
        """The insertion phase, as far as the wait rule allows."""
        self._history.collect(MessageSet.of(decision.collected))
        history = MessageSet.of(decision.history)
        for join, final, point in zip(joins, decision.finals, decision.points, strict=True):
            self._queue.agree(join, final, point, history)

    def _commit(self, join: LockJoin, count: int) -> None:
        super()._commit(join, count)
        self._history.add(join.stream, count)


class Turns(Packet, frozen=True, tag="turns"):
    """From the coordinator to all: these packets of data (the sender's rank, the number) are next to join."""

    TO_ALL = True

    turns: Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(min_length=1, max_length=_TURNS_MAX)]


class ReorderLocksInTurn(ReorderLocks):
    """A member's part where one batch at a time joins, in one order everywhere (section 4.3).

    The view's coordinator says whose turn it is. Each batch locks when the one before it is inserted, so an
    urgent one waits for those that came before it: what counts as its coming is its turn.
    """

    NAME = "reorder-locks-in-turn"
    PACKETS = (*ReorderLocks.PACKETS, Turns)

    def __init__(self, me: ProcessId, view: View, options: OrderingOptions, position: int = 0) -> None:
        super().__init__(me, view, options, position)
        self._turns_due: list[Key] = []
        self._turns: list[tuple[Key, PacketId]] = []
        self._turns_given = [0] * len(view.members)
        self._waiting: dict[Key, tuple[Data, PacketId]] = {}
        self._current: Key | None = None

    @property
    def backlog(self) -> int:
        waiting = (batch.count for data, _ in self._waiting.values() for batch in data.batches)
        return super().backlog + sum(waiting)

    @property
    def idle(self) -> bool:
        return super().idle and not self._turns_due

    def on_turn(self, event: Turn, now: int) -> None:
        due, self._turns_due = self._turns_due, []
        for first in range(0, len(due), _TURNS_MAX):
            self.send_all(Turns(tuple(due[first : first + _TURNS_MAX])))
        super().on_turn(event, now)

    def take_frame(self) -> tuple[tuple[Batch, ...], str]:
        """One batch, which joins by itself."""
        room = self._room(self.outgoing.head_level()) if self.outgoing else 0
        if room <= 0:
            return (), ""
        batch = self.outgoing.take(room)
        self._leaves(batch)
        bottleneck = self._bottleneck()
        return (batch,), bottleneck.name if bottleneck else ""

    def on_received(self, event: Received, now: int) -> None:
        if isinstance(event.packet, Turns):
            self._on_turns(event.sender, event.packet, event.packet_id)
            self._changed(now)
        else:
            super().on_received(event, now)

    def _on_turns(self, sender: ProcessId, packet: Turns, packet_id: PacketId) -> None:
        for rank, number in packet.turns:
            known = rank < len(self._turns_given) and number == self._turns_given[rank]
            if sender != self.view.coordinator or not known:
                raise PeerFault(
                    f"{sender} gives a turn to data {number} of rank {rank}, whose turn it is not"
                )
            self._turns_given[rank] += 1
            self._turns.append(((rank, number), packet_id))
        self._proceed()

    def _join(self, rank: int, data: Data, packet_id: PacketId) -> None:
        self._waiting[rank, data.number] = (data, packet_id)
        if self.me == self.view.coordinator:
            self._turns_due.append((rank, data.number))
        self._proceed()

    def _proceed(self) -> None:
        """Let the next batch lock if it is here, and the one before it is inserted."""
        if self._current is None and self._turns and self._turns[0][0] in self._waiting:
            key, packet_id = self._turns.pop(0)
            data, mark_of_data = self._waiting.pop(key)
            self._current = key
            self._lock(key[0], data, [mark_of_data, packet_id])

    def _agree(self, key: Key, decision: LockDecision, packet_ids: list[PacketId]) -> None:
        super()._agree(key, decision, packet_ids)
        self._current = None
        self._proceed()
