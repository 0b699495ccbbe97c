"""A reliable first-in-first-out link to one peer, over a network that may lose, repeat and reorder frames.

    A ── frame 7 ──▶ B      every frame has a sequence number, and acknowledges what its sender has received:
    A ◀── ack 5,7 ── B      everything up to 5, and 7

The receiver delivers bodies in order and keeps later ones until the gap closes. The sender keeps a body
until it is acknowledged. It retransmits a body when three later ones have overtaken it, or after a timeout
that follows the measured round trips and doubles while nothing is acknowledged. At most a window of frames
is in flight; the rest waits. The window grows with frames that arrive at the first attempt and halves at a
timeout, so that a slow network is not filled with copies. While the link is `congested` the caller should
send nothing more, because what waits here can no longer be overtaken.

State is bounded on both sides: by the window, and by `backlog_bytes_max`, above which the peer is given up.
"""

from collections import deque

from priocast.core.errors import ForeignFrame, LinkOverflow
from priocast.links.frame import Frame, LinkOptions

WINDOW_FRAMES = 64
_OVERTAKEN_BY = 3


class _BodyInFlight:
    """A body that was sent and is not acknowledged."""

    __slots__ = ("body", "sent_again", "sent_at")

    def __init__(self, body: bytes, sent_at: int) -> None:
        self.body = body
        self.sent_at = sent_at
        self.sent_again = False


