"""A reliable first-in-first-out link to one peer, over a network that may lose, repeat and reorder frames.

    A ── frame 7 ──▶ B      every frame carries a number, and says what its sender has received:
    A ◀── ack 5,7 ── B      everything up to 5, and 7

The receiver hands bodies over in order and keeps later ones until the gap closes. The sender keeps a body
until it is acknowledged, and sends it again when three later ones overtook it or when it is overdue: after a
time that follows the measured round trips and doubles while nothing comes back. At most a window of frames is
under way; the rest waits. The window grows with what arrives at the first try and halves when frames are
overdue, so a way that is merely slow is not filled with copies. Whoever sees `congested` should stop handing
over more, because what waits here can no longer be overtaken.

State is bounded on both sides: by the window, and by `backlog_bytes_max`, above which the peer is given up.
"""

from collections import deque

import msgspec

from priocast.core.errors import ForeignFrame, LinkOverflow

WINDOW_FRAMES = 64
_MILLISECOND = 1_000_000
_OVERTAKEN_BY = 3


class LinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How patient a link is, and how much it keeps.

    The times suit a network that loses frames. On one that does not (TCP), sending again is only for
    the time after a lost connection, and can wait longer: see `RELIABLE_NETWORK`.
    """

    window_bytes: int = 4 * 1024 * 1024
    window_bytes_first: int = 64 * 1024
    backlog_bytes_max: int = 64 * 1024 * 1024
    retransmit_ns_first: int = 50 * _MILLISECOND
    retransmit_ns_min: int = 10 * _MILLISECOND
    retransmit_ns_max: int = 1_000 * _MILLISECOND
    acknowledge_after_ns: int = 5 * _MILLISECOND
    acknowledge_after_frames: int = 8
    acknowledge_after_bytes: int = 1024 * 1024


RELIABLE_NETWORK = LinkOptions(
    window_bytes_first=4 * 1024 * 1024,
    retransmit_ns_first=3_000 * _MILLISECOND,
    retransmit_ns_min=3_000 * _MILLISECOND,
    retransmit_ns_max=12_000 * _MILLISECOND,
    acknowledge_after_ns=20 * _MILLISECOND,
)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """What two processes exchange: on channel 0 a datagram that stands alone, on others what two links say.

    A link's sequence 0 is an acknowledgement alone. Bit i of `selective` says that frame
    `acknowledged + 1 + i` was received.
    """

    channel: int
    sequence: int
    acknowledged: int
    selective: int
    body: bytes = b""


class _UnderWay:
    """A body that was sent and is not acknowledged."""

    __slots__ = ("body", "sent_again", "sent_at")

    def __init__(self, body: bytes, now: int) -> None:
        self.body = body
        self.sent_at = now
        self.sent_again = False


class FifoLink:
    """One end of the link.

    Frames to transmit gather in `frames`, which the driver empties. While something waits for the window to
    open, the link is `congested`. `round_trip_ns_min` is the shortest round trip, one that was answered at
    once.
    """

    def __init__(self, options: LinkOptions, channel: int = 1) -> None:
        self._options = options
        self._channel = channel
        self.frames: list[Frame] = []
        self.congested = False
        self.retransmissions = 0
        self.duplicates = 0
        # sending
        self._sequence_last = 0
        self._acknowledged = 0
        self._under_way: dict[int, _UnderWay] = {}
        self._under_way_bytes = 0
        self._window_bytes = min(options.window_bytes_first, options.window_bytes)
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._retransmit_at: int | None = None
        self._retransmit_ns = options.retransmit_ns_first
        self._round_trip_ns = 0
        self._round_trip_spread_ns = 0
        self.round_trip_ns_min = 0
        # receiving
        self._received_last = 0
        self._early: dict[int, bytes] = {}
        self._unacknowledged_frames = 0
        self._unacknowledged_bytes = 0
        self._acknowledge_at: int | None = None

    @property
    def idle(self) -> bool:
        """Whether the peer has received all that was sent."""
        return not self._under_way and not self._backlog

    @property
    def unacknowledged_bytes(self) -> int:
        """How much was handed over that the peer has not acknowledged."""
        return self._under_way_bytes + self._backlog_bytes

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next."""
        if self._retransmit_at is None or self._acknowledge_at is None:
            return self._retransmit_at if self._acknowledge_at is None else self._acknowledge_at
        return min(self._retransmit_at, self._acknowledge_at)

    def send(self, body: bytes, now: int) -> None:
        """Take a body; it arrives once, and in order."""
        assert body, "an empty body says nothing"
        if self._backlog_bytes + len(body) > self._options.backlog_bytes_max:
            raise LinkOverflow(
                f"{self._backlog_bytes:,} bytes wait for a peer that does not take them: "
                "it is stopped, cut off or too slow"
            )
        self._backlog.append(body)
        self._backlog_bytes += len(body)
        self._fill_window(now)

    def receive(self, frame: Frame, now: int) -> list[bytes]:
        """Take a frame from the network; return the bodies that are now in order."""
        if not self._acknowledged <= frame.acknowledged <= self._sequence_last:
            if frame.acknowledged > self._sequence_last:
                raise ForeignFrame(f"a peer acknowledges frame {frame.acknowledged}, which was never sent")
        else:
            self._on_acknowledged(frame.acknowledged, frame.selective, now)
        return self._on_data(frame, now) if frame.sequence else []

    def tick(self, now: int) -> None:
        """Do what is due at this time."""
        if self._retransmit_at is not None and now >= self._retransmit_at:
            self._retransmit_ns = min(2 * self._retransmit_ns, self._options.retransmit_ns_max)
            self._window_bytes = max(self._window_bytes // 2, self._options.window_bytes_first)
            self._transmit_overdue(now)
            self._retransmit_at = now + self._retransmit_ns
        if self._acknowledge_at is not None and now >= self._acknowledge_at:
            self._acknowledge()

    def reconnected(self, now: int) -> None:
        """Whatever was under way may have been lost with the old connection: send it again."""
        for sequence, under_way in self._under_way.items():
            self._transmit_again(sequence, under_way, now)
        if self._received_last:
            self._acknowledge()

    # Sending

    def _fill_window(self, now: int) -> None:
        while (
            self._backlog
            and self._sequence_last - self._acknowledged < WINDOW_FRAMES
            and self._under_way_bytes < self._window_bytes
        ):
            body = self._backlog.popleft()
            self._backlog_bytes -= len(body)
            self._sequence_last += 1
            self._under_way[self._sequence_last] = _UnderWay(body, now)
            self._under_way_bytes += len(body)
            self._transmit(self._sequence_last, body)
            if self._retransmit_at is None:
                self._retransmit_at = now + self._retransmit_ns
        self.congested = bool(self._backlog)

    def _transmit(self, sequence: int, body: bytes) -> None:
        self.frames.append(Frame(self._channel, sequence, self._received_last, self._selective(), body))
        self._acknowledge_at = None
        self._unacknowledged_frames = self._unacknowledged_bytes = 0

    def _transmit_again(self, sequence: int, under_way: _UnderWay, now: int) -> None:
        under_way.sent_at = now
        under_way.sent_again = True
        self.retransmissions += 1
        self._transmit(sequence, under_way.body)

    def _transmit_overdue(self, now: int) -> None:
        patience = max(self._round_trip_ns, self._options.retransmit_ns_min)
        for sequence, under_way in self._under_way.items():
            if now - under_way.sent_at >= patience:
                self._transmit_again(sequence, under_way, now)

    def _on_acknowledged(self, acknowledged: int, selective: int, now: int) -> None:
        if not selective and acknowledged == self._acknowledged:
            return
        progress = acknowledged > self._acknowledged
        for sequence in range(self._acknowledged + 1, acknowledged + 1):
            self._forget(sequence, now)
        self._acknowledged = acknowledged
        while selective:
            lowest = selective & -selective
            # Only news is progress: a peer that sends a lot repeats old bits and must not delay the timer.
            progress |= self._forget(acknowledged + lowest.bit_length(), now)
            selective ^= lowest
        if progress:
            self._retransmit_at = now + self._retransmit_ns if self._under_way else None
            self._transmit_overtaken(acknowledged, now)
            self._fill_window(now)

    def _forget(self, sequence: int, now: int) -> bool:
        under_way = self._under_way.pop(sequence, None)
        if under_way is None:
            return False
        self._under_way_bytes -= len(under_way.body)
        if not under_way.sent_again:
            self._measure_round_trip(now - under_way.sent_at)
            self._window_bytes = min(self._window_bytes + len(under_way.body), self._options.window_bytes)
        return True

    def _transmit_overtaken(self, acknowledged: int, now: int) -> None:
        """Send again what is missing although later frames arrived, once per round trip."""
        arrived = [
            sequence
            for sequence in range(acknowledged + 1, self._sequence_last + 1)
            if sequence not in self._under_way
        ]
        if len(arrived) < _OVERTAKEN_BY:
            return
        overtaken_below = arrived[-_OVERTAKEN_BY]
        patience = self._round_trip_ns or self._options.retransmit_ns_first
        for sequence, under_way in self._under_way.items():
            if sequence < overtaken_below and now - under_way.sent_at >= patience:
                self._transmit_again(sequence, under_way, now)

    def _measure_round_trip(self, sample_ns: int) -> None:
        self.round_trip_ns_min = min(sample_ns, self.round_trip_ns_min or sample_ns)
        if not self._round_trip_ns:
            self._round_trip_ns, self._round_trip_spread_ns = sample_ns, sample_ns // 2
        else:
            error = sample_ns - self._round_trip_ns
            self._round_trip_ns += error // 8
            self._round_trip_spread_ns += (abs(error) - self._round_trip_spread_ns) // 4
        # Only here does the doubled time end (Karn): when everything was sent twice, no round trip can be
        # measured, and a time that is too short for the queues on the way would never grow.
        self._retransmit_ns = self._retransmission_time()

    def _retransmission_time(self) -> int:
        options = self._options
        measured = self._round_trip_ns + 4 * self._round_trip_spread_ns + options.acknowledge_after_ns
        return max(options.retransmit_ns_min, min(measured, options.retransmit_ns_max))

    # Receiving

    def _on_data(self, frame: Frame, now: int) -> list[bytes]:
        sequence = frame.sequence
        if sequence <= self._received_last or sequence in self._early:
            self.duplicates += 1
            self._acknowledge()
            return []
        if sequence > self._received_last + WINDOW_FRAMES:
            return []
        if sequence != self._received_last + 1:
            self._early[sequence] = frame.body
            self._acknowledge()
            return []
        bodies = [frame.body]
        self._received_last = sequence
        while self._received_last + 1 in self._early:
            self._received_last += 1
            bodies.append(self._early.pop(self._received_last))
        self._unacknowledged_frames += len(bodies)
        self._unacknowledged_bytes += sum(map(len, bodies))
        if (
            self._unacknowledged_frames >= self._options.acknowledge_after_frames
            or self._unacknowledged_bytes >= self._options.acknowledge_after_bytes
        ):
            self._acknowledge()
        elif self._acknowledge_at is None:
            self._acknowledge_at = now + self._options.acknowledge_after_ns
        return bodies

    def _acknowledge(self) -> None:
        self.frames.append(Frame(self._channel, 0, self._received_last, self._selective()))
        self._acknowledge_at = None
        self._unacknowledged_frames = self._unacknowledged_bytes = 0

    def _selective(self) -> int:
        bits = 0
        for sequence in self._early:
            bits |= 1 << (sequence - self._received_last - 1)
        return bits
