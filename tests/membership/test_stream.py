"""The stream: messages, views and states in one order, and nothing before it is ripe."""

from typing import Any

from membership.builders import ORDERING, A, B, C, batch, epoch, options, view
from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Scope
from priocast.core.protocol import Received
from priocast.core.view import View
from priocast.membership.epoch import Epoch
from priocast.membership.ledger import Ledger
from priocast.membership.packets import Proposal, Standing
from priocast.membership.state_transfer import Snapshot, digest_of
from priocast.membership.stream import Beginning, Restoring, Stream
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B, C)


class Listener:
    """The stream of one member, b, in a view of three whose sequencer is a."""

    def __init__(self, me: ProcessId = B, **chosen: Any) -> None:
        self.ledger = Ledger()
        self.placed: list[tuple[str, int]] = []
        self.stream = Stream(me, options(**chosen), self.ledger, self._on_placed)
        self.epoch: Epoch = epoch(me, OLD)
        self._number = 0

    def _on_placed(self, of_batch: Batch, position: int) -> None:
        self.placed.append((str(of_batch), position))

    def order(self, position: int, *batches: Batch) -> None:
        """A packet of the sequencer comes."""
        self._number += 1
        packet = Ordered(position, batches)
        packet_id = (0, self.epoch.retention.add(0, b"packet"))
        self.epoch.step(Received(A, packet, packet_id), 0)

    def heard_that(self, rank: int, held: int) -> None:
        """A member says how many packets of the sequencer it holds."""
        self.epoch.retention.report(rank, [held, 0, 0])

    def head(self) -> object:
        return self.stream.head(self.epoch, 0)

    def take(self, count: int = 1) -> str:
        """Consume messages of the head; return the first one's name."""
        head = self.head()
        assert isinstance(head, OrderedBatch)
        name = str(head.message(head.taken).id)
        self.stream.consume(head, count, self.epoch, 0)
        return name


def beginning(*members: ProcessId, number: int = 2, position: int = 0) -> tuple[Proposal, Standing]:
    return Proposal(View(number, members), (), ORDERING, "why"), Standing(position)


def snapshot(position: int) -> Snapshot:
    return Snapshot(position, digest_of(b"state"), b"state")


def test_messages_come_in_their_order_and_are_placed_as_they_are_consumed() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2), batch(C, 0))
    assert listener.take() == "a#1/0/0" and listener.stream.position == 1
    assert listener.take() == "a#1/0/1" and listener.take() == "c#1/0/0"
    assert listener.head() is None
    assert listener.placed == [("a#1/0/0+2", 0), ("a#1/0/0+2", 0), ("c#1/0/0+1", 2)]


def test_what_is_not_for_this_application_is_passed_over() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2, scope=Scope(to=("a", "c"))), batch(A, 2, scope=Scope(to=("b",))))
    assert listener.take() == "a#1/0/2" and listener.stream.position == 3


def test_a_repeated_request_is_passed_over() -> None:
    listener = Listener()
    again = Scope(client="x#1", request=1)
    listener.order(0, batch(A, 0, scope=again), batch(C, 0, scope=again), batch(C, 1))
    assert listener.take() == "a#1/0/0" and listener.take() == "c#1/0/1"


def test_a_safe_message_waits_until_everybody_holds_it() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, scope=Scope(safe=True)))
    assert listener.head() is None
    listener.heard_that(0, held=1)
    assert listener.head() is None, "the third has not said so"
    listener.heard_that(2, held=1)
    assert listener.take() == "a#1/0/0"


def test_in_a_safe_group_every_message_waits() -> None:
    listener = Listener(delivery="safe")
    listener.order(0, batch(A, 0))
    assert listener.head() is None
    listener.heard_that(0, held=1)
    listener.heard_that(2, held=1)
    assert listener.take() == "a#1/0/0"


def test_in_a_partitionable_group_the_sender_must_know_the_place() -> None:
    listener = Listener(policy="partitionable")
    listener.order(0, batch(C, 0), batch(A, 0))
    assert listener.head() is None, "c might send it again on another side"
    listener.heard_that(2, held=1)
    assert listener.take() == "c#1/0/0" and listener.head() is None
    listener.heard_that(0, held=1)
    assert listener.take() == "a#1/0/0"


def test_a_view_comes_after_all_that_the_old_one_left() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0), batch(C, 0))
    tail = listener.epoch.protocol.unconsumed()
    listener.epoch = epoch(B, view(B, C, number=2))
    listener.stream.begin(*beginning(B, C, position=2), tail)
    assert listener.take() == "a#1/0/0" and listener.take() == "c#1/0/0"
    assert isinstance(listener.head(), Beginning)
    event = listener.stream.consume_event()
    assert event == ViewChange(View(2, (B, C)), 2, "why", "sequencer-ub")
    assert listener.stream.position == 2 and listener.head() is None


def test_a_stretch_that_was_begun_goes_on_where_it_was() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 3))
    listener.take()
    tail = listener.epoch.protocol.unconsumed()
    listener.stream.begin(*beginning(B, C, position=3), tail)
    assert listener.take(2) == "a#1/0/1" and isinstance(listener.head(), Beginning)


def test_where_the_order_will_stand_is_known_before_it_is_consumed() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2), batch(C, 0, scope=Scope(client="x#1", request=4)))
    listener.take()
    tail = listener.epoch.protocol.unconsumed()
    standing = listener.stream.standing(3, tail)
    assert standing.position == 3 and standing.clients == {"x#1/0": 4}
    assert {placed.process: placed.next_numbers for placed in standing.placed} == {A: {0: 2}, C: {0: 1}}


def joiner(*orders: tuple[int, Batch]) -> Listener:
    """A member that has just joined, waits for the state, and keeps what is ordered meanwhile."""
    listener = Listener()
    listener.stream.begin(*beginning(A, B, C, position=10), [])
    listener.stream.consume_event()
    listener.stream.awaits_state = True
    listener.epoch.protocol.position_next = 10
    for position, each in orders:
        listener.order(position, each)
    listener.stream.catch_up(listener.epoch, 0)
    return listener


def test_while_the_state_is_awaited_nothing_is_consumed_and_the_group_does_not_wait() -> None:
    listener = joiner((10, batch(A, 0, 2)))
    assert listener.head() is None and listener.epoch.protocol.head() is None


def test_what_came_before_the_state_is_passed_over_and_the_rest_follows() -> None:
    listener = joiner((10, batch(A, 0, 2)), (12, batch(C, 0, 3)), (15, batch(A, 2)))
    listener.stream.restore(snapshot(13))
    head = listener.head()
    assert isinstance(head, Restoring) and head.snapshot.data == b"state"
    assert listener.stream.consume_event() == Restored(13, 5)
    assert listener.take() == "c#1/0/1", "the first of its batch is in the state"
    assert listener.take() == "c#1/0/2" and listener.take() == "a#1/0/2" and listener.head() is None


def test_a_state_that_is_ahead_of_all_that_came_is_taken_and_what_is_late_passed_over() -> None:
    listener = joiner((10, batch(A, 0)))
    listener.stream.restore(snapshot(13))
    assert listener.head() is not None
    listener.stream.consume_event()
    listener.order(11, batch(A, 1, 2))
    assert listener.head() is None
    listener.order(13, batch(A, 3))
    assert listener.take() == "a#1/0/3"
