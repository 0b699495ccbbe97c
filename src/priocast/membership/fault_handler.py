"""What follows when something that a peer sent is wrong, or a step of this member fails.

    a peer asks for what it may not have                  it is rejected, and counted
    a peer's input is wrong, or fails in handling         the peer is evicted
    a number of a process outside the view is far ahead   it is told that it is evicted, and can start anew
    a step of our own fails, and a peer was at fault      this incarnation evicts itself; the next one rejoins
    a step of our own fails otherwise                     a defect of our own: the member stops

A packet that is rejected may have been half applied, and one that was accepted may contradict what this
member sends later. So after a peer's fault nothing more is expected of the protocol until the view ends.
"""

from collections import deque
from typing import NamedTuple

from priocast.core.errors import FarAhead, PeerFault, Rejected
from priocast.core.identity import ProcessId
from priocast.core.view_reason import DETAIL_LENGTH_MAX, Eviction, ViewReason
from priocast.membership.departure import Departed
from priocast.membership.membership import Membership
from priocast.membership.packets import EvictionNotice

_FAULTS_KEPT = 16


class HandlingFault(NamedTuple):
    """An error of our own that occurred while something that a peer had sent was handled."""

    peer: ProcessId
    error: Exception


class FaultHandler:
    """One member's rejections, by reason, and the `faults` that the driver takes and logs."""

    def __init__(self, membership: Membership) -> None:
        self.rejections: dict[str, int] = {}
        self.faults: deque[HandlingFault] = deque(maxlen=_FAULTS_KEPT)
        self._membership = membership
        self._tainted: tuple[int, ProcessId] | None = None

    @property
    def is_tainted(self) -> bool:
        """Whether something that a member sent in this view was wrong."""
        epoch = self._membership.epoch
        return epoch is not None and self._tainted is not None and self._tainted[0] == epoch.channel

    def reject(self, reason: str) -> None:
        """Count what was not accepted."""
        self.rejections[reason] = self.rejections.get(reason, 0) + 1

    def on_input(self, peer: ProcessId, error: Exception, now: int, evicts: bool = True) -> None:
        """What a peer sent is wrong, or could not be handled because of an error of our own.

        A process that is not a member cannot be evicted, whatever its name. Once a member was at fault in a
        view, only that one is evicted: what others send may fail because of what it did.
        """
        if isinstance(error, Rejected):
            self.reject(error.reason)
            return
        epoch = self._membership.epoch
        if self._membership.installing:
            self.on_step(error, now)
            return
        is_first = not self.is_tainted
        if isinstance(error, PeerFault):
            self.reject(type(error).__name__)
            detail = str(error)
        else:
            self.reject("internal error")
            if is_first:
                self.faults.append(HandlingFault(peer, error))
            detail = f"{type(error).__name__} in handling what it sent"
        if evicts and epoch is not None and peer in epoch.ranks:
            if is_first:
                self._tainted = epoch.channel, peer
            if self._tainted == (epoch.channel, peer):
                self._evict(peer, detail, now)
        elif evicts and epoch is not None and isinstance(error, FarAhead):
            # The numbers of a process that was led astray stay too high for us until it starts anew.
            reason = _fault_of(peer, detail)
            self._membership.send(peer, EvictionNotice(peer, epoch.view.id, reason))

    def _evict(self, peer: ProcessId, detail: str, now: int) -> None:
        """Evict a peer; that may begin a view change, which freezes the protocol and can fail."""
        try:
            self._membership.evict(peer, "fault", now, detail)
        except Exception as error:
            self.on_step(error, now)

    def on_step(self, error: Exception, now: int) -> None:
        """A step of our own failed: evict this member if a peer was at fault, otherwise raise the error."""
        if not (isinstance(error, PeerFault) or self.is_tainted):
            raise error
        me = self._membership.me
        self.reject("evicted itself")
        self.faults.append(HandlingFault(me, error))
        reason = _fault_of(me, f"{type(error).__name__}: {error}")
        self._membership.depart(Departed(False, reason), now)


def _fault_of(process: ProcessId, detail: str) -> ViewReason:
    return ViewReason(evicted=(Eviction(process.name, "fault", detail[:DETAIL_LENGTH_MAX]),))
