"""Consensus: members agree on one value after the other, although those who propose may crash.

Paxos, instance by instance. Every ballot has one leader, ballot b the member of rank b modulo n. It may
propose only what a majority may not have accepted something else for in an earlier ballot:

    leader    Prepare ─▶ all      from this instance on I lead; what have you accepted?
    member    ◀─ Promise          nothing of earlier ballots any more; so far I have accepted these
    leader    Accept ─▶ all       with a majority of promises: the value of the highest ballot, or a fresh one
    member    ◀─ Accepted
    leader    Decide ─▶ all       with a majority of these: that is the value

The first leader needs no promises. It stays in office, so that a value takes one round trip and the decision,
until a member has waited too long for a decision and takes over. Members are the more patient the further
they are from the leader, and twice as patient after every ballot in vain: in the end one of them leads for
long enough. Several leaders at once can only hinder each other: two majorities have a member in common.

A decision is the caller's packet, because it must reach all. What was accepted is kept until every member has
said that it knows the decision: whoever lacks it takes over, in the end, and finds it out that way.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from priocast.core.errors import PeerFault
from priocast.core.identity import ProcessId
from priocast.core.message import Reference
from priocast.core.protocol import WINDOW_MAX, Packet
from priocast.protocols.flow.frames import FRAME_BATCHES_MAX, References

REFERENCES_MAX = FRAME_BATCHES_MAX
PATIENCE_NS = 100_000_000
_DOUBLINGS_MAX = 6
_DECIDED = 1 << 62

Ballot = Annotated[int, msgspec.Meta(ge=0, le=_DECIDED)]
Instance = Annotated[int, msgspec.Meta(ge=0)]
Value = tuple[Reference, ...]


class Vote(msgspec.Struct, frozen=True, array_like=True):
    """What a member accepted in an instance; what is decided counts as accepted in the last ballot."""

    instance: Instance
    ballot: Ballot
    references: References


class Prepare(Packet, frozen=True, tag="prepare"):
    """From a member that wants to lead: promise to accept nothing of earlier ballots."""

    ballot: Ballot
    instance: Instance


class Promise(Packet, frozen=True, tag="promise"):
    """To the one who wants to lead: I do; I lack the decision of this instance, and have accepted these."""

    ballot: Ballot
    instance: Instance
    votes: Annotated[tuple[Vote, ...], msgspec.Meta(max_length=WINDOW_MAX)]


class Accept(Packet, frozen=True, tag="accept"):
    """From the leader: accept this value. All members know the decisions before the instance `known`."""

    ballot: Ballot
    instance: Instance
    references: References
    known: Instance


class Accepted(Packet, frozen=True, tag="accepted"):
    """To the leader: I have accepted that, and know the decisions before the instance `known`."""

    ballot: Ballot
    instance: Instance
    known: Instance


CONSENSUS_PACKETS = (Prepare, Promise, Accept, Accepted)


class Consensus:
    """One member's part. `instance` is the first one whose decision it lacks.

    It speaks through `send` and `send_each`, and lets the leader tell the next decision by `decide`.
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
        self._votes: dict[int, Vote] = {}
        self._kept_from = 0
        # leader
        self._elected = self._rank == 0
        self._promises: dict[ProcessId, Promise] = {}
        self._may_be_decided: dict[int, Vote] = {}
        self._proposed = -1
        self._value: Value = ()
        self._accepted_by: dict[ProcessId, bool] = {}
        self._known_by = dict.fromkeys(members, 0)

    @property
    def ballot(self) -> int:
        """The latest ballot that this member has heard of."""
        return self._ballot

    @property
    def leads(self) -> bool:
        """Whether this member leads, as far as it knows."""
        return self._elected

    @property
    def patience_ns(self) -> int:
        """How long to wait for a decision before one takes over."""
        distance = (self._rank - self._ballot) % len(self._members) or len(self._members)
        doublings = min(self._ballot - self._ballot_decided, _DOUBLINGS_MAX)
        return (PATIENCE_NS * distance) << doublings

    def value_of(self, instance: int) -> Value | None:
        """What was decided, if anybody may still lack it."""
        assert instance < self.instance
        vote = self._votes.get(instance)
        return vote.references if vote is not None else None

    def receive(self, sender: ProcessId, packet: Packet) -> None:
        """One of the packets of this module came."""
        match packet:
            case Prepare():
                self._on_prepare(sender, packet)
            case Promise():
                self._on_promise(sender, packet)
            case Accept():
                self._on_accept(sender, packet)
            case Accepted():
                self._on_accepted(sender, packet)

    # Leader

    def take_over(self) -> None:
        """Nothing was decided for too long: ask the others to let us lead."""
        size = len(self._members)
        self._follow(self._ballot + ((self._rank - self._ballot) % size or size))
        self._promises = {}
        self._send_each(Prepare(self._ballot, self.instance))

    def propose(self, fresh: Callable[[], Value]) -> None:
        """Propose the next value, if that is ours to do: what may be decided already, or a fresh one."""
        if not self._elected or self._proposed == self.instance:
            return
        vote = self._may_be_decided.get(self.instance)
        value = vote.references if vote is not None else fresh()
        if value:
            self._proposed, self._value = self.instance, value
            self._accepted_by = {}
            known = min(self._known_by.values())
            self._send_each(Accept(self._ballot, self.instance, value, known))

    def _on_promise(self, sender: ProcessId, promise: Promise) -> None:
        self._knows(sender, promise.instance)
        if promise.ballot != self._ballot or self._leader() != self._me:
            return
        self._promises[sender] = promise
        if not self._elected and len(self._promises) == self._majority:
            self._be_elected()

    def _be_elected(self) -> None:
        self._elected = True
        self._proposed = -1
        self._may_be_decided = {}
        for promise in self._promises.values():
            for vote in promise.votes:
                known = self._may_be_decided.get(vote.instance)
                if known is None or vote.ballot > known.ballot:
                    self._may_be_decided[vote.instance] = vote

    def _on_accepted(self, sender: ProcessId, accepted: Accepted) -> None:
        self._knows(sender, accepted.known)
        is_due = self._elected and self._proposed == self.instance
        if not is_due or (accepted.ballot, accepted.instance) != (self._ballot, self.instance):
            return
        if sender not in self._accepted_by:
            self._accepted_by[sender] = True
            if len(self._accepted_by) == self._majority:
                self._decide(self._value)

    def _knows(self, member: ProcessId, instance: int) -> None:
        """A member knows all decisions before this instance."""
        self._known_by[member] = max(self._known_by[member], instance)

    # Member

    def decided(self, value: Value) -> None:
        """The next instance is decided: the caller has the packet that says so, and all before it."""
        self._votes[self.instance] = Vote(self.instance, _DECIDED, value)
        self.instance += 1
        self._ballot_decided = self._ballot

    def _on_prepare(self, sender: ProcessId, prepare: Prepare) -> None:
        self._check_leader(sender, prepare.ballot)
        if prepare.ballot >= self._ballot:
            self._follow(prepare.ballot)
            votes = tuple(vote for at, vote in sorted(self._votes.items()) if at >= prepare.instance)
            self._send(sender, Promise(prepare.ballot, self.instance, votes))

    def _on_accept(self, sender: ProcessId, accept: Accept) -> None:
        self._check_leader(sender, accept.ballot)
        if accept.ballot < self._ballot:
            return
        self._follow(accept.ballot)
        if accept.instance >= self.instance:
            self._votes[accept.instance] = Vote(accept.instance, accept.ballot, accept.references)
        while self._kept_from < min(accept.known, self.instance):
            del self._votes[self._kept_from]
            self._kept_from += 1
        self._send(sender, Accepted(accept.ballot, accept.instance, self.instance))

    def _follow(self, ballot: int) -> None:
        if ballot > self._ballot:
            self._ballot = ballot
            self._elected = False

    def _leader(self) -> ProcessId:
        return self._members[self._ballot % len(self._members)]

    def _check_leader(self, sender: ProcessId, ballot: int) -> None:
        leader = self._members[ballot % len(self._members)]
        if sender != leader:
            raise PeerFault(f"{sender} leads in ballot {ballot}, which is for {leader} to lead")
