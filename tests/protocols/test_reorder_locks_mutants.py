"""Deliberate faults in re-ordering with locks: each rule left out, and how one of its cases shows that.

A case is a script, or a test of the queue by itself. A script is broken if members end with different orders
(Total order), all with another one than it should be (Priority), or some without all messages (Liveness). A
fault that only delays messages shows in what can be consumed on the way.
"""

from collections.abc import Callable
from functools import partial

import pytest

from priocast.core.errors import PeerFault
from priocast.core.guarantees import LIVENESS, PRIORITY, TOTAL_ORDER
from priocast.core.message import Batch
from priocast.core.protocol import PacketId
from priocast.core.stall import StallMeter
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.reorder.exchange import Complete, Exchange
from priocast.protocols.reorder.level_order import InsertionId, LevelOrder
from priocast.protocols.reorder.lock_block import Block, Lock, LockInsertion
from priocast.protocols.reorder.lock_packets import LockAcknowledgment, LockDecision
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.message_sets import MessageName, MessageSet
from protocols import test_lock_queue as of_the_queue
from protocols import test_reorder_locks as of_the_protocol
from protocols.locks_in_turn import ReorderLocksInTurn
from protocols.mutants import Patch, check_found_in_schedules, check_single_test_finds
from protocols.test_scripts import SCRIPTS, replay
from protocols.trusting import trusting

DELAYED = "delayed"
LockExchange = Exchange[LockInsertion, LockAcknowledgment, LockDecision]

pytestmark = pytest.mark.usefixtures("reorder_locks_in_turn")


# Insertion


def nobody_waits_for_what_was_consumed_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """The paper's insertion phase."""
    patch.setattr(LockQueue, "_may_insert", lambda *_: True)


def only_what_was_received_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    def may_insert(self: LockQueue, insertion: LockInsertion) -> bool:
        return all(
            min(end, self._received.get(stream, 0)) <= self._inserted.get(stream, 0)
            for stream, (_, end) in insertion.history.spans.items()
        )

    patch.setattr(LockQueue, "_may_insert", may_insert)


def what_is_waited_for_is_looked_up_in_queue_and_history(patch: pytest.MonkeyPatch) -> None:
    """What was collected is in neither of them."""

    def may_insert(self: LockQueue, insertion: LockInsertion) -> bool:
        known = {name for name, _ in of_the_queue.queued(self)}
        return all(
            name in known or name in self.history.messages
            for stream, span in insertion.history.spans.items()
            for name in ((*stream, number) for number in range(*span))
        )

    patch.setattr(LockQueue, "_may_insert", may_insert)


def a_deferred_insertion_is_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    def decide(
        self: LockQueue, insertion: LockInsertion, number: int, point: MessageName | None, history: MessageSet
    ) -> None:
        insertion.point, insertion.history = point, history
        order = self._orders[insertion.level]
        order.decide(insertion, number)
        if order.head() is insertion and self._may_insert(insertion):
            order.remove_head()
            self._insert(insertion)

    patch.setattr(LockQueue, "decide", decide)


def equals_are_inserted_as_they_become_known(patch: pytest.MonkeyPatch) -> None:
    def head(self: LevelOrder[LockInsertion]) -> LockInsertion | None:
        return self._decided[0][2] if self._decided else None

    patch.setattr(LevelOrder, "head", head)


def the_provisional_insertion_point_is_definitive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockQueue, "_definitive", lambda _, __, index: index)


def a_message_goes_before_what_others_have_consumed(patch: pytest.MonkeyPatch) -> None:
    def definitive(self: LockQueue, insertion: LockInsertion, index: int) -> int:
        while self.blocks[index - 1].level < insertion.level:
            index -= 1
        return index

    patch.setattr(LockQueue, "_definitive", definitive)


# Locks


def the_lowest_level_goes_to_the_tail_as_it_arrives(patch: pytest.MonkeyPatch) -> None:
    """No agreement for the lowest level, as in section 4.2."""

    def lock(self: LockQueue, batch: Batch, identity: InsertionId) -> tuple[LockInsertion, MessageSet]:
        insertion, tail = original(self, batch, identity)
        if not insertion.level:
            decide(self, insertion, insertion.proposal, None, MessageSet())
        return insertion, tail

    def decide_unless_inserted(
        self: LockQueue, insertion: LockInsertion, number: int, point: MessageName | None, history: MessageSet
    ) -> None:
        if insertion.level:
            decide(self, insertion, number, point, history)

    original, decide = LockQueue.lock, LockQueue.decide
    patch.setattr(LockQueue, "lock", lock)
    patch.setattr(LockQueue, "decide", decide_unless_inserted)
    patch.setattr(LockQueue, "has_locked", lambda *_: True)


def the_lowest_level_is_free_and_waited_for_only_if_received(patch: pytest.MonkeyPatch) -> None:
    """A wait rule that looks at the waiting list alone."""
    the_lowest_level_goes_to_the_tail_as_it_arrives(patch)
    only_what_was_received_is_waited_for(patch)


