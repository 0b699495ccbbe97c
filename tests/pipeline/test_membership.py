"""Which members continued together, and what they owe: small histories, written by hand."""

from dataclasses import replace

from priocast.core.starvation import Ageing
from priocast.core.view_reason import ViewReason
from priocast.membership.packets import Ordering
from priocast.pipeline.membership import (
    DROPPED_OUT,
    REMAINED,
    DeliveryObligation,
    GroupView,
    delivery_obligations,
    most_common,
    reconstruct_views,
    truncated_processes,
)
from priocast.pipeline.process_history import (
    DeliverySpan,
    ReceivedState,
    ReceivedView,
    RecordedProcess,
    RecordedStop,
    TraceHistory,
)
from priocast.trace.recorder import view_order
from priocast.trace.schema import ViewName

ONE, TWO, OTHER_TWO = ViewName(1, "a#1"), ViewName(2, "a#1"), ViewName(2, "c#1")
MEMBERS = {ONE: ("a#1", "b#1", "c#1"), TWO: ("a#1", "b#1"), OTHER_TWO: ("c#1",)}


ORDER = view_order(Ordering("sequencer-ub", True, "none"))


def received(view: ViewName, step: int) -> ReceivedView:
    return ReceivedView(view, step, step, MEMBERS[view], view.coordinator, 0, ViewReason(), ORDER)


def process(
    name: str,
    *views: ViewName,
    reached: dict[ViewName, int] | None = None,
    state: int | None = None,
    stopped: str | None = None,
) -> RecordedProcess:
    """A process that received these views, and delivered up to these positions in them."""
    return RecordedProcess(
        id=name,
        views=tuple(received(view, index * 10) for index, view in enumerate(views)),
        delivered={view: DeliverySpan(1, 1, 2, 0, last, 1, 2) for view, last in (reached or {}).items()},
        worked_until={},
        ordered_until={},
        states=() if state is None else (ReceivedState(1, 1, state),),
        stop=None if stopped is None else RecordedStop(5, True, ViewReason(left=(stopped,))),
        first_ns=0,
        last_ns=9,
    )


def history(*processes: RecordedProcess) -> TraceHistory:
    return TraceHistory({process.id: process for process in processes}, frozenset(), frozenset())


def continuations(view: GroupView) -> dict[str, tuple[str, int, int]]:
    return {each.process: (each.next_view, each.owes_from, each.owes_until) for each in view.participations}


def test_members_of_a_final_view_remain_and_owe_what_any_of_them_delivered() -> None:
    views = reconstruct_views(
        history(process("a#1", ONE, reached={ONE: 7}), process("b#1", ONE, reached={ONE: 5})), True
    )
    assert continuations(views[ONE]) == {
        "a#1": (REMAINED, 0, 8),
        "b#1": (REMAINED, 0, 8),
        "c#1": (REMAINED, 0, 8),
    }
    assert views[ONE].final
    assert views[ONE].gapless


def test_a_stopped_member_does_not_remain() -> None:
    group = history(
        process("a#1", ONE, reached={ONE: 7}),
        process("b#1", ONE, reached={ONE: 5}, stopped="left"),
        process("c#1", ONE, reached={ONE: 6}),
    )
    assert continuations(reconstruct_views(group, primary=True)[ONE])["b#1"] == (DROPPED_OUT, 0, 6)


def test_members_that_continue_together_owe_each_other_and_a_dropped_one_only_its_own() -> None:
    group = history(
        process("a#1", ONE, TWO, reached={ONE: 4}),
        process("b#1", ONE, TWO, reached={ONE: 9}),
        process("c#1", ONE, reached={ONE: 2}),
    )
    views = reconstruct_views(group, primary=True)
    assert continuations(views[ONE]) == {
        "a#1": (str(TWO), 0, 10),
        "b#1": (str(TWO), 0, 10),
        "c#1": (DROPPED_OUT, 0, 3),
    }
    assert not views[ONE].final
    assert views[ONE].gapless  # the orderer continued
    assert not reconstruct_views(group, primary=False)[ONE].gapless  # but it may have dropped what c sent
    assert truncated_processes(group, views) == {"c#1"}


