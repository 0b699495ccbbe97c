"""The two queues of messages that wait for a decision."""

from priocast.core.quality import ATOMIC, TIGHT
from priocast.services.accept_queues import (
    AcceptQueue,
    InsertionPointQueue,
    InsertionProposal,
    NetworkOrderQueue,
)
from priocast.services.insertion import common_point
from priocast.services.packets import ServiceData, ServiceStream
from services.builders import A, B, C, data, message


def atomic(number: int, *, units: int = 1, retry: int = 1) -> ServiceData:
    return data(message(A, number, ServiceStream.ATOMIC), ATOMIC, units=units, retry=retry)


def tight(number: int, priority: int, *, units: int = 1, clock: tuple[int, ...] = ()) -> ServiceData:
    about = message(A, number, ServiceStream.TIGHT)
    return data(about, TIGHT, priority=priority, units=units, clock=clock)


def taken(queue: AcceptQueue) -> list[tuple[int, int]]:
    """Everything that can be delivered now: the numbers of messages and units."""
    found = []
    while (unit := queue.head()) is not None:
        found.append((unit.number, unit.index))
        queue.take()
    return found


def insert_and_accept(queue: InsertionPointQueue, each: ServiceData) -> None:
    proposal = queue.insert(each)
    queue.accept(each.id, common_point([(proposal.lowest, proposal.before)]))


def test_an_unaccepted_head_blocks() -> None:
    queue = NetworkOrderQueue()
    queue.insert(atomic(1))
    queue.insert(atomic(2))
    queue.accept(atomic(2).id, ())
    assert taken(queue) == []
    queue.accept(atomic(1).id, ())
    assert taken(queue) == [(1, 0), (2, 0)]
    assert queue.held == 0


def test_a_rejected_head_does_not_block() -> None:
    queue = NetworkOrderQueue()
    queue.insert(atomic(1))
    queue.insert(atomic(2, units=2))
    queue.accept(atomic(2).id, ())
    queue.reject(atomic(1).id)
    assert taken(queue) == [(2, 0), (2, 1)]


def test_a_retransmission_moves_a_message_to_the_end() -> None:
    queue = NetworkOrderQueue()
    queue.insert(atomic(1))
    queue.insert(atomic(2))
    queue.insert(atomic(1, retry=2))
    queue.accept(atomic(1).id, ())
    queue.accept(atomic(2).id, ())
    assert taken(queue) == [(2, 0), (1, 0)]


def test_without_preemption_messages_are_proposed_one_after_the_other() -> None:
    queue = InsertionPointQueue(preempts=False)
    one, other = queue.insert(atomic(1)), queue.insert(atomic(2))
    assert one.lowest < other.lowest
    assert one.before == other.before == ()


def test_a_retransmission_gets_the_same_proposal() -> None:
    queue = InsertionPointQueue(preempts=False)
    assert queue.insert(atomic(1)) == queue.insert(atomic(1, retry=2))


def test_an_undecided_message_locks_what_it_may_overtake() -> None:
    queue = InsertionPointQueue(preempts=True)
    insert_and_accept(queue, tight(1, 1))
    urgent = queue.insert(tight(2, 9))
    assert taken(queue) == []
    queue.accept(tight(2, 9).id, common_point([(urgent.lowest, urgent.before)]))
    assert taken(queue) == [(2, 0), (1, 0)]


def test_the_queue_is_locked_until_the_last_lock_is_gone() -> None:
    queue = InsertionPointQueue(preempts=True)
    insert_and_accept(queue, tight(1, 1))
    queue.insert(tight(2, 9))
    queue.insert(tight(3, 9))
    queue.reject(tight(2, 9).id)
    assert taken(queue) == []
    queue.reject(tight(3, 9).id)
    assert taken(queue) == [(1, 0)]


def test_messages_of_equal_priority_do_not_overtake() -> None:
    queue = InsertionPointQueue(preempts=True)
    for number in (1, 2, 3):
        insert_and_accept(queue, tight(number, 1))
    assert taken(queue) == [(1, 0), (2, 0), (3, 0)]


def test_an_urgent_message_gets_in_between_units() -> None:
    queue = InsertionPointQueue(preempts=True)
    insert_and_accept(queue, tight(1, 1, units=3))
    queue.take()
    insert_and_accept(queue, tight(2, 9))
    assert taken(queue) == [(2, 0), (1, 1), (1, 2)]


def test_a_message_follows_what_its_sender_had_delivered() -> None:
    queue = InsertionPointQueue(preempts=True)
    insert_and_accept(queue, tight(1, 1))
    insert_and_accept(queue, tight(2, 9, clock=(2,)))
    assert taken(queue) == [(1, 0), (2, 0)]


def test_a_monitor_is_told_of_what_was_sent_before_and_after() -> None:
    queue = InsertionPointQueue(preempts=True)
    undecided = queue.insert(tight(2, 1))
    queue.insert(tight(1, 1))
    queue.insert(tight(3, 1))
    queue.accept(tight(1, 1).id, (1, 5))
    queue.accept(tight(3, 1).id, (1, 7))
    assert undecided == InsertionProposal((1,), ())
    assert queue.proposal(tight(2, 1).id) == InsertionProposal((1, 5), (1, 7))


def test_a_monitor_is_not_told_of_other_senders() -> None:
    queue = InsertionPointQueue(preempts=True)
    queue.insert(tight(2, 1))
    for sender in (B, C):
        other = data(message(sender, 1, ServiceStream.TIGHT), TIGHT)
        queue.insert(other)
        queue.accept(other.id, (7,))
    assert queue.proposal(tight(2, 1).id) == InsertionProposal((1,), ())
