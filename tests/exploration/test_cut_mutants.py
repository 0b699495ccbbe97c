"""Each rule of the cut form, removed: exploration finds the shortest counterexample.

Every mutant removes one rule of `protocols/reorder`. Its row has the smallest scenario that needs the rule,
and the guarantees that may detect it.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any

import pytest

from exploration.scenarios import assert_holds, counterexample
from priocast.core.guarantees import (
    INTEGRITY,
    LIVENESS,
    PRIORITY_ACCOUNTING,
    TOTAL_ORDER,
    VIEW_SYNCHRONY,
)
from priocast.core.message import OrderedBatch
from priocast.core.protocol import Consume, Input, Output, Protocol, Turn
from priocast.exploration import member_states
from priocast.exploration.violation import OWN_FAULT
from priocast.protocols.reorder import cuts as reorder
from priocast.protocols.reorder.base import Data, Reordering, highest
from priocast.protocols.reorder.cut_queues import Cut, CutJoin, Level, Levels
from priocast.protocols.reorder.cuts import CutAnswer, CutDecision, Reorder
from priocast.protocols.reorder.level_order import LevelOrder

Patch = Callable[[pytest.MonkeyPatch], None]
ORDER = "reorder"
ORDER_OR_PRIORITY = (TOTAL_ORDER, PRIORITY_ACCOUNTING)


def cut_by_the_least(patch: pytest.MonkeyPatch) -> None:
    """What all have consumed goes first, instead of what any has consumed."""

    def decision(self: Reorder, number: int, answers: list[CutAnswer]) -> CutDecision:
        told = [{place[0]: place for place in answer.consumed} for answer in answers]
        common = set(told[0]).intersection(*told)
        cut = tuple(min(each[level] for each in told) for level in common)
        return CutDecision(number, highest([answer.proposals for answer in answers]), cut)

    patch.setattr(Reorder, "_decision", decision)
    patch.setattr(Reorder, "_check_decision", lambda *_: None)


def cut_of_the_sender_alone(patch: pytest.MonkeyPatch) -> None:
    def decision(self: Reorder, number: int, answers: list[CutAnswer]) -> CutDecision:
        own = answers[self.ranks[self.me]]
        return CutDecision(number, highest([answer.proposals for answer in answers]), own.consumed)

    patch.setattr(Reorder, "_decision", decision)
    patch.setattr(Reorder, "_check_decision", lambda *_: None)


def an_unknown_higher_head_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    def consumable(self: Levels) -> tuple[CutJoin, int] | None:
        above: list[CutJoin] = []
        for level in self._levels.values():
            head = level.head() if level.waiting else None
            if head is None:
                continue
            count = min((higher.lets_pass(head) for higher in above), default=head.left)
            if count and not self._lacks(head):
                return head, count
            above.append(head)
        return None

    patch.setattr(Levels, "consumable", consumable)


def lower_levels_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Levels, "_lacks", lambda *_: False)


def a_higher_head_lets_nothing_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CutJoin, "lets_pass", lambda *_: 0)


def a_higher_head_lets_all_of_a_batch_pass(patch: pytest.MonkeyPatch) -> None:
    original = CutJoin.lets_pass
    patch.setattr(CutJoin, "lets_pass", lambda self, lower: lower.left if original(self, lower) else 0)


def anything_open_holds_up_everything(patch: pytest.MonkeyPatch) -> None:
    original = Levels.consumable

    def consumable(self: Levels) -> tuple[CutJoin, int] | None:
        known = all(level.head() is not None for level in self._levels.values() if level.waiting)
        return original(self) if known else None

    patch.setattr(Levels, "consumable", consumable)


def the_least_proposal_is_the_number(patch: pytest.MonkeyPatch) -> None:
    def lowest(proposals: list[tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(map(min, zip(*proposals, strict=True)))

    patch.setattr(reorder, "highest", lowest)
    patch.setattr(Reordering, "_on_decision", _trusting)


def _trusting(self: Any, sender: object, rank: int, decision: CutDecision) -> None:
    self._agree((rank, decision.number), decision, [self.packet_id])


def the_clock_is_not_raised(patch: pytest.MonkeyPatch) -> None:
    def agree(self: LevelOrder[CutJoin], join: CutJoin, number: int) -> None:
        join.final = number
        heappush(self._agreed, (number, join.id, join))

    patch.setattr(LevelOrder, "agree", agree)


def what_is_open_may_not_be_first(patch: pytest.MonkeyPatch) -> None:
    def head(self: LevelOrder[CutJoin]) -> CutJoin | None:
        return self._agreed[0][2] if self._agreed else None

    patch.setattr(LevelOrder, "head", head)


def members_propose_the_same_numbers(patch: pytest.MonkeyPatch) -> None:
    original = LevelOrder.__init__
    patch.setattr(LevelOrder, "__init__", lambda self, *_: original(self))


def what_came_counts_as_consumed(patch: pytest.MonkeyPatch) -> None:
    def receive(self: Level, join: CutJoin) -> None:
        LevelOrder.receive(self, join)
        self.waiting += join.batch.count
        self.consumed = max(self.consumed, (join.proposal, join.batch.count))

    patch.setattr(Level, "receive", receive)


def a_batch_counts_when_all_of_it_is_consumed(patch: pytest.MonkeyPatch) -> None:
    original = Level.consume

    def consume(self: Level, count: int) -> None:
        before = self.consumed
        join = self.head()
        original(self, count)
        if join is not None and join.left:
            self.consumed = before

    patch.setattr(Level, "consume", consume)


def the_lock_comes_after_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """The answer tells what was consumed on reception, and lower messages stall from the turn on."""
    original_join, original_turn = Reorder._join, Reorder.on_turn

    def join(self: Any, rank: int, data: Data) -> None:
        consumed = self._levels.consumed_below(256)
        vars(self).setdefault("_late", []).append((rank, data, self.packet_id, consumed))

    def on_turn(self: Any, event: Turn, now: int) -> None:
        late, self._late = vars(self).get("_late", []), []
        for rank, data, packet_id, consumed in late:
            self.packet_id = packet_id
            now_consumed: Callable[[int], Cut] = self._levels.consumed_below
            self._levels.consumed_below = lambda level, then=consumed: {
                number: place for number, place in then.items() if number < level
            }
            original_join(self, rank, data)
            self._levels.consumed_below = now_consumed
            del self._levels.consumed_below
        self._changed(now)
        original_turn(self, event, now)

    patch.setattr(Reorder, "_join", join)
    patch.setattr(Reorder, "on_turn", on_turn)


def snapshot_and_lock_come_with_the_turn(patch: pytest.MonkeyPatch) -> None:
    original_join, original_turn = Reorder._join, Reorder.on_turn

    def join(self: Any, rank: int, data: Data) -> None:
        vars(self).setdefault("_late", []).append((rank, data, self.packet_id))

    def on_turn(self: Any, event: Turn, now: int) -> None:
        late, self._late = vars(self).get("_late", []), []
        for rank, data, packet_id in late:
            self.packet_id = packet_id
            original_join(self, rank, data)
        self._changed(now)
        original_turn(self, event, now)

    patch.setattr(Reorder, "_join", join)
    patch.setattr(Reorder, "on_turn", on_turn)


def decided_without_the_last_answer(patch: pytest.MonkeyPatch) -> None:
    """One answer less is enough: as the paper's figure 4, which counts answers, after somebody is gone."""
    original = Reorder._collect

    def collect(self: Any, rank: int, answer: CutAnswer) -> None:
        if rank == (answer.sender + 1) % len(self.view.members):
            return
        original(self, rank, answer)
        if rank == answer.sender:
            missing = (answer.sender + 1) % len(self.view.members)
            original(self, missing, CutAnswer(answer.sender, answer.number, answer.proposals, ()))

    patch.setattr(Reorder, "_collect", collect)
    patch.setattr(Reordering, "_on_decision", _trusting)


