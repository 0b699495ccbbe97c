"""Mutants of runs whose order changes, or is given by reference: one fault each, and where to report it."""

from collections.abc import Callable
from itertools import pairwise

from pipeline import model_runs
from pipeline.mutants import Expected, Mutant, exchanging_in_order, without
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import id_of
from pipeline.view_mutants import deliveries, not_received, received_otherwise
from priocast.core.starvation import Ageing, Starvation, Strict
from priocast.membership.packets import Ordering
from priocast.trace.recorder import view_order
from priocast.trace.schema import RECEIVED, SENT


def order_differs() -> Mutant:
    plain = view_order(Ordering("sequencer-ub", False, "none")).policy
    return received_otherwise("c", 2, lambda row: row._replace(starvation=plain))


def safe_message_only_referenced_at_one() -> Mutant:
    """Member c received the position of a message that it never received."""
    run = model_runs.safe_and_named()
    row = [row for row in deliveries(run, "a", 2) if row.safe and row.sender != "c"][-1]
    gone = [
        other
        for other in run.messages
        if (other.event, other.member, other.position) == (RECEIVED, "c", -1) and id_of(other) == id_of(row)
    ]
    expected = Expected("Uniformity", row.position, (id_of(row),), ("c#1",))
    return Mutant(run.changed(without(*gone)), expected)


def safe_message_never_ordered_at_one() -> Mutant:
    """Member c received a message, but not its position."""
    run = model_runs.safe_and_named()
    row = [row for row in deliveries(run, "a", 2) if row.safe][-1]
    return not_received(run, row, "c")


def priority_inverted_in_the_second_view() -> Mutant:
    """After the first orderer crashed, the second one orders a message before one with a lower sort key."""
    return _inverted(model_runs.orderer_crashed(), 2, "b", Strict())


def priority_inverted_after_the_order_changed() -> Mutant:
    """The protocol and the policy are those of the view."""
    return _inverted(model_runs.order_changed(), 4, "a", Ageing(50_000))


def _inverted(run: SampleRun, view: int, orderer: str, policy: Starvation) -> Mutant:
    here = [row for row in run.messages if (row.member, row.view) == (orderer, view)]
    sent = [row for row in here if row.event == SENT and row.position >= 0]
    entered = {id_of(row): row for row in here if row.event == RECEIVED and row.position < 0}
    key = {
        message: policy.sort_key(255 if row.priorities else row.level, row.time_ns)
        for message, row in entered.items()
    }
    ahead, behind = next(
        (one, other)
        for one, other in pairwise(sent)
        if key[id_of(one)] < key[id_of(other)]
        and max(entered[id_of(row)].step for row in (one, other)) < one.step
    )
    expected = Expected("Priority", ahead.position, (id_of(ahead), id_of(behind)), (f"{orderer}#1",))
    return Mutant(run.changed(exchanging_in_order(ahead, behind)), expected)


MUTANTS: tuple[Callable[[], Mutant], ...] = (
    order_differs,
    safe_message_only_referenced_at_one,
    safe_message_never_ordered_at_one,
    priority_inverted_in_the_second_view,
    priority_inverted_after_the_order_changed,
)
