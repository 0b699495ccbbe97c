"""The reliable link, rule by rule; `test_hostile_network.py` connects two of them by a bad network."""

import pytest

from priocast.core.errors import ForeignFrame, LinkOverflow
from priocast.links.fifo_link import WINDOW_FRAMES, FifoLink
from priocast.links.frame import RELIABLE_NETWORK, Frame, LinkOptions

MILLISECOND = 1_000_000
ROUND_TRIP = 20 * MILLISECOND
OPTIONS = LinkOptions()
CHANNEL = 7


def _link(**options: int) -> FifoLink:
    return FifoLink(LinkOptions(**options), CHANNEL)


def _frame(sequence: int, acknowledged: int, selective: int, body: bytes = b"") -> Frame:
    return Frame(CHANNEL, sequence, acknowledged, selective, body)


def _transmitted(link: FifoLink) -> list[Frame]:
    frames, link.frames = link.frames, []
    return frames


def _sequences(link: FifoLink) -> list[int]:
    return [frame.sequence for frame in _transmitted(link)]


def _send(link: FifoLink, count: int, now: int = 0) -> list[Frame]:
    for _ in range(count):
        link.send(b"body", now)
    return _transmitted(link)


def _acknowledge(acknowledged: int, *selective: int) -> Frame:
    """A frame that acknowledges everything up to `acknowledged`, and the `selective` ones."""
    return _frame(0, acknowledged, sum(1 << (sequence - acknowledged - 1) for sequence in selective))


def _measured(round_trip: int = ROUND_TRIP) -> FifoLink:
    """A link that has measured its round trip and has nothing in flight."""
    link = _link()
    _send(link, 1)
    link.receive(_acknowledge(1), now=round_trip)
    assert link.idle
    return link


