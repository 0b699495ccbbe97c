"""Each rule of the cut form, removed: exploration finds the shortest counterexample.

Every mutant removes one rule of `protocols/reorder`. Its row has the smallest scenario that needs the rule,
and the guarantees that may detect it.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any

import pytest

from exploration.scenarios import assert_found, assert_holds, counterexample, failed_assertion
from priocast.core.guarantees import INTEGRITY, LIVENESS, PRIORITY_ACCOUNTING, TOTAL_ORDER, VIEW_SYNCHRONY
from priocast.core.protocol import Consume, PacketId, Turn
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from priocast.protocols.reorder import cuts as reorder
from priocast.protocols.reorder.acknowledgments import Acknowledgment, highest
from priocast.protocols.reorder.cut_packets import CutAcknowledgment, CutDecision
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.exchange import Complete, Exchange
from priocast.protocols.reorder.level_order import LevelOrder
from priocast.protocols.reorder.level_queues import Cut, CutInsertion, LevelQueue, LevelQueues
from priocast.protocols.reorder.reordering import ReorderingProtocol

Patch = Callable[[pytest.MonkeyPatch], None]
ORDER = "reorder"
ORDER_OR_PRIORITY = (TOTAL_ORDER, PRIORITY_ACCOUNTING)


def _check_decision(*_: object) -> None:
    """Accept any decision. Exploration copies members, and their methods by name: so it has this name."""


def cut_by_the_least(patch: pytest.MonkeyPatch) -> None:
    """What all have consumed goes first, instead of what any has consumed."""

    def _decision(self: Reorder, number: int, acknowledgments: list[CutAcknowledgment]) -> CutDecision:
        told = [{place[0]: place for place in acknowledgment.consumed} for acknowledgment in acknowledgments]
        common = set(told[0]).intersection(*told)
        cut = tuple(min(each[level] for each in told) for level in common)
        return CutDecision(
            number, highest([acknowledgment.proposals for acknowledgment in acknowledgments]), cut
        )

    patch.setattr(Reorder, "_decision", _decision)
    patch.setattr(Reorder, "_check_decision", _check_decision)


def cut_of_the_sender_alone(patch: pytest.MonkeyPatch) -> None:
    def _decision(self: Reorder, number: int, acknowledgments: list[CutAcknowledgment]) -> CutDecision:
        own = acknowledgments[self.ranks[self.me]]
        return CutDecision(
            number, highest([acknowledgment.proposals for acknowledgment in acknowledgments]), own.consumed
        )

    patch.setattr(Reorder, "_decision", _decision)
    patch.setattr(Reorder, "_check_decision", _check_decision)


def an_unknown_higher_head_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    def consumable(self: LevelQueues) -> tuple[CutInsertion, int] | None:
        above: list[CutInsertion] = []
        for level in self._levels.values():
            head = level.head() if level.waiting else None
            if head is None:
                continue
            count = min((higher.lets_pass(head) for higher in above), default=head.left)
            if count and not self._waits_for_lower(head):
                return head, count
            above.append(head)
        return None

    patch.setattr(LevelQueues, "consumable", consumable)


def lower_levels_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LevelQueues, "_waits_for_lower", lambda *_: False)


def a_higher_head_lets_nothing_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CutInsertion, "lets_pass", lambda *_: 0)


def a_higher_head_lets_all_of_a_batch_pass(patch: pytest.MonkeyPatch) -> None:
    original = CutInsertion.lets_pass
    patch.setattr(CutInsertion, "lets_pass", lambda self, lower: lower.left if original(self, lower) else 0)


def anything_open_holds_up_everything(patch: pytest.MonkeyPatch) -> None:
    original = LevelQueues.consumable

    def consumable(self: LevelQueues) -> tuple[CutInsertion, int] | None:
        known = all(level.head() is not None for level in self._levels.values() if level.waiting)
        return original(self) if known else None

    patch.setattr(LevelQueues, "consumable", consumable)


def the_least_proposal_is_the_number(patch: pytest.MonkeyPatch) -> None:
    def lowest(proposals: list[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(map(min, zip(*proposals, strict=True)))

    patch.setattr(reorder, "highest", lowest)
    patch.setattr(Exchange, "_on_decision", _trusting)


def _trusting(self: Any, sender: object, rank: int, decision: CutDecision, packet_id: PacketId) -> None:
    self._carry_out((rank, decision.number), decision, [packet_id])


def the_clock_is_not_raised(patch: pytest.MonkeyPatch) -> None:
    def decide(self: LevelOrder[CutInsertion], insertion: CutInsertion, number: int) -> None:
        insertion.final = number
        heappush(self._decided, (number, insertion.id, insertion))

    patch.setattr(LevelOrder, "decide", decide)


def what_is_open_may_not_be_first(patch: pytest.MonkeyPatch) -> None:
    def head(self: LevelOrder[CutInsertion]) -> CutInsertion | None:
        return self._decided[0][2] if self._decided else None

    patch.setattr(LevelOrder, "head", head)


def members_propose_the_same_numbers(patch: pytest.MonkeyPatch) -> None:
    original = LevelOrder.__init__
    patch.setattr(LevelOrder, "__init__", lambda self, *_: original(self))


def what_came_counts_as_consumed(patch: pytest.MonkeyPatch) -> None:
    def receive(self: LevelQueue, insertion: CutInsertion) -> None:
        LevelOrder.receive(self, insertion)
        self.consumed = max(self.consumed, (insertion.proposal, insertion.batch.count))

    patch.setattr(LevelQueue, "receive", receive)


def a_batch_counts_when_all_of_it_is_consumed(patch: pytest.MonkeyPatch) -> None:
    original = LevelQueue.consume

    def consume(self: LevelQueue, count: int) -> None:
        before = self.consumed
        insertion = self.head()
        original(self, count)
        if insertion is not None and insertion.left:
            self.consumed = before

    patch.setattr(LevelQueue, "consume", consume)


def the_lock_comes_after_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """The acknowledgment has what was consumed on reception, and lower messages stall from the turn on."""
    original_data, original_turn = Reorder._on_data, Reorder.on_turn

    def on_data(self: Any, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        consumed = self._queue.consumed_below(256)
        vars(self).setdefault("_late", []).append((rank, data, packet_id, consumed))

    def on_turn(self: Any, event: Turn, now: int) -> None:
        late, self._late = vars(self).get("_late", []), []
        for rank, data, packet_id, consumed in late:
            now_consumed: Callable[[int], Cut] = self._queue.consumed_below
            self._queue.consumed_below = lambda level, then=consumed: {
                number: position for number, position in then.items() if number < level
            }
            original_data(self, rank, data, packet_id)
            self._queue.consumed_below = now_consumed
            del self._queue.consumed_below
        self.queue_changed(now)
        original_turn(self, event, now)

    patch.setattr(Reorder, "_on_data", on_data)
    patch.setattr(Reorder, "on_turn", on_turn)


def snapshot_and_lock_come_with_the_turn(patch: pytest.MonkeyPatch) -> None:
    original_data, original_turn = Reorder._on_data, Reorder.on_turn

    def on_data(self: Any, rank: int, data: NumberedData, packet_id: PacketId) -> None:
        vars(self).setdefault("_late", []).append((rank, data, packet_id))

    def on_turn(self: Any, event: Turn, now: int) -> None:
        late, self._late = vars(self).get("_late", []), []
        for rank, data, packet_id in late:
            original_data(self, rank, data, packet_id)
        self.queue_changed(now)
        original_turn(self, event, now)

    patch.setattr(Reorder, "_on_data", on_data)
    patch.setattr(Reorder, "on_turn", on_turn)


def decided_without_the_last_acknowledgment(patch: pytest.MonkeyPatch) -> None:
    """One acknowledgment less is enough, as in the paper's figure 4 when a member has failed."""
    original = Exchange.collect

    def collect(
        self: Any, rank: int, acknowledgment: Acknowledgment, packet_id: PacketId
    ) -> Complete[Acknowledgment] | None:
        if not isinstance(acknowledgment, CutAcknowledgment):
            return original(self, rank, acknowledgment, packet_id)
        missing = (acknowledgment.sender + 1) % len(self._members)
        if rank == missing:
            return None
        complete = original(self, rank, acknowledgment, packet_id)
        if rank == acknowledgment.sender:
            invented = CutAcknowledgment(
                acknowledgment.sender, acknowledgment.number, acknowledgment.proposals, ()
            )
            complete = original(self, missing, invented, packet_id)
        return complete

    patch.setattr(Exchange, "collect", collect)
    patch.setattr(Exchange, "_on_decision", _trusting)