def what_was_offered_stays_offered(patch: pytest.MonkeyPatch) -> None:
    def step(self: Any, event: Input, now: int) -> list[Output]:
        if isinstance(event, Consume):
            return Protocol.step(self, event, now)
        offered: OrderedBatch | None = self._tentative
        outputs = Protocol.step(self, event, now)
        self._tentative = offered
        return outputs

    patch.setattr(Reordering, "step", step)


def the_end_forgets_what_was_agreed_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reordering, "close", lambda self: self._queues.end())


def the_end_knows_no_cuts(patch: pytest.MonkeyPatch) -> None:
    def first_left(self: Levels) -> tuple[CutJoin, int]:
        heads = [head for level in self._levels.values() if (head := level.head()) is not None]
        return heads[0], heads[0].left

    patch.setattr(Levels, "first_left", first_left)


def the_end_waits_for_what_is_lost(patch: pytest.MonkeyPatch) -> None:
    original = Levels.end

    def end(self: Levels) -> None:
        original(self)
        self._ended = False

    patch.setattr(Levels, "end", end)


def the_end_places_what_is_open(patch: pytest.MonkeyPatch) -> None:
    def end(self: Levels) -> None:
        for level in self._levels.values():
            for _, _, join in list(level._open):
                if join.final is None:
                    level.agree(join, join.proposal)

    patch.setattr(Levels, "end", end)


def what_is_under_way_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reorder, "unordered", Protocol.unordered)


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
    (members_propose_the_same_numbers, "a:low b:low b:high", TWO, (OWN_FAULT, *ORDER_OR_PRIORITY)),
    (what_came_counts_as_consumed, "a:low b:high", TWO, (OWN_FAULT, LIVENESS, *ORDER_OR_PRIORITY)),
    (a_batch_counts_when_all_of_it_is_consumed, LARGE, FREE, ORDER_OR_PRIORITY),
    (the_lock_comes_after_the_snapshot, "a:low b:high", FREE, ORDER_OR_PRIORITY),
    (snapshot_and_lock_come_with_the_turn, "a:low b:high", FREE, (PRIORITY_ACCOUNTING,)),
    (decided_without_the_last_answer, "a:low b:high", TWO, ORDER_OR_PRIORITY),
    (what_was_offered_stays_offered, "a:low b:high", TWO, (OWN_FAULT,)),
    (the_end_forgets_what_was_agreed_on, "a:low b:high", ENDS_OF_TWO, (VIEW_SYNCHRONY, INTEGRITY)),
    (the_end_knows_no_cuts, "a:low b:high", ENDS_OF_TWO, (VIEW_SYNCHRONY, PRIORITY_ACCOUNTING)),
    (the_end_waits_for_what_is_lost, "a:low b:high", ENDS_OF_THREE, (OWN_FAULT,)),
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
    """Without invariants: the guarantee itself detects the mutant."""
    monkeypatch.setattr(member_states, "check_invariants", lambda _: None)
    mutate(monkeypatch)
    guarantee, steps = counterexample(ORDER, messages, **options)
    assert guarantee in guarantees, steps


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
