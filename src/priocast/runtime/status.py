"""The status of a member and its group, for people who ask why something seems to hang."""

import time
from collections import Counter
from typing import Literal

import msgspec

from priocast.core.inspection import ProtocolInspection
from priocast.core.view import View
from priocast.member import Member
from priocast.membership.epoch import Epoch
from priocast.runtime.driver import Driver

GroupState = Literal["joining", "active", "changing_view", "suspended", "state_transfer"]
"""What a member of a group is doing.

- `joining`: it is not in a view yet, or was evicted and rejoins when its application asks for more.
- `active`: it is in a view, and messages are ordered.
- `changing_view`: a new view is being agreed on.
- `suspended`: no quorum can be reached, so nothing is ordered.
- `state_transfer`: it receives the application's state from another member.
"""

SUSPICION_MAX = 1000.0


class PeerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Another `member`, as seen from here.

    From a `suspicion` of 1 on it counts as failed. The highest value, `SUSPICION_MAX`, also represents a
    member whose incarnation was never heard. `retransmissions` and `unacknowledged_bytes` are those of the
    link to it; `congested` says that the link accepts no more now. `unacknowledged_ms` is for how long it has
    acknowledged nothing although it is heard: 0 until half of `slow_ms`, after all of which it is evicted.
    """

    member: str
    suspicion: float
    retransmissions: int
    unacknowledged_bytes: int
    congested: bool
    unacknowledged_ms: float


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How many `messages` of one `priority` wait at this member for a position.

    `longest_wait_ms` is how long the oldest has waited.
    """

    priority: int
    messages: int
    longest_wait_ms: float


class StallStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Stalls of this member: the application waited although messages were queued.

    `reason` says why it waits now, for `lasting_ms` so far, if it does. `count`, `total_ms` and `longest_ms`
    are those of this incarnation, over all its views. Only orders that reorder queued messages ever stall.
    """

    reason: str
    lasting_ms: float
    count: int
    total_ms: float
    longest_ms: float


class SlotStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the order `adaptive` shares its slots now: its distribution, and the weights by member."""

    distribution: str
    weights: dict[str, int]


class QualityStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What this incarnation did with one kind of `quality` of service.

    `sent` counts its messages: `accepted` by as many recipients as the quality asks for, `rejected`, or still
    transmitted. `delivered` counts the units that its application took, `late` those of them that were
    outside of their window, and `retransmissions` the frames with which it repeated messages, its own or
    those of others.
    """

    quality: str
    sent: int
    accepted: int
    rejected: int
    delivered: int
    late: int
    retransmissions: int


class InaccessibilityStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Silence of the whole network, which was not counted against members because the network may be silent.

    `periods` counts how often, `exceeded` how often for longer than its bound; `total_ms` was not counted.
    """

    periods: int
    exceeded: int
    total_ms: float


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One member's status of its group at one moment.

    - `group`, `member`: the name of the group; the name and incarnation of this member.
    - `state`: see `GroupState`.
    - `view`: the current members; None while joining.
    - `order`, `prioritised`, `starvation`: how messages are ordered.
    - `advice`: with the order `auto`, what the coordinator concludes from the load.
    - `policy`, `delivery`: the options of the group.
    - `position`: the position of the next message that the application consumes.
    - `backlog`: how many messages wait at this member for a position; `queues`: the same by priority.
    - `unconsumed`: how many messages have a position and were not consumed here.
    - `bottleneck`: the member whose application the order waits for, if any (known at the orderer);
      `bottleneck_ms`: for how long so far.
    - `slots`: with the order `adaptive`, which member has how large a share of the slots.
    - `stalls`: how often and how long the application waited although messages were queued.
    - `unstable_bytes`: packets kept here because not every member has acknowledged them.
    - `peers`: the other members of the view.
    - `last_change_reason`, `last_change_seconds_ago`: why and when the view changed; `last_change_took_ms`:
      how long nothing could be ordered before.
    - `views`, `incarnations`: how many views and incarnations this process has had in the group.
    - `state_transfer_percent`: how much of the application's state was received; None if none is transferred.
    - `qualities`: messages with a quality of service, by the kind of quality; empty if there were none.
    - `transmitted`: how many messages of this member with a quality are transmitted now; `held`: how many
      units of others its application has not taken.
    - `clock_precision_ms`: how far this member's clock and the coordinator's can be apart, for `delta`; None
      if it is not synchronised.
    - `inaccessibility`: how often and how long the whole network was silent.
    - `rejections`: what this member rejected, by reason; `network_rejections`: what the node's network
      rejected, for all its groups together.
    - `storage_problems`: what cannot be written to the state directory or the trace now, and why; the member
      goes on. `trace_rows_lost`: how many rows the trace lacks because of that.
    """

    group: str
    member: str
    state: GroupState
    view: View | None
    order: str
    prioritised: bool
    starvation: str
    advice: str
    policy: str
    delivery: str
    position: int
    backlog: int
    queues: list[QueueStatus]
    unconsumed: int
    bottleneck: str
    bottleneck_ms: float
    slots: SlotStatus | None
    stalls: StallStatus
    unstable_bytes: int
    peers: list[PeerStatus]
    last_change_reason: str
    last_change_seconds_ago: float
    last_change_took_ms: float
    views: int
    incarnations: int
    state_transfer_percent: float | None
    qualities: list[QualityStatus]
    transmitted: int
    held: int
    clock_precision_ms: float | None
    inaccessibility: InaccessibilityStatus
    rejections: dict[str, int]
    network_rejections: dict[str, int]
    storage_problems: list[str]
    trace_rows_lost: int


def status_of(driver: Driver) -> Status:
    """The status of a driver's member and its group."""
    member, configuration = driver.member, driver.configuration
    membership, epoch = member.membership, member.epoch
    history = membership.view_history
    now = time.monotonic_ns()
    inspection = epoch.protocol.inspect(now) if epoch else None
    bottleneck, bottleneck_ns = member.progress.slow_member.waited(now) if epoch else (None, 0)
    return Status(
        group=configuration.group,
        member=str(member.me),
        state=_state(member),
        view=member.view,
        order=membership.ordering.order,
        prioritised=membership.ordering.prioritised,
        starvation=membership.ordering.starvation,
        advice=driver.advice,
        policy=configuration.membership.policy,
        delivery=configuration.membership.delivery,
        position=member.stream.position,
        backlog=member.backlog,
        queues=[
            QueueStatus(priority=priority, messages=count, longest_wait_ms=wait_ns / 1e6)
            for priority, count, wait_ns in (inspection.queues if inspection else ())
        ],
        unconsumed=inspection.unconsumed if inspection else 0,
        bottleneck=bottleneck.name if bottleneck else "",
        bottleneck_ms=bottleneck_ns / 1e6,
        slots=_slots(epoch, inspection),
        stalls=_stalls(epoch, now),
        unstable_bytes=epoch.stability.unstable_bytes if epoch else 0,
        peers=_peers(member, now),
        last_change_reason=str(membership.decided.proposal.reason) if membership.decided else "",
        last_change_seconds_ago=(now - membership.installed_at) / 1e9,
        last_change_took_ms=history.recent[-1].took_ns / 1e6 if history.recent else 0.0,
        views=history.count,
        incarnations=driver.factory.made,
        state_transfer_percent=100 * member.state.restoration.progress if member.state.restoration else None,
        qualities=_qualities(member),
        transmitted=member.services.in_flight,
        held=member.services.held,
        clock_precision_ms=_milliseconds(member.services.precision_ns(now)),
        inaccessibility=_inaccessibility(member),
        rejections=dict(Counter(member.rejections) + Counter(member.services.rejections)),
        network_rejections=dict(driver.network.rejections),
        storage_problems=driver.storage.problems,
        trace_rows_lost=driver.storage.rows_lost,
    )


