"""The proposer: the rounds that a member starts to agree on a view, and the pauses between them.

A round that is declined or does not advance is given up. The next one follows after a pause that grows, so
that others can succeed meanwhile. In a partitionable group a process that declines again and again prefers
other companions, and is avoided for a while. So is, in any group, a voter that is heard and yet lets round
after round time out: its answers, or what it needs to answer, do not get through.
"""

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.outputs import AvoidProcess, CorrectMember, MembershipOutput, SendControl, StartRound
from priocast.membership.packets import Accepted, Ballot, Declined, Promise
from priocast.membership.round import Round

_PAUSE_DOUBLINGS_MAX = 3
_DECLINES_MAX = 3


class Proposer:
    """One member's rounds, at most one at a time. `objection` is why the last one was declined."""

    def __init__(self, me: ProcessId, options: MembershipOptions, neighbours: Neighbours, now: int) -> None:
        self.round: Round | None = None
        self.objection = ""
        self.round_highest = 0
        self._me = me
        self._options = options
        self._neighbours = neighbours
        self._view: View | None = None
        self._paused_until = now
        self._pauses = 0
        self._declines: dict[ProcessId, int] = {}

    def on_start(self, start: StartRound, now: int) -> list[MembershipOutput]:
        """Start a round, unless one is in progress or the pause after the last one is not over."""
        if self.round is not None or now < self._paused_until:
            return []
        self.round_highest += 1
        ballot = Ballot(self.round_highest, self._me)
        self.round = Round(ballot, start, self._view, self._options.primary, now)
        return self._ask(self.round)

    def on_round_number(self, number: int) -> None:
        """Another process knows of a round with this number."""
        self.round_highest = max(self.round_highest, number)

    def on_view(self, view: View | None) -> None:
        """A view was installed, by any proposer; None: one without this member."""
        self._view = view or self._view
        self.round = None
        self._pauses = 0
        self._declines.clear()

    def on_promise(self, process: ProcessId, promise: Promise, now: int) -> list[MembershipOutput]:
        """A voter follows our ballot. In a primary group voters come from our view or from none."""
        round_, view = self.round, self._view
        if round_ is None or promise.ballot != round_.ballot:
            return []
        if promise.view is None:
            is_behind = view is not None and process in view.members
        elif not self._options.primary or (view is not None and promise.view.id == view.id):
            is_behind = False
        elif view is None or promise.view.number > view.number:
            self._give_up(now)
            return []
        else:
            is_behind = True
        if is_behind:
            return [CorrectMember(process)]
        return self._ask(round_) if round_.on_promise(process, promise, now) else []

    def on_accepted(self, process: ProcessId, accepted: Accepted, now: int) -> list[MembershipOutput]:
        """A voter has all packets of the old view that count, and accepts the proposal."""
        if self.round is None:
            return []
        self.round.on_accepted(process, accepted, now)
        return self._decide(self.round, now)

    def on_declined(self, process: ProcessId, declined: Declined, now: int) -> list[MembershipOutput]:
        """A voter objects to the view, or follows a higher ballot."""
        round_ = self.round
        if round_ is None or declined.ballot != round_.ballot:
            return []
        self.on_round_number(declined.promised.round)
        self.objection = declined.reason
        if declined.promised > round_.ballot or self._options.primary or round_.proposal is not None:
            self._give_up(now)
        elif round_.on_declined(process):
            self._give_up(now)
            return self._avoid_frequent(round_.declined, now)
        return []

    def on_tick(self, now: int) -> list[MembershipOutput]:
        """Ask voters again that have not answered; give up if the round does not advance."""
        round_ = self.round
        if round_ is None:
            return []
        decision = self._decide(round_, now)
        if decision:
            return decision
        if self._has_lost_a_voter(round_, now):
            self._give_up(now)
            return []
        if now - round_.moved_at >= self._options.failure_ns:
            self._give_up(now)
            return self._avoid_frequent([each for each in round_.waiting_for() if each != self._me], now)
        return self._ask(round_)

    def _ask(self, round_: Round) -> list[MembershipOutput]:
        question = round_.question()
        return [SendControl(voter, question) for voter in round_.waiting_for()]

    def _decide(self, round_: Round, now: int) -> list[MembershipOutput]:
        """Announce the decision, once there is one."""
        waited = now - round_.moved_at >= 2 * self._options.heartbeat_ns
        if not round_.is_decided(hurried=waited or self._has_lost_a_voter(round_, now)):
            return []
        self.round = None
        decision = round_.decision()
        return [SendControl(voter, decision) for voter in round_.voters]

    def _give_up(self, now: int) -> None:
        self.round = None
        self._pauses = min(self._pauses + 1, _PAUSE_DOUBLINGS_MAX)
        rank = self._view.members.index(self._me) if self._view else 0
        heartbeat_ns = self._options.heartbeat_ns
        self._paused_until = now + (heartbeat_ns << self._pauses) // 2 + rank * heartbeat_ns // 4

    def _avoid_frequent(self, unwilling: list[ProcessId], now: int) -> list[MembershipOutput]:
        """Avoid who has declined, or not answered, too often."""
        outputs: list[MembershipOutput] = []
        for process in unwilling:
            self._declines[process] = self._declines.get(process, 0) + 1
            if self._declines[process] >= _DECLINES_MAX:
                del self._declines[process]
                outputs.append(AvoidProcess(process, now + 2 * self._options.failure_ns))
        return outputs

    def _has_lost_a_voter(self, round_: Round, now: int) -> bool:
        """Whether the round waits for a process that counts as failed."""
        return any(
            voter != self._me and not self._neighbours.trusts(voter, now) for voter in round_.waiting_for()
        )
