"""Deliberate faults in re-ordering with locks: each rule left out, and how one of its cases shows that.

A case is a script, or a test of the queue by itself. A script is broken if members end with different orders
(Total order), all with another one than it should be (Priority), some without all messages (Liveness), or if
a member is put out or fails. A fault that only holds messages up shows in what can be consumed on the way.
"""

from collections.abc import Callable
from functools import partial

import pytest

from priocast.core.errors import PeerFault
from priocast.core.guarantees import LIVENESS, PRIORITY, TOTAL_ORDER
from priocast.core.identity import ProcessId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, PacketId
from priocast.core.stall import StallMeter
from priocast.core.view import View
from priocast.protocols.reorder.answers import Collector, Complete
from priocast.protocols.reorder.level_order import JoinId, LevelOrder
from priocast.protocols.reorder.lock_queue import Element, Lock, LockJoin, LockQueue
from priocast.protocols.reorder.locks import LockAnswer, ReorderLocks, ReorderLocksInTurn
from priocast.protocols.reorder.message_sets import MessageSet, Name
from protocols import test_lock_queue as of_the_queue
from protocols import test_reorder_locks as of_the_protocol
from protocols.mutants import OWN_FAULT, PEER_FAULT, Patch, found_in_schedules, single_test_finds
from protocols.test_scripts import SCRIPTS, replay
from protocols.trusting import trusting

HELD_UP = "held up"

pytestmark = pytest.mark.usefixtures("reorder_locks_in_turn")


# Insertion


def nobody_waits_for_what_was_consumed_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """The paper's insertion phase."""
    patch.setattr(LockQueue, "_may_insert", lambda *_: True)


def only_what_was_received_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    def may_insert(self: LockQueue, join: LockJoin) -> bool:
        return all(
            min(end, self._received.get(stream, 0)) <= self._inserted.get(stream, 0)
            for stream, (_, end) in join.history.spans.items()
        )

    patch.setattr(LockQueue, "_may_insert", may_insert)


def what_is_waited_for_is_looked_up_in_queue_and_history(patch: pytest.MonkeyPatch) -> None:
    """What was collected is in neither of them."""
    histories: dict[int, ReorderLocks] = {}

    def init(
        self: ReorderLocks, me: ProcessId, view: View, options: OrderingOptions, position: int = 0
    ) -> None:
        original(self, me, view, options, position)
        histories[id(self._queue)] = self

    def may_insert(self: LockQueue, join: LockJoin) -> bool:
        known = {element.name for element in self.elements}
        history = histories[id(self)]._history.messages
        return all(
            name in known or name in history
            for stream, span in join.history.spans.items()
            for name in ((*stream, number) for number in range(*span))
        )

    original = ReorderLocks.__init__
    patch.setattr(ReorderLocks, "__init__", init)
    patch.setattr(LockQueue, "_may_insert", may_insert)


def a_deferred_insertion_is_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    def agree(self: LockQueue, join: LockJoin, number: int, point: Name | None, history: MessageSet) -> None:
        join.point, join.history = point, history
        order = self._orders[join.level]
        order.agree(join, number)
        if order.head() is join and self._may_insert(join):
            order.leave()
            self._insert(join)

    patch.setattr(LockQueue, "agree", agree)


def equals_are_inserted_as_they_become_known(patch: pytest.MonkeyPatch) -> None:
    def head(self: LevelOrder[LockJoin]) -> LockJoin | None:
        return self._agreed[0][2] if self._agreed else None

    patch.setattr(LevelOrder, "head", head)


def the_provisional_insertion_point_is_definitive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockQueue, "_definitive", lambda _, __, index: index)


def a_message_goes_before_what_others_have_consumed(patch: pytest.MonkeyPatch) -> None:
    def definitive(self: LockQueue, join: LockJoin, index: int) -> int:
        while self.elements[index - 1].level < join.level:
            index -= 1
        return index

    patch.setattr(LockQueue, "_definitive", definitive)


# Locks


