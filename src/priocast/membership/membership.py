"""Membership: the life of a group, as one member lives it.

It listens to who is there, forms a wish, and if the wish differs from the view it has a round held on it: by
itself if it is the first of those concerned, or later if the first one does not act. What is decided it
installs: the old epoch ends, the next one begins.

    nothing new ─▶ wish differs ─▶ (settled, my turn) ─▶ round ─▶ decided ─▶ installed
                        ▲                                  │
                        └──────── given up, with a pause ──┘
"""

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.membership.departure import Departure
from priocast.membership.epoch import Epoch
from priocast.membership.heartbeat import HeartbeatSchedule
from priocast.membership.life import Change, Life
from priocast.membership.neighbours import Neighbours
from priocast.membership.options import MembershipOptions
from priocast.membership.packets import (
    Accepted,
    ChangeOrder,
    Control,
    Declined,
    EvictionNotice,
    FlushReply,
    FlushRequest,
    Heartbeat,
    Install,
    OptionsMismatch,
    OrderDigest,
    Ordering,
    Prepare,
    Promise,
    Proposal,
    Propose,
    StabilityReport,
)
from priocast.membership.proposer import Proposer
from priocast.membership.target_view import TargetViewPlanner
from priocast.membership.trigger import ViewChangeTrigger
from priocast.membership.voter import Voter

_CHANGES_KEPT = 32


