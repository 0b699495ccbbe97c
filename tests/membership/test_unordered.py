"""Unordered messages of an incarnation: the next one submits each once, in order, unless it was delivered."""

from membership.builders import batch
from priocast.core.assembler import Assembler
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, Scope
from priocast.membership.packets import OrderDigest, SenderDigest
from priocast.membership.unordered import UnorderedMessages, resubmit

FIRST, SECOND, THIRD = (ProcessId("b", incarnation) for incarnation in (1, 2, 3))


def resubmitted(
    *left: Batch,
    me: ProcessId = SECOND,
    own: tuple[bytes, ...] = (),
    digest: OrderDigest | None = None,
    prioritised: bool = True,
) -> list[Batch]:
    """The batches of an incarnation that has broadcast its own payloads, after it has resubmitted these."""
    assembler = Assembler(me, prioritised=True)
    assembler.add_many(list(own), 0)
    resubmit(assembler, UnorderedMessages(list(left)), digest or OrderDigest(0), prioritised)
    return assembler.close()


def test_messages_of_the_earlier_incarnation_come_before_own_ones() -> None:
    (only,) = resubmitted(batch(FIRST, 4, 2), batch(FIRST, 6), own=(b"new",))
    assert str(only) == "b#2/0/0+4"
    assert only.payloads() == [b"message 4", b"message 5", b"message 6", b"new"]


def test_delivered_messages_are_skipped() -> None:
    digest = OrderDigest(20, {}, (SenderDigest(FIRST, {0: 6}),))
    batches = resubmitted(batch(FIRST, 4, 3), batch(FIRST, 0, level=9), digest=digest)
    assert [each.payloads() for each in batches] == [[b"message 0"], [b"message 6"]]


def test_messages_of_another_incarnation_are_counted_separately() -> None:
    digest = OrderDigest(20, {}, (SenderDigest(SECOND, {0: 6}),))
    assert len(resubmitted(batch(FIRST, 0), me=THIRD, digest=digest)) == 1


def test_scope_and_priority_are_kept() -> None:
    scope = Scope(safe=True, to=("b",), client="x#1", request=4)
    (only,) = resubmitted(batch(FIRST, 0, level=9, scope=scope))
    assert only.scope == scope and only.priority_of(0) == 9
    (plain,) = resubmitted(batch(FIRST, 0, level=9), prioritised=False)
    assert plain.level == 0 and plain.priority_of(0) == 9