def what_was_offered_stays_offered(patch: pytest.MonkeyPatch) -> None:
    """Although something more urgent has come."""

    def on_consume(self: ReorderingProtocol[Any, Any, Any], event: Consume, now: int) -> None:
        original_consume(self, event, now)
        self._head_is_known = False

    def queue_changed(self: ReorderingProtocol[Any, Any, Any], now: int) -> None:
        was_offered = self._head_is_known and self._tentative is not None
        original_changed(self, now)
        self._head_is_known = was_offered

    original_consume, original_changed = ReorderingProtocol._on_consume, ReorderingProtocol.queue_changed
    patch.setattr(ReorderingProtocol, "_on_consume", on_consume)
    patch.setattr(ReorderingProtocol, "queue_changed", queue_changed)


def the_end_forgets_what_was_agreed_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReorderingProtocol, "close", lambda self: self._queue.end())


def the_end_knows_no_cuts(patch: pytest.MonkeyPatch) -> None:
    original = LevelQueues.consumable

    def consumable(self: LevelQueues) -> tuple[CutInsertion, int] | None:
        if not self._ended:
            return original(self)
        heads = [head for level in self._levels.values() if (head := level.head()) is not None]
        return heads[0], heads[0].left

    patch.setattr(LevelQueues, "consumable", consumable)


