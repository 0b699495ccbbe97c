"""Two links over a network that loses, repeats and reorders: once and in order (xAMp, Pn1 to Pn3)."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from priocast.links.fifo_link import WINDOW_FRAMES, FifoLink
from priocast.links.frame import Frame, LinkOptions

MILLISECOND = 1_000_000
OPTIONS = LinkOptions(window_bytes=2_000)


class HostileNetwork(RuleBasedStateMachine):
    """Two links connected by a network that follows a schedule of faults."""

    sides = st.sampled_from([0, 1])
    places = st.integers(0, 200)

    def __init__(self) -> None:
        super().__init__()
        self.links = (FifoLink(OPTIONS), FifoLink(OPTIONS))
        self.under_way: tuple[list[Frame], list[Frame]] = ([], [])  # by the side that they go to
        self.sent: tuple[list[bytes], list[bytes]] = ([], [])  # by the side that they come from
        self.received: tuple[list[bytes], list[bytes]] = ([], [])
        self.now = 0

    @rule(side=sides, count=st.integers(1, 40))
    def send(self, side: int, count: int) -> None:
        for _ in range(count):
            body = b"%d" % len(self.sent[side])
            self.sent[side].append(body)
            self.links[side].send(body, self.now)

    @rule(side=sides, place=places, count=st.integers(1, 20))
    def deliver(self, side: int, place: int, count: int) -> None:
        for _ in range(min(count, len(self.under_way[side]))):
            frame = self.under_way[side].pop(place % len(self.under_way[side]))
            self.received[side].extend(self.links[side].receive(frame, self.now))

    @rule(side=sides, place=places, count=st.integers(1, 20))
    def lose(self, side: int, place: int, count: int) -> None:
        for _ in range(min(count, len(self.under_way[side]))):
            self.under_way[side].pop(place % len(self.under_way[side]))

    @rule(side=sides, place=places)
    def repeat(self, side: int, place: int) -> None:
        if frames := self.under_way[side]:
            frames.append(frames[place % len(frames)])

    @rule(nanoseconds=st.sampled_from([MILLISECOND, 6 * MILLISECOND, 60 * MILLISECOND, 2_000 * MILLISECOND]))
    def wait(self, nanoseconds: int) -> None:
        self.now += nanoseconds
        for link in self.links:
            link.tick(self.now)

    @rule()
    def reconnect(self) -> None:
        for side, link in enumerate(self.links):
            self.under_way[side].clear()
            link.reconnected(self.now)

    @invariant()
    def frames_are_handed_to_the_network_and_span_a_window_at_most(self) -> None:
        for side, link in enumerate(self.links):
            frames, link.frames = link.frames, []
            arrived = len(self.received[1 - side])
            assert all(frame.sequence <= arrived + WINDOW_FRAMES for frame in frames)
            assert all(frame.selective < 1 << WINDOW_FRAMES for frame in frames)
            self.under_way[1 - side].extend(frames)

    @invariant()
    def bodies_arrive_once_and_in_order(self) -> None:
        for side in (0, 1):
            arrived = self.received[1 - side]
            assert arrived == self.sent[side][: len(arrived)]

    @invariant()
    def a_link_is_idle_when_no_byte_is_unacknowledged(self) -> None:
        for side, link in enumerate(self.links):
            assert link.idle == (link.unacknowledged_bytes == 0)
            lacking = self.sent[side][len(self.received[1 - side]) + WINDOW_FRAMES :]
            assert sum(map(len, lacking)) <= link.unacknowledged_bytes <= sum(map(len, self.sent[side]))

    def teardown(self) -> None:
        """When the network works, everything arrives soon and both links become idle."""
        for _ in range(40):
            while any(self.under_way):
                for side in (0, 1):
                    self.deliver(side, 0, len(self.under_way[side]))
                self.frames_are_handed_to_the_network_and_span_a_window_at_most()
            deadlines = [link.deadline for link in self.links if link.deadline is not None]
            if not deadlines:
                break
            self.wait(max(0, min(deadlines) - self.now))
            self.frames_are_handed_to_the_network_and_span_a_window_at_most()
        self.bodies_arrive_once_and_in_order()
        for side, link in enumerate(self.links):
            assert self.received[1 - side] == self.sent[side]
            assert link.idle
            assert not link.congested
            assert link.deadline is None


TestHostileNetwork = HostileNetwork.TestCase
TestHostileNetwork.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
