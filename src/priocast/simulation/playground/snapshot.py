"""What a page shows of a playground at one time, as values that become JSON."""

import msgspec

from priocast.core.inspection import QueueInspection
from priocast.core.violation import Violation
from priocast.simulation.checkers.checker import Checker
from priocast.simulation.host import SimulatedHost
from priocast.simulation.playground.messages import FollowedMessage
from priocast.simulation.playground.playground import Playground
from priocast.simulation.process import SimulatedProcess

_SHOWN_MAX = 40


class ShownMessage(msgspec.Struct, frozen=True):
    """A message by its name, with its priority and the number of messages that it overtook."""

    name: str
    priority: int
    overtook: int


class FirstDelivery(msgspec.Struct, frozen=True):
    """The first delivery of a message, with its times in microseconds."""

    name: str
    priority: int
    overtook: int
    broadcast_us: int
    delivered_us: int


class ShownMember(msgspec.Struct, frozen=True, kw_only=True):
    """A process: what it is doing, its view, its queues, and what its application received.

    `queues` are the messages that wait here for a position, as pairs of priority and count, and `bottleneck`
    is the member whose application they wait for. `undelivered` are its own messages that it has not received
    itself, the oldest first, `delivered` the last ones that it has.
    """

    name: str
    state: str
    incarnation: int
    paused: bool
    cut: bool
    view: int = 0
    view_members: tuple[str, ...] = ()
    coordinator: bool = False
    queues: tuple[tuple[int, int], ...] = ()
    backlog: int = 0
    unconsumed: int = 0
    bottleneck: str = ""
    stall_reason: str = ""
    undelivered: tuple[ShownMessage, ...] = ()
    undelivered_count: int = 0
    delivered: tuple[ShownMessage, ...] = ()
    delivered_count: int = 0


class PlaygroundSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A playground at one time. The digest is that of the finished run."""

    link: str
    command: str
    order: str
    prioritised: bool
    policy: str
    time_ms: int
    members: tuple[ShownMember, ...]
    deliveries: tuple[FirstDelivery, ...]
    overtaking: FirstDelivery | None
    events: tuple[tuple[int, str], ...]
    guarantees: tuple[str, ...]
    violations: tuple[str, ...]
    frames: int
    over: bool
    digest: str


def take_snapshot(playground: Playground) -> PlaygroundSnapshot:
    """The playground now; deliveries are those since the last snapshot."""
    scenario, messages, link = playground.scenario, playground.messages, playground.link
    simulator, result = playground.simulator, playground.result
    return PlaygroundSnapshot(
        link=str(link),
        command=link.command,
        order=scenario.order,
        prioritised=scenario.ordering.prioritised,
        policy=scenario.membership.policy,
        time_ms=playground.time_ms,
        members=tuple(_shown_member(playground, host) for host in simulator.hosts.values()),
        deliveries=tuple(map(_shown_delivery, messages.take_news())),
        overtaking=_shown_delivery(messages.overtaking) if messages.overtaking else None,
        events=tuple((time_ns // 1_000_000, text) for time_ns, text in messages.events),
        guarantees=tuple(sorted(_guarantees(simulator.checkers))),
        violations=tuple(map(_sentence, simulator.observer.violations)),
        frames=simulator.counters.frames,
        over=result is not None,
        digest=result.digest if result is not None else "",
    )


def _guarantees(checkers: list[Checker]) -> set[str]:
    return {checker.GUARANTEE for checker in checkers if hasattr(checker, "GUARANTEE")}


def _sentence(violation: Violation) -> str:
    return f"{violation.guarantee}: {violation.summary}"


def _shown_message(message: FollowedMessage) -> ShownMessage:
    return ShownMessage(message.name, message.priority, message.overtook)


def _shown_delivery(message: FollowedMessage) -> FirstDelivery:
    return FirstDelivery(
        message.name,
        message.priority,
        message.overtook,
        message.broadcast_ns // 1_000,
        message.delivered_ns // 1_000,
    )


def _shown_member(playground: Playground, host: SimulatedHost) -> ShownMember:
    process, messages = host.process, playground.messages
    own = messages.undelivered[host.name]
    shown = ShownMember(
        name=host.name,
        state=_state(host, process),
        incarnation=host.incarnation,
        paused=process is not None and process.paused,
        cut=any(host.name in names for names, _ in playground.cuts),
        undelivered=tuple(_shown_message(each) for each in list(own.values())[:_SHOWN_MAX]),
        undelivered_count=len(own),
        delivered=tuple(map(_shown_message, messages.delivered[host.name])),
        delivered_count=messages.delivered_count[host.name],
    )
    return shown if process is None else _with_queues(shown, process, playground.simulator.event_queue.now)


def _with_queues(shown: ShownMember, process: SimulatedProcess, now: int) -> ShownMember:
    member, view = process.member, process.member.view
    if view is None or member.epoch is None:
        return shown
    inspection = member.epoch.protocol.inspect(now)
    return msgspec.structs.replace(
        shown,
        view=view.number,
        view_members=tuple(each.name for each in view.members),
        coordinator=view.coordinator == member.me,
        queues=tuple(map(_priority_and_count, inspection.queues)),
        backlog=inspection.backlog,
        unconsumed=inspection.unconsumed,
        bottleneck=inspection.bottleneck.name if inspection.bottleneck else "",
        stall_reason=inspection.stall_reason,
    )


def _priority_and_count(queue: QueueInspection) -> tuple[int, int]:
    return queue.priority, queue.messages


def _state(host: SimulatedHost, process: SimulatedProcess | None) -> str:
    """What a process is doing, in two words or less."""
    if process is None:
        return "starting" if host.starting else "down"
    if process.paused:
        return "paused"
    if process.member.view is None:
        return "joining"
    if process.member.membership.trigger.suspended:
        return "no quorum"
    if process.member.membership.changing:
        return "view change"
    return "state transfer" if process.member.stream.awaits_state else "active"