def the_lowest_level_goes_to_the_tail_as_it_comes(patch: pytest.MonkeyPatch) -> None:
    """No agreement for the lowest level, as in section 4.2."""

    def receive(self: LockQueue, batch: Batch, identity: JoinId) -> tuple[LockJoin, MessageSet]:
        join, tail = original(self, batch, identity)
        if not join.level:
            agree(self, join, join.proposal, None, MessageSet())
        return join, tail

    def agree_unless_inserted(
        self: LockQueue, join: LockJoin, number: int, point: Name | None, history: MessageSet
    ) -> None:
        if join.level:
            agree(self, join, number, point, history)

    original, agree = LockQueue.receive, LockQueue.agree
    patch.setattr(LockQueue, "receive", receive)
    patch.setattr(LockQueue, "agree", agree_unless_inserted)
    patch.setattr(LockQueue, "has_locked", lambda *_: True)


def the_lowest_level_is_free_and_waited_for_only_if_received(patch: pytest.MonkeyPatch) -> None:
    """A wait rule that looks at the waiting list alone."""
    the_lowest_level_goes_to_the_tail_as_it_comes(patch)
    only_what_was_received_is_waited_for(patch)


def the_lowest_level_inherits_no_locks(patch: pytest.MonkeyPatch) -> None:
    def inherited(self: LockQueue, join: LockJoin, point: Element) -> set[Lock]:
        return original(self, join, point) if join.level else set()

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

    def unlock(self: LockQueue, join: LockJoin, end: int) -> None:
        for element in self.elements:
            element.locks.discard(join.lock)

    patch.setattr(LockQueue, "_unlock", unlock)


def a_message_that_was_inserted_keeps_its_locks(patch: pytest.MonkeyPatch) -> None:
    """Step 3 without its first half."""
    patch.setattr(LockQueue, "_unlock", lambda *_: None)


def a_member_locks_when_it_answers(patch: pytest.MonkeyPatch) -> None:
    """It reads the queue when the message comes, and locks what it has read a little later."""
    later: list[tuple[LockJoin, list[Element]]] = []

    def receive(self: LockQueue, batch: Batch, identity: JoinId) -> tuple[LockJoin, MessageSet]:
        join, tail = original_receive(self, batch, identity)
        locked = [element for element in self.elements if join.lock in element.locks]
        for element in locked:
            element.locks.discard(join.lock)
        later.append((join, locked))
        return join, tail

    def answer(self: ReorderLocks) -> None:
        for join, locked in later:
            for element in locked:
                element.locks.add(join.lock)
        later.clear()
        original_answer(self)

    original_receive, original_answer = LockQueue.receive, ReorderLocks._answer
    patch.setattr(LockQueue, "receive", receive)
    patch.setattr(ReorderLocks, "_answer", answer)


# Agreement


def one_answer_may_be_missing(patch: pytest.MonkeyPatch) -> None:
    """As many answers as members would be left."""

    def add(
        self: Collector[LockAnswer], rank: int, answer: LockAnswer, packet_id: PacketId
    ) -> Complete[LockAnswer] | None:
        original(self, rank, answer, packet_id)
        collected = self._collected.get((answer.sender, answer.number), [])
        answers = [each for each in collected if each is not None]
        if len(answers) != len(self._members) - 1:
            return None
        return Complete([answer for answer, _ in answers], [packet_id for _, packet_id in answers])

    original = Collector.add
    patch.setattr(Collector, "add", add)


def the_first_target_tail_is_taken_for_the_common_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSet, "__and__", lambda self, _: self)


def the_first_history_is_taken_for_the_history_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSet, "__or__", lambda self, _: self)


def what_all_have_consumed_is_what_one_has(patch: pytest.MonkeyPatch) -> None:
    """Histories are collected too early: the answers to h do not say that l was consumed."""
    patch.setattr("priocast.protocols.reorder.consumed_history.min", max, raising=False)


# The end of a view, and what is said about waiting


def the_end_of_a_view_waits_for_what_is_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockQueue, "_forget_what_is_gone", lambda _: None)


def the_end_of_a_view_leaves_locks_of_what_is_gone(patch: pytest.MonkeyPatch) -> None:
    def end(self: LockQueue) -> None:
        for order in self._orders.values():
            self.waiting -= sum(join.batch.count for join in order.drop_open())

    patch.setattr(LockQueue, "end", end)


