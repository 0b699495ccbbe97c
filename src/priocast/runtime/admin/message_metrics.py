"""Metrics of messages: counters by priority and direction, histograms of delivery times and view changes."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from priocast.core.time_histogram import TimeHistogram
from priocast.runtime.driver import Driver

_LABELS = ["group", "member"]
_MILLISECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000)
_BOUNDS_NS = tuple(round(each * 1e6) for each in _MILLISECONDS)


def message_metrics(drivers: Iterable[Driver]) -> Iterator[Metric]:
    """What the meters of a node's members have counted."""
    messages = CounterMetricFamily(
        "priocast_messages",
        "Messages that this member broadcast, or delivered to its application, by priority.",
        labels=[*_LABELS, "priority", "direction"],
    )
    sizes = CounterMetricFamily(
        "priocast_message_bytes",
        "Encoded payloads of these messages.",
        labels=[*_LABELS, "priority", "direction"],
    )
    times = HistogramMetricFamily(
        "priocast_delivery_seconds",
        "Time from the broadcast of a message to its delivery at its sender, by priority.",
        labels=[*_LABELS, "priority"],
    )
    changes = HistogramMetricFamily(
        "priocast_view_change_seconds",
        "For how long nothing could be ordered before each view of this incarnation.",
        labels=_LABELS,
    )
    for driver in drivers:
        key, meter = [driver.configuration.group, driver.configuration.name], driver.factory.meter
        for direction, traffic in (("broadcast", meter.broadcast), ("delivered", meter.delivered)):
            for priority, counted in traffic.items():
                labels = [*key, str(priority), direction]
                messages.add_metric(labels, counted.messages)
                sizes.add_metric(labels, counted.bytes)
        for priority, histogram in meter.delivery_times.items():
            times.add_metric([*key, str(priority)], *_buckets(histogram))
        changes.add_metric(key, *_buckets(driver.member.membership.view_history.durations))
    yield from (messages, sizes, times, changes)


def _buckets(histogram: TimeHistogram) -> tuple[list[tuple[str, float]], float]:
    """The cumulative counts by their bounds in seconds, and the sum."""
    counts = histogram.counts_up_to(_BOUNDS_NS)
    bounds = [(str(each / 1000), float(count)) for each, count in zip(_MILLISECONDS, counts, strict=True)]
    return [*bounds, ("+Inf", float(histogram.count))], histogram.total_ns / 1e9
