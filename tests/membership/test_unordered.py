"""What the lives of a process leave to each other: everything once, in its order, unless the group has it."""

from membership.builders import batch
from priocast.core.identity import ProcessId
from priocast.core.message import Scope
from priocast.membership.packets import OrderDigest, SenderDigest
from priocast.membership.unordered import UnorderedMessages, resubmit

FIRST, SECOND = ProcessId("b", 1), ProcessId("b", 2)


def test_what_was_left_comes_first_and_then_what_the_new_life_has() -> None:
    unordered_messages = UnorderedMessages([batch(FIRST, 4, 2), batch(FIRST, 6)])
    assembler = resubmit(SECOND, unordered_messages, [batch(SECOND, 0)], OrderDigest(0), prioritised=True)
    (only,) = assembler.close()
    assert str(only) == "b#2/0/0+4"
    assert only.payloads() == [b"message 4", b"message 5", b"message 6", b"message 0"]


def test_what_has_its_place_is_left_out() -> None:
    unordered_messages = UnorderedMessages([batch(FIRST, 4, 3), batch(FIRST, 0, level=9)])
    digest = OrderDigest(20, {}, (SenderDigest(FIRST, {0: 6}),))
    batches = resubmit(SECOND, unordered_messages, [], digest, prioritised=True).close()
    assert [each.payloads() for each in batches] == [[b"message 0"], [b"message 6"]]


def test_another_life_is_placed_for_itself() -> None:
    unordered_messages = UnorderedMessages([batch(FIRST, 0)])
    digest = OrderDigest(20, {}, (SenderDigest(SECOND, {0: 6}),))
    assert resubmit(ProcessId("b", 3), unordered_messages, [], digest, prioritised=True).count == 1


def test_what_was_asked_for_is_kept() -> None:
    scope = Scope(safe=True, to=("b",), client="x#1", request=4)
    (only,) = resubmit(
        SECOND, UnorderedMessages([batch(FIRST, 0, level=9, scope=scope)]), [], OrderDigest(0), True
    ).close()
    assert only.scope == scope and only.priority_of(0) == 9
    (plain,) = resubmit(
        SECOND, UnorderedMessages([batch(FIRST, 0, level=9)]), [], OrderDigest(0), False
    ).close()
    assert plain.level == 0 and plain.priority_of(0) == 9
