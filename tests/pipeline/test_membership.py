"""Who went on with whom, and who owes what: small chronicles, written by hand."""

from dataclasses import replace

from priocast.core.starvation import Ageing
from priocast.membership.packets import Ordering
from priocast.pipeline.chronicle import Chronicle, Life, Restored, Span, Stop, Told, ViewName
from priocast.pipeline.membership import (
    FELL_OUT,
    STAYED,
    Audience,
    GroupView,
    audiences,
    lost_processes,
    most,
    survey,
)
from priocast.trace.recorder import view_order

ONE, TWO, OTHER_TWO = ViewName(1, "a#1"), ViewName(2, "a#1"), ViewName(2, "c#1")
MEMBERS = {ONE: ("a#1", "b#1", "c#1"), TWO: ("a#1", "b#1"), OTHER_TWO: ("c#1",)}


ORDER = str(view_order(Ordering("sequencer-ub", True, "none")))


def told(view: ViewName, step: int, position: int = 0) -> Told:
    return Told(view, step, step, MEMBERS[view], view.coordinator, position, "", ORDER)


def life(
    process: str,
    *views: ViewName,
    reached: dict[ViewName, int] | None = None,
    state: int | None = None,
    stopped: str | None = None,
) -> Life:
    """A process that was told of these views, and delivered up to these positions in them."""
    return Life(
        process=process,
        told=tuple(told(view, place * 10, 0) for place, view in enumerate(views)),
        delivered={view: Span(1, 1, 2, 0, last, 1, 2) for view, last in (reached or {}).items()},
        worked_until={},
        restored=() if state is None else (Restored(1, 1, state),),
        stopped=None if stopped is None else Stop(5, stopped),
        first_ns=0,
        last_ns=9,
    )


def chronicle(*lives: Life) -> Chronicle:
    return Chronicle({life.process: life for life in lives}, frozenset(), frozenset())


def ways(view: GroupView) -> dict[str, tuple[str, int, int]]:
    return {stay.process: (stay.onward, stay.owes_from, stay.owes_until) for stay in view.stays}


def test_members_of_a_final_view_stay_and_owe_all_that_one_of_them_has() -> None:
    views = survey(chronicle(life("a#1", ONE, reached={ONE: 7}), life("b#1", ONE, reached={ONE: 5})), True)
    assert ways(views[ONE]) == {"a#1": (STAYED, 0, 8), "b#1": (STAYED, 0, 8), "c#1": (STAYED, 0, 8)}
    assert views[ONE].final
    assert views[ONE].gapless


def test_one_that_says_that_it_stopped_does_not_stay() -> None:
    group = chronicle(
        life("a#1", ONE, reached={ONE: 7}),
        life("b#1", ONE, reached={ONE: 5}, stopped="left"),
        life("c#1", ONE, reached={ONE: 6}),
    )
    assert ways(survey(group, primary=True)[ONE])["b#1"] == (FELL_OUT, 0, 6)


def test_those_who_go_on_together_owe_each_other_and_who_fell_out_its_own() -> None:
    group = chronicle(
        life("a#1", ONE, TWO, reached={ONE: 4}),
        life("b#1", ONE, TWO, reached={ONE: 9}),
        life("c#1", ONE, reached={ONE: 2}),
    )
    views = survey(group, primary=True)
    assert ways(views[ONE]) == {
        "a#1": (str(TWO), 0, 10),
        "b#1": (str(TWO), 0, 10),
        "c#1": (FELL_OUT, 0, 3),
    }
    assert not views[ONE].final
    assert views[ONE].gapless  # the one that orders went on
    assert not survey(group, primary=False)[ONE].gapless  # but it may have dropped what c sent
    assert lost_processes(group, views) == {"c#1"}