class FifoLink:
    """One end of the link.

    The driver takes the `frames` to transmit. The link is `congested` while bodies wait for the window to
    open, or more is in flight than the options say. `round_trip_ns_min` is the shortest round trip: one
    without waiting at the peer.
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
        self._in_flight: dict[int, _BodyInFlight] = {}
        self._in_flight_bytes = 0
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
        """Whether the peer has acknowledged everything that was sent."""
        return not self._in_flight and not self._backlog

    @property
    def acknowledged(self) -> int:
        """How many frames the peer has acknowledged, up to the first one that is missing."""
        return self._acknowledged

    @property
    def unacknowledged_bytes(self) -> int:
        """How many bytes were sent, or wait, that the peer has not acknowledged."""
        return self._in_flight_bytes + self._backlog_bytes

    @property
    def deadline(self) -> int | None:
        """When `tick` has something to do next."""
        if self._retransmit_at is None or self._acknowledge_at is None:
            return self._retransmit_at if self._acknowledge_at is None else self._acknowledge_at
        return min(self._retransmit_at, self._acknowledge_at)

    def send(self, body: bytes, now: int) -> None:
        """Send a body; it arrives once, and in order."""
        assert body, "an empty body would be an acknowledgement"
        if self._backlog_bytes + len(body) > self._options.backlog_bytes_max:
            raise LinkOverflow(
                f"{self._backlog_bytes:,} bytes wait for a peer that does not acknowledge them: "
                "it is suspended, unreachable or too slow"
            )
        self._backlog.append(body)
        self._backlog_bytes += len(body)
        self._fill_window(now)

    def receive(self, frame: Frame, now: int) -> list[bytes]:
        """A frame came from the network; return the bodies that are now in order."""
        acknowledged = frame.acknowledged
        if acknowledged > self._sequence_last:
            raise ForeignFrame(f"a peer acknowledges frame {acknowledged}, which was never sent")
        if acknowledged > self._acknowledged or (frame.selective and acknowledged == self._acknowledged):
            self._on_acknowledged(acknowledged, frame.selective, now)
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
        """Frames in flight may have been lost with the old connection: send them again."""
        for sequence, in_flight in self._in_flight.items():
            self._transmit_again(sequence, in_flight, now)
        if self._received_last:
            self._acknowledge()

    # Sending

    def _fill_window(self, now: int) -> None:
        while (
            self._backlog
            and self._sequence_last - self._acknowledged < WINDOW_FRAMES
            and self._in_flight_bytes < self._window_bytes
        ):
            body = self._backlog.popleft()
            self._backlog_bytes -= len(body)
            self._sequence_last += 1
            self._in_flight[self._sequence_last] = _BodyInFlight(body, now)
            self._in_flight_bytes += len(body)
            self._transmit(self._sequence_last, body)
            if self._retransmit_at is None:
                self._retransmit_at = now + self._retransmit_ns
        self.congested = bool(self._backlog) or self._in_flight_bytes > self._options.congested_bytes

    def _transmit(self, sequence: int, body: bytes) -> None:
        selective = self._selective() if self._early else 0
        self.frames.append(Frame(self._channel, sequence, self._received_last, selective, body))
        self._acknowledge_at = None
        self._unacknowledged_frames = self._unacknowledged_bytes = 0

    def _transmit_again(self, sequence: int, in_flight: _BodyInFlight, now: int) -> None:
        in_flight.sent_at = now
        in_flight.sent_again = True
        self.retransmissions += 1
        self._transmit(sequence, in_flight.body)

    def _transmit_overdue(self, now: int) -> None:
        patience = max(self._round_trip_ns, self._options.retransmit_ns_min)
        for sequence, in_flight in self._in_flight.items():
            if now - in_flight.sent_at >= patience:
                self._transmit_again(sequence, in_flight, now)

    def _on_acknowledged(self, acknowledged: int, selective: int, now: int) -> None:
        progress = acknowledged > self._acknowledged
        for sequence in range(self._acknowledged + 1, acknowledged + 1):
            self._forget(sequence, now)
        self._acknowledged = acknowledged
        while selective:
            lowest = selective & -selective
            # Only news is progress: a peer that sends often repeats old bits, and must not delay the timeout.
            progress |= self._forget(acknowledged + lowest.bit_length(), now)
            selective ^= lowest
        if progress:
            self._retransmit_at = now + self._retransmit_ns if self._in_flight else None
            arrived_later = self._sequence_last - acknowledged - len(self._in_flight)
            if arrived_later >= _OVERTAKEN_BY:
                self._transmit_overtaken(acknowledged, now)
            if self.congested:
                self._fill_window(now)

    def _forget(self, sequence: int, now: int) -> bool:
        in_flight = self._in_flight.pop(sequence, None)
        if in_flight is None:
            return False
        self._in_flight_bytes -= len(in_flight.body)
        if not in_flight.sent_again:
            self._measure_round_trip(now - in_flight.sent_at)
            self._window_bytes = min(self._window_bytes + len(in_flight.body), self._options.window_bytes)
        return True

    def _transmit_overtaken(self, acknowledged: int, now: int) -> None:
        """Retransmit, once per round trip, frames that are missing although enough later ones arrived."""
        arrived = [
            sequence
            for sequence in range(acknowledged + 1, self._sequence_last + 1)
            if sequence not in self._in_flight
        ]
        overtaken_below = arrived[-_OVERTAKEN_BY]
        patience = self._round_trip_ns or self._options.retransmit_ns_first
        for sequence, in_flight in self._in_flight.items():
            if sequence < overtaken_below and now - in_flight.sent_at >= patience:
                self._transmit_again(sequence, in_flight, now)

    def _measure_round_trip(self, sample_ns: int) -> None:
        self.round_trip_ns_min = min(sample_ns, self.round_trip_ns_min or sample_ns)
        if not self._round_trip_ns:
            self._round_trip_ns, self._round_trip_spread_ns = sample_ns, sample_ns // 2
        else:
            error = sample_ns - self._round_trip_ns
            self._round_trip_ns += error // 8
            self._round_trip_spread_ns += (abs(error) - self._round_trip_spread_ns) // 4
        # A doubled timeout ends only here (Karn): when everything was sent twice, no round trip can be
        # measured, and a timeout that is too short for the queues in the network would never grow.
        options = self._options
        measured = self._round_trip_ns + 4 * self._round_trip_spread_ns + options.acknowledge_after_ns
        self._retransmit_ns = max(options.retransmit_ns_min, min(measured, options.retransmit_ns_max))

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
        if self._early:
            while self._received_last + 1 in self._early:
                self._received_last += 1
                bodies.append(self._early.pop(self._received_last))
        for body in bodies:
            self._unacknowledged_frames += 1
            self._unacknowledged_bytes += len(body)
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
