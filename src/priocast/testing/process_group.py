"""Groups whose members are processes of this machine: started, followed and ended in one place.

What the members do is in their worker modules, which all speak as `worker` describes.
"""

import sys
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec

from priocast.core.errors import GroupClosed
from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess, wait_until
from priocast.testing.worker import MemberAddresses, MemberProgress, MemberTask

_JOIN_SECONDS = 120.0
_SILENCE_SECONDS = 300.0

ReportT = TypeVar("ReportT", bound=msgspec.Struct)
ProgressT = TypeVar("ProgressT", bound=MemberProgress)


class WorkerProgram(NamedTuple, Generic[ReportT]):
    """The module that a member's process runs, and the type of its reports.

    `search_path` is where the module is, unless it is installed.
    """

    module: str
    report: type[ReportT]
    search_path: tuple[str, ...] = ()


class WorkerProcess(ChildProcess, Generic[ReportT]):
    """One member's process; it runs as the last part of the command `within`, if there is one."""

    def __init__(
        self,
        program: WorkerProgram[ReportT],
        task: MemberTask,
        changed: Condition,
        within: Sequence[str] = (),
    ) -> None:
        command = [*within, sys.executable, "-m", program.module]
        super().__init__(task.member, command, changed=changed, search_path=program.search_path)
        self._decode = msgspec.json.Decoder(program.report).decode
        self._reports: list[ReportT] = []
        self.write_line(msgspec.json.encode(task))

    @property
    def reports(self) -> list[ReportT]:
        """All reports so far."""
        for line in self.output[len(self._reports) :]:
            self._reports.append(self._decode(line))
        return self._reports

    @property
    def last_report(self) -> ReportT | None:
        """The latest report."""
        reports = self.reports
        return reports[-1] if reports else None

    def check_running(self) -> None:
        """Raise the member's error if its process has ended."""
        if self.has_ended:
            raise GroupClosed(f"member {self.name} ended early: {self.last_error}")

    def leave(self, seconds: float) -> None:
        """Let the member leave the group, and wait until its process has ended without an error."""
        self.close_input()
        if self.wait_end(seconds):
            raise GroupClosed(f"member {self.name} failed while leaving: {self.last_error}")


class ProcessGroup(Generic[ReportT]):
    """Members by name; a member that is started again replaces its process before."""

    def __init__(
        self, program: WorkerProgram[ReportT], within: Callable[[str], Sequence[str]] = lambda _: ()
    ) -> None:
        self.members: dict[str, WorkerProcess[ReportT]] = {}
        self._past: list[WorkerProcess[ReportT]] = []
        self._program = program
        self._within = within
        self._changed = Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in (*self.members.values(), *self._past):
            member.end()

    def start_member(self, task: MemberTask) -> None:
        """Start a member, or start it again."""
        if task.member in self.members:
            self._past.append(self.members[task.member])
        self.members[task.member] = WorkerProcess(
            self._program, task, self._changed, self._within(task.member)
        )

    def wait(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Wait until a condition on the members' reports holds."""
        wait_until(self._changed, condition, seconds, lambda: f"{what}: {self.describe()}")

    def check_running(self) -> None:
        """Raise the error of a member whose process has ended."""
        for member in self.members.values():
            member.check_running()

    def write_line(self, line: bytes = b"") -> None:
        """Write a line to all members."""
        for member in self.members.values():
            member.write_line(line)

    def leave(self, seconds: float = _JOIN_SECONDS) -> None:
        """Let all members that still run leave, together."""
        running = [member for member in self.members.values() if member.is_running]
        for member in running:
            member.close_input()
        for member in running:
            member.leave(seconds)

    def describe(self) -> str:
        """The last report of each member, for error messages."""
        return "; ".join(
            f"{name}: {'running' if member.is_running else 'ended'}, {member.last_report}"
            for name, member in self.members.items()
        )


def loopback_members(count: int) -> list[MemberAddresses]:
    """The names and addresses of members on the loopback network."""
    addresses = [str(address) for address in free_addresses(count)]
    return [
        MemberAddresses(
            member=member_name(index), listen=address, peers=[each for each in addresses if each != address]
        )
        for index, address in enumerate(addresses)
    ]


def member_name(index: int) -> str:
    """The name of a member: a letter, or a number where letters run out."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[index] if index < len(letters) else f"m{index}"


def run_tasks(
    program: WorkerProgram[ProgressT], tasks: Sequence[MemberTask], on_progress: Callable[[int], None]
) -> list[ProgressT]:
    """Run each task to its end in a process of its own; returns the last report of each member.

    `on_progress` is called with the count of the slowest member. All members start their work together, and
    leave when all have finished. A group that reports nothing for five minutes has failed.
    """
    with ProcessGroup(program) as group:
        for task in tasks:
            group.start_member(task)
        members = list(group.members.values())

        def joined() -> bool:
            group.check_running()
            return all(member.reports for member in members)

        group.wait(joined, _JOIN_SECONDS, "a report of every member")
        group.write_line()
        seen = (-1, -1)

        def changed() -> bool:
            """Whether there is a new report, or the end of a process."""
            return seen != (sum(len(member.output) for member in members), _delivered(members))

        while not all(_is_finished(member) for member in members):
            group.wait(changed, _SILENCE_SECONDS, "a report of any member")
            seen = (sum(len(member.output) for member in members), _delivered(members))
            on_progress(seen[1])
        group.leave()
        return [report for member in members if (report := member.last_report) is not None]


def run_in_agreement(
    run: str,
    program: WorkerProgram[ProgressT],
    tasks: Sequence[MemberTask],
    on_progress: Callable[[int], None],
) -> list[ProgressT]:
    """`run_tasks` for the run of this name; raises `GroupClosed` if the members delivered differently."""
    reports = run_tasks(program, tasks, on_progress)
    if len({report.digest for report in reports}) > 1:
        raise GroupClosed(f"{run}: the members did not deliver the same messages in the same order")
    return reports


def _delivered(members: Sequence[WorkerProcess[ProgressT]]) -> int:
    """The count of the slowest member; a member whose process has ended without a result is an error."""
    counts = []
    for member in members:
        if not _is_finished(member):
            member.check_running()
        counts.append(report.delivered if (report := member.last_report) else 0)
    return min(counts)


def _is_finished(member: WorkerProcess[ProgressT]) -> bool:
    report = member.last_report
    return report is not None and bool(report.digest)
