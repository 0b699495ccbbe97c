"""Every check holds for correct runs and catches its mutants."""

from functools import partial

import pytest

from pipeline import model_runs, order_mutants, view_mutants
from pipeline.mutants import (
    ANY_POLICY,
    Expected,
    delivery_dropped,
    delivery_swapped_in_content,
    fifo_stepped_back,
    never_ordered,
    never_sent,
    ordered_without_queueing,
    priority_inverted,
    sending_inverted,
)
from pipeline.reordered_runs import ORDERS, simulated, with_a_sender_that_nobody_hears
from pipeline.sample_runs import SampleRun, play
from priocast.core.guarantees import (
    AGREEMENT,
    CAUSAL_ORDER,
    FIFO_AMONG_EQUALS,
    INTEGRITY,
    PRIORITY,
    TOTAL_ORDER,
    UNIFORMITY,
    VIEW_SYNCHRONY,
)
from priocast.pipeline.checks.catalogue import CHECKS, Check
from priocast.pipeline.verdicts import Verdict
from priocast.trace.schema import BROADCAST, STOPPED, GroupEventRow

#: One fixture checks all runs: 371 s on two cores that are shared with fifteen busy processes.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]

POLICIES = ("none", "ageing:50us", "flush:5ms")
#: Protocols whose simulated runs, with crashes and joins, must hold, too.
SIMULATED = ("sequencer-ub", "sequencer-bb", "token-ring", "moving-bb", "agreement-skeen", "causal-history")
#: The guarantees that each mutant breaks, the first of which must report it at the expected position.
BROKEN_BY = {
    "delivery_swapped_in_time": (TOTAL_ORDER,),
    "delivery_swapped_in_content": (TOTAL_ORDER,),
    "position_wrong": (TOTAL_ORDER,),
    "position_left_out": (TOTAL_ORDER, FIFO_AMONG_EQUALS),
    "delivery_dropped": (AGREEMENT,),
    "tail_lost": (AGREEMENT,),
    "delivery_repeated": (INTEGRITY, TOTAL_ORDER),
    "never_broadcast": (INTEGRITY,),
    "broadcast_recorded_twice": (INTEGRITY,),
    "broadcast_after_its_delivery": (CAUSAL_ORDER,),
    "sender_lacks_what_it_caused": (CAUSAL_ORDER, AGREEMENT),
    "first_delivery_lost_everywhere": (TOTAL_ORDER, FIFO_AMONG_EQUALS),
    "last_delivery_lost_everywhere": (TOTAL_ORDER,),
    "outsider": (INTEGRITY,),
    "fifo_stepped_back": (FIFO_AMONG_EQUALS, PRIORITY, CAUSAL_ORDER),
    "ordered_without_queueing": (PRIORITY,),
    "priority_inverted-none": (PRIORITY,),
    "priority_inverted-ageing:50us": (PRIORITY,),
    "priority_inverted-flush:5ms": (PRIORITY,),
    "sending_inverted-none": (PRIORITY,),
    "sending_inverted-ageing:50us": (PRIORITY,),
    "sending_inverted-flush:5ms": (PRIORITY,),
    "delivery_swapped_in_content-sequencer-bb": (TOTAL_ORDER,),
    "delivery_swapped_in_content-token-ring": (TOTAL_ORDER,),
    "delivery_dropped-sequencer-bb": (AGREEMENT,),
    "delivery_dropped-token-ring": (AGREEMENT,),
    "sending_inverted-sequencer-bb": (PRIORITY,),
    "sending_inverted-token-ring": (PRIORITY,),
    "priority_inverted-by-reference": (PRIORITY,),
    "ordered_without_queueing-by-reference": (PRIORITY,),
    "fifo_stepped_back-before-all-left": (FIFO_AMONG_EQUALS, PRIORITY, CAUSAL_ORDER),
    "never_ordered": (PRIORITY,),
    "never_sent": (PRIORITY,),
    "message_in_two_components": (TOTAL_ORDER, AGREEMENT, VIEW_SYNCHRONY),
    "survivor_misses_message": (AGREEMENT,),
    "dropped_member_skipped_message": (AGREEMENT,),
    "one_side_disagrees": (AGREEMENT,),
    "joiner_misses_message": (AGREEMENT,),
    "joiner_delivers_what_its_state_covers": (INTEGRITY,),
    "message_for_another": (INTEGRITY,),
    "resubmitted_and_delivered_twice": (INTEGRITY, TOTAL_ORDER),
    "delivered_in_an_unknown_view": (INTEGRITY, AGREEMENT, TOTAL_ORDER),
    "two_views_with_one_number": (VIEW_SYNCHRONY,),
    "minority_continues": (VIEW_SYNCHRONY,),
    "half_without_the_first_continues": (VIEW_SYNCHRONY,),
    "members_differ": (VIEW_SYNCHRONY,),
    "first_position_differs": (VIEW_SYNCHRONY,),
    "orderer_differs": (VIEW_SYNCHRONY,),
    "reason_differs": (VIEW_SYNCHRONY,),
    "received_a_view_without_itself": (VIEW_SYNCHRONY,),
    "view_goes_back": (VIEW_SYNCHRONY,),
    "view_skipped": (VIEW_SYNCHRONY,),
    "sender_not_in_the_view": (VIEW_SYNCHRONY,),
    "delivered_after_the_next_view": (VIEW_SYNCHRONY,),
    "delivered_before_its_view": (VIEW_SYNCHRONY, CAUSAL_ORDER),
    "safe_message_only_where_it_crashed": (UNIFORMITY,),
    "safe_message_missing_at_one": (UNIFORMITY, AGREEMENT),
    "safe_message_delivered_before_all_received_it": (UNIFORMITY,),
    "safe_message_not_received_at_the_end": (UNIFORMITY,),
    "safe_message_only_at_another": (UNIFORMITY, AGREEMENT, INTEGRITY),
    "message_lost_between_views": (FIFO_AMONG_EQUALS, TOTAL_ORDER),
    "last_message_of_a_view_lost": (TOTAL_ORDER,),
    "last_message_of_a_view_lost_in_a_real_run": (TOTAL_ORDER,),
    "record_truncated_in_a_simulation": (INTEGRITY,),
    "order_differs": (VIEW_SYNCHRONY,),
    "safe_message_only_referenced_at_one": (UNIFORMITY,),
    "safe_message_never_ordered_at_one": (UNIFORMITY,),
    "priority_inverted_in_the_second_view": (PRIORITY,),
    "priority_inverted_after_the_order_changed": (PRIORITY,),
}


