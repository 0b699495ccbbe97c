"""The stream: messages, views and states in one order, and nothing before it is deliverable."""

from typing import Any

from membership.builders import ORDERING, REASON, A, B, C, batch, epoch, options, view
from priocast.core.events import Restored, ViewChange
from priocast.core.identity import ProcessId
from priocast.core.message import Batch, OrderedBatch, Scope
from priocast.core.protocol import Received
from priocast.core.view import View
from priocast.membership.clients import Clients
from priocast.membership.delivery_table import DeliveryTable
from priocast.membership.packets import ClientDigest, ClientReply, ClientRequest, OrderDigest, Proposal
from priocast.membership.snapshot import Snapshot, digest_of
from priocast.membership.stream import Stream
from priocast.membership.stream_items import StateRestore, ViewStart
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B, C)


def raise_failure(error: Exception, now: int) -> None:
    raise error


class Listener:
    """The stream of one member, b, in a view of three whose sequencer is a."""

    def __init__(self, me: ProcessId = B, **chosen: Any) -> None:
        delivery_table = DeliveryTable()
        self.clients = Clients(delivery_table, A, 64)
        self.stream = Stream(me, options(**chosen), delivery_table, self.clients, raise_failure)
        self.epoch = self.stream.epoch = epoch(me, OLD)
        self._number = 0

    def order(self, position: int, *batches: Batch) -> None:
        """A packet of the sequencer is received."""
        self._number += 1
        packet = Ordered(position, batches)
        packet_id = (0, self.epoch.stability.add(0, b"packet"))
        self.epoch.step(Received(A, packet, packet_id), 0)

    def report(self, rank: int, received: int) -> None:
        """A member reports how many packets of the sequencer it has received."""
        self.epoch.stability.report(rank, [received, 0, 0])

    def head(self) -> object:
        return self.stream.head(0)

    def take(self, count: int = 1) -> str:
        """Consume messages of the head; return the first one's id."""
        head = self.head()
        assert isinstance(head, OrderedBatch)
        name = str(head.message(head.taken).id)
        self.stream.consume(head, count, 0)
        return name


def beginning(*members: ProcessId, number: int = 2, position: int = 0) -> tuple[Proposal, OrderDigest]:
    return Proposal(View(number, members), (), ORDERING, REASON), OrderDigest(position)


def snapshot(position: int) -> Snapshot:
    return Snapshot(position, digest_of(b"state"), b"state")


def test_messages_come_in_order() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2), batch(C, 0))
    assert listener.take() == "a#1/0/0" and listener.stream.position == 1
    assert listener.take() == "a#1/0/1" and listener.take() == "c#1/0/0"
    assert listener.head() is None


def test_a_client_that_asked_here_is_answered_when_its_request_is_consumed() -> None:
    listener = Listener()
    listener.clients.is_new(ProcessId("x"), ClientRequest(1, 0, Scope(), b"please"))
    listener.order(0, batch(A, 0, 2), batch(C, 0, scope=Scope(client="x#1", request=1)))
    listener.take(2)
    assert listener.clients.replies == []
    listener.take()
    assert listener.clients.replies == [("x", ClientReply(1, 0, 2, ""))]


def test_messages_for_other_recipients_are_skipped() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2, scope=Scope(to=("a", "c"))), batch(A, 2, scope=Scope(to=("b",))))
    assert listener.take() == "a#1/0/2" and listener.stream.position == 3


def test_a_repeated_request_is_skipped() -> None:
    listener = Listener()
    again = Scope(client="x#1", request=1)
    listener.order(0, batch(A, 0, scope=again), batch(C, 0, scope=again), batch(C, 1))
    assert listener.take() == "a#1/0/0" and listener.take() == "c#1/0/1"


def test_a_safe_message_waits_until_it_is_stable() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, scope=Scope(safe=True)))
    assert listener.head() is None
    listener.report(0, received=1)
    assert listener.head() is None, "the third has not acknowledged it"
    listener.report(2, received=1)
    assert listener.take() == "a#1/0/0"


