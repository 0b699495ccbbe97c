"""Re-ordering with locks: what it rejects, what an application sees, and how a view ends.

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
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.locks import (
    LockAcknowledgment,
    LockAcknowledgments,
    LockAcknowledgmentsToAll,
    LockDecision,
    LockDecisions,
    ReorderLocks,
)
from priocast.protocols.reorder.message_sets import MessageRange
from protocols.harness import Delivered, Group
from protocols.locks_in_turn import InsertionTurns, ReorderLocksInTurn
from protocols.schedules import NAMES
from protocols.single_member import hear, member_of, packets, say, turn
from protocols.view_sequences import ViewPlan, end_view

FORMS: list[type[ReorderLocks]] = [ReorderLocks, ReorderLocksInTurn]

pytestmark = pytest.mark.usefixtures("reorder_locks_in_turn")


def _member(me: ProcessId, form: type[ReorderLocks] = ReorderLocks, **options: int) -> ReorderLocks:
    return member_of(form, me, **options)


def _hear(member: ReorderLocks, sender: ProcessId, packet: Packet, now: int = 0) -> list[Output]:
    return hear(member, sender, packet, (member.ranks[sender], 1), now)


def _data(sender: ProcessId, level: int = 0, number: int = 0) -> NumberedData:
    return NumberedData(number, (batch_of(1, level, sender=sender),))


def _acknowledgment(sender: int = 0, **changes: object) -> LockAcknowledgment:
    acknowledgment = LockAcknowledgment(sender, 0, (1,), ((),), ())
    return msgspec.structs.replace(acknowledgment, **changes)


def _decision(**changes: object) -> LockDecision:
    return msgspec.structs.replace(LockDecision(0, (9,), (None,), (), ()), **changes)


def _decide(member: ReorderLocks, sender: ProcessId, decision: LockDecision, now: int = 0) -> None:
    _hear(member, sender, LockDecisions((decision,)), now)


class TestRejections:
    @pytest.mark.parametrize("number", [1, 2])
    def test_data_out_of_order(self, number: int) -> None:
        with pytest.raises(PeerFault, match=f"b#1 sends data {number}; expected 0"):
            _hear(_member(A), B, _data(B, number=number))

    def test_messages_of_another_sender(self) -> None:
        with pytest.raises(PeerFault, match="b#1 submits a message of c#1"):
            _hear(_member(A), B, _data(C))

    @pytest.mark.parametrize("acknowledgment", [_acknowledgment(), _acknowledgment(1)])
    def test_an_acknowledgment_of_what_was_never_sent(self, acknowledgment: LockAcknowledgment) -> None:
        with pytest.raises(PeerFault, match="b#1 acknowledges data 0, which a#1 never sent"):
            _hear(_member(A), B, LockAcknowledgments((acknowledgment,)))

    @pytest.mark.parametrize(
        ("acknowledgment", "fault"),
        [
            (
                _acknowledgment(proposals=(1, 1), tails=((), ())),
                "c#1 does not acknowledge each batch of data",
            ),
            (
                _acknowledgment(tails=((), ())),
                "c#1 sends an inconsistent acknowledgment of data 0",
            ),
            (
                _acknowledgment(tails=((MessageRange(0, 3, 0, 1),),)),
                "c#1 sends an inconsistent acknowledgment of data 0",
            ),
            (
                _acknowledgment(history=(MessageRange(0, 3, 0, 1),)),
                "c#1 sends an inconsistent acknowledgment of data 0",
            ),
        ],
    )
    def test_an_inconsistent_acknowledgment(self, acknowledgment: LockAcknowledgment, fault: str) -> None:
        member = _member(A)
        say(member, batch_of(1, sender=A))
        turn(member)
        _hear(member, A, LockAcknowledgments((_acknowledgment(),)))
        _hear(member, B, LockAcknowledgments((_acknowledgment(),)))
        with pytest.raises(PeerFault, match=fault):
            _hear(member, C, LockAcknowledgments((acknowledgment,)))

    def test_a_second_acknowledgment(self) -> None:
        member = _member(A, distributed=True)
        _hear(member, B, LockAcknowledgmentsToAll((_acknowledgment(1),)))
        with pytest.raises(PeerFault, match=r"b#1 acknowledges data \(1, 0\); expected number 1"):
            _hear(member, B, LockAcknowledgmentsToAll((_acknowledgment(1),)))

    def test_an_acknowledgment_of_data_of_no_member(self) -> None:
        with pytest.raises(PeerFault, match="b#1 acknowledges data of rank 3, which is no member"):
            _hear(_member(A, distributed=True), B, LockAcknowledgmentsToAll((_acknowledgment(3),)))

    @pytest.mark.parametrize(
        "packet", [LockAcknowledgments((_acknowledgment(),)), LockDecisions((_decision(),))]
    )
    def test_another_mode(self, packet: Packet) -> None:
        with pytest.raises(PeerFault, match="b#1 decides at the sender, a#1 distributed"):
            _hear(_member(A, distributed=True), B, packet)
        with pytest.raises(PeerFault, match="b#1 decides distributed, a#1 at the sender"):
            _hear(_member(A), B, LockAcknowledgmentsToAll((_acknowledgment(),)))

    @pytest.mark.parametrize("decision", [_decision(number=1), _decision(finals=(9, 9), points=(None, None))])
    def test_a_decision_that_nothing_waits_for(self, decision: LockDecision) -> None:
        member = _member(A)
        _hear(member, B, _data(B))
        with pytest.raises(PeerFault, match=r"b#1 decides on data ., which does not wait for a decision"):
            _decide(member, B, decision)

    @pytest.mark.parametrize("points", [((0, 1, 0),), ((9, 2, 0),), (None, None)])
    def test_an_insertion_point_that_was_not_locked(
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
            _decide(member, B, _decision(collected=(MessageRange(0, 1, 0, 1),)))

    @pytest.mark.parametrize(
        ("sender", "turns"), [(B, ((1, 0),)), (A, ((3, 0),)), (A, ((1, 1),)), (A, ((1, 0), (1, 0)))]
    )
    def test_a_turn_that_is_not_the_next(self, sender: ProcessId, turns: tuple[tuple[int, int], ...]) -> None:
        with pytest.raises(PeerFault, match=f"{sender} gives a turn to data . of rank ., which is not next"):
            _hear(_member(B, ReorderLocksInTurn), sender, InsertionTurns(turns))


class TestWhatAnApplicationSees:
    def test_a_locked_head_is_a_measured_wait(self) -> None:
        """And it has a reason."""
        member = _member(A)
        _hear(member, B, _data(B))
        _decide(member, B, _decision())
        assert (member.head() is None, member.inspect(0).stall_reason) == (False, "")
        _hear(member, C, _data(C, level=9), now=10)
        assert member.head() is None
        assert (
            member.inspect(0).stall_reason
            == "b#1/0/0+1 waits until the positions of more urgent messages are decided"
        )
        assert member.stalls.count == 1
        _decide(member, C, _decision(points=((0, 1, 0),)), now=35)
        head = member.head()
        assert head is not None
        assert (str(head.batch), member.inspect(0).stall_reason) == ("c#1/9/0+1", "")
        assert (member.stalls.total_ns, member.stalls.longest_ns) == (25, 25)

    def test_a_message_has_a_position_when_it_is_consumed(self) -> None:
        member = _member(A)
        _hear(member, B, _data(B))
        _decide(member, B, _decision())
        assert (member.position_next, member.inspect(0).unconsumed, member.backlog) == (0, 1, 1)
        member.step(Consume(1), now=0)
        assert (member.position_next, member.inspect(0).unconsumed, member.backlog) == (1, 0, 0)

    def test_the_bottleneck_is_who_could_consume(self) -> None:
        member = _member(A, submit_max=1)
        for number in range(2):
            say(member, batch_of(1, first=number, sender=A))
        (data,) = packets(turn(member), NumberedData)
        _hear(member, A, data)
        assert (member.inspect(0).bottleneck, member.idle, member.settled) == (None, False, False)
        _decide(member, A, _decision())
        assert member.inspect(0).bottleneck == A
        member.step(Consume(1), now=0)
        assert member.inspect(0).bottleneck in (A, B, C)

    def test_the_queue_is_bounded(self) -> None:
        member = _member(A)
        say(member, batch_of(1_000, sender=A))
        (data,) = packets(turn(member), NumberedData)
        assert sum(batch.count for batch in data.batches) <= ReorderLocks.QUEUED_MAX // 3

    @pytest.mark.parametrize("form", FORMS)
    def test_a_copy_of_a_member_is_independent(self, form: type[ReorderLocks]) -> None:
        """Exploration copies whole members."""
        member = _member(A, form)
        _hear(member, B, _data(B))
        if form is ReorderLocksInTurn:
            _hear(member, A, InsertionTurns(((1, 0),)))
        other = deepcopy(member)
        _decide(other, B, _decision())
        assert member.head() is None
        assert other.head() is not None


class TestTheEndOfAView:
    """All have l in their queues; c has consumed it when it receives h, so l goes before h."""

    @staticmethod
    def _group(sender: str, distributed: bool) -> Group:
        group = Group(["a", "b", "c"], ReorderLocks.NAME, OrderingOptions(distributed=distributed))
        group.broadcast("a", 0, [b"l"])
        assert group.settle(rounds_max=20, consumers=["c"])
        group.broadcast(sender, 9, [b"h"])
        group.turn(sender)
        return group

    @staticmethod
    def _acknowledge(group: Group, name: str, sender: str, to: str) -> None:
        """Deliver h to a member, and its acknowledgment to these (a letter each)."""
        group.deliver(sender, name, 100)
        group.turn(name)
        for peer in to:
            group.deliver(name, peer, 100)

    @staticmethod
    def _ending(group: Group, survivors: str) -> dict[str, tuple[str, str]]:
        """What each survivor has delivered at the end of the view, and what it has to send again."""
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
        """An acknowledgment counts if any survivor has it: a may have consumed h because of it."""
        group = self._group(sender="b", distributed=True)
        self._acknowledge(group, "a", sender="b", to="bc")
        self._acknowledge(group, "c", sender="b", to="a")
        assert group.consume("a", 2) == 2
        assert self._ending(group, "ab") == {"a": ("lh", ""), "b": ("lh", "")}

    def test_view_change_departed_ack_counted_by_who_decided_on_it(self) -> None:
        group = self._group(sender="b", distributed=False)
        self._acknowledge(group, "a", sender="b", to="b")
        self._acknowledge(group, "c", sender="b", to="b")
        group.turn("b")
        assert group.consume("b", 2) == 2
        assert self._ending(group, "ab") == {"a": ("lh", ""), "b": ("lh", "")}

    @pytest.mark.parametrize("distributed", [False, True])
    def test_an_acknowledgment_that_no_survivor_has_is_not_assumed(self, distributed: bool) -> None:
        group = self._group(sender="b", distributed=distributed)
        self._acknowledge(group, "a", sender="b", to="bc")
        self._acknowledge(group, "c", sender="b", to="")
        assert self._ending(group, "ab") == {"a": ("l", ""), "b": ("l", "h")}

    @pytest.mark.parametrize("distributed", [False, True])
    def test_view_change_missing_survivor_ack(self, distributed: bool) -> None:
        """As many acknowledgments as survivors are not enough: that of b, which survives, is missing."""
        group = self._group(sender="a", distributed=distributed)
        self._acknowledge(group, "c", sender="a", to="ab")
        assert self._ending(group, "ab") == {"a": ("l", "h"), "b": ("l", "")}

    def test_what_a_departed_member_decided_for_itself_binds_nobody(self) -> None:
        """The survivors forget h, which c has consumed, and its lock."""
        group = self._group(sender="c", distributed=False)
        for name in "ab":
            self._acknowledge(group, name, sender="c", to="c")
        group.turn("c")
        assert group.consume("c", 1) == 1
        assert self._ending(group, "ab") == {"a": ("l", ""), "b": ("l", "")}


class TestOneAtATime:
    def test_batches_lock_in_the_turns_that_the_coordinator_assigns(self) -> None:
        coordinator, member = _member(A, ReorderLocksInTurn), _member(B, ReorderLocksInTurn)
        for each in (coordinator, member):
            _hear(each, B, _data(B))
            _hear(each, C, _data(C, level=9))
        assert packets(turn(member), LockAcknowledgments) == []
        assert packets(turn(coordinator), InsertionTurns) == [InsertionTurns(((1, 0), (2, 0)))]
        _hear(member, A, InsertionTurns(((1, 0), (2, 0))))
        assert packets(turn(member), LockAcknowledgments) == [
            LockAcknowledgments((_acknowledgment(1, proposals=(4,)),))
        ]
        _decide(member, B, _decision())
        assert packets(turn(member), LockAcknowledgments) == [
            LockAcknowledgments((_acknowledgment(2, proposals=(4,), tails=((MessageRange(0, 1, 0, 1),),)),))
        ]
        assert member.backlog == 2

    def test_a_turn_may_arrive_before_its_batch(self) -> None:
        member = _member(B, ReorderLocksInTurn)
        _hear(member, A, InsertionTurns(((2, 0),)))
        assert packets(turn(member), LockAcknowledgments) == []
        _hear(member, C, _data(C))
        assert packets(turn(member), LockAcknowledgments) == [
            LockAcknowledgments((_acknowledgment(2, proposals=(4,)),))
        ]

    def test_each_packet_has_one_batch(self) -> None:
        member = _member(B, ReorderLocksInTurn)
        for level in (0, 9):
            say(member, batch_of(2, level, sender=B))
        said = packets(turn(member), NumberedData)
        assert [[str(batch) for batch in data.messages] for data in said] == [["b#1/9/0+2"], ["b#1/0/0+2"]]