def nobody_measures_how_long_messages_were_held_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StallMeter, "note", lambda *_: None)


def how_it_breaks(name: str) -> str:
    """How a script breaks; nothing if it does not."""
    recorded = (SCRIPTS / f"{name}.txt").read_text()
    try:
        replayed = replay(recorded)
    except AssertionError:
        return OWN_FAULT
    if replayed == recorded:
        return ""
    if PEER_FAULT in replayed:
        return PEER_FAULT
    orders, expected = _orders(replayed), _orders(recorded)
    if orders == expected:
        return HELD_UP
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
        (the_lowest_level_goes_to_the_tail_as_it_comes, "low-low-concurrent", TOTAL_ORDER),
        (the_lowest_level_goes_to_the_tail_as_it_comes, "low-unreceived-but-in-history", PRIORITY),
        (
            the_lowest_level_is_free_and_waited_for_only_if_received,
            "low-unreceived-but-in-history",
            TOTAL_ORDER,
        ),
        (the_lowest_level_inherits_no_locks, "empty-queue-tail-lock", TOTAL_ORDER),
        (the_dummy_tail_has_no_locks, "empty-queue-tail-lock", TOTAL_ORDER),
        (no_locks_are_inherited, "lock-inheritance", TOTAL_ORDER),
        (all_locks_are_inherited, "low-low-concurrent", HELD_UP),
        (locks_of_less_urgent_messages_stay, "no-lower-lock-blocks-high", HELD_UP),
        (a_message_that_was_inserted_keeps_its_locks, "lock-inheritance", LIVENESS),
        (trusting(a_member_locks_when_it_answers), "snapshot-lock-atomic", OWN_FAULT),
        (one_answer_may_be_missing, "wait-rule-3p-fifo-coordinator", TOTAL_ORDER),
        (one_answer_may_be_missing, "wait-rule-3p-fifo-distributed", TOTAL_ORDER),
        (the_first_target_tail_is_taken_for_the_common_set, "no-lower-lock-blocks-high", OWN_FAULT),
        (the_first_history_is_taken_for_the_history_set, "wait-rule-3p-fifo-coordinator", TOTAL_ORDER),
        (trusting(what_all_have_consumed_is_what_one_has), "no-lower-lock-blocks-high", HELD_UP),
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
        (all_locks_are_inherited, LOCKS.test_equals_do_not_hold_each_other_up),
        (locks_of_less_urgent_messages_stay, LOCKS.test_no_lower_lock_blocks_high),
        (the_end_of_a_view_waits_for_what_is_gone, END.test_nobody_waits_for_what_is_gone_with_its_consumer),
        (the_end_of_a_view_leaves_locks_of_what_is_gone, END.test_what_was_not_agreed_on_is_forgotten),
        (one_answer_may_be_missing, partial(VIEW_ENDS.test_view_change_missing_survivor_ack, True)),
        (one_answer_may_be_missing, partial(VIEW_ENDS.test_view_change_missing_survivor_ack, False)),
        (the_first_history_is_taken_for_the_history_set, VIEW_ENDS.test_view_change_departed_ack_counted),
        (nobody_measures_how_long_messages_were_held_up, SEEN.test_a_locked_head_is_a_measured_wait),
    ],
)
def test_a_case_finds_the_mutant(
    mutant: Patch, case: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    single_test_finds(mutant, case, monkeypatch, (AssertionError, PeerFault))


def test_batches_that_do_not_join_one_after_the_other_need_the_rules_of_the_concurrent_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What section 4.3 can do without it needs as soon as a batch locks before the last one is inserted."""
    the_provisional_insertion_point_is_definitive(monkeypatch)
    original = ReorderLocksInTurn._proceed

    def proceed(self: ReorderLocksInTurn) -> None:
        turns = -1
        while turns != len(self._turns):
            turns, self._current = len(self._turns), None
            original(self)

    monkeypatch.setattr(ReorderLocksInTurn, "_proceed", proceed)
    found_in_schedules(ReorderLocksInTurn.NAME, {TOTAL_ORDER})
