"""The members of a benchmark, each a process of its own: they meet at barriers and return a result.

A part of a benchmark is a function `part(context, load, *arguments)` that runs in every member's process.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from priocast.network.address import Address, parse_address
from priocast.testing.process_group import ProcessGroup, WorkerProgram, loopback_members
from priocast.testing.worker import MemberTask, read_line, report

_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Load:
    """What every member does. Burst, window and frame are those of the floor, where it is fastest."""

    members: int
    messages: int
    payload_bytes: int
    burst: int
    window: int
    frame_messages: int

    @property
    def total(self) -> int:
        """How many messages each member delivers."""
        return self.members * self.messages


class BenchmarkTask(MemberTask, frozen=True, kw_only=True):
    """The part that a member runs (`module:function`), its rank, and the addresses of all members by rank."""

    part: str
    rank: int
    addresses: list[str]
    load: Load
    arguments: list[Any]


class BenchmarkReport(msgspec.Struct, frozen=True, kw_only=True):
    """A member is at a barrier, or has a result."""

    at_barrier: bool
    result: Any = None


@dataclass(frozen=True)
class MemberContext:
    """A part's own task, and the barrier at which it meets the other members."""

    task: BenchmarkTask

    @property
    def rank(self) -> int:
        """The rank of this member."""
        return self.task.rank

    @property
    def first_address(self) -> Address:
        """The address of the first member."""
        return parse_address(self.task.addresses[0])

    async def barrier(self) -> None:
        """Wait until all members have reached this barrier."""
        report(BenchmarkReport(at_barrier=True))
        await read_line()


_PROGRAM = WorkerProgram("benchmarks.worker", BenchmarkReport, (str(Path(__file__).parents[1]),))


def run_members(part: Callable[..., Awaitable[Any]], load: Load, *arguments: object) -> list[Any]:
    """Run a part in every member's process; returns their results, by rank."""
    members = loopback_members(load.members)
    with ProcessGroup(_PROGRAM) as group:
        for rank, member in enumerate(members):
            group.start_member(
                BenchmarkTask(
                    **member,
                    part=f"{part.__module__}:{part.__qualname__}",
                    rank=rank,
                    addresses=[each["listen"] for each in members],
                    load=load,
                    arguments=[*arguments],
                )
            )
        return _results(group)


def _results(group: ProcessGroup[BenchmarkReport]) -> list[Any]:
    """Open barriers until all members have a result."""
    barriers = 0

    def all_reported() -> bool:
        group.check_running()
        return all(len(member.reports) > barriers for member in group.members.values())

    while True:
        group.wait(all_reported, _LIMIT_SECONDS, "a barrier or a result of every member")
        reports = [member.reports[barriers] for member in group.members.values()]
        if not any(each.at_barrier for each in reports):
            group.leave()
            return [each.result for each in reports]
        assert all(each.at_barrier for each in reports), "every member must pass the same barriers"
        group.write_line()
        barriers += 1


def slowest(load: Load, part: Callable[..., Awaitable[Any]], *arguments: object) -> float:
    """The rate of the slowest member."""
    return min(map(float, run_members(part, load, *arguments)))