def the_end_waits_for_what_is_lost(patch: pytest.MonkeyPatch) -> None:
    original = LevelQueues.end

    def end(self: LevelQueues) -> None:
        original(self)
        self._ended = False

    patch.setattr(LevelQueues, "end", end)


def the_end_places_what_is_open(patch: pytest.MonkeyPatch) -> None:
    def end(self: LevelQueues) -> None:
        for level in self._levels.values():
            for _, _, insertion in list(level._undecided):
                if insertion.final is None:
                    level.decide(insertion, insertion.proposal)

    patch.setattr(LevelQueues, "end", end)


def what_is_under_way_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reorder, "unordered", OrderingProtocol.unordered)


TWO, THREE = {"processes": 2}, {"processes": 3}
LARGE = "a:low a:low b:high"
FREE = {"free_turns": True}
ENDS_OF_TWO = {"view_ends": True}
ENDS_OF_THREE = {"processes": 3, "view_ends": True}

MUTANTS: list[tuple[Patch, str, dict[str, Any], tuple[str, ...]]] = [
    (cut_by_the_least, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (cut_of_the_sender_alone, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (an_unknown_higher_head_is_not_waited_for, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (lower_levels_are_not_waited_for, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (a_higher_head_lets_nothing_pass, "a:low b:high", TWO, (LIVENESS,)),
    (the_least_proposal_is_the_number, "a:low b:low", TWO, (TOTAL_ORDER,)),
    (the_clock_is_not_raised, "a:low b:low", THREE, (TOTAL_ORDER,)),
    (what_is_open_may_not_be_first, "a:low b:low", TWO, (TOTAL_ORDER,)),
    (members_propose_the_same_numbers, "a:low b:low b:high", TWO, ORDER_OR_PRIORITY),
    (what_came_counts_as_consumed, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (a_batch_counts_when_all_of_it_is_consumed, LARGE, FREE, ORDER_OR_PRIORITY),
    (the_lock_comes_after_the_snapshot, "a:low b:high", FREE, ORDER_OR_PRIORITY),
    (snapshot_and_lock_come_with_the_turn, "a:low b:high", FREE, (PRIORITY_ACCOUNTING,)),
    (decided_without_the_last_acknowledgment, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (what_was_offered_stays_offered, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (the_end_forgets_what_was_agreed_on, "a:low b:high", ENDS_OF_TWO, (VIEW_SYNCHRONY, INTEGRITY)),
    (the_end_knows_no_cuts, "a:low b:high", ENDS_OF_TWO, (VIEW_SYNCHRONY, PRIORITY_ACCOUNTING)),
    (the_end_places_what_is_open, "a:low b:low", ENDS_OF_TWO, (VIEW_SYNCHRONY,)),
    (what_is_under_way_is_not_sent_again, "a:low b:high", ENDS_OF_TWO, (INTEGRITY,)),
]


SMALL = {
    str((messages, options)): (messages, options) for _, messages, options, _ in MUTANTS if messages != LARGE
}


@pytest.mark.parametrize(("messages", "options"), SMALL.values(), ids=list(SMALL))
def test_the_unchanged_protocol_holds(messages: str, options: dict[str, Any]) -> None:
    """The largest scenario is left out: it is one of the standard ones."""
    assert_holds(ORDER, messages, **options)


@pytest.mark.parametrize(
    ("mutate", "messages", "options", "guarantees"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS]
)
def test_exploration_finds_the_mutant(
    mutate: Patch,
    messages: str,
    options: dict[str, Any],
    guarantees: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert_found(monkeypatch, mutate, guarantees, ORDER, messages, **options)


def test_the_end_asserts_that_nothing_waits_for_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise such a message would be sent again: late, but no guarantee would be broken."""
    assert_holds(ORDER, "a:low b:high", **ENDS_OF_THREE)
    the_end_waits_for_what_is_lost(monkeypatch)
    assert failed_assertion(ORDER, "a:low b:high", **ENDS_OF_THREE) == "what is decided has one order"


@pytest.mark.parametrize(
    "mutate",
    [
        anything_open_holds_up_everything,
        an_unknown_higher_head_is_not_waited_for,
        a_higher_head_lets_nothing_pass,
    ],
)
def test_invariants_find_the_mutant_earlier(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that waits needlessly for a lower one is still consumed: only the invariant detects it."""
    mutate(monkeypatch)
    guarantee, steps = counterexample(ORDER, "a:low b:high")
    assert guarantee == PRIORITY_ACCOUNTING
    assert len(steps) < 9


def test_invariants_check_how_much_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that takes one message at a time never takes too many: only the invariant detects it."""
    a_higher_head_lets_all_of_a_batch_pass(monkeypatch)
    guarantee, _ = counterexample(ORDER, "a:low a:low a:low b:high", free_turns=True)
    assert guarantee == PRIORITY_ACCOUNTING
