"""Where the time of a lone message goes: `python -m benchmarks.budget`, stage by stage, in real processes.

A message goes from a member to the sequencer, which orders it, and back. Each process notes when something
happens at its boundary to the network and to the application (`noted_member.py`); all processes of a machine
have the same clock. A stage is the median over all messages that were alone: nothing else arrived at the
sender or the sequencer while they were on their way. The medians of the stages need not add up to that of the
whole, because what delays a message differs each time. Taking notes is part of what is measured.
"""

import argparse
import statistics
from bisect import bisect_left
from itertools import pairwise

import msgspec

from benchmarks.delivery import by_echo, median_of_followers
from benchmarks.members import Load, run_members
from benchmarks.noted_member import (
    CODEC_DONE,
    HANDLED,
    READ,
    WRITE,
    WRITTEN,
    Event,
    Notes,
    OwnMessage,
    noted_member,
)
from benchmarks.version import measured_version

STAGES = (
    "sender: broadcast, until the write",
    "sender: write",
    "wire and wake-up of the sequencer",
    "sequencer: read buffer and codec",
    "sequencer: link, decode, queue, order, encode, until the write",
    "sequencer: write",
    "wire and wake-up of the sender",
    "sender: read buffer and codec",
    "sender: link, decode, place, wake the application",
    "sender: until the application has it",
)


def stages_of(sender: list[Event], sequencer: list[Event], message: OwnMessage) -> list[int] | None:
    """How long each stage of a message took; None if it was not alone."""
    here = _between(sender, message.called_at, message.delivered_at)
    there = _between(sequencer, message.called_at, message.delivered_at)
    at_sender, at_sequencer = ([name for _, name in events] for events in (here, there))
    if (
        at_sender.count(READ) != 1
        or at_sequencer.count(READ) != 1
        or at_sender[:2] != [WRITE, WRITTEN]
        or at_sequencer[:4] != [READ, CODEC_DONE, WRITE, WRITTEN]
    ):
        return None
    read = at_sender.index(READ)
    if at_sender[read : read + 2] != [READ, CODEC_DONE] or HANDLED not in at_sender[read:]:
        return None
    handled = at_sender.index(HANDLED, read)
    moments = [
        message.called_at,
        *(at for at, _ in here[:2]),
        *(at for at, _ in there[:4]),
        *(at for at, _ in here[read : read + 2]),
        here[handled][0],
        message.delivered_at,
    ]
    return [later - earlier for earlier, later in pairwise(moments)]


def _between(events: list[Event], first: int, last: int) -> list[Event]:
    return events[bisect_left(events, (first, "")) : bisect_left(events, (last, ""))]


def lone_messages(reports: list[Notes]) -> tuple[list[list[int]], list[int]]:
    """The stages of every message that was alone, and how long its call of `broadcast` took; by rank."""
    sequencer, *senders = reports
    found = [
        (stages, message.returned_at - message.called_at)
        for notes in senders
        for message in notes.messages
        if (stages := stages_of(notes.events, sequencer.events, message))
    ]
    return [stages for stages, _ in found], [call for _, call in found]


def table(lone: list[list[int]], calls: list[int], round_trip_us: float) -> list[str]:
    """A line for each stage, its median and its share, and the sum."""
    total = statistics.median(map(sum, lone)) / 1e3
    lines = []
    for name, *times in zip(STAGES, *lone, strict=True):
        median = statistics.median(times) / 1e3
        lines.append(f"{median:8.0f} us {median / total:6.0%}  {name}")
    return [
        *lines,
        f"{total:8.0f} us         in all (median): {total / round_trip_us:.1f} raw round trips",
        f"{statistics.median(calls) / 1e3:8.0f} us         call of broadcast, a part of it after the write",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--messages", type=int, default=300, help="of each member")
    arguments = parser.parse_args()
    load = Load(arguments.members, arguments.messages, 64, burst=1, window=1, frame_messages=1)
    round_trip = median_of_followers(run_members(by_echo, load)) * 1e6
    reports = [msgspec.convert(each, Notes) for each in run_members(noted_member, load)]
    lone, calls = lone_messages(reports)
    sent = (arguments.members - 1) * arguments.messages
    alone = f"{len(lone)} of {sent} messages alone"
    print(f"{arguments.members} members, {measured_version()}: {alone}, round trip {round_trip:.0f} us")
    print("\n".join(table(lone, calls, round_trip)) if lone else "no message was alone: try fewer members")


if __name__ == "__main__":
    main()
