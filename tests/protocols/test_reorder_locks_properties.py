"""Re-ordering with locks, under any schedule: the shared properties, and those of the paper."""

from itertools import count

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priocast.core.protocol import OrderingOptions
from priocast.exploration.invariants import check_invariants
from priocast.protocols.reorder.lock_queue import LockQueue
from priocast.protocols.reorder.locks import ReorderLocks
from protocols.accounting import check_accounting
from protocols.harness import Group
from protocols.locks_in_turn import ReorderLocksInTurn
from protocols.orders import TWINS, Twin, patiently
from protocols.schedules import NAMES, Case, check, check_waiting_in, options, play, schedules
from protocols.view_sequences import ViewSequence, check_views, view_sequences

FORMS: list[type[ReorderLocks]] = [ReorderLocks, ReorderLocksInTurn]

pytestmark = pytest.mark.usefixtures("reorder_locks_in_turn")


def _options(twin: Twin) -> st.SearchStrategy[OrderingOptions]:
    def in_form(drawn: OrderingOptions, distributed: bool) -> OrderingOptions:
        return msgspec.structs.replace(drawn, distributed=distributed)

    return st.builds(in_form, options(*twin), st.booleans())


def _cases(order: str, twin: Twin) -> st.SearchStrategy[Case]:
    return st.builds(Case, st.just(order), st.integers(1, len(NAMES)), _options(twin), schedules())


class TestAnySchedule:
    """The shared properties, where members acknowledge to the sender or to all."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("twin", ["plain", "strict"])
    def test_every_guarantee_holds(self, form: type[ReorderLocks], twin: str) -> None:
        @settings(max_examples=patiently(60))
        @given(_cases(form.NAME, TWINS[twin]))
        def holds(case: Case) -> None:
            check(case)

        holds()

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("distributed", [False, True])
    def test_survivors_keep_every_guarantee(self, form: type[ReorderLocks], distributed: bool) -> None:
        @settings(max_examples=patiently(60))
        @given(view_sequences([form.NAME], [TWINS["strict"]]))
        def holds(sequence: ViewSequence) -> None:
            views = [
                each._replace(options=msgspec.structs.replace(each.options, distributed=distributed))
                for each in sequence.views
            ]
            check_views(sequence._replace(views=views))

        holds()

    def test_a_bottleneck_can_end_the_wait_in_turn(self) -> None:
        @settings(max_examples=patiently(60))
        @given(_cases(ReorderLocksInTurn.NAME, TWINS["strict"]))
        def holds(case: Case) -> None:
            check_waiting_in(case)

        holds()

    def test_exact_priority_accounting(self) -> None:
        @settings(max_examples=patiently(100))
        @given(_cases(ReorderLocks.NAME, TWINS["strict"]))
        def holds(case: Case) -> None:
            check_accounting(play(case))

        holds()

    def test_no_lower_lock_blocks_high(self) -> None:
        """At no moment is a message behind one that a less urgent message has locked."""

        @settings(max_examples=patiently(100))
        @given(_cases(ReorderLocks.NAME, TWINS["strict"]))
        def holds(case: Case) -> None:
            group, serials = Group(NAMES[: case.size], case.order, case.options), count()
            for action in case.actions:
                action.happen(group, serials)
                for member in group.members.values():
                    check_invariants(member.protocol)

        holds()


class TestOneAtATime:
    @pytest.mark.parametrize("rule", ["_may_insert", "_inherited", "_definitive"])
    def test_it_needs_no_rule_of_the_concurrent_version(
        self, rule: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Section 4.3 is correct without the wait rule, inheritance and definitive insertion points."""
        without = {
            "_may_insert": lambda *_: True,
            "_inherited": lambda *_: set(),
            "_definitive": lambda _, __, index: index,
        }
        monkeypatch.setattr(LockQueue, rule, without[rule])

        @settings(max_examples=patiently(60))
        @given(_cases(ReorderLocksInTurn.NAME, TWINS["strict"]))
        def holds(case: Case) -> None:
            check(case)

        holds()
