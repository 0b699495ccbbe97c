"""Re-ordering with locks: what an application sees, and how a view ends.

What it does step by step when everybody behaves is in scripts: `wait-rule-*`, `low-*`, `lock-inheritance`,
`empty-queue-tail-lock`, `same-level-concurrent-insert`, `snapshot-lock-atomic`, `no-lower-lock-blocks-high`
and `gc-late-ack`; the queue by itself is in `test_lock_queue.py`.
"""

from copy import deepcopy

import msgspec
import pytest

from core.builders import A, B, C, batch_of
from priocast.core.identity import ProcessId
from priocast.core.protocol import Consume, OrderingOptions, Output, Packet
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.lock_packets import (
    LockAcknowledgment,
    LockAcknowledgments,
    LockDecision,
    LockDecisions,
)
from priocast.protocols.reorder.locks import ReorderLocks
from priocast.protocols.reorder.message_ranges import MessageRange
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
        say(member, batch_of(4_000, sender=A))
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
