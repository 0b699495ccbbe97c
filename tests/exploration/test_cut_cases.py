"""The cases of re-ordering by name, for the cut form: everything that two or three members can make of them.

What they look like step by step is in the scripts `cut-*`; what each rule is needed for, in the mutants.
"""

import pytest

from exploration.scenarios import assert_holds
from priocast.core.protocol import OrderingOptions
from protocols.harness import Group
from protocols.view_sequences import ViewPlan, end_view

ORDER = "reorder"


@pytest.fixture(params=[False, True], ids=["coordinator", "distributed"])
def distributed(request: pytest.FixtureRequest) -> bool:
    chosen: bool = request.param
    return chosen


@pytest.mark.parametrize("messages", ["a:low b:high", "a:low b:high b:low", "a:high a:low b:low"])
def test_exact_priority_accounting(messages: str, distributed: bool) -> None:
    assert_holds(ORDER, messages, distributed=distributed, view_ends=True)


def test_at_most_one_head(distributed: bool) -> None:
    """Three levels, in which heads might hold up each other in a circle."""
    assert_holds(ORDER, "a:low b:middle a:high", distributed=distributed, view_ends=True)


def test_no_lower_lock_blocks_high(distributed: bool) -> None:
    """In every state, what is looked into: a head waits for what the rule names, and for nothing else."""
    assert_holds(ORDER, "a:low b:low a:high", distributed=distributed)


def test_snapshot_lock_atomic(distributed: bool) -> None:
    """Between a message's coming and the answer to it, applications may consume."""
    assert_holds(ORDER, "a:low b:high", distributed=distributed, free_turns=True, view_ends=True)


def test_same_level_concurrent_insert(distributed: bool) -> None:
    assert_holds(ORDER, "a:high b:high b:low", distributed=distributed)


def test_low_low_concurrent(distributed: bool) -> None:
    assert_holds(ORDER, "a:low b:low", processes=3, distributed=distributed)


def test_low_unreceived_but_in_history(distributed: bool) -> None:
    """Three members, of which one may have consumed what another has hardly heard of."""
    assert_holds(ORDER, "a:low b:high", processes=3, distributed=distributed)


def test_empty_queue_tail_lock(distributed: bool) -> None:
    """The urgent one may come first, to empty queues."""
    assert_holds(ORDER, "a:high b:low", processes=3, distributed=distributed)


def test_the_plain_twin_has_one_queue(distributed: bool) -> None:
    assert_holds(ORDER, "a:low b:high a:high", distributed=distributed, prioritised=False, view_ends=True)


@pytest.mark.parametrize("bound", [1, 2])
def test_a_bound_on_overtaking_holds_up_nothing_for_ever(bound: int, distributed: bool) -> None:
    assert_holds(ORDER, "a:low b:high b:high", distributed=distributed, overtakes_max=bound)
    assert_holds(ORDER, "a:low a:high", distributed=distributed, overtakes_max=bound, free_turns=True)


def test_what_only_departed_members_consumed_leaves_its_place_to_nobody() -> None:
    """Counterexample by exploration when cuts counted messages: x, which goes with a and c, counted for y.

    c had consumed x when h came there. b alone goes on, and holds what was agreed on for h and for y, but not
    for x. Nobody has consumed y, so h goes first.
    """
    group = Group(["a", "b", "c"], ORDER, OrderingOptions())
    for member, level, payload in (("a", 32, b"x"), ("b", 224, b"h")):
        group.broadcast(member, level, [payload])
        group.turn(member)
    for source, target in ("ba", "ab", "ba", "ab", "ac", "ca"):
        group.deliver(source, target)
        group.turn(target)
    group.broadcast("c", 32, [b"y"])
    group.turn("c")
    for source, target in ("ca", "cb", "ac"):
        group.deliver(source, target)
        group.turn(target)
    assert group.consume("c", 5) == 1
    for source, target in ("ac", "bc", "cb", "bc", "cb"):
        group.deliver(source, target)
        group.turn(target)
    ends = end_view(group, ViewPlan(ORDER, OrderingOptions(), [], 0b010, 0, 10**6, True))
    assert [ordered_batch.batch.payloads() for ordered_batch in ends["b"].tail] == [[b"h"], [b"y"]]
