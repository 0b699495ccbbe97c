"""Re-ordering with locks: what it refuses, what an application sees, and how a view ends.

What it does step by step when everybody behaves is in scripts: `wait-rule-*`, `low-*`, `lock-inheritance`,
`empty-queue-tail-lock`, `same-level-concurrent-insert`, `snapshot-lock-atomic`, `no-lower-lock-blocks-high`
and `gc-late-ack`; the queue by itself is in `test_lock_queue.py`.
"""

from copy import deepcopy

import msgspec
import pytest

from core.builders import A, B, C, batch_of
from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.protocol import Consume, OrderingOptions, Output, Packet
from priocast.protocols.reorder.base import Data
from priocast.protocols.reorder.locks import (
    LockAnswer,
    LockAnswers,
    LockAnswersToAll,
    LockDecided,
    LockDecision,
    ReorderLocks,
    ReorderLocksInTurn,
    Turns,
)
from priocast.protocols.reorder.message_sets import Run
from protocols.harness import Delivered, Group
from protocols.schedules import NAMES
from protocols.single_member import hear, member_of, packets, say, turn
from protocols.view_sequences import ViewPlan, end_view

FORMS: list[type[ReorderLocks]] = [ReorderLocks, ReorderLocksInTurn]

pytestmark = pytest.mark.usefixtures("reorder_locks_in_turn")


def _member(me: ProcessId, form: type[ReorderLocks] = ReorderLocks, **options: int) -> ReorderLocks:
    return member_of(form, me, **options)


def _hear(member: ReorderLocks, sender: ProcessId, packet: Packet, now: int = 0) -> list[Output]:
    return hear(member, sender, packet, (member.ranks[sender], 1), now)


def _data(sender: ProcessId, level: int = 0, number: int = 0) -> Data:
    return Data(number, (batch_of(1, level, sender=sender),))


def _answer(sender: int = 0, **changes: object) -> LockAnswer:
    answer = LockAnswer(sender, 0, (1,), ((),), ())
    return msgspec.structs.replace(answer, **changes)


def _decision(**changes: object) -> LockDecision:
    return msgspec.structs.replace(LockDecision(0, (9,), (None,), (), ()), **changes)


def _decide(member: ReorderLocks, sender: ProcessId, decision: LockDecision, now: int = 0) -> None:
    _hear(member, sender, LockDecided((decision,)), now)


class TestWhatIsRefused:
    @pytest.mark.parametrize("number", [1, 2])
    def test_data_out_of_line(self, number: int) -> None:
        with pytest.raises(PeerFault, match=f"b#1 sends data {number}, where 0 is next"):
            _hear(_member(A), B, _data(B, number=number))

    def test_messages_of_another_sender(self) -> None:
        with pytest.raises(PeerFault, match="b#1 submits a message of c#1"):
            _hear(_member(A), B, _data(C))

    @pytest.mark.parametrize("answer", [_answer(), _answer(1)])
    def test_an_answer_to_what_was_never_sent(self, answer: LockAnswer) -> None:
        with pytest.raises(PeerFault, match="b#1 answers data 0, which a#1 never sent"):
            _hear(_member(A), B, LockAnswers((answer,)))

    @pytest.mark.parametrize(
        ("answer", "fault"),
        [
            (_answer(proposals=(1, 1), tails=((), ())), "c#1 does not answer to each batch of data"),
            (_answer(tails=((), ())), "c#1 answers data 0 with messages of nobody, or not all of it"),
            (_answer(tails=((Run(0, 3, 0, 1),),)), "c#1 answers data 0 with messages of nobody"),
            (_answer(history=(Run(0, 3, 0, 1),)), "c#1 answers data 0 with messages of nobody"),
        ],
    )
    def test_an_answer_that_makes_no_sense(self, answer: LockAnswer, fault: str) -> None:
        member = _member(A)
        say(member, batch_of(1, sender=A))
        turn(member)
        _hear(member, A, LockAnswers((_answer(),)))
        _hear(member, B, LockAnswers((_answer(),)))
        with pytest.raises(PeerFault, match=fault):
            _hear(member, C, LockAnswers((answer,)))

    def test_a_second_answer(self) -> None:
        member = _member(A, distributed=True)
        _hear(member, B, LockAnswersToAll((_answer(1),)))
        with pytest.raises(PeerFault, match=r"b#1 answers data \(1, 0\), where number 1 is next"):
            _hear(member, B, LockAnswersToAll((_answer(1),)))

    def test_an_answer_to_a_sender_that_is_no_member(self) -> None:
        with pytest.raises(PeerFault, match="b#1 answers a sender that is no member"):
            _hear(_member(A, distributed=True), B, LockAnswersToAll((_answer(3),)))

    @pytest.mark.parametrize("packet", [LockAnswers((_answer(),)), LockDecided((_decision(),))])
    def test_another_way_to_agree(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="b#1 agrees with each sender, a#1 distributed"):
            _hear(_member(A, distributed=True), B, packet)
        with pytest.raises(PeerFault, match="b#1 agrees distributed, a#1 with each sender"):
            _hear(_member(A), B, LockAnswersToAll((_answer(),)))

    @pytest.mark.parametrize("decision", [_decision(number=1), _decision(finals=(9, 9), points=(None, None))])
    def test_a_decision_for_which_nothing_waits(self, decision: LockDecision) -> None:
        member = _member(A)
        _hear(member, B, _data(B))
        with pytest.raises(PeerFault, match=r"b#1 decides on data ., which does not wait for it"):
            _decide(member, B, decision)

    @pytest.mark.parametrize("points", [((0, 1, 0),), ((9, 2, 0),), (None, None)])
    def test_a_place_before_what_was_not_locked(
        self, points: tuple[tuple[int, int, int] | None, ...]
    ) -> None:
        """Nothing like that is here, or it is not less urgent."""
        member = _member(A)
        _hear(member, C, _data(C, level=9))
        _decide(member, C, _decision())
        _hear(member, B, _data(B, level=5))
        with pytest.raises(PeerFault, match="b#1 inserts data 0 before messages that it has not locked"):
            _decide(member, B, _decision(points=points))

    def test_collecting_what_was_not_consumed_here(self) -> None:
        member = _member(A)
        _hear(member, B, _data(B))
        with pytest.raises(PeerFault, match="b#1 says that all have consumed what a#1 has not"):
            _decide(member, B, _decision(collected=(Run(0, 1, 0, 1),)))

    @pytest.mark.parametrize(
        ("sender", "turns"), [(B, ((1, 0),)), (A, ((3, 0),)), (A, ((1, 1),)), (A, ((1, 0), (1, 0)))]
    )
    def test_a_turn_that_is_not_the_next(self, sender: ProcessId, turns: tuple[tuple[int, int], ...]) -> None:
        with pytest.raises(
            PeerFault, match=f"{sender} gives a turn to data . of rank ., whose turn it is not"
        ):
            _hear(_member(B, ReorderLocksInTurn), sender, Turns(turns))


