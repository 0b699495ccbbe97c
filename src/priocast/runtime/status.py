"""How a member and its group are doing: what a person asks when something seems to hang."""

import time
from typing import Literal

import msgspec

from priocast.core.view import View
from priocast.member import Member
from priocast.membership.epoch import Epoch
from priocast.runtime.driver import Driver

GroupState = Literal["joining", "active", "changing_view", "suspended", "state_transfer"]
SUSPICION_MAX = 1000.0


class PeerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Another member, as seen from here.

    From a `suspicion` of 1 on it counts as failed; `SUSPICION_MAX` stands for all above, and for a member of
    which this life was never heard.
    """

    member: str
    suspicion: float
    retransmissions: int
    unacknowledged_bytes: int
    congested: bool


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What waits at this member for a place in the order, of one priority."""

    priority: int
    messages: int
    longest_wait_ms: float


class StallStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the application had to wait for messages that are queued here, until more urgent ones have places.

    `reason` says what waits now, if anything does, for `lasting_ms` so far. The counts are those of this life
    of the member, over all its views; only orders that put queued messages in another order ever stall.
    """

    reason: str
    lasting_ms: float
    count: int
    total_ms: float
    longest_ms: float


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """One member's view of its group at one moment.

    `state` is `joining`, `active`, `changing_view`, `suspended` (no quorum can be reached), or
    `state_transfer`. `blocked_on` is the member for whose application the order
    waits, for `blocked_ms` so far; the member that orders knows. `last_change_took_ms` is how long nothing
    could be ordered before the view. `rejections` counts what this member did not accept,
    `network_rejections` what the node's network rejected, for all its groups together. `advice` is what
    the coordinator of a group with the order `auto` makes of its load.
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
    blocked_on: str
    blocked_ms: float
    stalls: StallStatus
    unstable_bytes: int
    peers: list[PeerStatus]
    last_change_reason: str
    last_change_seconds_ago: float
    last_change_took_ms: float
    views: int
    incarnations: int
    state_transfer_percent: float | None
    rejections: dict[str, int]
    network_rejections: dict[str, int]


def status_of(driver: Driver) -> Status:
    """Ask a member how it is doing."""
    member, configuration = driver.member, driver.configuration
    membership, epoch = member.membership, member.epoch
    now = time.monotonic_ns()
    blocked_on, blocked_ns = member.slow_member.waited(now) if epoch else (None, 0)
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
            for priority, count, wait_ns in (epoch.protocol.waiting(now) if epoch else ())
        ],
        unconsumed=epoch.protocol.unconsumed_count if epoch else 0,
        blocked_on=blocked_on.name if blocked_on else "",
        blocked_ms=blocked_ns / 1e6,
        stalls=_stalls(epoch, now),
        unstable_bytes=epoch.stability.unstable_bytes if epoch else 0,
        peers=_peers(member, now),
        last_change_reason=membership.decided.proposal.reason if membership.decided else "",
        last_change_seconds_ago=(now - membership.installed_at) / 1e9,
        last_change_took_ms=membership.installations[-1].took_ns / 1e6 if membership.installations else 0.0,
        views=membership.views,
        incarnations=driver.incarnations,
        state_transfer_percent=100 * member.state.restoration.progress if member.state.restoration else None,
        rejections=dict(member.rejections),
        network_rejections=driver.network_rejections,
    )


def _state(member: Member) -> GroupState:
    if member.view is None:
        return "joining"
    if member.membership.suspended:
        return "suspended"
    if member.membership.changing:
        return "changing_view"
    return "state_transfer" if member.state.restoration else "active"


def _stalls(epoch: Epoch | None, now: int) -> StallStatus:
    if epoch is None:
        return StallStatus(reason="", lasting_ms=0, count=0, total_ms=0, longest_ms=0)
    stalls, protocol = epoch.stalls(now), epoch.protocol
    return StallStatus(
        reason=protocol.stall_reason(),
        lasting_ms=protocol.stalls.lasting(now) / 1e6,
        count=stalls.count,
        total_ms=stalls.total_ns / 1e6,
        longest_ms=stalls.longest_ns / 1e6,
    )


def _peers(member: Member, now: int) -> list[PeerStatus]:
    if member.epoch is None:
        return []
    return [
        PeerStatus(
            member=str(peer),
            suspicion=round(min(member.membership.neighbours.suspicion(peer, now), SUSPICION_MAX), 3),
            retransmissions=link.retransmissions,
            unacknowledged_bytes=link.unacknowledged_bytes,
            congested=link.congested,
        )
        for peer, link in member.epoch.links.items()
    ]
