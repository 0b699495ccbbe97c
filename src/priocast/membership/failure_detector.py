"""The failure detector: how suspicious a process's silence is.

Everything that comes from a process is a sign of life. What is measured is how long it is usually silent;
the suspicion is its present silence, in multiples of the time that is allowed. That time is the configured
one on a network that keeps its rhythm, and longer on one that does not. The time in which this process stood
still itself, and could not have heard anybody, is nobody's silence. A suspicion decides nothing: it is one
input of the agreement on the next view.
"""

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
    """Watches the processes that it was told of."""

    def __init__(self, options: MembershipOptions) -> None:
        self._heartbeat_ns = options.heartbeat_ns
        self._failure_ns = options.failure_ns
        self._rhythms: dict[str, _Rhythm] = {}
        self._awake_at = 0

    def heard(self, name: str, now: int) -> None:
        """Something came from this process."""
        self.be_awake(now)
        rhythm = self._rhythms.get(name)
        if rhythm is None:
            self._rhythms[name] = _Rhythm(now, self._heartbeat_ns)
            return
        silence = now - rhythm.heard_at
        rhythm.heard_at = now
        # Frames that follow each other closely say nothing about how long the process may be silent.
        if 2 * silence >= self._heartbeat_ns:
            error = silence - rhythm.mean_ns
            rhythm.mean_ns += error // 8
            rhythm.deviation_ns += (abs(error) - rhythm.deviation_ns) // 4

    def be_awake(self, now: int) -> None:
        """This process is at work, as it is at least once a heartbeat unless it stands still itself."""
        still = now - self._awake_at - self._heartbeat_ns
        self._awake_at = now
        if still > self._heartbeat_ns:
            for rhythm in self._rhythms.values():
                rhythm.heard_at += still

    def allowed_ns(self, name: str) -> int:
        """The silence of this process that makes a suspicion of 1."""
        rhythm = self._rhythms[name]
        usual = rhythm.mean_ns + _DEVIATIONS * rhythm.deviation_ns
        return max(self._failure_ns, min(2 * usual, _ALLOWED_FACTOR_MAX * self._failure_ns))

    def suspicion(self, name: str, now: int) -> float:
        """How suspicious the silence is; from 1 on the process counts as failed."""
        rhythm = self._rhythms.get(name)
        return (now - rhythm.heard_at) / self.allowed_ns(name) if rhythm else float("inf")

    def trusts(self, name: str, now: int) -> bool:
        """Whether the process counts as alive."""
        rhythm = self._rhythms.get(name)
        return rhythm is not None and now - rhythm.heard_at < self.allowed_ns(name)

    def forget(self, name: str) -> None:
        """A process of this name starts anew."""
        self._rhythms.pop(name, None)