class TestWhatAnApplicationSees:
    def test_a_locked_head_is_a_measured_wait(self) -> None:
        """And it has a reason."""
        member = _member(A)
        _hear(member, B, _data(B))
        _decide(member, B, _decision())
        assert (member.head() is None, member.stall_reason()) == (False, "")
        _hear(member, C, _data(C, level=9), now=10)
        assert member.head() is None
        assert member.stall_reason() == "b#1/0/0+1 waits until more urgent messages have their places"
        assert member.stalls.count == 1
        _decide(member, C, _decision(points=((0, 1, 0),)), now=35)
        head = member.head()
        assert head is not None
        assert (str(head.batch), member.stall_reason()) == ("c#1/9/0+1", "")
        assert (member.stalls.total_ns, member.stalls.longest_ns) == (25, 25)

    def test_a_message_has_its_place_when_it_is_consumed(self) -> None:
        member = _member(A)
        _hear(member, B, _data(B))
        _decide(member, B, _decision())
        assert (member.position_next, member.unconsumed_count, member.backlog) == (0, 1, 1)
        member.step(Consume(1), now=0)
        assert (member.position_next, member.unconsumed_count, member.backlog) == (1, 0, 0)

    def test_what_waits_and_whose_consumption_would_help(self) -> None:
        member = _member(A, submit_max=1)
        for number in range(2):
            say(member, batch_of(1, first=number, sender=A))
        (data,) = packets(turn(member), Data)
        _hear(member, A, data)
        assert (member.bottleneck(), member.idle, member.settled) == (None, False, False)
        _decide(member, A, _decision())
        assert member.bottleneck() == A
        member.step(Consume(1), now=0)
        assert member.bottleneck() in (A, B, C)

    def test_no_more_is_queued_than_locking_can_bear(self) -> None:
        member = _member(A)
        say(member, batch_of(1_000, sender=A))
        (data,) = packets(turn(member), Data)
        assert sum(batch.count for batch in data.batches) <= ReorderLocks.QUEUED_MAX // 3

    @pytest.mark.parametrize("form", FORMS)
    def test_a_member_can_be_copied_and_goes_its_own_way(self, form: type[ReorderLocks]) -> None:
        """Whoever explores what may happen copies whole members."""
        member = _member(A, form)
        _hear(member, B, _data(B))
        if form is ReorderLocksInTurn:
            _hear(member, A, Turns(((1, 0),)))
        other = deepcopy(member)
        _decide(other, B, _decision())
        assert member.head() is None
        assert other.head() is not None