def test_sides_of_a_partition_owe_nothing_to_each_other() -> None:
    group = history(
        process("a#1", ONE, TWO, reached={ONE: 4}),
        process("b#1", ONE, TWO, reached={ONE: 4}),
        process("c#1", ONE, OTHER_TWO, reached={ONE: 9}),
    )
    views = reconstruct_views(group, primary=True)
    assert continuations(views[ONE]) == {
        "a#1": (str(TWO), 0, 5),
        "b#1": (str(TWO), 0, 5),
        "c#1": (str(OTHER_TWO), 0, 10),
    }
    assert list(delivery_obligations(views[ONE], [])) == [
        DeliveryObligation("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        DeliveryObligation("", 5, 10, ("c#1",), binding=True, complete=False),
    ]


def test_a_delivery_only_by_a_dropped_member_is_nonbinding() -> None:
    group = history(
        process("a#1", ONE, TWO, reached={ONE: 4}),
        process("b#1", ONE, TWO, reached={ONE: 4}),
        process("c#1", ONE, reached={ONE: 6}),
    )
    assert list(delivery_obligations(reconstruct_views(group, primary=True)[ONE], [])) == [
        DeliveryObligation("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        DeliveryObligation("", 5, 7, ("c#1",), binding=False, complete=False),
    ]


def test_every_delivery_is_binding_if_all_members_stopped() -> None:
    group = history(
        *(
            process(f"{name}#1", ONE, reached={ONE: last}, stopped="left")
            for name, last in zip("abc", (4, 4, 6), strict=True)
        )
    )
    view = reconstruct_views(group, primary=True)[ONE]
    assert not view.survived
    assert list(delivery_obligations(view, [])) == [
        DeliveryObligation("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        DeliveryObligation("", 5, 7, ("c#1",), binding=True, complete=True),
    ]


def test_the_order_of_a_view_may_have_gaps_if_the_orderer_dropped_out() -> None:
    group = history(
        process("a#1", ONE), process("b#1", ONE, OTHER_TWO), process("c#1", ONE, OTHER_TWO, reached={ONE: 3})
    )
    assert not reconstruct_views(group, primary=True)[ONE].gapless


def ordered(orderer: str, order: str, prioritised: bool = True) -> GroupView:
    """The first of two views, from which c#1 dropped out, with this order."""
    view_ordering = view_order(Ordering(order, prioritised, "ageing:5ms"))
    processes = [process("a#1", ONE, TWO), process("b#1", ONE, TWO), process("c#1", ONE)]
    group = history(
        *(
            replace(
                each,
                views=tuple(replace(event, orderer=orderer, order=view_ordering) for event in each.views),
            )
            for each in processes
        )
    )
    return reconstruct_views(group, primary=True)[ONE]


def test_which_queues_are_ordered_by_priority_depends_on_the_protocol() -> None:
    def judged(view: GroupView) -> tuple[bool, bool]:
        return view.orders_by_priority, view.sends_by_priority

    assert judged(ordered("a#1", "sequencer-bb")) == (True, True)
    assert judged(ordered("", "moving-bb")) == (False, True)
    assert judged(ordered("", "causal-history")) == (False, True)
    assert judged(ordered("", "time-parts/sequencer-ub")) == (False, False)
    assert judged(ordered("a#1", "sequencer-bb", prioritised=False)) == (False, False)
    assert ordered("a#1", "sequencer-bb").order.starvation == Ageing(5_000_000)


def test_an_order_without_an_orderer_may_have_gaps_if_any_member_dropped_out() -> None:
    assert ordered("a#1", "sequencer-ub").gapless
    assert not ordered("", "token-ring").gapless


def test_a_state_covers_earlier_positions_and_recipients_are_named() -> None:
    group = history(process("a#1", TWO, reached={TWO: 9}), process("b#1", TWO, reached={TWO: 9}, state=6))
    assert list(delivery_obligations(reconstruct_views(group, primary=True)[TWO], ["b", "a,z", "z"])) == [
        DeliveryObligation("", 0, 6, ("a#1",), binding=True, complete=True),
        DeliveryObligation("", 6, 10, ("a#1", "b#1"), binding=True, complete=True),
        DeliveryObligation("a,z", 0, 10, ("a#1",), binding=True, complete=True),
        DeliveryObligation("b", 6, 10, ("b#1",), binding=True, complete=True),
    ]


def test_most_common_is_the_most_frequent_value_and_of_several_the_greatest() -> None:
    assert most_common(["x", "y", "y"]) == "y"
    assert most_common([3, 5, 4]) == 5