class TestSending:
    def test_a_body_leaves_at_once_and_is_numbered_from_one(self) -> None:
        link = _link()
        link.send(b"x", now=0)
        link.send(b"y", now=0)
        assert _transmitted(link) == [_frame(1, 0, 0, b"x"), _frame(2, 0, 0, b"y")]

    def test_every_frame_names_the_channel_of_its_link(self) -> None:
        link = FifoLink(OPTIONS, channel=2**63 + 1)
        link.send(b"x", now=0)
        link.receive(_frame(2, 0, 0, b"early"), now=0)
        link.tick(OPTIONS.retransmit_ns_first)
        link.reconnected(now=OPTIONS.retransmit_ns_first)
        frames = _transmitted(link)
        assert [frame.sequence for frame in frames] == [1, 0, 1, 1]
        assert {frame.channel for frame in frames} == {2**63 + 1}

    def test_unacknowledged_bytes_are_counted(self) -> None:
        link = _link(window_bytes=10)
        for size in (9, 8, 7):
            link.send(bytes(size), now=0)
        assert link.unacknowledged_bytes == 9 + 8 + 7, "under way, and waiting"
        link.receive(_acknowledge(0, 2), now=0)
        assert link.unacknowledged_bytes == 9 + 7
        link.receive(_acknowledge(3), now=0)
        assert link.unacknowledged_bytes == 0

    def test_an_empty_body_is_our_own_fault(self) -> None:
        with pytest.raises(AssertionError, match="would be an acknowledgement"):
            _link().send(b"", now=0)

    def test_a_window_of_frames_is_in_flight_and_the_rest_waits(self) -> None:
        link = _link()
        assert len(_send(link, WINDOW_FRAMES)) == WINDOW_FRAMES
        assert not link.congested
        assert _send(link, 3) == []
        assert link.congested
        link.receive(_acknowledge(2), now=1)
        assert _sequences(link) == [WINDOW_FRAMES + 1, WINDOW_FRAMES + 2]
        assert link.congested
        link.receive(_acknowledge(3), now=2)
        assert not link.congested

    def test_it_can_be_congested_before_the_window_is_full(self) -> None:
        """What is sent in spite of that is under way at once, on this link and on all others."""
        link = _link(congested_bytes=10)
        link.send(bytes(10), now=0)
        assert not link.congested
        link.send(bytes(1), now=0)
        assert link.congested and _sequences(link) == [1, 2]
        link.receive(_acknowledge(0, 2), now=1)
        assert not link.congested
        link.send(bytes(1), now=1)
        assert link.congested and _sequences(link) == [3]
        link.receive(_acknowledge(3), now=2)
        assert not link.congested

    def test_a_frame_that_arrived_early_does_not_widen_the_window(self) -> None:
        link = _link()
        _send(link, WINDOW_FRAMES + 1)
        link.receive(_acknowledge(0, 2, 3), now=0)
        assert WINDOW_FRAMES + 1 not in _sequences(link)

    def test_the_window_is_in_bytes_too(self) -> None:
        link = _link(window_bytes=10)
        for size in (9, 9, 9):
            link.send(bytes(size), now=0)
        assert _sequences(link) == [1, 2]
        link.receive(_acknowledge(1), now=0)
        assert _sequences(link) == [3]

    def test_a_peer_that_acknowledges_nothing_is_given_up(self) -> None:
        link = _link(window_bytes=1, backlog_bytes_max=10)
        link.send(bytes(10), now=0)  # under way
        link.send(bytes(10), now=0)  # waits
        with pytest.raises(LinkOverflow, match="10 bytes wait for a peer that does not acknowledge them"):
            link.send(b"x", now=0)
        link.receive(_acknowledge(1), now=0)
        link.send(b"x", now=0)

    def test_an_acknowledgement_of_an_unsent_frame_is_rejected(self) -> None:
        link = _link()
        _send(link, 3)
        with pytest.raises(ForeignFrame, match="acknowledges frame 4, which was never sent"):
            link.receive(_acknowledge(4), now=0)

    def test_an_old_acknowledgement_changes_nothing(self) -> None:
        link = _link()
        _send(link, 3)
        link.receive(_acknowledge(3), now=5)
        link.receive(_acknowledge(1, 3), now=9)
        assert link.idle
        assert link.deadline is None
        assert _transmitted(link) == []

    def test_selective_bits_beyond_what_was_sent_are_ignored(self) -> None:
        link = _link()
        _send(link, 2)
        link.receive(_acknowledge(1, 9, 40), now=0)
        assert not link.idle
        link.receive(_acknowledge(2), now=0)
        assert link.idle


