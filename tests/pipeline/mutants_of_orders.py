"""Mutants of runs whose order is changed, or given by name only: one thing wrong, and where to name it."""

from collections.abc import Callable
from itertools import pairwise

from pipeline import living_runs
from pipeline.mutants import Mutant, Named, exchanging_in_order, without
from pipeline.mutants_of_views import deliveries, not_received, told_otherwise
from pipeline.sample_runs import SampleRun
from pipeline.story import id_of
from priocast.core.starvation import Ageing, Starvation, Strict
from priocast.membership.packets import Ordering
from priocast.trace.recorder import view_order
from priocast.trace.schema import RECEIVED, SENT


def order_differs() -> Mutant:
    plain = str(view_order(Ordering("sequencer-ub", False, "none")))
    return told_otherwise("c", 2, lambda row: row._replace(order=plain))


def safe_message_only_named_to_one() -> Mutant:
    """Member c was told the place of a message that it never got."""
    run = living_runs.safe_and_named()
    row = [row for row in deliveries(run, "a", 2) if row.safe and row.sender != "c"][-1]
    gone = [
        other
        for other in run.rows
        if (other.event, other.member, other.position) == (RECEIVED, "c", -1) and id_of(other) == id_of(row)
    ]
    named = Named("Uniformity", row.position, (id_of(row),), ("c#1",))
    return Mutant(run.changed(without(*gone)), named)


def safe_message_never_named_to_one() -> Mutant:
    """Member c got a message, and not its place."""
    run = living_runs.safe_and_named()
    row = [row for row in deliveries(run, "a", 2) if row.safe][-1]
    return not_received(run, row, "c")


def priority_inverted_in_the_second_view() -> Mutant:
    """After the first orderer crashed, the second one lets a message go before one that ranks ahead."""
    return _inverted(living_runs.orderer_crashed(), 2, "b", Strict())


def priority_inverted_after_the_order_changed() -> Mutant:
    """The class and the policy are those that the view says."""
    return _inverted(living_runs.order_changed(), 4, "a", Ageing(50_000))


def _inverted(run: SampleRun, view: int, orderer: str, policy: Starvation) -> Mutant:
    here = [row for row in run.rows if (row.member, row.view) == (orderer, view)]
    sent = [row for row in here if row.event == SENT and row.position >= 0]
    entered = {id_of(row): row for row in here if row.event == RECEIVED and row.position < 0}
    rank = {
        message: policy.sort_key(255 if row.priorities else row.level, row.time_ns)
        for message, row in entered.items()
    }
    ahead, behind = next(
        (one, other)
        for one, other in pairwise(sent)
        if rank[id_of(one)] < rank[id_of(other)]
        and max(entered[id_of(row)].step for row in (one, other)) < one.step
    )
    named = Named("Priority", ahead.position, (id_of(ahead), id_of(behind)), (f"{orderer}#1",))
    return Mutant(run.changed(exchanging_in_order(ahead, behind)), named)


MUTANTS: tuple[Callable[[], Mutant], ...] = (
    order_differs,
    safe_message_only_named_to_one,
    safe_message_never_named_to_one,
    priority_inverted_in_the_second_view,
    priority_inverted_after_the_order_changed,
)