#: Short runs: with those of the other modules they stay below the size from which Spark plans jobs anew.
short = partial(play, ticks=10)


def single(starvation: str = "none", order: str = "sequencer-ub", credit: int = 1_000_000) -> SampleRun:
    broadcasts = 1 + (credit == 1)
    return play(
        starvation=starvation, batch_max=1, order=order, credit=credit, broadcasts=broadcasts, ticks=15
    )


def all_left(run: SampleRun) -> SampleRun:
    """The same run, with all members leaving at its end."""
    last = {row.member: row for row in run.rows}
    leavings = [
        GroupEventRow(*row[:6], event=STOPPED, voluntary=True, left=("abcd",)) for row in last.values()
    ]
    return run.changed(lambda rows: [*rows, *leavings])


GOOD = {
    "plain": short(prioritised=False),
    "prioritised-and-left": all_left(short()),
    "prioritised": short(),
    "ageing": short(starvation="ageing:50us"),
    "flush": short(starvation="flush:5ms"),
    "two-members": short(names=("a", "b"), ticks=8),
    "queues-at-senders": short(credit=3),
    "queues-at-ageing-senders": short(credit=3, starvation="ageing:50us"),
    "by-reference": short(order="sequencer-bb", credit=3),
    "by-reference-and-plain": short(order="sequencer-bb", prioritised=False),
    "ring": short(order="token-ring"),
    "flushing-ring": short(order="token-ring", starvation="flush:5ms"),
    "plain-ring": short(order="token-ring", prioritised=False),
    **model_runs.GOOD,
}
SIMULATED_RUNS = {
    **{f"simulated-{order}": simulated(3, order) for order in SIMULATED},
    **{f"unheard-{order}": with_a_sender_that_nobody_hears(order) for order in ORDERS},
}
MUTANTS = {
    **{mutate.__name__: mutate(single()) for mutate in ANY_POLICY},
    **{f"priority_inverted-{policy}": priority_inverted(single(policy)) for policy in POLICIES},
    **{f"sending_inverted-{policy}": sending_inverted(single(policy, credit=1)) for policy in POLICIES},
    **{
        f"{mutate.__name__}-{order}": mutate(single(order=order, credit=1))
        for order in ("sequencer-bb", "token-ring")
        for mutate in (delivery_swapped_in_content, delivery_dropped, sending_inverted)
    },
    "priority_inverted-by-reference": priority_inverted(single(order="sequencer-bb")),
    "ordered_without_queueing-by-reference": ordered_without_queueing(single(order="sequencer-bb")),
    "fifo_stepped_back-before-all-left": fifo_stepped_back(all_left(single())),
    "never_ordered": never_ordered(single()),
    "never_sent": never_sent(single(credit=1)),
    **{mutate.__name__: mutate() for mutate in (*view_mutants.MUTANTS, *order_mutants.MUTANTS)},
}