def the_lowest_level_inherits_no_locks(patch: pytest.MonkeyPatch) -> None:
    def inherited(self: LockQueue, insertion: LockInsertion, point: Block) -> set[Lock]:
        return original(self, insertion, point) if insertion.level else set()

    original = LockQueue._inherited
    patch.setattr(LockQueue, "_inherited", inherited)


def the_dummy_tail_has_no_locks(patch: pytest.MonkeyPatch) -> None:
    original = LockQueue._target_tail
    patch.setattr(LockQueue, "_target_tail", lambda self, level: original(self, level)[:-1])
    patch.setattr(LockQueue, "has_locked", lambda *_: True)


def no_locks_are_inherited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockQueue, "_inherited", lambda *_: set())


def all_locks_are_inherited(patch: pytest.MonkeyPatch) -> None:
    """Those of less urgent messages, too."""
    patch.setattr(LockQueue, "_inherited", lambda _, __, point: set(point.locks))


def locks_of_less_urgent_messages_stay(patch: pytest.MonkeyPatch) -> None:
    """Step 3 without its second half."""

    def unlock(self: LockQueue, insertion: LockInsertion, end: int) -> None:
        for block in self.blocks:
            block.locks.discard(insertion.lock)

    patch.setattr(LockQueue, "_unlock", unlock)


def a_message_that_was_inserted_keeps_its_locks(patch: pytest.MonkeyPatch) -> None:
    """Step 3 without its first half."""
    patch.setattr(LockQueue, "_unlock", lambda *_: None)


def a_member_locks_when_it_acknowledges(patch: pytest.MonkeyPatch) -> None:
    """It reads the queue when it receives the message, and locks what it has read a little later."""
    later: list[tuple[LockInsertion, list[Block]]] = []

    def lock(self: LockQueue, batch: Batch, identity: InsertionId) -> tuple[LockInsertion, MessageSet]:
        insertion, tail = original_lock(self, batch, identity)
        locked = [block for block in self.blocks if insertion.lock in block.locks]
        for block in locked:
            block.locks.discard(insertion.lock)
        later.append((insertion, locked))
        return insertion, tail

    def send_due(self: LockExchange, protocol: OrderingProtocol) -> None:
        if self._acknowledgments_due:
            for insertion, locked in later:
                for block in locked:
                    block.locks.add(insertion.lock)
            later.clear()
        original_send_due(self, protocol)

    original_lock, original_send_due = LockQueue.lock, Exchange.send_due
    patch.setattr(LockQueue, "lock", lock)
    patch.setattr(Exchange, "send_due", send_due)


# Agreement


def one_acknowledgment_may_be_missing(patch: pytest.MonkeyPatch) -> None:
    """As many acknowledgments as there would be survivors."""

    def collect(
        self: LockExchange, rank: int, acknowledgment: LockAcknowledgment, packet_id: PacketId
    ) -> Complete[LockAcknowledgment] | None:
        original(self, rank, acknowledgment, packet_id)
        collected = self._collected.get((acknowledgment.sender, acknowledgment.number), [])
        present = [each for each in collected if each is not None]
        if len(present) != len(self._members) - 1:
            return None
        return Complete([each for each, _ in present], [by for _, by in present])

    original = Exchange.collect
    patch.setattr(Exchange, "collect", collect)


def the_first_target_tail_is_taken_for_the_common_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSet, "__and__", lambda self, _: self)


def the_first_history_is_taken_for_the_history_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSet, "__or__", lambda self, _: self)


def what_all_have_consumed_is_what_one_has(patch: pytest.MonkeyPatch) -> None:
    """Histories are collected too early: the acknowledgments of h do not say that l was consumed."""
    patch.setattr("priocast.protocols.reorder.consumed_history.min", max, raising=False)


# The end of a view, and stalls


def the_end_of_a_view_waits_for_what_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockQueue, "_forget_lost_messages", lambda _: None)


def the_end_of_a_view_leaves_locks_of_what_is_lost(patch: pytest.MonkeyPatch) -> None:
    def end(self: LockQueue) -> None:
        for order in self._orders.values():
            self.waiting -= sum(insertion.batch.count for insertion in order.drop_undecided())

    patch.setattr(LockQueue, "end", end)


def nobody_measures_stalls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StallMeter, "note", lambda *_: None)


def how_it_breaks(name: str) -> str:
    """Which promise a script breaks; nothing if it breaks none."""
    recorded = (SCRIPTS / f"{name}.txt").read_text()
    replayed = replay(recorded)
    if replayed == recorded:
        return ""
    assert PeerFault.__name__ not in replayed, "a check finds it before it breaks anything"
    orders, expected = _orders(replayed), _orders(recorded)
    if orders == expected:
        return DELAYED
    if any(len(order) < len(expected[0]) for order in orders):
        return LIVENESS
    return TOTAL_ORDER if len(orders) > 1 else PRIORITY


def _orders(text: str) -> list[list[str]]:
    """In which orders members have delivered messages in the end."""
    return [line.split(": ")[1].split() for line in text.splitlines() if " delivered: " in line]