def test_in_a_safe_group_every_message_waits() -> None:
    listener = Listener(delivery="safe")
    listener.order(0, batch(A, 0))
    assert listener.head() is None
    listener.report(0, received=1)
    listener.report(2, received=1)
    assert listener.take() == "a#1/0/0"


def test_the_window_does_not_count_the_time_until_messages_are_stable() -> None:
    waits: list[None] = []
    listener = Listener(delivery="safe")
    listener.order(0, batch(A, 0))
    listener.epoch.protocol.on_undeliverable = lambda: waits.append(None)  # type: ignore[method-assign]
    assert listener.head() is None and len(waits) == 1
    for rank in (0, 2):
        listener.report(rank, 1)
    assert listener.head() is not None and len(waits) == 1


def test_in_a_partitionable_group_the_sender_must_know_the_position() -> None:
    listener = Listener(policy="partitionable")
    listener.order(0, batch(A, 0), batch(C, 0))
    assert listener.take() == "a#1/0/0", "a has ordered it itself"
    assert listener.head() is None, "c might send it again on another side"
    listener.report(2, received=1)
    assert listener.take() == "c#1/0/0"


def test_a_view_comes_after_everything_that_is_left_of_the_old_one() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0), batch(C, 0))
    tail = listener.epoch.protocol.unconsumed()
    listener.stream.epoch = epoch(B, view(B, C, number=2))
    listener.stream.on_view(*beginning(B, C, position=2), tail)
    assert listener.take() == "a#1/0/0" and listener.take() == "c#1/0/0"
    assert isinstance(listener.head(), ViewStart)
    event = listener.stream.consume_event()
    assert event == ViewChange(View(2, (B, C)), 2, REASON, "sequencer-ub")
    assert listener.stream.position == 2 and listener.head() is None


def test_a_partly_consumed_batch_continues_in_the_next_view() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 3))
    listener.take()
    tail = listener.epoch.protocol.unconsumed()
    listener.stream.on_view(*beginning(B, C, position=3), tail)
    assert listener.take(2) == "a#1/0/1" and isinstance(listener.head(), ViewStart)


def test_the_digest_counts_what_is_not_consumed_yet() -> None:
    listener = Listener()
    listener.order(0, batch(A, 0, 2), batch(C, 0, scope=Scope(client="x#1", request=4)))
    listener.take()
    tail = listener.epoch.protocol.unconsumed()
    digest = listener.stream.digest(3, tail)
    assert digest.position == 3 and digest.clients == {"x#1/0": ClientDigest(4, 3)}
    assert {each.process: each.next_numbers for each in digest.ordered} == {A: {0: 2}, C: {0: 1}}


def joiner(*orders: tuple[int, Batch]) -> Listener:
    """A member that has just joined, waits for the state, and keeps what is ordered meanwhile."""
    listener = Listener()
    listener.stream.on_view(*beginning(A, B, C, position=10), [])
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


def test_messages_before_the_state_are_skipped_and_the_rest_follows() -> None:
    listener = joiner((10, batch(A, 0, 2)), (12, batch(C, 0, 3)), (15, batch(A, 2)))
    listener.stream.restore(snapshot(13))
    head = listener.head()
    assert isinstance(head, StateRestore) and head.snapshot.data == b"state"
    assert listener.stream.consume_event() == Restored(13, 5)
    assert listener.take() == "c#1/0/1", "the first of its batch is in the state"
    assert listener.take() == "c#1/0/2" and listener.take() == "a#1/0/2" and listener.head() is None


def test_the_state_is_there_when_the_application_has_restored_it() -> None:
    listener = joiner()
    assert not listener.stream.has_state
    listener.stream.restore(snapshot(13))
    assert not listener.stream.has_state, "it has come, and the application does not have it yet"
    listener.stream.consume_event()
    assert listener.stream.has_state


def test_late_messages_before_the_state_are_skipped() -> None:
    listener = joiner((10, batch(A, 0)))
    listener.stream.restore(snapshot(13))
    assert listener.head() is not None
    listener.stream.consume_event()
    listener.order(11, batch(A, 1, 2))
    assert listener.head() is None
    listener.order(13, batch(A, 3))
    assert listener.take() == "a#1/0/3"
