"""Membership: one member's view of its group, and its part in changing it.

Heartbeats show who is there. A trigger compares the target view with the view. If they differ, this member
proposes the target view in a round, or leaves that to a member before it. A voter takes part in the rounds of
all proposers. What is decided is installed: the old epoch ends and the next one begins.

    as targeted ─▶ target differs ─▶ (settled, my turn) ─▶ round ─▶ decided ─▶ installed
                        ▲                                    │
                        └───────── given up, with a pause ───┘

Trigger, proposer, voter and state transfer are state machines with inputs and outputs (`outputs.py`). This
module gives them their inputs, and is the only one that carries out their outputs.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.core.view_reason import Eviction, EvictionCause, ViewReason
from priocast.membership.departure import Departed, Departure, departing
from priocast.membership.epoch import Epoch
from priocast.membership.heartbeat import HeartbeatSchedule
from priocast.membership.neighbours import Neighbours
from priocast.membership.observer import Observer
from priocast.membership.options import MembershipOptions, Mismatches, hash_of_options
from priocast.membership.outputs import (
    AcceptProposal,
    AvoidProcess,
    CorrectMember,
    InstallView,
    LeaveAtOnce,
    MembershipOutput,
    RestoreState,
    SendControl,
    StartRound,
)
from priocast.membership.packets import (
    Accepted,
    ChangeOrder,
    Control,
    Declined,
    EvictionNotice,
    FetchState,
    FlushReply,
    FlushRequest,
    Heartbeat,
    Install,
    LaterIncarnation,
    OptionsMismatch,
    OrderDigest,
    Ordering,
    Prepare,
    Promise,
    Proposal,
    Propose,
    StabilityReport,
    StateChunk,
)
from priocast.membership.proposer import Proposer
from priocast.membership.state_transfer import StateTransfer
from priocast.membership.trigger import ViewChangeTrigger
from priocast.membership.validation import CheckOrdering, DatagramValidator
from priocast.membership.view_history import ViewHistory
from priocast.membership.view_installer import ViewInstaller
from priocast.membership.voter import Voter

_DURING_DEPARTURE = (Heartbeat, EvictionNotice, FetchState, StateChunk)


class Membership:
    """One member's part in its group.

    The driver takes the `datagrams`; those to this member itself are received at once. `departed` is set when
    the member is no longer in the group. `mismatches` says how the group options of others differ.
    `installing`: a view is half installed; if an error occurs then, the member cannot go on.
    """

    def __init__(
        self,
        me: ProcessId,
        options: MembershipOptions,
        config: str,
        ordering: Ordering,
        installer: ViewInstaller,
        observer: Observer | None,
        check_ordering: CheckOrdering,
        may_found: bool,
        now: int,
    ) -> None:
        self.me = me
        self.options = options
        self.ordering = ordering
        self.view: View | None = None
        self.epoch: Epoch | None = None
        self.departed: Departed | None = None
        self.mismatches = Mismatches(config)
        self.decided: Install | None = None
        self.installing = False
        self.installed_at = now
        self.view_history = ViewHistory()
        self.datagrams: list[tuple[str, Control]] = []
        self.neighbours = Neighbours(me, options)
        self.heartbeats = HeartbeatSchedule(options, now)
        self.trigger = ViewChangeTrigger(me, options, self.neighbours, ordering, may_found, now)
        self.proposer = Proposer(me, options, self.neighbours, now)
        self.voter = Voter(me, self.neighbours, primary=options.primary)
        self.state = StateTransfer(me, options)
        self.validator = DatagramValidator(me, options.primary, self.neighbours, check_ordering)
        self._config = config
        self._config_hash = hash_of_options(config)
        self._installer = installer
        self._observer = observer
        self._departure: Departure | None = None
        self._to_myself: deque[Control] = deque()
        self._tick_at = now
        self._handlers: dict[type, Callable[[ProcessId, Any, int], list[MembershipOutput]]] = {
            Heartbeat: self._on_heartbeat,
            StabilityReport: self._on_stability_report,
            Prepare: self._on_prepare,
            Promise: self.proposer.on_promise,
            Propose: self.voter.on_propose,
            Declined: self.proposer.on_declined,
            Accepted: self.proposer.on_accepted,
            Install: self.voter.on_install,
            FlushRequest: self.voter.on_flush_request,
            FlushReply: self.voter.on_flush_reply,
            EvictionNotice: self._on_eviction_notice,
            LaterIncarnation: self.neighbours.on_later_incarnation,
            OptionsMismatch: self._on_options_mismatch,
            ChangeOrder: self._on_change_order,
            FetchState: self.state.on_fetch,
            StateChunk: self.state.on_chunk,
        }

    # Inputs from the member

    def heard(self, process: ProcessId, now: int) -> bool:
        """A frame came from a process; False if its incarnation is not the one that counts."""
        neighbours = self.neighbours
        if neighbours.incarnations.get(process.name) == process:
            neighbours.detector.heard(process.name, now)
            return True
        if not neighbours.meet(process, now):
            return False
        self.heartbeats.meet(process.name, now)
        return True

    def receive(self, process: ProcessId, control: Control, now: int) -> None:
        """A datagram came from a process that was heard, and is known if it must be."""
        if self.departed is not None:
            return
        if self._departure is not None and not isinstance(control, _DURING_DEPARTURE):
            return
        if process != self.me:
            self.validator.check(process, control, self.proposer.round_highest)
        self._carry_out(self._handlers[type(control)](process, control, now), now)
        self._receive_own(now)

    def on_repeated(self, process: ProcessId, body: bytes, now: int) -> bool:
        """A datagram came; return whether it is the last heartbeat of its sender again, which is alive."""
        if not self.neighbours.on_repeated(process, body, now):
            return False
        self.heartbeats.on_answer(process.name)
        is_over = self.departed is not None or self._departure is not None
        if self.view is not None and not is_over and self.neighbours.is_behind(process, self.view):
            self.correct(process)
        return True

    def leave(self, now: int, eviction: Eviction | None = None) -> None:
        """The application wants to leave the group; or it is too slow, and the member withdraws."""
        self.trigger.on_leave(eviction)
        self.heartbeats.due_at = now
        self.evaluate(now)

    def evict(self, process: ProcessId, cause: EvictionCause, now: int, detail: str = "") -> None:
        """A member does not do its part: the next view shall exclude it."""
        if self.trigger.on_evict(process, cause, detail):
            self.evaluate(now)

    def change_order(self, ordering: Ordering, now: int) -> None:
        """The application wants another protocol, or other priorities, to order from the next view on."""
        self.trigger.ordering_next = ordering
        self._carry_out(self.trigger.on_tick(), now)
        self.evaluate(now)

    def tick(self, now: int) -> None:
        """Do what is due: heartbeats, repetitions of what was not answered, and evaluation of the view."""
        self._carry_out(self.state.on_tick(now), now)
        self.neighbours.detector.be_awake(now)
        self._send_heartbeats(now)
        if now < self._tick_at:
            return
        self._tick_at = now + self.options.heartbeat_ns // 2
        self._carry_out(self.voter.on_tick(now), now)
        self._carry_out(self.proposer.on_tick(now), now)
        self._carry_out(self.trigger.on_tick(), now)
        self.evaluate(now)
        self._receive_own(now)

    def evaluate(self, now: int) -> None:
        """See whether the view should change, and act if it is this member's turn."""
        if self.departed is not None:
            return
        self.neighbours.detector.be_awake(now)
        if self._departure is not None:
            self._inform_others(self._departure, now)
            return
        self._carry_out(self.trigger.on_evaluate(self.voter.promised, self.voter.active_at, now), now)
        self._receive_own(now)

    def on_snapshot(self, position: int, data: bytes, base: bytes) -> None:
        """The application gives its state before this position, for members that wait and have `base`."""
        for output in self.state.on_snapshot(position, data, base):
            self.send(output.to, output.control)

    def depart(self, departed: Departed, now: int) -> None:
        """This member is no longer in the group. It says goodbye, so that its successor need not wait."""
        if self.departed is None:
            self.trigger.leaving = True
            self.heartbeats.due_at = now
            self._send_heartbeats(now)
            self.departed = departed
            self.proposer.round = None
            if self._observer is not None:
                self._observer.stopped(departed, now)

    # Queries

    @property
    def deadline(self) -> int:
        """When `tick` has something to do next."""
        return min(self._tick_at, self.heartbeats.due_at)

    @property
    def changing(self) -> bool:
        """Whether a view change is in progress, during which nothing can be ordered."""
        return self.voter.promised is not None

    # Outputs

    def send(self, process: ProcessId, control: Control) -> None:
        """Send a datagram, which may be to this member itself."""
        if process == self.me:
            self._to_myself.append(control)
        else:
            self.datagrams.append((process.name, control))

    def _carry_out(self, outputs: list[MembershipOutput], now: int) -> None:
        for output in outputs:
            match output:
                case SendControl(to, control):
                    self.send(to, control)
                case StartRound():
                    self._carry_out(self.proposer.on_start(output, now), now)
                case AcceptProposal(ballot, proposal):
                    digest = self._installer.digest_after(self.epoch, proposal)
                    self.send(ballot.proposer, Accepted(ballot, digest))
                case InstallView(proposal, digest):
                    self._install(proposal, digest, now)
                case CorrectMember(process):
                    self.correct(process)
                case AvoidProcess(process, until):
                    self.neighbours.avoid(process, until)
                case RestoreState(snapshot):
                    self._installer.stream.restore(snapshot)
                case LeaveAtOnce():
                    self.depart(self.trigger.departed(ViewReason(left=(self.me.name,))), now)

    def _receive_own(self, now: int) -> None:
        while self._to_myself:
            self.receive(self.me, self._to_myself.popleft(), now)

    # View changes

    def _on_prepare(self, process: ProcessId, prepare: Prepare, now: int) -> list[MembershipOutput]:
        self.proposer.on_round_number(prepare.ballot.round)
        view = self.view if self.options.primary and process != self.me else None
        if view is not None and process in view.members and self.neighbours.is_behind(process, view):
            return [CorrectMember(process)]  # a promise would outlive its round, and need another one
        objection = self.trigger.objection_to(process, prepare.voters, now)
        return self.voter.on_prepare(process, prepare, objection, now)

    def _install(self, proposal: Proposal, digest: OrderDigest, now: int) -> None:
        """The old view ends here, and the next one begins."""
        view = proposal.view
        if self.me not in view.members:
            self.voter.on_view(None)
            self.proposer.on_view(None)
            self._departure = Departure(Install(proposal, digest), self.options.failure_ns, now)
            self._inform_others(self._departure, now)
            return
        self.installing = True
        took_ns = now - self.voter.froze_at if self.changing else 0
        for process in departing(self.view, proposal, self.options.primary):
            self.neighbours.depart(process, proposal.reason)
        is_new = self.epoch is None
        self.view, self.ordering, self.installed_at = view, proposal.ordering, now
        self.decided = Install(proposal, digest)
        self.view_history.add(view, proposal.reason, now, took_ns)
        self.epoch = self.validator.epoch = self._installer.install(proposal, digest, self.epoch, now)
        self.neighbours.on_view()
        self.voter.on_view(self.epoch)
        self.proposer.on_view(view)
        self.trigger.on_view(view, proposal.ordering, now)
        self._carry_out(self.state.on_view(view, is_new, digest.position, now), now)
        self._installer.stream.awaits_state = self.state.restoration is not None
        self.heartbeats.due_at = now
        self.installing = False

    def _inform_others(self, departure: Departure, now: int) -> None:
        """Repeat the view without this member until the others know it, then depart."""
        uninformed = departure.uninformed(self.neighbours, now)
        if not uninformed:
            self.depart(self.trigger.departed(departure.install.proposal.reason), now)
        for member in uninformed:
            self.send(member, departure.install)

    def correct(self, process: ProcessId) -> None:
        """A process missed that its view has ended, or that the group continued without it: tell it."""
        if self.decided is None or self.view is None:
            return
        if process in self.view.members:
            self.send(process, self.decided)
            return
        reason = self.neighbours.departure_of(process)
        if reason is not None or self.options.primary:
            notice = EvictionNotice(process, self.view.id, reason or self.decided.proposal.reason)
            self.send(process, notice)

    def _on_eviction_notice(
        self, process: ProcessId, notice: EvictionNotice, now: int
    ) -> list[MembershipOutput]:
        """The sender says that this incarnation is over: believe it unless a quorum says otherwise."""
        view, is_mine = self.view, notice.process == self.me
        if is_mine and (view is None or (notice.view != view.id and self.neighbours.may_be_over(view, now))):
            self.depart(Departed(False, notice.reason), now)
        return []

    def _on_change_order(self, _: ProcessId, change: ChangeOrder, now: int) -> list[MembershipOutput]:
        if self.trigger.on_change_order(change.view, change.ordering):
            self.evaluate(now)
        return []

    # Heartbeats

    def _on_heartbeat(self, process: ProcessId, heartbeat: Heartbeat, now: int) -> list[MembershipOutput]:
        self.heartbeats.on_answer(process.name)
        if heartbeat.config != self._config_hash:
            return [SendControl(process, OptionsMismatch(self._config))]
        self.proposer.on_round_number(heartbeat.round)
        if heartbeat.view is not None and self.options.primary:
            self.trigger.may_found = False
        view_before = self.neighbours.view_of(process)
        is_news = self.neighbours.on_heartbeat(process, heartbeat)
        epoch = self.epoch
        if epoch is not None and heartbeat.view == epoch.view.id:
            if process in epoch.ranks and not epoch.frozen:
                epoch.stability.report(epoch.ranks[process], heartbeat.received)
            if view_before != heartbeat.view and process in epoch.links:
                # Frames of this view that were sent before came too early for it.
                epoch.links[process].reconnected(now)
        elif epoch is not None and self.neighbours.is_behind(process, epoch.view):
            self.correct(process)
        if is_news:
            self.heartbeats.hear_of(heartbeat.hears, self.me, now)
            self.evaluate(now)
        return []

    def _on_stability_report(
        self, process: ProcessId, report: StabilityReport, _: int
    ) -> list[MembershipOutput]:
        epoch = self.epoch
        if epoch is not None and epoch.view.id == report.view and process in epoch.ranks and not epoch.frozen:
            epoch.stability.report(epoch.ranks[process], report.received)
        return []

    def _on_options_mismatch(
        self, process: ProcessId, mismatch: OptionsMismatch, _: int
    ) -> list[MembershipOutput]:
        is_first = self.mismatches.add(process.name, mismatch.config)
        return [SendControl(process, OptionsMismatch(self._config))] if is_first else []

    def _send_heartbeats(self, now: int) -> None:
        """Send heartbeats if they are due, or if this member hears other processes than it said last."""
        hears = self.neighbours.hears(now)
        if not self.heartbeats.is_due(hears, now):
            return
        view = self.view
        heartbeat = Heartbeat(
            self._config_hash,
            view.id if view else None,
            view.members if view else (),
            self.proposer.round_highest,
            hears,
            tuple(self.epoch.stability.received) if self.epoch else (),
            self.trigger.leaving,
        )
        self.datagrams += [(name, heartbeat) for name in self.heartbeats.recipients(heartbeat, now)]