@pytest.mark.parametrize(
    ("mutant", "script", "broken"),
    [
        (nobody_waits_for_what_was_consumed_elsewhere, "wait-rule-3p-fifo-coordinator", TOTAL_ORDER),
        (nobody_waits_for_what_was_consumed_elsewhere, "wait-rule-3p-fifo-distributed", TOTAL_ORDER),
        (what_is_waited_for_is_looked_up_in_queue_and_history, "gc-late-ack", LIVENESS),
        (a_deferred_insertion_is_not_tried_again, "wait-rule-3p-fifo-coordinator", LIVENESS),
        (equals_are_inserted_as_they_become_known, "same-level-concurrent-insert", TOTAL_ORDER),
        (the_provisional_insertion_point_is_definitive, "lock-inheritance", TOTAL_ORDER),
        (a_message_goes_before_what_others_have_consumed, "no-lower-lock-blocks-high", TOTAL_ORDER),
        (the_lowest_level_goes_to_the_tail_as_it_arrives, "low-low-concurrent", TOTAL_ORDER),
        (the_lowest_level_goes_to_the_tail_as_it_arrives, "low-unreceived-but-in-history", PRIORITY),
        (
            the_lowest_level_is_free_and_waited_for_only_if_received,
            "low-unreceived-but-in-history",
            TOTAL_ORDER,
        ),
        (the_lowest_level_inherits_no_locks, "empty-queue-tail-lock", TOTAL_ORDER),
        (the_dummy_tail_has_no_locks, "empty-queue-tail-lock", TOTAL_ORDER),
        (no_locks_are_inherited, "lock-inheritance", TOTAL_ORDER),
        (all_locks_are_inherited, "low-low-concurrent", DELAYED),
        (locks_of_less_urgent_messages_stay, "no-lower-lock-blocks-high", DELAYED),
        (a_message_that_was_inserted_keeps_its_locks, "lock-inheritance", LIVENESS),
        (trusting(a_member_locks_when_it_acknowledges), "snapshot-lock-atomic", TOTAL_ORDER),
        (one_acknowledgment_may_be_missing, "wait-rule-3p-fifo-coordinator", TOTAL_ORDER),
        (one_acknowledgment_may_be_missing, "wait-rule-3p-fifo-distributed", TOTAL_ORDER),
        (the_first_history_is_taken_for_the_history_set, "wait-rule-3p-fifo-coordinator", TOTAL_ORDER),
        (trusting(what_all_have_consumed_is_what_one_has), "no-lower-lock-blocks-high", DELAYED),
    ],
)
def test_a_script_finds_the_mutant(
    mutant: Patch, script: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert how_it_breaks(script) == ""
    mutant(monkeypatch)
    assert how_it_breaks(script) == broken


RULES = of_the_queue.TestTheRulesThatThePaperLacks()
LOCKS = of_the_queue.TestLocks()
END = of_the_queue.TestTheEnd()
VIEW_ENDS = of_the_protocol.TestTheEndOfAView()
SEEN = of_the_protocol.TestWhatAnApplicationSees()


@pytest.mark.parametrize(
    ("mutant", "case"),
    [
        (nobody_waits_for_what_was_consumed_elsewhere, RULES.test_wait_rule_2p),
        (only_what_was_received_is_waited_for, RULES.test_low_unreceived_but_in_history),
        (a_deferred_insertion_is_not_tried_again, RULES.test_deferred_insert_wakeup),
        (all_locks_are_inherited, LOCKS.test_equals_do_not_block_each_other),
        (locks_of_less_urgent_messages_stay, LOCKS.test_no_lower_lock_blocks_high),
        (the_end_of_a_view_waits_for_what_is_lost, END.test_nobody_waits_for_what_is_lost_with_its_consumer),
        (the_end_of_a_view_leaves_locks_of_what_is_lost, END.test_what_is_not_decided_is_forgotten),
        (one_acknowledgment_may_be_missing, partial(VIEW_ENDS.test_view_change_missing_survivor_ack, True)),
        (one_acknowledgment_may_be_missing, partial(VIEW_ENDS.test_view_change_missing_survivor_ack, False)),
        (the_first_history_is_taken_for_the_history_set, VIEW_ENDS.test_view_change_departed_ack_counted),
        (nobody_measures_stalls, SEEN.test_a_locked_head_is_a_measured_wait),
    ],
)
def test_a_case_finds_the_mutant(
    mutant: Patch, case: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_single_test_finds(mutant, case, monkeypatch, (AssertionError, PeerFault))


def test_concurrent_insertions_need_the_rules_of_the_concurrent_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Section 4.3 needs them as soon as a batch locks before the last one is inserted."""
    the_provisional_insertion_point_is_definitive(monkeypatch)
    original = ReorderLocksInTurn._lock_next

    def lock_next(self: ReorderLocksInTurn) -> None:
        turns = -1
        while turns != len(self._turns):
            turns, self._current = len(self._turns), None
            original(self)

    monkeypatch.setattr(ReorderLocksInTurn, "_lock_next", lock_next)
    check_found_in_schedules(ReorderLocksInTurn.NAME, {TOTAL_ORDER})
