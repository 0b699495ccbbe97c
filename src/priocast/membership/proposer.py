"""A member's own attempts to bring about a view: rounds, and the pauses between them.

A round that is declined, or that does not get on, is given up. The next one comes after a pause that grows,
so that others may succeed meanwhile. In a partitionable group, a process that declines again and again
prefers others, and is left alone for a while.
"""

from typing import Protocol

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import Accepted, Ballot, Control, Declined, Ordering, Promise
from priocast.membership.round import Round
from priocast.membership.target_view import TargetView

_PAUSE_DOUBLINGS_MAX = 3
_DECLINES_MAX = 3


class Host(Protocol):
    """The member that proposes."""

    @property
    def me(self) -> ProcessId: ...
    @property
    def view(self) -> View | None: ...
    @property
    def options(self) -> MembershipOptions: ...
    @property
    def neighbours(self) -> Neighbours: ...
    def tell(self, process: ProcessId, control: Control) -> None: ...
    def correct(self, process: ProcessId) -> None: ...


class Proposer:
    """The round that this member holds, if it holds one. `objection` is what was last said against one."""

    def __init__(self, host: Host, now: int) -> None:
        self._host = host
        self.round: Round | None = None
        self.objection = ""
        self.round_highest = 0
        self._paused_until = now
        self._pauses = 0
        self._declines: dict[ProcessId, int] = {}

    def may_start(self, now: int) -> bool:
        """Whether no round is held now, and the pause after the last one is over."""
        return self.round is None and now >= self._paused_until

    def start(self, wish: TargetView, ordering: Ordering, reason: str, now: int) -> None:
        """Hold a round on a view."""
        host = self._host
        self.round_highest += 1
        ballot = Ballot(self.round_highest, host.me)
        self.round = Round(ballot, wish, host.view, ordering, reason, host.options.primary, now)
        self._ask(self.round)

    def note(self, number: int) -> None:
        """There has been a round of this number."""
        self.round_highest = max(self.round_highest, number)

    def succeeded(self) -> None:
        """A view was installed, by whomever."""
        self.round = None
        self._pauses = 0
        self._declines.clear()

    def repeat(self, now: int) -> None:
        """Ask again whoever has not answered; give up if that is in vain."""
        round_ = self.round
        if round_ is None or self._decide_if_possible(round_, now):
            return
        in_vain = now - round_.moved_at >= self._host.options.failure_ns
        if in_vain or self._has_lost_a_voter(round_, now):
            self._give_up(now)
        else:
            self._ask(round_)

    def on_promise(self, process: ProcessId, promise: Promise, now: int) -> None:
        """A voter follows our ballot."""
        round_ = self.round
        if round_ is None or promise.ballot != round_.ballot:
            return
        if self._stands_with_us(process, promise, now) and round_.on_promise(process, promise, now):
            self._ask(round_)

    def on_accepted(self, process: ProcessId, accepted: Accepted, now: int) -> None:
        """A voter holds all that counts of the old view."""
        if self.round is not None:
            self.round.on_accepted(process, accepted, now)
            self._decide_if_possible(self.round, now)

    def on_declined(self, process: ProcessId, declined: Declined, now: int) -> None:
        """A voter does not want this view, or follows a higher ballot."""
        round_ = self.round
        if round_ is None or declined.ballot != round_.ballot:
            return
        self.note(declined.promised.round)
        self.objection = declined.reason
        if declined.promised > round_.ballot or self._host.options.primary or round_.proposal is not None:
            self._give_up(now)
        elif round_.on_declined(process):
            for decliner in round_.declined:
                self._avoid_if_often(decliner, now)
            self._give_up(now)

    def _ask(self, round_: Round) -> None:
        question = round_.question()
        for voter in round_.waiting_for():
            self._host.tell(voter, question)

    def _give_up(self, now: int) -> None:
        host = self._host
        self.round = None
        self._pauses = min(self._pauses + 1, _PAUSE_DOUBLINGS_MAX)
        rank = host.view.members.index(host.me) if host.view else 0
        heartbeat_ns = host.options.heartbeat_ns
        self._paused_until = now + (heartbeat_ns << self._pauses) // 2 + rank * heartbeat_ns // 4

    def _stands_with_us(self, process: ProcessId, promise: Promise, now: int) -> bool:
        """Voters come from our view or from none, in a primary group; others are put right first."""
        host, view = self._host, promise.view
        if view is None:
            behind = host.view is not None and process in host.view.members
        elif not host.options.primary or (host.view is not None and view.id == host.view.id):
            behind = False
        elif host.view is None or view.number > host.view.number:
            self._give_up(now)
            return False
        else:
            behind = True
        if behind:
            host.correct(process)
        return not behind

    def _avoid_if_often(self, process: ProcessId, now: int) -> None:
        self._declines[process] = self._declines.get(process, 0) + 1
        if self._declines[process] >= _DECLINES_MAX:
            del self._declines[process]
            self._host.neighbours.avoid(process, now + 2 * self._host.options.failure_ns)

    def _has_lost_a_voter(self, round_: Round, now: int) -> bool:
        """Whether the round waits for somebody who counts as failed."""
        host = self._host
        return any(
            voter != host.me and not host.neighbours.trusts(voter, now) for voter in round_.waiting_for()
        )

    def _decide_if_possible(self, round_: Round, now: int) -> bool:
        """Tell everybody of the decision, once there is one."""
        waited = now - round_.moved_at >= 2 * self._host.options.heartbeat_ns
        if not round_.is_decided(hurried=waited or self._has_lost_a_voter(round_, now)):
            return False
        self.round = None
        decision = round_.decision()
        for voter in round_.voters:
            self._host.tell(voter, decision)
        return True
