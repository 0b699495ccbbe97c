"""The load of a recorded run: members and senders, rate and size of messages, and how long delivery took."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from priocast.advice.situation import Priorities, Situation
from priocast.core.errors import UnreadableTrace
from priocast.trace.run_directory import find_segments, read_group_events, read_manifest
from priocast.trace.schema import BROADCAST, DELIVERED, VIEW

_COLUMNS = ["member", "incarnation", "time_ns", "event", "sender", "level", "first", "count", "bytes"]
_SECOND = 1_000_000_000


class RecordedLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was ordered by, its situation, and the mean time until a sender delivered its own."""

    order: str
    messages: int
    situation: Situation
    delivery_ms: float | None


def measure_run(directory: Path, rtt_ms: float) -> RecordedLoad:
    """Read what a run was like; the network's round trip time is not in its trace."""
    manifest = read_manifest(directory)
    segments = find_segments(directory)
    rows = [row for path in segments.messages for row in _rows(path)]
    said = [row for row in rows if row["event"] == BROADCAST]
    messages = sum(row["count"] for row in said)
    if not messages:
        raise UnreadableTrace(f"{directory} has no broadcast on record: there is no load to advise on")
    sizes = [len(row.members) for row in read_group_events(segments.group_events) if row.event == VIEW]
    members = max(sizes, default=len(manifest.members))
    priorities: Priorities = "group" if manifest.prioritised else "none"
    return RecordedLoad(
        order=manifest.order,
        messages=messages,
        situation=Situation(
            members=members,
            rate=_rate(said),
            senders=min(members, len({row["member"] for row in said})),
            rtt_ms=rtt_ms,
            payload_bytes=sum(row["bytes"] for row in said) // messages,
            priorities=priorities,
            partitionable=manifest.policy == "partitionable",
            safe=manifest.delivery == "safe",
        ),
        delivery_ms=_delivery_ms(rows),
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path, columns=_COLUMNS).to_pylist()
    return rows


def _rate(said: list[dict[str, Any]]) -> float:
    """Messages a second of all members; each is timed by its own clock."""
    by_member: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in said:
        by_member[row["member"]].append(row)
    times = [
        (min(each), max(each)) for each in ([row["time_ns"] for row in own] for own in by_member.values())
    ]
    longest_ns = max(last - first for first, last in times)
    return sum(row["count"] for row in said) * _SECOND / longest_ns if longest_ns else 0.0


def _delivery_ms(rows: list[dict[str, Any]]) -> float | None:
    """The mean time from a message's broadcast to its delivery at its own sender, over all messages.

    Messages of one sender and level are delivered in their order, so both lists of stretches can be walked
    side by side; a batch may have been cut or joined on its way.
    """
    told: dict[tuple[str, int, int], list[tuple[int, int, int]]] = defaultdict(list)
    heard: dict[tuple[str, int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for row in rows:
        if row["sender"] != row["member"] or row["event"] not in (BROADCAST, DELIVERED):
            continue
        stretches = told if row["event"] == BROADCAST else heard
        stretch = (row["first"], row["first"] + row["count"], row["time_ns"])
        stretches[row["member"], row["incarnation"], row["level"]].append(stretch)
    count = waited_ns = 0
    for stream, broadcasts in told.items():
        for overlap, took_ns in _matched(sorted(broadcasts), sorted(heard.get(stream, []))):
            count += overlap
            waited_ns += overlap * took_ns
    return waited_ns / count / 1e6 if count else None


def _matched(told: list[tuple[int, int, int]], heard: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """How many messages two lists of stretches share, piece by piece, and how long those took."""
    found: list[tuple[int, int]] = []
    one = other = 0
    while one < len(told) and other < len(heard):
        first, end, said_at = told[one]
        first_heard, end_heard, heard_at = heard[other]
        overlap = min(end, end_heard) - max(first, first_heard)
        if overlap > 0:
            found.append((overlap, heard_at - said_at))
        one, other = one + (end <= end_heard), other + (end_heard <= end)
    return found