def runs_to_check() -> dict[str, SampleRun]:
    """All correct runs and all mutants."""
    mutants = {name.replace(":", "-"): mutant.run for name, mutant in MUTANTS.items()}
    return GOOD | SIMULATED_RUNS | mutants


@pytest.fixture(scope="module")
def verdicts(verdicts_by_module: dict[str, list[Verdict]]) -> dict[tuple[str, str], Verdict]:
    """The verdicts by run and guarantee."""
    return {(verdict.run, verdict.guarantee): verdict for verdict in verdicts_by_module[__name__]}


@pytest.mark.parametrize("run", [*GOOD, *SIMULATED_RUNS])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.guarantee)
def test_correct_run_holds(verdicts: dict[tuple[str, str], Verdict], run: str, check: Check) -> None:
    verdict = verdicts[run, check.guarantee]
    assert verdict.examples == ()
    assert verdict.holds
    assert verdict.examined > 0 or not verdict.promised


def test_every_mutant_is_in_the_table() -> None:
    assert MUTANTS.keys() == BROKEN_BY.keys()
    assert all(MUTANTS[name].expected.guarantee == broken[0] for name, broken in BROKEN_BY.items())


@pytest.mark.parametrize("name", BROKEN_BY)
def test_mutant_is_caught(verdicts: dict[tuple[str, str], Verdict], name: str) -> None:
    """The first guarantee of the table reports the fault where it is, and no other guarantee is broken."""
    expected = MUTANTS[name].expected
    run = name.replace(":", "-")
    found = [
        Expected(violation.guarantee, violation.position, violation.messages, violation.members)
        for violation in verdicts[run, expected.guarantee].examples
    ]
    assert expected in found
    broken = {guarantee for (of, guarantee), verdict in verdicts.items() if of == run and not verdict.holds}
    assert broken == set(BROKEN_BY[name])


def test_plain_run_promises_no_priorities(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run: verdicts[run, "Priority"].promised for run in GOOD}
    assert promised == {run: "plain" not in run for run in GOOD}


def test_every_entry_into_a_queue_is_examined(verdicts: dict[tuple[str, str], Verdict]) -> None:
    """Messages pass two queues with a sequencer, one with a ring; in a plain group none is checked."""
    for run, queues in (("queues-at-senders", 2), ("by-reference", 2), ("ring", 1), ("plain-ring", 0)):
        broadcasts = sum(row.count for row in GOOD[run].messages if row.event == BROADCAST)
        assert verdicts[run, "Priority"].examined == queues * broadcasts


def test_uniformity_is_promised_where_something_is_safe(verdicts: dict[tuple[str, str], Verdict]) -> None:
    promised = {run for run in GOOD if verdicts[run, "Uniformity"].promised}
    assert promised == {name for name in GOOD if name.startswith(("safe", "all-safe"))}
    assert all(verdicts[run, "Uniformity"].examined > 10 for run in promised)


def test_summary_says_who_delivered_what(verdicts: dict[tuple[str, str], Verdict]) -> None:
    verdict = verdicts["delivery_swapped_in_content", "Total order"]
    first = next(violation for violation in verdict.examples if len(violation.messages) == 2)
    one, other = first.messages
    summary = first.summary
    assert verdict.violations == 4  # two positions with two messages, two messages with two positions
    assert sorted(summary.split("; ")) in (
        [f"a#1, c#1, d#1 delivered {one}", f"b#1 delivered {other}"],
        [f"a#1, c#1, d#1 delivered {other}", f"b#1 delivered {one}"],
    )
