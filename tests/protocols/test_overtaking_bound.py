"""Exact Priority accounting and the bound on overtaking, on schedules of groups too large to be explored.

The bound, exactly: from the moment at which a member knows the decision about a message until its application
has consumed it, the member sends no more than `overtakes_max` messages that are more urgent.
"""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priocast.core.guarantees import PRIORITY
from priocast.core.identity import MessageId
from priocast.core.message import Batch
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.starvation import Strict
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.data import NumberedData
from priocast.protocols.reorder.acknowledgments import AcknowledgmentsToAll, Decisions
from priocast.protocols.reorder.overtaking_bound import OvertakingBound
from protocols.accounting import check_accounting
from protocols.guarantees import check_all
from protocols.harness import Delivered, Group, Received, Sent, Violation
from protocols.mutants import Patch, check_found
from protocols.orders import patiently
from protocols.ranked_queue import ids
from protocols.schedules import NAMES, Case, play, schedules
from protocols.schedules import options as drawn_options

FORMS = [name for name, protocol in PROTOCOLS.items() if protocol.PRIORITIES_ACT == "consuming"]
Key = tuple[str, int]


def cases(order: str, bounds: list[int | None]) -> st.SearchStrategy[Case]:
    """Groups of up to four, with a coordinator and distributed."""

    def chosen(drawn: OrderingOptions, distributed: bool, bound: int | None) -> OrderingOptions:
        return msgspec.structs.replace(drawn, distributed=distributed, overtakes_max=bound)

    options = st.builds(chosen, drawn_options(True, Strict()), st.booleans(), st.sampled_from(bounds))
    return st.builds(Case, st.just(order), st.integers(2, len(NAMES)), options, schedules(flowing=True))


class Member:
    """What one member knows and has done, as its packets show."""

    def __init__(self, name: str, members: list[str]) -> None:
        self._name = name
        self._members = members
        self._data: dict[Key, tuple[Batch, ...]] = {}
        self._acknowledged_by: dict[Key, set[str]] = {}
        #: Messages that are decided here and not consumed: their levels, and how many messages passed them.
        self._waiting: dict[MessageId, list[int]] = {}

    def receive(self, sender: str, packet: Packet) -> None:
        if isinstance(packet, NumberedData):
            self._data[sender, packet.number] = packet.batches
        elif isinstance(packet, Decisions):
            for decision in packet.decisions:
                self._know((sender, decision.number))
        elif isinstance(packet, AcknowledgmentsToAll):
            for acknowledgment in packet.acknowledgments:
                key = (self._members[acknowledgment.sender], acknowledgment.number)
                self._acknowledged_by.setdefault(key, set()).add(sender)
                if len(self._acknowledged_by[key]) == len(self._members):
                    self._know(key)

    def send(self, packet: NumberedData, bound: int) -> None:
        self._pass(packet)
        top = max(batch.urgency for batch in packet.batches)
        for message, (level, passed) in self._waiting.items():
            if level < top and passed > bound:
                raise Violation(PRIORITY, f"{self._name} overtakes {message} {passed} times")

    def consume(self, message: MessageId) -> None:
        self._waiting.pop(message)

    def _know(self, key: Key) -> None:
        for batch in self._data[key]:
            for message in ids(batch):
                self._waiting[message] = [batch.urgency, 0]

    def _pass(self, packet: NumberedData) -> None:
        for batch in packet.batches:
            for waiting in self._waiting.values():
                waiting[1] += batch.count if waiting[0] < batch.urgency else 0


def check_bound(group: Group) -> None:
    """No member sends what would overtake a message too often."""
    names, bound = list(group.members), group.options.overtakes_max
    assert bound is not None
    members = {name: Member(name, names) for name in names}
    for happened in group.journal:
        if isinstance(happened, Received):
            members[happened.member].receive(happened.peer, happened.packet)
        elif isinstance(happened, Sent) and isinstance(happened.packet, NumberedData):
            members[happened.member].send(happened.packet, bound)
        elif isinstance(happened, Delivered):
            members[happened.member].consume(happened.message.id)


