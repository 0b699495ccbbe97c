"""The failure detector: how suspicious a process's silence is.

Every frame from a process shows that it is alive. The detector measures how long a process is usually silent.
The suspicion is its current silence in multiples of the silence that is allowed: the configured time on a
network with a steady rhythm, and more on an unsteady one. A local pause, in which this process was suspended
itself and could not receive anything, does not count as silence. A suspicion decides nothing: it is one input
of the agreement on the next view.
"""

from collections.abc import Iterable

from priocast.membership.inaccessibility import InaccessibilityControl
from priocast.membership.options import MembershipOptions

_ALLOWED_FACTOR_MAX = 3
_DEVIATIONS = 4


class _Rhythm:
    """How long one process is usually silent."""

    __slots__ = ("deviation_ns", "heard_at", "mean_ns")

    def __init__(self, now: int, mean_ns: int) -> None:
        self.heard_at = now
        self.mean_ns = mean_ns
        self.deviation_ns = 0


class FailureDetector:
    """Measures the silence of every process that was heard, by name.

    `revision` grows whenever a process may be trusted that was not, or is forgotten. `heard_at` is when any
    process was heard last. While the network is inaccessible, silence does not count.
    """

    def __init__(self, options: MembershipOptions) -> None:
        self._heartbeat_ns = options.heartbeat_ns
        self._failure_ns = options.failure_ns
        self._rhythms: dict[str, _Rhythm] = {}
        self._awake_at = 0
        self.heard_at = 0
        self.inaccessibility = InaccessibilityControl(2 * options.heartbeat_ns)
        self.revision = 0

    def heard(self, name: str, now: int) -> None:
        """A frame came from this process."""
        if now - self._awake_at > 2 * self._heartbeat_ns:
            self.be_awake(now)
        self._awake_at = self.heard_at = now
        rhythm = self._rhythms.get(name)
        if rhythm is None:
            self._rhythms[name] = _Rhythm(now, self._heartbeat_ns)
            self.revision += 1
            return
        silence = now - rhythm.heard_at
        rhythm.heard_at = now
        # Frames in quick succession say nothing about how long the process may be silent.
        if 2 * silence >= self._heartbeat_ns:
            error = silence - rhythm.mean_ns
            rhythm.mean_ns += error // 8
            rhythm.deviation_ns += (abs(error) - rhythm.deviation_ns) // 4
            if silence >= self._failure_ns:
                self.revision += 1

    def be_awake(self, now: int) -> None:
        """This process runs, as it does at least once per heartbeat unless it is suspended."""
        paused = now - self._awake_at - self._heartbeat_ns
        self._awake_at = now
        if paused > self._heartbeat_ns:
            self.heard_at += paused
            self._excuse(paused)
        if self.inaccessibility.bound_ns and self._rhythms:
            self._excuse(self.inaccessibility.excused_ns(self.heard_at, now))

    def _excuse(self, duration_ns: int) -> None:
        """Nobody could be heard for so long: it is not the silence of a process."""
        if duration_ns > 0:
            for rhythm in self._rhythms.values():
                rhythm.heard_at += duration_ns
            self.revision += 1

    def allowed_ns(self, name: str) -> int:
        """The silence of this process that makes a suspicion of 1."""
        rhythm = self._rhythms[name]
        usual = rhythm.mean_ns + _DEVIATIONS * rhythm.deviation_ns
        return max(self._failure_ns, min(2 * usual, _ALLOWED_FACTOR_MAX * self._failure_ns))

    def suspicion(self, name: str, now: int) -> float:
        """How suspicious the silence is; from 1 on the process counts as failed."""
        rhythm = self._rhythms.get(name)
        return (now - rhythm.heard_at) / self.allowed_ns(name) if rhythm else float("inf")

    def was_heard_since(self, name: str, at: int) -> bool:
        """Whether a frame came from this process after this time."""
        rhythm = self._rhythms.get(name)
        return rhythm is not None and rhythm.heard_at > at

    def trusts(self, name: str, now: int) -> bool:
        """Whether the process counts as alive."""
        rhythm = self._rhythms.get(name)
        return rhythm is not None and now - rhythm.heard_at < self.allowed_ns(name)

    def forget(self, name: str) -> None:
        """A new incarnation of this process starts with a new rhythm."""
        self._rhythms.pop(name, None)
        self.revision += 1

    def steady_until(self, names: Iterable[str], now: int) -> int:
        """Until when these processes, which are trusted now, are certainly trusted; no later than needed."""
        heard_at = min((self._rhythms[name].heard_at for name in names), default=now)
        return heard_at + self._failure_ns
