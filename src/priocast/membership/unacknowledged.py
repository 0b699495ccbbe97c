"""Links that do not get through: a peer that is heard, but does not acknowledge what was sent to it.

Heartbeats say that a peer is alive, not that frames reach it. A path may drop all frames above a size, and a
faulty peer may read without acknowledging. Its links would be retried forever, and the group would wait. A
link whose oldest frame is not acknowledged for `slow_ms`, and for two seconds at least, while the peer is
heard, is given up.

A link acknowledges what it receives, whether or not the application consumes, so a slow application is no
reason. Time counts only as far as this member was running: after a local pause the acknowledgements are still
waiting to be read.
"""

from priocast.core.identity import ProcessId
from priocast.membership.epoch import Epoch
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions

#: A link on a congested path may need a few of its longest retransmission timeouts.
_PATIENCE_NS_MIN = 2_000_000_000


class _Waiting:
    """How many frames a peer had acknowledged, and for how long no more."""

    __slots__ = ("acknowledged", "waited_ns")

    def __init__(self, acknowledged: int) -> None:
        self.acknowledged = acknowledged
        self.waited_ns = 0


class UnacknowledgedDetector:
    """Measures for how long the oldest frame on each link of a view has not been acknowledged."""

    def __init__(self, options: MembershipOptions, now: int) -> None:
        self._patience_ns = max(options.slow_ns, _PATIENCE_NS_MIN)
        self._step_ns_max = options.heartbeat_ns
        self._channel = 0
        self._waiting: dict[ProcessId, _Waiting] = {}
        self._at = now

    def on_tick(self, epoch: Epoch, neighbours: Neighbours, now: int) -> list[ProcessId]:
        """Look at the links, as often as once per heartbeat; return the peers to give up."""
        step_ns = min(now - self._at, self._step_ns_max)
        self._at = now
        if epoch.channel != self._channel:
            self._channel = epoch.channel
            self._waiting.clear()
        for peer, link in epoch.links.items():
            waiting = self._waiting.get(peer)
            if link.idle:
                self._waiting.pop(peer, None)
            elif waiting is None or waiting.acknowledged != link.acknowledged:
                self._waiting[peer] = _Waiting(link.acknowledged)
            elif neighbours.trusts(peer, now):
                waiting.waited_ns += step_ns
        return [peer for peer, waiting in self._waiting.items() if waiting.waited_ns >= self._patience_ns]

    def late(self) -> dict[ProcessId, int]:
        """The peers that have acknowledged nothing for half of the time allowed, and for how long (ns)."""
        return {
            peer: waiting.waited_ns
            for peer, waiting in self._waiting.items()
            if 2 * waiting.waited_ns >= self._patience_ns
        }