@pytest.mark.parametrize("order", FORMS)
def test_exact_priority_accounting_on_schedules(order: str) -> None:
    @settings(max_examples=patiently(100))
    @given(cases(order, [None, 1, 3]))
    def exact(case: Case) -> None:
        check_accounting(play(case))

    exact()


@pytest.mark.parametrize("order", FORMS)
def test_no_member_sends_what_would_overtake_too_often(order: str) -> None:
    @settings(max_examples=patiently(100))
    @given(cases(order, [1, 2, 3]))
    def bounded(case: Case) -> None:
        group = play(case)
        check_all(group)
        check_bound(group)

    bounded()


def there_is_no_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OvertakingBound, "room", lambda *_: 100)


def one_more_may_pass(patch: pytest.MonkeyPatch) -> None:
    original = OvertakingBound.room
    patch.setattr(OvertakingBound, "room", lambda self, level: original(self, level) + 1)


def the_last_decision_counts(patch: pytest.MonkeyPatch) -> None:
    original = OvertakingBound.room

    def room(self: OvertakingBound, level: int) -> int:
        for waiting in self._waiting.values():
            while len(waiting) > 1:
                waiting.popleft()
        return original(self, level)

    patch.setattr(OvertakingBound, "room", room)


def the_lowest_level_alone_is_protected(patch: pytest.MonkeyPatch) -> None:
    original = OvertakingBound.waits

    def waits(self: OvertakingBound, insertion: object) -> None:
        if insertion.level == 0:  # type: ignore[attr-defined]
            original(self, insertion)  # type: ignore[arg-type]

    patch.setattr(OvertakingBound, "waits", waits)


@pytest.mark.parametrize(
    "mutate",
    [
        there_is_no_bound,
        one_more_may_pass,
        the_last_decision_counts,
        the_lowest_level_alone_is_protected,
    ],
)
def test_the_check_of_the_bound_can_fail(mutate: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    check_found(cases("reorder", [1, 2, 3]), lambda case: check_bound(play(case)), {PRIORITY})


def test_a_member_that_waits_for_its_own_application_continues_when_it_consumes() -> None:
    """The urgent messages may have waited only for what was consumed: that requires a turn."""
    group = Group(["a"], "reorder", OrderingOptions(overtakes_max=1))
    group.broadcast("a", 7, [b"low"])
    group.turn("a")
    group.broadcast("a", 200, [b"high", b"higher"])
    group.turn("a")
    member = group.members["a"]
    assert member.protocol.outgoing.count == 1
    assert member.protocol.inspect(0).bottleneck == member.me
    assert group.consume("a", 2) == 2
    assert member.restless
    group.turn("a")
    assert group.consume("a", 1) == 1


def test_urgent_messages_of_others_do_not_block_own_ones() -> None:
    """Member a lags behind a steady stream of both, and sends its message nevertheless."""
    group = Group(["a", "b", "c"], "reorder", OrderingOptions(overtakes_max=1))
    group.broadcast("b", 7, [b"low"] * 10)
    group.flow()
    group.broadcast("a", 250, [b"of a"])
    for _ in range(10):
        group.broadcast("b", 7, [b"low"])
        group.broadcast("c", 250, [b"of c"])
        group.flow()
        for name, count in (("a", 2), ("b", 100), ("c", 100)):
            group.consume(name, count)
    assert group.members["a"].protocol.outgoing.count == 0
    assert b"of a" in [each.message.payload for each in group.journal if isinstance(each, Delivered)]


def test_what_was_consumed_is_not_remembered() -> None:
    group = Group(["a", "b"], "reorder", OrderingOptions(overtakes_max=3))
    for _ in range(20):
        group.broadcast("a", 7, [b"x"])
        assert group.settle(50)
    for member in group.members.values():
        bound = member.protocol._bound  # type: ignore[attr-defined]
        assert [len(waiting) for waiting in bound._waiting.values()] == [1], (
            "the last one, until the next is decided"
        )
