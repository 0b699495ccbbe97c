"""What the live page of a node shows, gathered while somebody watches: an update has all its groups.

Counters are totals, and the page computes rates and percentiles from the differences between updates, over
as much time as it shows. Of the deliveries since the last update there are at most `SAMPLES_MAX`: the most
urgent ones as far as there is room, and a selection of the others that is spread over the time.
"""

import time
from collections.abc import Sequence

import msgspec

from priocast.membership.delivery_sample import UNKNOWN_WAIT, DeliverySample
from priocast.membership.message_meter import MessageMeter
from priocast.runtime.admin.node_status import node_status
from priocast.runtime.driver import Driver
from priocast.runtime.node import Node
from priocast.runtime.status import Status

SAMPLES_MAX = 120


class PriorityCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one `priority` at this member so far.

    `times` counts the delivery times of own messages in the buckets of `TimeHistogram`, without the empty
    ones: pairs of a bucket's index and its count.
    """

    priority: int
    broadcast: int
    broadcast_bytes: int
    delivered: int
    delivered_bytes: int
    times: list[tuple[int, int]]


class ShownDelivery(msgspec.Struct, frozen=True, array_like=True):
    """A delivery, as `DeliverySample` has it, and how long before the update it happened.

    `waited_ms` is UNKNOWN_WAIT for messages of others.
    """

    ago_ms: float
    position: int
    count: int
    priority: int
    sender: str
    waited_ms: float
    overtaken: int


class ShownView(msgspec.Struct, frozen=True, kw_only=True):
    """A view that was installed."""

    number: int
    members: list[str]
    reason: str
    seconds_ago: float
    took_ms: float


class LiveGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group of the node."""

    status: Status
    priorities: list[PriorityCounts]
    deliveries: list[ShownDelivery]
    views: list[ShownView]


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node at one moment; `clock_ms` is its own clock. `problem` says why there is no more."""

    address: str
    node: str = ""
    version: str = ""
    clock_ms: float = 0.0
    problem: str = ""
    groups: list[LiveGroup] = []


class PageUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that have something new, each encoded."""

    nodes: list[msgspec.Raw]


class NodeUpdates:
    """Gathers updates of one node: its drivers keep the last deliveries from `start` to `stop`."""

    def __init__(self, node: Node, address: str) -> None:
        self._node = node
        self._address = address
        self._watched: dict[str, Driver] = {}

    def start(self) -> None:
        self._watch_all()

    def stop(self) -> None:
        for driver in self._watched.values():
            driver.factory.meter.watch(False)
        self._watched = {}

    def gather(self) -> bytes:
        """The update, in JSON."""
        self._watch_all()
        status, now = node_status(self._node), time.monotonic_ns()
        live = LiveNode(
            address=self._address,
            node=status.node,
            version=status.version,
            clock_ms=now / 1e6,
            groups=[_group_of(each, self._node.groups[each.group], now) for each in status.groups],
        )
        return msgspec.json.encode(PageUpdate(nodes=[msgspec.Raw(msgspec.json.encode(live))]))

    def _watch_all(self) -> None:
        """Watch the groups that this node is in now."""
        for name, driver in self._node.groups.items():
            if self._watched.get(name) is not driver:
                driver.factory.meter.watch(True)
        self._watched = dict(self._node.groups)


def _group_of(status: Status, driver: Driver, now: int) -> LiveGroup:
    meter = driver.factory.meter
    samples: list[DeliverySample] = []
    if meter.recent is not None:
        samples = list(meter.recent)
        meter.recent.clear()
    return LiveGroup(
        status=status,
        priorities=_figures(meter),
        deliveries=[
            ShownDelivery(
                round((now - each.at) / 1e6, 1),
                each.position,
                each.count,
                each.priority,
                each.sender,
                UNKNOWN_WAIT if each.waited_ns == UNKNOWN_WAIT else round(each.waited_ns / 1e6, 2),
                each.overtaken,
            )
            for each in selected(samples)
        ],
        views=[
            ShownView(
                number=change.view.number,
                members=[member.name for member in change.view.members],
                reason=str(change.reason),
                seconds_ago=round((now - change.at) / 1e9, 1),
                took_ms=round(change.took_ns / 1e6, 1),
            )
            for change in driver.member.membership.view_history.recent
        ],
    )


def _figures(meter: MessageMeter) -> list[PriorityCounts]:
    figures = []
    for priority in sorted(meter.broadcast.keys() | meter.delivered.keys(), reverse=True):
        broadcast, delivered = meter.broadcast.get(priority), meter.delivered.get(priority)
        times = meter.delivery_times.get(priority)
        figures.append(
            PriorityCounts(
                priority=priority,
                broadcast=broadcast.messages if broadcast else 0,
                broadcast_bytes=broadcast.bytes if broadcast else 0,
                delivered=delivered.messages if delivered else 0,
                delivered_bytes=delivered.bytes if delivered else 0,
                times=[(index, count) for index, count in enumerate(times.counts) if count] if times else [],
            )
        )
    return figures


def selected(samples: Sequence[DeliverySample]) -> list[DeliverySample]:
    """At most `SAMPLES_MAX` of the deliveries, in their order: the most urgent, and every n-th other one."""
    if len(samples) <= SAMPLES_MAX:
        return list(samples)
    top = max(sample.priority for sample in samples)
    urgent = [sample for sample in samples if sample.priority == top][-SAMPLES_MAX // 2 :]
    others = [sample for sample in samples if sample.priority != top]
    room = SAMPLES_MAX - len(urgent)
    spread = others[:: -(-len(others) // room)] if others else []
    return sorted([*urgent, *spread], key=lambda sample: sample.position)
