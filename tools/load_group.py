"""A group of real processes under load, whose members are killed, suspended, restarted and cut off."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.testing.process_group import WorkerProgram
from tools.load_worker import LoadReport, LoadTask
from tools.viewed_group import ViewedGroup

_LEAVE_SECONDS = 60.0
_QUIET_NS = 500_000_000
_PROGRAM = WorkerProgram("tools.load_worker", LoadReport, (str(Path(__file__).parents[1]),))


class LoadGroup(ViewedGroup[LoadReport]):
    """Members by name, at given addresses; all have the same options."""

    def __init__(
        self,
        addresses: dict[str, str],
        *,
        run: str,
        membership: MembershipOptions,
        options: OrderingOptions | None = None,
        order: str = "sequencer-ub",
        rate_per_second: int = 500,
        burst: int = 0,
        payload_bytes: int = 64,
        report_ms: float = 50.0,
        trace: Path | None = None,
        state_directory: Path | None = None,
        within: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        super().__init__(_PROGRAM, within)
        self._addresses = addresses
        self._task = LoadTask(
            run=run,
            member="",
            listen="",
            peers=[],
            order=order,
            options=options or OrderingOptions(),
            membership=membership,
            rate_per_second=rate_per_second,
            burst=burst,
            payload_bytes=payload_bytes,
            report_ms=report_ms,
            trace=str(trace) if trace else None,
            state_directory=str(state_directory) if state_directory else None,
        )

    def start(self, *names: str, clock_ms: int = 0) -> None:
        """Start members, or start them again; their clocks are ahead by this time, or behind."""
        for name in names:
            address = self._addresses[name]
            peers = [other for other in self._addresses.values() if other != address]
            self.start_member(
                msgspec.structs.replace(
                    self._task, member=name, listen=address, peers=peers, clock_ms=clock_ms
                )
            )

    def joining_at(self, name: str, seconds: float) -> float:
        """When a member that was started called `join`: its interpreter has to start first."""
        member = self.members[name]
        self.wait(lambda: member.reports, seconds, f"a report of {name}")
        return member.reports[0].time_ns / 1e9

    def rate(self, name: str, start: float, stop: float) -> float:
        """Messages per second that a member delivered between these times of the monotonic clock."""
        samples = [(report.time_ns / 1e9, report.delivered) for report in self.members[name].reports]
        first, last = (min(bisect_left(samples, (at, 0)), len(samples) - 1) for at in (start, stop))
        return (samples[last][1] - samples[first][1]) / (stop - start)

    def finish(self, seconds: float, same_state: bool = True) -> None:
        """End the load, wait until no member delivers any more, and let all leave.

        With `same_state`, all members must have the same state by then.
        """
        running = [member for member in self.members.values() if member.is_running]
        before = [len(member.reports) for member in running]
        for member in running:
            member.write_line(b"finish")

        def settled() -> bool:
            latest = [member.reports[first:] for member, first in zip(running, before, strict=True)]
            if not all(map(_are_quiet, latest)):
                return False
            return not same_state or len({reports[-1].digest for reports in latest}) == 1

        self.wait(settled, seconds, "an end of deliveries, and one state at all members")
        self.leave(_LEAVE_SECONDS)


def _are_quiet(reports: Sequence[LoadReport]) -> bool:
    """Whether a member delivered nothing in the last part of the time that its reports are from."""
    until_ns = reports[-1].time_ns - _QUIET_NS if reports else 0
    earlier = next((report for report in reversed(reports) if report.time_ns <= until_ns), None)
    return earlier is not None and earlier.digest == reports[-1].digest
