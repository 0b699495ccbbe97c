"""Consensus: members agree on one value after another, although proposers may crash.

Paxos, one instance after another. Every ballot has one leader: ballot b belongs to the member of rank b
modulo n. The leader may propose a value only if no majority can have accepted another one in an earlier
ballot:

    leader    ConsensusPrepare ─▶ all     I lead from this instance on; what have you accepted? member    ◀─
    ConsensusPromise         I accept nothing of earlier ballots; I have accepted these values leader
    ConsensusAccept ─▶ all      after a majority of promises: the value of the highest ballot, or a new one
    member    ◀─ ConsensusAccepted leader    decision ─▶ all             after a majority accepted: this is
    the value

The first leader needs no promises. It stays leader until a member has waited too long for a decision and
takes over, so a value normally takes one round trip and the decision. A member's timeout grows with its
distance from the leader and doubles with every ballot without a decision, so in the end one of them leads
for long enough. Several leaders at once delay each other but are safe: two majorities have a member in
common.

The decision is a packet of the caller, because it must reach all. Accepted values are kept until every
member has reported that it knows the decision. A member that lacks a decision eventually takes over, and
learns it that way.
"""

from collections.abc import Callable

from priocast.core.errors import PeerFault
from priocast.core.identity import STEP_MAX, ProcessId
from priocast.core.protocol import WINDOW_MAX, Packet
from priocast.protocols.agreement.consensus_packets import (
    DECIDED,
    AcceptedValue,
    ConsensusAccept,
    ConsensusAccepted,
    ConsensusPrepare,
    ConsensusPromise,
    Value,
)

DECISION_TIMEOUT_NS = 100_000_000
_DOUBLINGS_MAX = 6