def _state(member: Member) -> GroupState:
    if member.view is None:
        return "joining"
    if member.membership.trigger.suspended:
        return "suspended"
    if member.membership.changing:
        return "changing_view"
    return "state_transfer" if member.state.restoration else "active"


def _slots(epoch: Epoch | None, inspection: ProtocolInspection | None) -> SlotStatus | None:
    if epoch is None or inspection is None or inspection.slots is None:
        return None
    names = [member.name for member in epoch.protocol.view.members]
    distribution, weights = inspection.slots
    return SlotStatus(distribution=distribution, weights=dict(zip(names, weights, strict=True)))


def _stalls(epoch: Epoch | None, now: int) -> StallStatus:
    if epoch is None:
        return StallStatus(reason="", lasting_ms=0, count=0, total_ms=0, longest_ms=0)
    stalls, inspection = epoch.stalls(now), epoch.protocol.inspect(now)
    return StallStatus(
        reason=inspection.stall_reason,
        lasting_ms=inspection.stalled_ns / 1e6,
        count=stalls.count,
        total_ms=stalls.total_ns / 1e6,
        longest_ms=stalls.longest_ns / 1e6,
    )


def _qualities(member: Member) -> list[QualityStatus]:
    return [
        QualityStatus(quality=kind, **msgspec.structs.asdict(counts))
        for kind, counts in member.services.counts.items()
    ]


def _inaccessibility(member: Member) -> InaccessibilityStatus:
    control = member.membership.neighbours.detector.inaccessibility
    return InaccessibilityStatus(
        periods=control.periods, exceeded=control.exceeded, total_ms=control.total_ns / 1e6
    )


def _milliseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def _peers(member: Member, now: int) -> list[PeerStatus]:
    if member.epoch is None:
        return []
    late = member.progress.unacknowledged.late()
    return [
        PeerStatus(
            member=str(peer),
            suspicion=round(min(member.membership.neighbours.suspicion(peer, now), SUSPICION_MAX), 3),
            retransmissions=link.retransmissions,
            unacknowledged_bytes=link.unacknowledged_bytes,
            congested=link.congested,
            unacknowledged_ms=late.get(peer, 0) / 1e6,
        )
        for peer, link in member.epoch.links.items()
    ]
