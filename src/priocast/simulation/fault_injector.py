"""Injects the faults of a scenario at their times, and counts them."""

from collections.abc import Callable, Mapping
from functools import partial

from priocast.core.view import View
from priocast.links.frame import Frame
from priocast.member import Member
from priocast.membership.datagrams import CHANNEL
from priocast.membership.packets import (
    Accepted,
    FlushReply,
    FlushRequest,
    Install,
    Ordering,
    Prepare,
    Promise,
    Propose,
)
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import (
    COORDINATOR,
    MICROSECOND,
    Crash,
    Leave,
    NetworkCut,
    Pause,
    PlannedOrderChange,
    Stall,
)
from priocast.simulation.host import SimulatedHost
from priocast.simulation.network import SimulatedNetwork
from priocast.simulation.process import SimulatedProcess, Written
from priocast.simulation.quorum_guard import QuorumGuard, has_state, stays
from priocast.simulation.scenario import Scenario

_VIEW_CHANGE_TAGS = {
    str(packet.__struct_config__.tag).encode()
    for packet in (Prepare, Promise, Propose, Accepted, Install, FlushRequest, FlushReply)
}


class FaultInjector:
    """Schedules the faults of one run; `crashed` are the incarnations that have crashed."""

    def __init__(
        self,
        scenario: Scenario,
        hosts: Mapping[str, SimulatedHost],
        event_queue: EventQueue,
        network: SimulatedNetwork,
        counters: Counters,
    ) -> None:
        self._scenario = scenario
        self._hosts = hosts
        self._event_queue = event_queue
        self._network = network
        self._counters = counters
        self._quorum_guard = QuorumGuard()
        self._armed: dict[Crash, dict[str, int]] = {}
        self.crashed: set[str] = set()
        faults = scenario.faults
        for pause in faults.pauses:
            self._at(pause.from_us, partial(self._pause, pause))
        for stall in faults.stalls:
            self._at(stall.from_us, partial(self._stall, stall))
        for cut in faults.cuts:
            self._at(cut.from_us, partial(self._cut, cut))
        for crash in faults.crashes:
            self._at(crash.at_us, partial(self._arm if crash.change_packets else self.crash, crash))
        for leave in faults.leaves:
            self._at(leave.at_us, partial(self._leave, leave))
        for change in faults.order_changes:
            self._at(change.at_us, partial(self._change_order, change))
        self._at(faults.healed_at_us, self._armed.clear)

    def after_turn(self, process: SimulatedProcess, written: Written) -> Written:
        """A process wrote these frames; return those that are sent before it crashes, if it does."""
        self._quorum_guard.observe(process.member)
        for crash, counts in list(self._armed.items()):
            name = process.member.me.name
            if crash.member and self._name(crash.member) != name:
                continue
            for index, (_, frame) in enumerate(written):
                counts[name] = counts.get(name, 0) + _is_view_change(frame)
                if counts[name] >= crash.change_packets:
                    del self._armed[crash]
                    if self._may_crash(process.member, crash):
                        self._counters.count("crash in a view change")
                        self._end(process.member, crash)
                        return written[: index + 1]
                    break
        return written

    def _at(self, time_us: int, action: Callable[[], object]) -> None:
        self._event_queue.schedule(time_us * MICROSECOND, action)

    def _members(self) -> list[Member]:
        return [host.process.member for host in self._hosts.values() if host.process is not None]

    def _name(self, member: str) -> str:
        """The name of a member, or of the present coordinator."""
        if member != COORDINATOR:
            return member
        newest: View | None = None
        for each in self._members():
            if each.view is not None and (newest is None or each.view.number > newest.number):
                newest = each.view
        return newest.coordinator.name if newest else next(iter(self._hosts))

    def _process(self, member: str) -> SimulatedProcess | None:
        host = self._hosts.get(self._name(member))
        return host.process if host else None

    def _pause(self, pause: Pause) -> None:
        process = self._process(pause.member)
        if process is not None:
            over = pause.for_us * MICROSECOND >= self._scenario.membership.failure_ns
            self._counters.count("pause over the timeout" if over else "pause")
            process.pause(pause.until_us * MICROSECOND)

    def _stall(self, stall: Stall) -> None:
        process = self._process(stall.member)
        if process is not None:
            self._counters.count("stall")
            process.application.stalled = True
            self._at(stall.until_us, partial(self._resume, process))

    def _resume(self, process: SimulatedProcess) -> None:
        process.application.stalled = False
        process.wake()

    def _cut(self, cut: NetworkCut) -> None:
        self._at(cut.until_us, partial(self.heal, self.cut(cut)))

    def cut(self, cut: NetworkCut) -> frozenset[tuple[str, str]]:
        """Cut the network now, until the directions that are returned are healed."""
        self._counters.count(f"cut: {cut.kind}")
        names = tuple(dict.fromkeys(map(self._name, cut.members)))
        blocked = cut.blocked(names, tuple(self._hosts))
        self._network.block(blocked)
        return blocked

    def heal(self, blocked: frozenset[tuple[str, str]]) -> None:
        """Frames pass again in the directions of one cut."""
        self._network.unblock(blocked)
        if not self._scenario.faults.reconnects:
            return
        for one, other in sorted({(min(pair), max(pair)) for pair in blocked}):
            for name, peer in ((one, other), (other, one)):
                process = self._hosts[name].process
                if process is not None and self._hosts[peer].process is not None:
                    process.member.reachable(peer, self._event_queue.now)
                    process.wake()

    def _arm(self, crash: Crash) -> None:
        self._armed[crash] = {}

    def crash(self, crash: Crash) -> bool:
        """A process crashes now, unless the group could not continue without it; return whether it did."""
        process = self._process(crash.member)
        if process is None or not self._may_crash(process.member, crash):
            return False
        self._end(process.member, crash)
        return True

    def _may_crash(self, member: Member, crash: Crash) -> bool:
        founded = any(each.view is not None for each in self._members())
        if crash.back_after_us is None and (not founded or len(self._staying(member)) < 2):
            return False
        return self._is_dispensable(member)

    def _staying(self, without: Member) -> list[Member]:
        """The other members that stay: they do not leave, and nobody is about to evict them."""
        members = self._members()
        evicted = {process for each in members for process in each.membership.trigger.evictions}
        return [each for each in members if each is not without and stays(each) and each.me not in evicted]

    def _is_dispensable(self, member: Member) -> bool:
        """Whether the group can continue without this member, and still has its state."""
        membership = self._scenario.membership
        if membership.primary and not self._quorum_guard.can_crash(member, self._members()):
            return False
        if member.view is not None and not any(each.view for each in self._staying(member)):
            return False
        if not membership.state or not has_state(member):
            return True
        return any(has_state(each) for each in self._staying(member))

    def _end(self, member: Member, crash: Crash) -> None:
        self._counters.count("crash")
        if any(each.membership.changing for each in self._members()):
            self._counters.count("crash during a view change")
        self.crashed.add(str(member.me))
        back_after_us = crash.back_after_us
        if back_after_us is not None:
            self._counters.count("restart")
        self._hosts[member.me.name].crash(None if back_after_us is None else back_after_us * MICROSECOND)

    def _leave(self, leave: Leave) -> None:
        process = self._process(leave.member)
        if process is None or process.member.view is None or len(self._staying(process.member)) < 2:
            return
        if not self._is_dispensable(process.member):
            return
        back_after_us = leave.back_after_us
        host = self._hosts[process.member.me.name]
        host.leave(None if back_after_us is None else back_after_us * MICROSECOND)

    def _change_order(self, change: PlannedOrderChange) -> None:
        process = self._process(change.member)
        if process is not None and process.member.view is not None:
            ordering = Ordering(change.order or self._scenario.order, change.prioritised, change.starvation)
            process.member.change_order(ordering, self._event_queue.now)
            process.wake()


def _is_view_change(frame: Frame) -> bool:
    """Whether a frame carries a packet of a view change, by its tag at the start of the body."""
    body = frame.body
    return frame.channel == CHANNEL and body[2 : 2 + (body[1] & 0x1F)] in _VIEW_CHANGE_TAGS