class Consensus:
    """One member's part. `instance` is the first one whose decision it lacks.

    It sends through `send` and `send_each`. The leader announces the next decision through `decide`.
    """

    def __init__(
        self,
        me: ProcessId,
        members: tuple[ProcessId, ...],
        send: Callable[[ProcessId, Packet], None],
        send_each: Callable[[Packet], None],
        decide: Callable[[Value], None],
    ) -> None:
        self._me = me
        self._members = members
        self._rank = members.index(me)
        self._majority = len(members) // 2 + 1
        self._send = send
        self._send_each = send_each
        self._decide = decide
        self.instance = 0
        # member
        self._ballot = 0
        self._ballot_decided = 0
        self._accepted: dict[int, AcceptedValue] = {}
        self._kept_from = 0
        # leader
        self._is_leader = self._rank == 0
        self._promises: dict[ProcessId, ConsensusPromise] = {}
        self._may_be_decided: dict[int, AcceptedValue] = {}
        self._proposed = -1
        self._value: Value = ()
        self._accepted_by: dict[ProcessId, bool] = {}
        self._known_by = dict.fromkeys(members, 0)

    @property
    def ballot(self) -> int:
        """The highest ballot that this member knows of."""
        return self._ballot

    @property
    def is_leader(self) -> bool:
        """Whether this member leads, as far as it knows."""
        return self._is_leader

    @property
    def timeout_ns(self) -> int:
        """How long to wait for a decision before taking over."""
        distance = (self._rank - self._ballot) % len(self._members) or len(self._members)
        doublings = min(self._ballot - self._ballot_decided, _DOUBLINGS_MAX)
        return (DECISION_TIMEOUT_NS * distance) << doublings

    def value_of(self, instance: int) -> Value | None:
        """The decided value, unless all members are known to have it."""
        assert instance < self.instance
        accepted = self._accepted.get(instance)
        return accepted.references if accepted is not None else None

    def receive(self, sender: ProcessId, packet: Packet) -> None:
        """Handle a packet of this module."""
        match packet:
            case ConsensusPrepare():
                self._on_prepare(sender, packet)
            case ConsensusPromise():
                self._on_promise(sender, packet)
            case ConsensusAccept():
                self._on_accept(sender, packet)
            case ConsensusAccepted():
                self._on_accepted(sender, packet)

    # Leader

    def take_over(self) -> None:
        """No decision for too long: ask the others to let this member lead."""
        size = len(self._members)
        self._adopt(self._ballot + ((self._rank - self._ballot) % size or size))
        self._promises = {}
        self._send_each(ConsensusPrepare(self._ballot, self.instance))

    def _on_promise(self, sender: ProcessId, promise: ConsensusPromise) -> None:
        self._knows(sender, promise.instance)
        if promise.ballot != self._ballot or self._leader_of(self._ballot) != self._me:
            return
        self._promises[sender] = promise
        if not self._is_leader and len(self._promises) == self._majority:
            self._become_leader()

    def _become_leader(self) -> None:
        """For each instance, find the value of the highest ballot: it may be decided already."""
        self._is_leader = True
        self._proposed = -1
        self._may_be_decided = {}
        for promise in self._promises.values():
            for accepted in promise.accepted:
                known = self._may_be_decided.get(accepted.instance)
                if known is None or accepted.ballot > known.ballot:
                    self._may_be_decided[accepted.instance] = accepted

    def propose(self, new_value: Callable[[], Value]) -> None:
        """If this member leads, propose the next value: what may be decided already, or a new one."""
        if not self._is_leader or self._proposed == self.instance:
            return
        accepted = self._may_be_decided.get(self.instance)
        value = accepted.references if accepted is not None else new_value()
        if value:
            self._proposed, self._value = self.instance, value
            self._accepted_by = {}
            known = min(self._known_by.values())
            self._send_each(ConsensusAccept(self._ballot, self.instance, value, known))

    def _on_accepted(self, sender: ProcessId, accepted: ConsensusAccepted) -> None:
        self._knows(sender, accepted.known)
        is_open = self._is_leader and self._proposed == self.instance
        if not is_open or (accepted.ballot, accepted.instance) != (self._ballot, self.instance):
            return
        if sender not in self._accepted_by:
            self._accepted_by[sender] = True
            if len(self._accepted_by) == self._majority:
                self._decide(self._value)

    def _knows(self, member: ProcessId, instance: int) -> None:
        """A member knows all decisions before this instance."""
        self._known_by[member] = max(self._known_by[member], instance)

    # Member

    def _on_prepare(self, sender: ProcessId, prepare: ConsensusPrepare) -> None:
        self._check_leader(sender, prepare.ballot)
        if prepare.ballot >= self._ballot:
            self._adopt(prepare.ballot)
            accepted = tuple(value for at, value in sorted(self._accepted.items()) if at >= prepare.instance)
            self._send(sender, ConsensusPromise(prepare.ballot, self.instance, accepted))

    def _on_accept(self, sender: ProcessId, accept: ConsensusAccept) -> None:
        self._check_leader(sender, accept.ballot)
        if accept.instance > self.instance + WINDOW_MAX:
            raise PeerFault(f"{sender} proposes instance {accept.instance}; {self.instance} is next")
        if accept.ballot < self._ballot:
            return
        self._adopt(accept.ballot)
        if accept.instance >= self.instance:
            self._accepted[accept.instance] = AcceptedValue(accept.instance, accept.ballot, accept.references)
        while self._kept_from < min(accept.known, self.instance):
            del self._accepted[self._kept_from]
            self._kept_from += 1
        self._send(sender, ConsensusAccepted(accept.ballot, accept.instance, self.instance))

    def decided(self, value: Value) -> None:
        """The next instance is decided: the caller received the decision, and all before it."""
        self._accepted[self.instance] = AcceptedValue(self.instance, DECIDED, value)
        self.instance += 1
        self._ballot_decided = self._ballot

    def _adopt(self, ballot: int) -> None:
        """Take part in a higher ballot."""
        if ballot > self._ballot:
            self._ballot = ballot
            self._is_leader = False

    def _leader_of(self, ballot: int) -> ProcessId:
        return self._members[ballot % len(self._members)]

    def _check_leader(self, sender: ProcessId, ballot: int) -> None:
        leader = self._leader_of(ballot)
        if sender != leader:
            raise PeerFault(f"{sender} acts as the leader of ballot {ballot}, which is {leader}")
        if ballot > self._ballot + STEP_MAX:
            raise PeerFault(f"{sender} leads ballot {ballot} after {self._ballot}")
