"""The two forms of re-ordering, checked against each other: the same schedules, message by message.

Both forms send the same packets at the same times: data, acknowledgments, decisions and reports. So one
schedule drives a group of each form in step. What an application could consume at a given moment may
differ, because the forms block different messages while a more urgent one is undecided: the cut form
blocks whatever is less urgent, unless what is decided in the levels above lets it go first; the lock form
blocks what was behind everything at least as urgent when the message arrived. So here an application
consumes when both forms let it. What it gets must be the same message at the same position, and a view
must end alike: the order follows from what was received and consumed, and from nothing else.
"""

from collections import Counter
from itertools import count
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Strict
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.locks import ReorderLocks
from protocols.accounting import check_accounting
from protocols.guarantees import check_all
from protocols.harness import Delivered, Group
from protocols.orders import patiently
from protocols.schedules import NAMES, Action, Consume, options, schedules
from protocols.view_sequences import ViewPlan, end_view

CUTS, LOCKS = "reorder", "reorder-locks"


@pytest.fixture(autouse=True)
def frames_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of the lock form have fewer batches, because acknowledgments name what each of them locks."""
    monkeypatch.setattr(Reorder, "FRAME_BATCHES_MAX", ReorderLocks.FRAME_BATCHES_MAX)


class Case(NamedTuple):
    """A group with its options, and what happens in it."""

    size: int
    options: OrderingOptions
    actions: list[Action]


class Twins:
    """A group of each form, driven in step; `alone` counts when only one form could consume."""

    def __init__(self, case: Case) -> None:
        names = NAMES[: case.size]
        self.forms = {order: Group(names, order, case.options) for order in (CUTS, LOCKS)}
        self.names = names
        self.alone: Counter[str] = Counter()

    def play(self, actions: list[Action]) -> None:
        """Let all this happen in both groups."""
        serials = {order: count() for order in self.forms}
        for action in actions:
            if isinstance(action, Consume):
                self.consume(self.names[action.member % len(self.names)], action.messages)
            else:
                for order, group in self.forms.items():
                    action.happen(group, serials[order])
            self.check_packets()

    def consume(self, name: str, messages: int) -> int:
        """Let an application take messages as long as both forms let it."""
        for taken in range(messages):
            heads = {order: group.members[name].head() for order, group in self.forms.items()}
            offered = [
                (head.position + head.taken, head.message(head.taken)) for head in heads.values() if head
            ]
            if len(offered) < len(heads):
                self.alone.update(order for order, head in heads.items() if head)
                return taken
            assert offered[0] == offered[1]
            for group in self.forms.values():
                assert group.consume(name, 1) == 1
        return messages

    def check_packets(self) -> None:
        """As many packets are in flight in one group as in the other."""
        in_flight = [
            {link: len(each.frames) for link, each in group.links.items()} for group in self.forms.values()
        ]
        assert in_flight[0] == in_flight[1]

    def come_to_rest(self) -> None:
        """Let everything happen that can still happen."""
        for group in self.forms.values():
            for link in group.links.values():
                link.congested = False
        happened = -1
        while happened < self._happened:
            happened = self._happened
            for group in self.forms.values():
                group.flow()
            self.check_packets()
            for name in self.names:
                self.consume(name, messages=10_000)

    @property
    def _happened(self) -> int:
        return sum(len(group.journal) for group in self.forms.values())

    def delivered(self, order: str) -> dict[str, list[bytes]]:
        """What each member of one form has consumed."""
        delivered: dict[str, list[bytes]] = {name: [] for name in self.names}
        for happened in self.forms[order].journal:
            if isinstance(happened, Delivered):
                delivered[happened.member].append(happened.message.payload)
        return delivered


def _ended(group: Group, survivors: int) -> list[tuple[list[tuple[int, bytes]], list[bytes]]]:
    """What each survivor still gets of a view that ends now, by position, and what it sends again."""
    ends = end_view(group, ViewPlan(group.order, group.options, [], survivors, 0, 100, assembled=True))
    return [
        (
            [
                (each.position + n, each.message(n).payload)
                for each in end.tail
                for n in range(each.batch.count)
            ],
            [payload for batch in end.unordered for payload in batch.payloads()],
        )
        for end in ends.values()
    ]


def cases(prioritised: bool = True) -> st.SearchStrategy[Case]:
    """Small groups, with a coordinator and distributed, with a bound on overtaking and without."""

    def in_form(drawn: OrderingOptions, distributed: bool, bound: int | None) -> OrderingOptions:
        return msgspec.structs.replace(drawn, distributed=distributed, overtakes_max=bound)

    bounds = st.none() | st.integers(1, 3)
    drawn = st.builds(in_form, options(prioritised, Strict()), st.booleans(), bounds)
    return st.builds(Case, st.integers(1, len(NAMES)), drawn, schedules(flowing=True))


@pytest.mark.parametrize("prioritised", [True, False])
def test_both_forms_consume_the_same_in_the_same_order(prioritised: bool) -> None:
    @settings(max_examples=patiently(100))
    @given(cases(prioritised))
    def same(case: Case) -> None:
        twins = Twins(case)
        twins.play(case.actions)
        twins.come_to_rest()
        assert twins.delivered(CUTS) == twins.delivered(LOCKS)
        for group in twins.forms.values():
            check_all(group)
            check_accounting(group)

    same()


def test_both_forms_end_a_view_alike() -> None:
    @settings(max_examples=patiently(100))
    @given(cases(), st.integers(1, 2 ** len(NAMES) - 1))
    def alike(case: Case, survivors: int) -> None:
        twins = Twins(case)
        twins.play(case.actions)
        cuts, locks = (_ended(group, survivors) for group in twins.forms.values())
        assert cuts == locks

    alike()


class TestWhichMessagesAreBlocked:
    """The one thing in which the forms differ, and for no longer than a decision takes.

    All have l in their queues; b has consumed it when it receives y, so l goes before y.
    """

    @staticmethod
    def _twins() -> Twins:
        twins = Twins(Case(3, OrderingOptions(), []))
        for group in twins.forms.values():
            group.broadcast("a", 0, [b"l"])
            assert group.settle(rounds_max=20, consumers=["b"])
            group.broadcast("b", 9, [b"y"])
            group.turn("b")
            for name in "ac":
                group.deliver("b", name)
                group.turn(name)
                group.deliver(name, "b")
        return twins

    def test_the_lock_form_continues_where_all_locked_messages_follow_a_more_urgent_one(self) -> None:
        """At a, m locks what is behind y; the cut form lets nothing less urgent pass while m is undecided."""
        twins = self._twins()
        for group in twins.forms.values():
            group.broadcast("b", 5, [b"m"])
            group.turn("b")
            group.deliver("b", "a", 2)
        assert twins.consume("a", 1) == 0
        assert twins.alone == {LOCKS: 1}

    def test_the_cut_form_continues_where_a_message_was_locked_by_a_later_one(self) -> None:
        """At a, h has locked l before y was inserted; the cut form sees that y is first, and l before it."""
        twins = self._twins()
        for group in twins.forms.values():
            group.broadcast("c", 9, [b"h"])
            group.turn("c")
            group.deliver("c", "a")
            group.turn("b")
            group.deliver("b", "a")
        assert twins.consume("a", 1) == 0
        assert twins.alone == {CUTS: 1}
