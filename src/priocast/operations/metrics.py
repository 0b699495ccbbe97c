"""A node's metrics for Prometheus, read from the status of its groups at the moment of the scrape.

Nothing is counted here: the members count, and a collector translates. Counters of a link begin anew with
each view, those of a member with each of its lives; Prometheus takes both for a restart and goes on.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from priocast.operations.node_status import NodeStatus, node_status
from priocast.runtime.node import Node
from priocast.runtime.status import GroupState, PeerStatus, QueueStatus, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABELS = ["group", "member"]

Samples = Iterable[tuple[list[str], float]]


class NodeCollector(Collector):
    """Translates a node's status into metrics."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        status = node_status(self._node)
        yield from _of_groups(status.groups)
        yield from _of_states(status.groups)
        yield from _of_changes(status.groups)
        yield from _of_queues(status.groups)
        yield from _of_peers(status.groups)
        yield from _of_rejections(status)


def exposition(node: Node) -> bytes:
    """The metrics of a node, as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    return generate_latest(registry)


_GAUGES: dict[str, tuple[str, Callable[[Status], float | None]]] = {
    "view_number": (
        "The number of the view that the member is in.",
        lambda s: s.view.number if s.view else None,
    ),
    "view_members": ("How many members the view has.", lambda s: len(s.view.members) if s.view else None),
    "backlog_messages": ("Messages that wait here for a place in the order.", lambda s: s.backlog),
    "unconsumed_messages": ("Messages that wait for the application.", lambda s: s.unconsumed),
    "unstable_bytes": ("Packets that are kept until every member has them.", lambda s: s.unstable_bytes),
    "position": ("The place in the order of the next message to deliver.", lambda s: s.position),
    "state_transfer_percent": (
        "How much of the group's state has been taken over, while it is.",
        lambda s: s.state_transfer_percent,
    ),
    "stall_seconds": (
        "How long the application has waited for a queued message, now, until more urgent ones have places.",
        lambda s: s.stalls.lasting_ms / 1000,
    ),
    "longest_stall_seconds": (
        "The longest time that the application waited so.",
        lambda s: s.stalls.longest_ms / 1000,
    ),
}
_COUNTERS: dict[str, tuple[str, Callable[[Status], float]]] = {
    "views": ("Views that were installed in this life.", lambda s: s.views),
    "incarnations": (
        "Lives of the member: one more each time it was put out and came back.",
        lambda s: s.incarnations,
    ),
    "stalls": (
        "Times that the application waited for a queued message until more urgent ones had places.",
        lambda s: s.stalls.count,
    ),
    "stalled_seconds": ("How long it waited so, in all.", lambda s: s.stalls.total_ms / 1000),
}


def _of_groups(groups: list[Status]) -> Iterator[Metric]:
    for name, (text, read) in _GAUGES.items():
        values = [(_key(status), read(status)) for status in groups]
        yield _gauge(name, text, [], ((key, value) for key, value in values if value is not None))
    for name, (text, count) in _COUNTERS.items():
        yield _counter(name, text, [], ((_key(status), count(status)) for status in groups))


def _of_states(groups: list[Status]) -> Iterator[Metric]:
    yield _gauge(
        "state",
        "1 for the state that the member is in, 0 for the others.",
        ["state"],
        (
            ([*_key(status), state], float(state == status.state))
            for status in groups
            for state in get_args(GroupState)
        ),
    )
    yield _gauge(
        "bottleneck",
        "1 for the member whose application the order waits for, as the member that orders sees it.",
        ["peer"],
        (
            ([*_key(status), member.name], float(member.name == status.bottleneck))
            for status in groups
            for member in (status.view.members if status.view else ())
        ),
    )


def _of_changes(groups: list[Status]) -> Iterator[Metric]:
    changed = [status for status in groups if status.view]
    ages = [(_key(status), status.last_change_seconds_ago) for status in changed]
    now = time.time()
    yield _gauge("last_view_change_age_seconds", "Time since the view began.", [], ages)
    yield _gauge(
        "last_view_change_timestamp_seconds",
        "When the view began.",
        [],
        ((key, now - age) for key, age in ages),
    )


def _of_queues(groups: list[Status]) -> Iterator[Metric]:
    def samples(read: Callable[[QueueStatus], float]) -> Samples:
        for status in groups:
            for queue in status.queues:
                yield [*_key(status), str(queue.priority)], read(queue)

    yield _gauge(
        "queue_messages",
        "Messages that wait here for a place in the order, by priority.",
        ["priority"],
        samples(lambda queue: queue.messages),
    )
    yield _gauge(
        "queue_wait_seconds",
        "How long the oldest of them has waited.",
        ["priority"],
        samples(lambda queue: queue.longest_wait_ms / 1000),
    )


def _of_peers(groups: list[Status]) -> Iterator[Metric]:
    def samples(read: Callable[[PeerStatus], float]) -> Samples:
        for status in groups:
            for peer in status.peers:
                yield [*_key(status), _name(peer.member)], read(peer)

    yield _counter(
        "retransmissions",
        "Frames that were sent again to a peer, in this view.",
        ["peer"],
        samples(lambda peer: peer.retransmissions),
    )
    yield _gauge(
        "suspicion",
        "How suspicious the silence of a peer is; from 1 on it counts as failed.",
        ["peer"],
        samples(lambda peer: peer.suspicion),
    )
    yield _gauge(
        "unacknowledged_bytes",
        "What a peer was sent and has not acknowledged.",
        ["peer"],
        samples(lambda peer: peer.unacknowledged_bytes),
    )
    yield _gauge(
        "link_congested",
        "1 if the link to a peer takes no more for now.",
        ["peer"],
        samples(lambda peer: peer.congested),
    )


def _of_rejections(status: NodeStatus) -> Iterator[Metric]:
    yield _counter(
        "rejections",
        "What the member did not accept, by reason.",
        ["reason"],
        (
            ([*_key(group), reason], count)
            for group in status.groups
            for reason, count in group.rejections.items()
        ),
    )
    family = CounterMetricFamily(
        "priocast_network_rejections",
        "What the node's network turned away, by reason.",
        labels=["node", "reason"],
    )
    for reason, count in (status.groups[0].network_rejections if status.groups else {}).items():
        family.add_metric([status.node, reason], count)
    yield family


def _gauge(name: str, text: str, labels: list[str], samples: Samples) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"priocast_{name}", text, labels=_LABELS + labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counter(name: str, text: str, labels: list[str], samples: Samples) -> CounterMetricFamily:
    family = CounterMetricFamily(f"priocast_{name}", text, labels=_LABELS + labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _key(status: Status) -> list[str]:
    return [status.group, _name(status.member)]


def _name(process: str) -> str:
    """A member without its incarnation: a restart does not make new series."""
    return process.rpartition("#")[0]