class Membership:
    """One member's view of its group, and its part in changing it.

    `datagrams` gather for the driver; what a member tells itself comes back at once.
    """

    def __init__(
        self, me: ProcessId, options: MembershipOptions, config: str, ordering: Ordering, life: Life, now: int
    ) -> None:
        self.me = me
        self.options = options
        self.ordering = ordering
        self.view: View | None = None
        self.epoch: Epoch | None = None
        self.epoch_before: Epoch | None = None
        self.datagrams: list[tuple[str, Control]] = []
        self.suspended = False
        self.over = False
        self.mismatch: str | None = None
        self.neighbours = Neighbours(me, options)
        self.wishes = TargetViewPlanner(me, options, self.neighbours)
        self.voter = Voter(self)
        self.proposer = Proposer(self, now)
        self.decided: Install | None = None
        self._config = config
        self._config_hash = hash_of_text(config)
        self._life = life
        self.installed_at = now
        self.views = 0
        self.changes: deque[Change] = deque(maxlen=_CHANGES_KEPT)
        self.suspended_since: int | None = None
        self._trigger = ViewChangeTrigger(self, now)
        self._departure: Departure | None = None
        self._to_myself: deque[Control] = deque()
        self._heartbeat = HeartbeatSchedule(options, now)
        self._tick_at = now
        self._hears_said: tuple[ProcessId, ...] = ()
        self._handlers: dict[type, Callable[[ProcessId, Any, int], None]] = {
            Heartbeat: self._on_heartbeat,
            StabilityReport: self._on_stability_report,
            Prepare: self._on_prepare,
            Promise: self.proposer.on_promise,
            Propose: self._on_propose,
            Declined: self.proposer.on_declined,
            Accepted: self.proposer.on_accepted,
            Install: self._on_install,
            FlushRequest: self._on_flush_request,
            FlushReply: self._on_flush_reply,
            EvictionNotice: self._on_eviction_notice,
            OptionsMismatch: self._on_options_mismatch,
            ChangeOrder: self._on_change_order,
        }

    # What the driver and the member tell

    def reachable(self, name: str, now: int) -> None:
        """A process of this name can be reached: let it know that we are here."""
        self._heartbeat.meet(name, now)

    def heard(self, process: ProcessId, now: int) -> bool:
        """A frame came from a process; False if it is of a life that is over."""
        if self.neighbours.heard_again(process, now):
            return True
        if not self.neighbours.heard(process, now):
            return False
        self._heartbeat.meet(process.name, now)
        return True

    def spoke(self, name: str, now: int) -> None:
        """Frames were sent to a process, which are a sign of life as good as any."""
        self._heartbeat.spoke(name, now)

    def receive(self, process: ProcessId, control: Control, now: int) -> None:
        """A datagram came from a process that was heard."""
        if self.over:
            return
        if self._departure is not None and not isinstance(control, Heartbeat | EvictionNotice):
            return
        self._handlers[type(control)](process, control, now)
        self._hear_myself(now)

    def _on_prepare(self, process: ProcessId, prepare: Prepare, now: int) -> None:
        if process == prepare.ballot.proposer and self.me in prepare.voters:
            self.proposer.note(prepare.ballot.round)
            self.voter.on_prepare(prepare, now)

    def _on_propose(self, process: ProcessId, propose: Propose, now: int) -> None:
        if process == propose.ballot.proposer:
            self.voter.on_propose(propose, now)

    def _on_install(self, process: ProcessId, install: Install, now: int) -> None:
        self.voter.on_install(install, now)

    def _on_flush_request(self, process: ProcessId, fetch: FlushRequest, now: int) -> None:
        self.voter.on_fetch(process, fetch, (self.epoch, self.epoch_before))

    def _on_flush_reply(self, process: ProcessId, supply: FlushReply, now: int) -> None:
        self.voter.on_flush_reply(supply, now)

    def _on_options_mismatch(self, process: ProcessId, mismatch: OptionsMismatch, now: int) -> None:
        self.mismatch = f"{process.name} is in a group of another kind: {mismatch.config}"

    def leave(self, now: int) -> None:
        """Ask to be let go."""
        self.wishes.leaving = True
        self._heartbeat.due_at = now
        self.evaluate(now)

    def evict(self, process: ProcessId, reason: str, now: int) -> None:
        """A member does not do its part: the next view shall be without it."""
        if self.view is not None and process in self.view.members and process not in self.wishes.evicted:
            self.wishes.evicted[process] = reason
            self.evaluate(now)

    def change_order(self, ordering: Ordering, now: int) -> None:
        """Let another protocol, or other priorities, order from the next view on."""
        self._trigger.ordering_next = ordering
        self._pass_on_order(now)
        self.evaluate(now)

    def tick(self, now: int) -> None:
        """Do what is due: signs of life, what has to be said again, and thinking about the view."""
        self.neighbours.be_awake(now)
        if now < self._tick_at:
            self._say_alive(now)
            return
        self._tick_at = now + self.options.heartbeat_ns // 2
        self._say_alive(now)
        self.voter.repeat(now)
        self.proposer.repeat(now)
        self._pass_on_order(now)
        self.evaluate(now)
        self._hear_myself(now)

    @property
    def deadline(self) -> int:
        """When `tick` has something to do next."""
        return min(self._tick_at, self._heartbeat.due_at)

    @property
    def changing(self) -> bool:
        """Whether the view is about to change, and nothing can be ordered meanwhile."""
        return self.voter.changing

    # The view

    def evaluate(self, now: int) -> None:
        """See whether the view should change, and act if it is this member's turn."""
        if self.over:
            return
        self.neighbours.be_awake(now)
        if self._departure is not None:
            self._see_off(now)
            return
        wish = self._trigger.wish(now)
        self._note_suspended(wish is None and self.view is not None, now)
        alone = (wish is None or self.view is None) and not self._trigger.others_wait(now)
        if self.wishes.leaving and alone:
            # Those who leave, too, and have not heard of it yet need not wait for us.
            self._say_alive(now)
            self._depart("the group was left", True, now)
            return
        self._trigger.act_on(wish, now)
        self._hear_myself(now)

    def _note_suspended(self, suspended: bool, now: int) -> None:
        if suspended != self.suspended:
            self.suspended = suspended
            self.suspended_since = now if suspended else None

    def objection_to(self, proposer: ProcessId, voters: tuple[ProcessId, ...], now: int) -> str | None:
        """Why this member will not vote on a view of these, if so."""
        return self._trigger.objection_to(proposer, voters, now)

    def trusts(self, process: ProcessId, now: int) -> bool:
        """Whether this life of a process counts as alive."""
        return self.neighbours.trusts(process, now)

    # What is decided

    def digest_after(self, proposal: Proposal) -> OrderDigest:
        """Where the order will stand for this member when its view has ended."""
        epoch = self.epoch
        plan = proposal.flush_plan_of(epoch.view.id) if epoch else None
        if epoch is None or plan is None or self.me not in plan.members:
            return OrderDigest(0)
        if plan.acknowledged:
            epoch.stability.merge(plan.acknowledged)
        tail = epoch.ending(plan)
        return self._life.digest(epoch.protocol.position_next, tail)

    def install(self, proposal: Proposal, digest: OrderDigest, now: int) -> None:
        """The old view ends here, and the next one begins."""
        took_ns = now - self.voter.froze_at if self.voter.changing else 0
        self.voter.installed()
        self.proposer.succeeded()
        if self.me not in proposal.view.members:
            self._departure = Departure(Install(proposal, digest), self.options.failure_ns, now)
            self._see_off(now)
            return
        for process in self._departing(proposal):
            self.neighbours.depart(process)
        self.epoch_before = self.epoch
        self.view = proposal.view
        self.ordering = proposal.ordering
        self.epoch = self._life.begin(proposal, digest, self.epoch_before, now)
        self.decided = Install(proposal, digest)
        self.views += 1
        self.changes.append(Change(proposal.view, proposal.reason, now, took_ns))
        self._note_suspended(False, now)
        self.installed_at = now
        self.wishes.evicted = {
            process: why for process, why in self.wishes.evicted.items() if process in proposal.view.members
        }
        self._trigger.installed()
        self._heartbeat.due_at = now

    def _see_off(self, now: int) -> None:
        """Be out once the others know of the view that this member is not in; tell them until then."""
        assert self._departure is not None
        if self._departure.is_over(self.neighbours, now):
            self._depart(self._departure.install.proposal.reason, self.wishes.leaving, now)
            return
        for member in self._departure.missing(self.neighbours, now):
            self.tell(member, self._departure.install)

    def _departing(self, proposal: Proposal) -> list[ProcessId]:
        """Whose life ends with the old view: in a primary group all that are not in the next one."""
        if self.view is None:
            return []
        plan = proposal.flush_plan_of(self.view.id)
        ended = self.view.members if self.options.primary or plan is None else plan.members
        return [process for process in ended if process not in proposal.view.members]

    def correct(self, process: ProcessId) -> None:
        """A process is behind: it missed that its view has ended, or that the group went on without it."""
        if self.decided is None or self.view is None:
            return
        if process in self.view.members:
            self.tell(process, self.decided)
        elif self.options.primary or self.neighbours.has_departed(process):
            self.tell(process, EvictionNotice(process, self.view.id, self.decided.proposal.reason))

    def _on_eviction_notice(self, process: ProcessId, notice: EvictionNotice, now: int) -> None:
        """Whoever says so has seen a decision, and a life that is over cannot go on."""
        if notice.process == self.me and (self.view is None or notice.view != self.view.id):
            self._depart(f"the group went on without {self.me.name}: {notice.reason}", False, now)

    def _depart(self, reason: str, wanted: bool, now: int) -> None:
        self.over = True
        self.proposer.round = None
        self._life.departed(reason, wanted, now)

    # Signs of life

    def _on_heartbeat(self, process: ProcessId, alive: Heartbeat, now: int) -> None:
        self._heartbeat.heard(process.name)
        if alive.config != self._config_hash:
            self.tell(process, OptionsMismatch(self._config))
            return
        self.proposer.note(alive.round)
        if alive.view is not None and self.options.primary:
            self.wishes.may_found = False
        for known in alive.hears:
            if known.name != self.me.name:
                self._heartbeat.hear_of(known.name, now)
        before = self.neighbours.view_of(process)
        news = self.neighbours.on_heartbeat(process, alive)
        epoch = self.epoch
        if epoch is not None and alive.view == epoch.view.id:
            self._on_stability_report(process, StabilityReport(epoch.view.id, alive.received), now)
            if before != alive.view and process in epoch.links:
                # What was sent to it in this view came too early.
                epoch.links[process].reconnected(now)
        elif epoch is not None and self._is_behind(process, alive, epoch.view):
            self.correct(process)
        if news:
            self.evaluate(now)

    def _is_behind(self, process: ProcessId, alive: Heartbeat, view: View) -> bool:
        """Whether a process does not know of a view that concerns it."""
        if alive.view is None:
            return process in view.members or self.neighbours.has_departed(process)
        return alive.view.number < view.number or self.neighbours.has_departed(process)

    def _on_stability_report(self, process: ProcessId, held: StabilityReport, now: int) -> None:
        epoch = self.epoch
        if epoch is not None and epoch.view.id == held.view and process in epoch.ranks and not epoch.frozen:
            epoch.stability.report(epoch.ranks[process], held.received)

    def _say_alive(self, now: int) -> None:
        """Tell everybody where we stand; leave it to other traffic where there is any and nothing is new."""
        hears = self.neighbours.hears(now)
        if now < self._heartbeat.due_at and hears == self._hears_said:
            return
        self._hears_said = hears
        alive = self.alive(now)
        self.datagrams += [(name, alive) for name in self._heartbeat.say(alive, now)]

    def alive(self, now: int) -> Heartbeat:
        """What this member says of itself."""
        accepted = self.voter.accepted
        return Heartbeat(
            self._config_hash,
            self.view.id if self.view else None,
            self.view.members if self.view else (),
            accepted.view.id if accepted else None,
            self.proposer.round_highest,
            self.neighbours.hears(now),
            tuple(self.epoch.stability.received) if self.epoch else (),
            self.wishes.leaving,
        )

    def tell(self, process: ProcessId, control: Control) -> None:
        """Send a datagram; to oneself, too."""
        if process == self.me:
            self._to_myself.append(control)
        else:
            self.datagrams.append((process.name, control))

    def _hear_myself(self, now: int) -> None:
        while self._to_myself:
            self.receive(self.me, self._to_myself.popleft(), now)

    # The order

    def _on_change_order(self, process: ProcessId, change: ChangeOrder, now: int) -> None:
        if self.view is not None and change.view == self.view.id and change.ordering != self.ordering:
            self._trigger.ordering_next = change.ordering
            self.evaluate(now)

    def _pass_on_order(self, now: int) -> None:
        """Whoever coordinates proposes; tell it what is wanted until it has happened."""
        if self._trigger.ordering_next is None or self.view is None:
            return
        if self._trigger.ordering_next == self.ordering:
            self._trigger.ordering_next = None
        elif self.view.coordinator != self.me:
            self.tell(self.view.coordinator, ChangeOrder(self.view.id, self._trigger.ordering_next))


def hash_of_text(text: str) -> int:
    """Eight bytes that stand for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