class TestSendingAgain:
    def test_the_timeout_doubles_up_to_its_limit(self) -> None:
        link = _link()
        _send(link, 1)
        waits, now = [], 0
        for _ in range(7):
            assert link.deadline is not None
            waits.append((link.deadline - now) // MILLISECOND)
            now = link.deadline
            link.tick(now)
            assert _sequences(link) == [1]
        assert waits == [50, 100, 200, 400, 800, 1_000, 1_000]
        assert link.retransmissions == 7

    def test_a_measured_round_trip_ends_the_doubling(self) -> None:
        link = _link()
        _send(link, 1)
        link.tick(OPTIONS.retransmit_ns_first)
        sent_at = 2 * OPTIONS.retransmit_ns_first
        _send(link, 2, now=sent_at)
        link.receive(_acknowledge(2), now=sent_at + ROUND_TRIP)
        assert link.deadline == sent_at + ROUND_TRIP + 3 * ROUND_TRIP + OPTIONS.acknowledge_after_ns

    def test_nothing_is_sent_again_before_it_is_due(self) -> None:
        link = _link()
        _send(link, 1)
        link.tick(OPTIONS.retransmit_ns_first - 1)
        assert _transmitted(link) == []

    def test_only_overdue_frames_are_sent_again(self) -> None:
        link = _link()
        _send(link, 1, now=0)
        _send(link, 1, now=OPTIONS.retransmit_ns_first - 1)
        link.tick(OPTIONS.retransmit_ns_first)
        assert _sequences(link) == [1]

    def test_the_timeout_follows_the_measured_round_trips(self) -> None:
        link = _measured(ROUND_TRIP)
        now = ROUND_TRIP
        waits = []
        for sequence in range(2, 60):
            _send(link, 1, now)
            assert link.deadline is not None
            waits.append(link.deadline - now)
            now += ROUND_TRIP
            link.receive(_acknowledge(sequence), now)
        assert waits[0] == 3 * ROUND_TRIP + OPTIONS.acknowledge_after_ns  # the first spread is half of it
        assert waits[-1] == ROUND_TRIP + OPTIONS.acknowledge_after_ns  # and fades when nothing varies

    def test_a_frame_that_was_sent_twice_measures_nothing_and_ends_no_doubling(self) -> None:
        link = _link()
        _send(link, 1)
        link.tick(OPTIONS.retransmit_ns_first)
        _transmitted(link)
        now = OPTIONS.retransmit_ns_first + 1
        link.receive(_acknowledge(1), now)
        _send(link, 1, now)
        assert link.deadline == now + 2 * OPTIONS.retransmit_ns_first

    def test_the_timeout_stays_within_its_limits(self) -> None:
        for round_trip, wait in ((1, OPTIONS.retransmit_ns_min), (10**10, OPTIONS.retransmit_ns_max)):
            link = _measured(round_trip)
            _send(link, 1, now=round_trip)
            assert link.deadline == round_trip + wait

    def test_a_frame_that_three_later_ones_overtook_is_sent_again_at_once(self) -> None:
        link = _measured()
        _send(link, 5, now=ROUND_TRIP)  # 2 to 6; 2 is lost
        now = 2 * ROUND_TRIP
        link.receive(_acknowledge(1, 3), now)
        link.receive(_acknowledge(1, 3, 4), now)
        assert _transmitted(link) == []
        link.receive(_acknowledge(1, 3, 4, 5), now)
        assert _sequences(link) == [2]

    def test_an_overtaken_frame_is_sent_again_once_per_round_trip(self) -> None:
        link = _measured()
        _send(link, 10, now=ROUND_TRIP)
        arrived = [3, 4, 5]
        for now, expected in ((2 * ROUND_TRIP, [2]), (2 * ROUND_TRIP + 1, []), (4 * ROUND_TRIP, [2])):
            arrived.append(arrived[-1] + 1)
            link.receive(_acknowledge(1, *arrived), now)
            assert _sequences(link) == expected

    def test_an_overtaken_frame_waits_while_no_round_trip_is_known(self) -> None:
        # Found by `test_hostile_network.py`: with all frames sent twice nothing is measured, and each
        # acknowledgement had every overtaken frame sent again.
        link = _link()
        _send(link, 10)
        now = OPTIONS.retransmit_ns_first
        link.tick(now)
        _transmitted(link)
        for arrived in range(2, 11):
            link.receive(_acknowledge(0, *range(2, arrived + 1)), now + arrived)
        assert _transmitted(link) == []

    def test_a_repeated_acknowledgement_is_no_news(self) -> None:
        # Found by `test_hostile_network.py`: it ended the doubling, put the deadline off and sent again.
        link = _measured()
        _send(link, 5, now=ROUND_TRIP)
        link.receive(_acknowledge(1, 3, 4, 5), 2 * ROUND_TRIP)
        _transmitted(link)
        deadline = link.deadline
        link.receive(_acknowledge(1, 3, 4, 5), 9 * ROUND_TRIP)
        assert link.deadline == deadline
        assert _transmitted(link) == []

    def test_a_new_connection_gets_all_frames_in_flight(self) -> None:
        link = _link()
        _send(link, 4)
        link.receive(_acknowledge(1, 3), now=0)
        link.receive(_frame(1, 1, 0, b"theirs"), now=0)
        link.reconnected(now=7)
        frames = _transmitted(link)
        assert [frame.sequence for frame in frames] == [2, 4, 0]
        assert {frame.acknowledged for frame in frames} == {1}

    def test_a_new_connection_of_an_unused_link_sends_nothing(self) -> None:
        link = _link()
        link.reconnected(now=0)
        assert _transmitted(link) == []

    def test_on_a_reliable_network_the_timeout_is_longer(self) -> None:
        link = FifoLink(RELIABLE_NETWORK)
        _send(link, 1)
        assert link.deadline == RELIABLE_NETWORK.retransmit_ns_first > OPTIONS.retransmit_ns_max


class TestReceiving:
    def test_bodies_come_in_order_and_early_ones_wait_for_the_gap_to_close(self) -> None:
        link = _link()
        assert link.receive(_frame(3, 0, 0, b"z"), now=0) == []
        assert link.receive(_frame(2, 0, 0, b"y"), now=0) == []
        assert link.receive(_frame(1, 0, 0, b"x"), now=0) == [b"x", b"y", b"z"]

    def test_early_frames_are_acknowledged_at_once_and_selectively(self) -> None:
        link = _link()
        link.receive(_frame(3, 0, 0, b"z"), now=0)
        link.receive(_frame(5, 0, 0, b"z"), now=0)
        assert _transmitted(link) == [_acknowledge(0, 3), _acknowledge(0, 3, 5)]

    @pytest.mark.parametrize("repeated", [1, 3])
    def test_a_repeated_frame_is_counted_and_acknowledged_at_once(self, repeated: int) -> None:
        link = _link()
        link.receive(_frame(1, 0, 0, b"x"), now=0)
        link.receive(_frame(3, 0, 0, b"z"), now=0)
        _transmitted(link)
        assert link.receive(_frame(repeated, 0, 0, b"again"), now=0) == []
        assert link.duplicates == 1
        assert _transmitted(link) == [_acknowledge(1, 3)]

    def test_frames_beyond_the_window_are_not_kept(self) -> None:
        link = _link()
        assert link.receive(_frame(WINDOW_FRAMES + 1, 0, 0, b"far"), now=0) == []
        assert _transmitted(link) == []
        link.receive(_frame(WINDOW_FRAMES, 0, 0, b"last that fits"), now=0)
        assert _transmitted(link) == [_acknowledge(0, WINDOW_FRAMES)]

    def test_an_acknowledgement_is_delayed_for_a_short_time(self) -> None:
        link = _link()
        link.receive(_frame(1, 0, 0, b"x"), now=100)
        assert _transmitted(link) == []
        assert link.deadline == 100 + OPTIONS.acknowledge_after_ns
        link.receive(_frame(2, 0, 0, b"y"), now=200)
        assert link.deadline == 100 + OPTIONS.acknowledge_after_ns
        link.tick(link.deadline)
        assert _transmitted(link) == [_acknowledge(2)]
        assert link.deadline is None

    def test_many_frames_are_acknowledged_without_waiting(self) -> None:
        link = _link(acknowledge_after_frames=3)
        for sequence in (1, 2, 3, 4):
            link.receive(_frame(sequence, 0, 0, b"x"), now=0)
        assert _transmitted(link) == [_acknowledge(3)]
        assert link.deadline is not None

    def test_an_acknowledgement_is_sent_with_a_body(self) -> None:
        link = _link()
        link.receive(_frame(1, 0, 0, b"x"), now=0)
        link.send(b"y", now=0)
        assert _transmitted(link) == [_frame(1, 1, 0, b"y")]
        link.receive(_acknowledge(1), now=0)
        assert link.deadline is None

    def test_the_earlier_of_two_deadlines_counts(self) -> None:
        link = _link()
        link.send(b"y", now=0)
        assert link.deadline == OPTIONS.retransmit_ns_first
        link.receive(_frame(1, 0, 0, b"x"), now=0)
        assert link.deadline == OPTIONS.acknowledge_after_ns
