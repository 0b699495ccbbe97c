"""Measures the load of a recorded run: members, senders, rate and size of messages, delivery time."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from priocast.advice.situation import Priorities, Situation
from priocast.core.errors import UnreadableTrace
from priocast.trace.run_directory import read_manifest, read_segment
from priocast.trace.schema import BROADCAST, DELIVERED, VIEW
from priocast.trace.stored_rows import find_rows

_COLUMNS = ["member", "incarnation", "time_ns", "event", "sender", "level", "first", "count", "bytes"]
_SECOND = 1_000_000_000
_TimedRange = tuple[int, int, int]
"""Message numbers from first to end (exclusive), and the time of their event."""


class RecordedLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The order of a run, its load, and the mean time until a sender delivered its own messages."""

    order: str
    messages: int
    situation: Situation
    delivery_ms: float | None


def measure_run(directory: Path, rtt_ms: float) -> RecordedLoad:
    """Measure a run. The round-trip time of the network is not in the trace."""
    manifest = read_manifest(directory)
    stored = find_rows(directory)
    rows: list[dict[str, Any]] = [row._asdict() for row in stored.journalled_messages]
    for path in stored.message_segments:
        rows += read_segment(path, _COLUMNS).to_pylist()
    broadcasts = [row for row in rows if row["event"] == BROADCAST]
    messages = sum(row["count"] for row in broadcasts)
    if not messages:
        raise UnreadableTrace(f"{directory} contains no broadcast: there is no load to measure")
    sizes = [len(row.members) for row in stored.group_events if row.event == VIEW]
    members = max(sizes, default=len(manifest.members))
    priorities: Priorities = "group" if manifest.prioritised else "none"
    return RecordedLoad(
        order=manifest.order,
        messages=messages,
        situation=Situation(
            members=members,
            rate=_rate(broadcasts),
            senders=min(members, len({row["member"] for row in broadcasts})),
            rtt_ms=rtt_ms,
            payload_bytes=sum(row["bytes"] for row in broadcasts) // messages,
            priorities=priorities,
            partitionable=manifest.policy == "partitionable",
            safe=manifest.delivery == "safe",
        ),
        delivery_ms=_delivery_ms(rows),
    )


def _rate(broadcasts: list[dict[str, Any]]) -> float:
    """Messages per second of all members together; each member's times are by its own clock."""
    by_member: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in broadcasts:
        by_member[row["member"]].append(row)
    times = [
        (min(each), max(each)) for each in ([row["time_ns"] for row in own] for own in by_member.values())
    ]
    longest_ns = max(last - first for first, last in times)
    return sum(row["count"] for row in broadcasts) * _SECOND / longest_ns if longest_ns else 0.0


def _delivery_ms(rows: list[dict[str, Any]]) -> float | None:
    """The mean time from a message's broadcast to its delivery at its own sender, over all messages.

    Messages of one sender and level are delivered in the order of their numbers, so both lists of batches can
    be merged in one pass. A batch may have been split or joined in between.
    """
    broadcast: dict[tuple[str, int, int], list[_TimedRange]] = defaultdict(list)
    delivered: dict[tuple[str, int, int], list[_TimedRange]] = defaultdict(list)
    for row in rows:
        if row["sender"] != row["member"] or row["event"] not in (BROADCAST, DELIVERED):
            continue
        ranges = broadcast if row["event"] == BROADCAST else delivered
        timed = (row["first"], row["first"] + row["count"], row["time_ns"])
        ranges[row["member"], row["incarnation"], row["level"]].append(timed)
    count = waited_ns = 0
    for stream, own in broadcast.items():
        for overlap, took_ns in _matched(sorted(own), sorted(delivered.get(stream, []))):
            count += overlap
            waited_ns += overlap * took_ns
    return waited_ns / count / 1e6 if count else None


def _matched(broadcast: list[_TimedRange], delivered: list[_TimedRange]) -> list[tuple[int, int]]:
    """The overlaps of two sorted lists of ranges: for each, the number of messages and the time they took."""
    found: list[tuple[int, int]] = []
    one = other = 0
    while one < len(broadcast) and other < len(delivered):
        first, end, broadcast_at = broadcast[one]
        first_delivered, end_delivered, delivered_at = delivered[other]
        overlap = min(end, end_delivered) - max(first, first_delivered)
        if overlap > 0:
            found.append((overlap, delivered_at - broadcast_at))
        one, other = one + (end <= end_delivered), other + (end_delivered <= end)
    return found
