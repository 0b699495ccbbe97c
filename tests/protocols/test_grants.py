"""The window: what may be put into the order, what is reported, and how a window is shared."""

import pytest

from core.builders import A, B, batch_of
from priocast.core.errors import PeerFault
from priocast.core.priority_queue import PriorityQueue
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Strict
from priocast.core.view import View
from priocast.protocols.flow.consumption import Consumption, share
from priocast.protocols.flow.frames import fill_frame
from priocast.protocols.flow.grants import Grants
from priocast.protocols.flow.packets import Consumed
from priocast.protocols.flow.window import WINDOW_FIRST

VIEW = View(1, (A, B))


def test_a_share_is_at_least_1() -> None:
    assert [share(limit, 3) for limit in (9, 4, 3, 2, 1)] == [3, 1, 1, 1, 1]


class TestGrants:
    def test_room_is_what_the_slowest_member_grants(self) -> None:
        grants = Grants(VIEW, OrderingOptions(window=4))
        assert grants.room(0) == 4
        grants.ordered(batch_of(3))
        grants.granted(A, 3, 4)
        assert (grants.room(0), grants.bottleneck(0)) == (1, None)
        grants.ordered(batch_of(1))
        assert (grants.room(0), grants.bottleneck(0)) == (0, B)
        grants.granted(B, 2, 4)
        assert grants.room(0) == 2
        assert (grants.ordered_count, grants.consumed_by(A), grants.consumed_by(B)) == (4, 3, 2)

    def test_a_share_is_a_part_of_the_window_in_messages_and_bytes(self) -> None:
        grants = Grants(VIEW, OrderingOptions(window=6, window_bytes=40), shares=2)
        assert grants.room(0) == 3
        grants.ordered(batch_of(1, size=20))
        assert (grants.room(0), grants.bottleneck(0)) == (0, A), "20 of 20 bytes are in flight"
        grants.granted(A, 1, 3)
        grants.granted(B, 1, 3)
        assert grants.room(0) == 3

    @pytest.mark.parametrize("consumed", [0, 3])
    def test_the_only_orderer_knows_what_can_have_been_consumed(self, consumed: int) -> None:
        grants = Grants(VIEW, OrderingOptions(window=4))
        grants.ordered(batch_of(2))
        grants.granted(A, 1, 4)
        with pytest.raises(
            PeerFault, match=f"{consumed} messages consumed; it must be between 1, its last report, and 2,"
        ):
            grants.granted(A, consumed, 4)

    def test_with_several_orderers_a_report_may_be_ahead_of_their_packets(self) -> None:
        grants = Grants(VIEW, OrderingOptions(window=4), alone=False)
        grants.granted(B, 2, 4)
        grants.granted(A, 1, 4)
        grants.ordered(batch_of(2))
        assert grants.room(0) == 3


class TestConsumption:
    def test_a_quarter_of_the_window_is_worth_a_report(self) -> None:
        consumption = Consumption(OrderingOptions(window=8))
        consumption.announced(A, 8, 100)
        consumption.window.queued(8, is_bottleneck=False)
        reports = [consumption.consumed(A, 1, now) for now in range(4)]
        assert reports == [None, Consumed(2, 8), None, Consumed(4, 8)]

    def test_bytes_are_worth_a_report_too(self) -> None:
        consumption = Consumption(OrderingOptions(window=1_000, window_bytes=100))
        for _ in range(3):
            consumption.announced(A, 1, 20)
            consumption.window.queued(1, is_bottleneck=False)
        reports = [consumption.consumed(A, 1, now) for now in range(3)]
        assert reports == [None, Consumed(2, 1_000), None]

    def test_bytes_are_counted_when_the_piece_that_the_source_counts_is_consumed(self) -> None:
        """Found by schedules: a source waited for the end of a large piece, whose last message is small."""
        consumption = Consumption(OrderingOptions(window=1_000, window_bytes=100))
        consumption.announced(A, 3, 100)
        for _ in range(3):
            consumption.window.queued(1, is_bottleneck=False)
        reports = [consumption.consumed(A, 1, now) for now in range(3)]
        assert reports == [None, None, Consumed(3, 1_000)]

    def test_the_bottleneck_sends_keep_alives(self) -> None:
        """A steady application of 50 ms a message was evicted as slow before its next report."""
        consumption = Consumption(OrderingOptions(window=1_000))
        consumption.announced(A, 100, 100)
        for is_bottleneck in (False, True):
            consumption.window.queued(10, is_bottleneck)
        start = 10**12
        reports = [consumption.consumed(A, 1, start + step * 200_000_000) for step in range(6)]
        assert reports == [Consumed(1, 1_000), None, None, Consumed(4, 1_000), None, None]

    def test_each_source_has_its_account_and_its_share(self) -> None:
        consumption = Consumption(OrderingOptions(window=16), shares=2)
        for source in (A, B, A):
            consumption.announced(source, 2, 20)
            consumption.window.queued(2, is_bottleneck=False)
        assert consumption.consumed(A, 2, 0) == Consumed(2, 8)
        assert consumption.consumed(B, 1, 0) is None
        assert consumption.consumed(B, 1, 0) == Consumed(2, 8)

    def test_a_source_that_begins_late_gets_its_first_report_in_time(self) -> None:
        """Found by a steady load: a quarter of the grown window was more than such a source may send.

        It waited for a report until the member that owed it was evicted as slow.
        """
        shares = 6
        consumption = Consumption(OrderingOptions(), shares)
        for now in range(0, 100_000, 1_000):
            consumption.announced(A, 2, 20)
            consumption.window.queued(2, is_bottleneck=False)
            consumption.consumed(A, 1, now)
            consumption.consumed(A, 1, now + 1)
        may_send = WINDOW_FIRST // shares
        assert consumption.window.size // shares > 4 * may_send
        consumption.announced(B, may_send, 20)
        consumption.window.queued(may_send, is_bottleneck=False)
        assert any(consumption.consumed(B, 1, 100_000) for _ in range(may_send))


def test_a_frame_takes_what_has_room_and_no_more() -> None:
    queue = PriorityQueue(Strict(), 100, 1_000)
    queue.put(batch_of(3, level=5), 0)
    queue.put(batch_of(2, level=9), 0)
    room = {9: 2, 5: 1}
    taken = fill_frame(queue, lambda level: room[level], lambda batch: room.update({batch.level: 0}))
    assert [(batch.level, batch.count) for batch in taken] == [(9, 2), (5, 1)]
    assert queue.count == 2
    assert fill_frame(queue, lambda level: room[level], lambda _: None) == ()
