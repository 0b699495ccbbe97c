"""Metrics of a node for Prometheus, derived from the status of its groups at the moment of the scrape.

Nothing is counted here: the members count. The counters of a link restart with each view, those of a member
with each incarnation; Prometheus handles both as counter resets.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from priocast.runtime.admin.message_metrics import message_metrics
from priocast.runtime.admin.node_status import NodeStatus, node_status
from priocast.runtime.node import Node
from priocast.runtime.status import GroupState, PeerStatus, QualityStatus, QueueStatus, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABELS = ["group", "member"]

Samples = Iterable[tuple[list[str], float]]


class NodeCollector(Collector):
    """Derives metrics from the status of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        status = node_status(self._node)
        yield from _group_metrics(status.groups)
        yield from _state_metrics(status.groups)
        yield from _view_change_metrics(status.groups)
        yield from _queue_metrics(status.groups)
        yield from _peer_metrics(status.groups)
        yield from _quality_metrics(status.groups)
        yield from _rejection_metrics(status)
        yield from message_metrics(self._node.groups.values())


def exposition(node: Node) -> bytes:
    """The metrics of a node in the Prometheus text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    return generate_latest(registry)


_GAUGES: dict[str, tuple[str, Callable[[Status], float | None]]] = {
    "view_number": (
        "Number of the member's view.",
        lambda s: s.view.number if s.view else None,
    ),
    "view_members": ("Number of members in the view.", lambda s: len(s.view.members) if s.view else None),
    "backlog_messages": ("Messages at this member that are not ordered yet.", lambda s: s.backlog),
    "unconsumed_messages": (
        "Ordered messages that the application has not consumed.",
        lambda s: s.unconsumed,
    ),
    "unstable_bytes": ("Size of the packets that are not stable yet.", lambda s: s.unstable_bytes),
    "position": ("Position of the next message to deliver.", lambda s: s.position),
    "state_transfer_percent": (
        "Progress of the current state transfer; absent if there is none.",
        lambda s: s.state_transfer_percent,
    ),
    "stall_seconds": (
        "Duration of the current stall: queued messages wait until more urgent ones have positions.",
        lambda s: s.stalls.lasting_ms / 1000,
    ),
    "longest_stall_seconds": (
        "Duration of the longest stall.",
        lambda s: s.stalls.longest_ms / 1000,
    ),
    "transmitted_messages": (
        "Messages of this member with a quality of service that are being transmitted.",
        lambda s: s.transmitted,
    ),
    "held_units": (
        "Units of messages with a quality of service that the application has not taken.",
        lambda s: s.held,
    ),
    "clock_precision_seconds": (
        "How far this member's clock and the coordinator's can be apart; absent if not synchronised.",
        lambda s: None if s.clock_precision_ms is None else s.clock_precision_ms / 1000,
    ),
    "storage_problems": (
        "Files that cannot be written, or only in part; the member continues without them.",
        lambda s: len(s.storage_problems),
    ),
}
_COUNTERS: dict[str, tuple[str, Callable[[Status], float]]] = {
    "views": ("Views installed in this incarnation.", lambda s: s.views),
    "incarnations": (
        "Incarnations of the member in this process: 1, plus one for each eviction it rejoined after.",
        lambda s: s.incarnations,
    ),
    "stalls": (
        "Stalls: the application waited although messages were queued.",
        lambda s: s.stalls.count,
    ),
    "stalled_seconds": ("Total duration of all stalls.", lambda s: s.stalls.total_ms / 1000),
    "inaccessible_periods": (
        "Periods in which the whole network was silent, which did not count against members.",
        lambda s: s.inaccessibility.periods,
    ),
    "inaccessible_periods_exceeded": (
        "Periods in which the network was silent for longer than its declared bound.",
        lambda s: s.inaccessibility.exceeded,
    ),
    "inaccessible_seconds": (
        "Total duration of silence that did not count against members.",
        lambda s: s.inaccessibility.total_ms / 1000,
    ),
    "trace_rows_lost": (
        "Rows that the trace lacks because the disk was full for too long.",
        lambda s: s.trace_rows_lost,
    ),
}

_QUALITY_COUNTERS: dict[str, tuple[str, Callable[[QualityStatus], float]]] = {
    "sent": ("Messages that this member sent, by quality of service.", lambda q: q.sent),
    "accepted": (
        "Messages of this member that enough recipients have, as their quality defines it.",
        lambda q: q.accepted,
    ),
    "rejected": (
        "Messages of this member that too few recipients have, or that a recipient rejected.",
        lambda q: q.rejected,
    ),
    "delivered": ("Units that the application took, by quality of service.", lambda q: q.delivered),
    "late": ("Units that were delivered outside their window.", lambda q: q.late),
    "retransmissions": (
        "Repeated transmissions of messages, by quality of service.",
        lambda q: q.retransmissions,
    ),
}


def _group_metrics(groups: list[Status]) -> Iterator[Metric]:
    for name, (text, read) in _GAUGES.items():
        values = [(_key(status), read(status)) for status in groups]
        yield _gauge(name, text, [], ((key, value) for key, value in values if value is not None))
    for name, (text, count) in _COUNTERS.items():
        yield _counter(name, text, [], ((_key(status), count(status)) for status in groups))


def _state_metrics(groups: list[Status]) -> Iterator[Metric]:
    yield _gauge(
        "state",
        "1 for the current state of the member, 0 for the others.",
        ["state"],
        (
            ([*_key(status), state], float(state == status.state))
            for status in groups
            for state in get_args(GroupState)
        ),
    )
    yield _gauge(
        "bottleneck",
        "1 for the member that the order waits for; reported by the orderer.",
        ["peer"],
        (
            ([*_key(status), member.name], float(member.name == status.bottleneck))
            for status in groups
            for member in (status.view.members if status.view else ())
        ),
    )


def _view_change_metrics(groups: list[Status]) -> Iterator[Metric]:
    changed = [status for status in groups if status.view]
    ages = [(_key(status), status.last_change_seconds_ago) for status in changed]
    now = time.time()
    yield _gauge("last_view_change_age_seconds", "Time since the view was installed.", [], ages)
    yield _gauge(
        "last_view_change_timestamp_seconds",
        "When the view was installed (Unix time).",
        [],
        ((key, now - age) for key, age in ages),
    )


def _queue_metrics(groups: list[Status]) -> Iterator[Metric]:
    def samples(read: Callable[[QueueStatus], float]) -> Samples:
        for status in groups:
            for queue in status.queues:
                yield [*_key(status), str(queue.priority)], read(queue)

    yield _gauge(
        "queue_messages",
        "Messages at this member that are not ordered yet, by priority.",
        ["priority"],
        samples(lambda queue: queue.messages),
    )
    yield _gauge(
        "queue_wait_seconds",
        "Age of the oldest message that is not ordered yet, by priority.",
        ["priority"],
        samples(lambda queue: queue.longest_wait_ms / 1000),
    )


def _peer_metrics(groups: list[Status]) -> Iterator[Metric]:
    def samples(read: Callable[[PeerStatus], float]) -> Samples:
        for status in groups:
            for peer in status.peers:
                yield [*_key(status), _name(peer.member)], read(peer)

    yield _counter(
        "retransmissions",
        "Frames retransmitted to a peer in this view.",
        ["peer"],
        samples(lambda peer: peer.retransmissions),
    )
    yield _gauge(
        "suspicion",
        "Silence of a peer as a fraction of the silence that is allowed; from 1 on it counts as failed.",
        ["peer"],
        samples(lambda peer: peer.suspicion),
    )
    yield _gauge(
        "unacknowledged_bytes",
        "Bytes sent to a peer that it has not acknowledged.",
        ["peer"],
        samples(lambda peer: peer.unacknowledged_bytes),
    )
    yield _gauge(
        "unacknowledged_seconds",
        "How long a peer that is heard has acknowledged nothing; 0 until half of slow_ms.",
        ["peer"],
        samples(lambda peer: peer.unacknowledged_ms / 1000),
    )
    yield _gauge(
        "link_congested",
        "1 if the link to a peer is congested and accepts no more frames.",
        ["peer"],
        samples(lambda peer: peer.congested),
    )


def _quality_metrics(groups: list[Status]) -> Iterator[Metric]:
    for name, (text, read) in _QUALITY_COUNTERS.items():
        samples = (
            ([*_key(status), quality.quality], read(quality))
            for status in groups
            for quality in status.qualities
        )
        yield _counter(f"quality_{name}", text, ["quality"], samples)


def _rejection_metrics(status: NodeStatus) -> Iterator[Metric]:
    yield _counter(
        "rejections",
        "Frames, packets and peers that the member rejected, by reason.",
        ["reason"],
        (
            ([*_key(group), reason], count)
            for group in status.groups
            for reason, count in group.rejections.items()
        ),
    )
    family = CounterMetricFamily(
        "priocast_network_rejections",
        "Frames and connections that the network of the node rejected, by reason.",
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
    """The name without the incarnation, so that a restart does not start a new time series."""
    return process.rpartition("#")[0]