def test_sides_of_a_cut_owe_nothing_to_each_other() -> None:
    group = chronicle(
        life("a#1", ONE, TWO, reached={ONE: 4}),
        life("b#1", ONE, TWO, reached={ONE: 4}),
        life("c#1", ONE, OTHER_TWO, reached={ONE: 9}),
    )
    views = survey(group, primary=True)
    assert ways(views[ONE]) == {
        "a#1": (str(TWO), 0, 5),
        "b#1": (str(TWO), 0, 5),
        "c#1": (str(OTHER_TWO), 0, 10),
    }
    assert list(audiences(views[ONE], [])) == [
        Audience("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        Audience("", 5, 10, ("c#1",), binding=True, complete=False),
    ]


def test_what_only_one_delivered_that_fell_out_binds_nobody() -> None:
    group = chronicle(
        life("a#1", ONE, TWO, reached={ONE: 4}),
        life("b#1", ONE, TWO, reached={ONE: 4}),
        life("c#1", ONE, reached={ONE: 6}),
    )
    assert list(audiences(survey(group, primary=True)[ONE], [])) == [
        Audience("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        Audience("", 5, 7, ("c#1",), binding=False, complete=False),
    ]


def test_what_was_delivered_binds_if_all_left_and_nobody_is_there_who_may_not_have_heard_of_it() -> None:
    group = chronicle(
        *(
            life(f"{name}#1", ONE, reached={ONE: last}, stopped="left")
            for name, last in zip("abc", (4, 4, 6), strict=True)
        )
    )
    view = survey(group, primary=True)[ONE]
    assert not view.survived
    assert list(audiences(view, [])) == [
        Audience("", 0, 5, ("a#1", "b#1", "c#1"), binding=True, complete=True),
        Audience("", 5, 7, ("c#1",), binding=True, complete=True),
    ]


def test_order_of_a_view_may_have_gaps_if_the_one_that_orders_fell_out() -> None:
    group = chronicle(
        life("a#1", ONE), life("b#1", ONE, OTHER_TWO), life("c#1", ONE, OTHER_TWO, reached={ONE: 3})
    )
    assert not survey(group, primary=True)[ONE].gapless


def ordered(orderer: str, order: str, prioritised: bool = True) -> GroupView:
    """The first of two views, of which c#1 fell out, as it is when it is ordered so."""
    told_so = str(view_order(Ordering(order, prioritised, "ageing:5ms")))
    lives = [life("a#1", ONE, TWO), life("b#1", ONE, TWO), life("c#1", ONE)]
    group = chronicle(
        *(
            replace(
                each,
                told=tuple(replace(telling, orderer=orderer, order=told_so) for telling in each.told),
            )
            for each in lives
        )
    )
    return survey(group, primary=True)[ONE]


def test_queues_that_go_by_rank_are_those_of_the_class_of_a_view() -> None:
    def judged(view: GroupView) -> tuple[bool, bool]:
        return view.orders_by_rank, view.sends_by_rank

    assert judged(ordered("a#1", "sequencer-bb")) == (True, True)
    assert judged(ordered("", "moving-bb")) == (False, True)
    assert judged(ordered("", "causal-history")) == (False, True)
    assert judged(ordered("", "time-parts/sequencer-ub")) == (False, False)
    assert judged(ordered("a#1", "sequencer-bb", prioritised=False)) == (False, False)
    assert ordered("a#1", "sequencer-bb").order.starvation == Ageing(5_000_000)


def test_order_that_nobody_alone_decides_may_have_gaps_if_anybody_fell_out() -> None:
    assert ordered("a#1", "sequencer-ub").gapless
    assert not ordered("", "token-ring").gapless


def test_state_holds_what_is_before_it_and_addressees_are_named() -> None:
    group = chronicle(life("a#1", TWO, reached={TWO: 9}), life("b#1", TWO, reached={TWO: 9}, state=6))
    assert list(audiences(survey(group, primary=True)[TWO], ["b", "a,z", "z"])) == [
        Audience("", 0, 6, ("a#1",), binding=True, complete=True),
        Audience("", 6, 10, ("a#1", "b#1"), binding=True, complete=True),
        Audience("a,z", 0, 10, ("a#1",), binding=True, complete=True),
        Audience("b", 6, 10, ("b#1",), binding=True, complete=True),
    ]


def test_most_is_what_most_say_and_of_several_the_greatest() -> None:
    assert most(["x", "y", "y"]) == "y"
    assert most([3, 5, 4]) == 5