class TestTheEndOfAView:
    """Everybody has l in its queue; c has consumed it when h comes there, so l goes before h."""

    @staticmethod
    def _group(sender: str, distributed: bool) -> Group:
        group = Group(["a", "b", "c"], ReorderLocks.NAME, OrderingOptions(distributed=distributed))
        group.broadcast("a", 0, [b"l"])
        assert group.settle(rounds_max=20, consumers=["c"])
        group.broadcast(sender, 9, [b"h"])
        group.turn(sender)
        return group

    @staticmethod
    def _answers(group: Group, name: str, sender: str, to: str) -> None:
        """Let h come to a member, and its answer to these (a letter each)."""
        group.deliver(sender, name, 100)
        group.turn(name)
        for peer in to:
            group.deliver(name, peer, 100)

    @staticmethod
    def _ending(group: Group, survivors: str) -> dict[str, tuple[str, str]]:
        """What those who go on have delivered of the view in the end, and what each has to send again."""
        bits = sum(1 << NAMES.index(name) for name in survivors)
        ends = end_view(group, ViewPlan(group.order, group.options, [], bits, 0, 100, assembled=True))
        said = dict.fromkeys(survivors, "")
        for happened in group.journal:
            if isinstance(happened, Delivered) and happened.member in said:
                said[happened.member] += happened.message.payload.decode()
        for name, end in ends.items():
            said[name] += "".join(
                b"".join(ordered_batch.batch.payloads()).decode() for ordered_batch in end.tail
            )
        return {
            name: (
                said[name],
                b"".join(each for batch in end.unordered for each in batch.payloads()).decode(),
            )
            for name, end in ends.items()
        }

    def test_view_change_departed_ack_counted(self) -> None:
        """An answer counts if anybody has it who goes on: a may have consumed h because of it."""
        group = self._group(sender="b", distributed=True)
        self._answers(group, "a", sender="b", to="bc")
        self._answers(group, "c", sender="b", to="a")
        assert group.consume("a", 2) == 2
        assert self._ending(group, "ab") == {"a": ("lh", ""), "b": ("lh", "")}

    def test_view_change_departed_ack_counted_by_who_decided_on_it(self) -> None:
        group = self._group(sender="b", distributed=False)
        self._answers(group, "a", sender="b", to="b")
        self._answers(group, "c", sender="b", to="b")
        group.turn("b")
        assert group.consume("b", 2) == 2
        assert self._ending(group, "ab") == {"a": ("lh", ""), "b": ("lh", "")}

    @pytest.mark.parametrize("distributed", [False, True])
    def test_an_answer_that_nobody_has_who_goes_on_is_not_guessed(self, distributed: bool) -> None:
        group = self._group(sender="b", distributed=distributed)
        self._answers(group, "a", sender="b", to="bc")
        self._answers(group, "c", sender="b", to="")
        assert self._ending(group, "ab") == {"a": ("l", ""), "b": ("l", "h")}

    @pytest.mark.parametrize("distributed", [False, True])
    def test_view_change_missing_survivor_ack(self, distributed: bool) -> None:
        """As many answers as members are left are not enough: that of b is missing, which goes on."""
        group = self._group(sender="a", distributed=distributed)
        self._answers(group, "c", sender="a", to="ab")
        assert self._ending(group, "ab") == {"a": ("l", "h"), "b": ("l", "")}

    def test_what_a_departed_member_decided_for_itself_binds_nobody(self) -> None:
        """Who goes on forgets h, which c has consumed, and its lock."""
        group = self._group(sender="c", distributed=False)
        for name in "ab":
            self._answers(group, name, sender="c", to="c")
        group.turn("c")
        assert group.consume("c", 1) == 1
        assert self._ending(group, "ab") == {"a": ("l", ""), "b": ("l", "")}


class TestOneAtATime:
    def test_the_coordinator_gives_turns_in_which_batches_lock(self) -> None:
        coordinator, member = _member(A, ReorderLocksInTurn), _member(B, ReorderLocksInTurn)
        for each in (coordinator, member):
            _hear(each, B, _data(B))
            _hear(each, C, _data(C, level=9))
        assert packets(turn(member), LockAnswers) == []
        assert packets(turn(coordinator), Turns) == [Turns(((1, 0), (2, 0)))]
        _hear(member, A, Turns(((1, 0), (2, 0))))
        assert packets(turn(member), LockAnswers) == [LockAnswers((_answer(1, proposals=(4,)),))]
        _decide(member, B, _decision())
        assert packets(turn(member), LockAnswers) == [
            LockAnswers((_answer(2, proposals=(4,), tails=((Run(0, 1, 0, 1),),)),))
        ]
        assert member.backlog == 2

    def test_a_turn_may_come_before_its_batch(self) -> None:
        member = _member(B, ReorderLocksInTurn)
        _hear(member, A, Turns(((2, 0),)))
        assert packets(turn(member), LockAnswers) == []
        _hear(member, C, _data(C))
        assert packets(turn(member), LockAnswers) == [LockAnswers((_answer(2, proposals=(4,)),))]

    def test_a_batch_joins_by_itself(self) -> None:
        member = _member(B, ReorderLocksInTurn)
        for level in (0, 9):
            say(member, batch_of(2, level, sender=B))
        said = packets(turn(member), Data)
        assert [[str(batch) for batch in data.messages] for data in said] == [["b#1/9/0+2"], ["b#1/0/0+2"]]
