"""A living group of real processes, and what can befall it: killed, stopped, restarted, cut off.

Every process is ended by its own id, whatever happens.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from priocast.core.errors import DeadlineExceeded, GroupClosed
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.study.living_worker import LivingTask, Report

_END_SECONDS = 10.0
_POLL_SECONDS = 0.01
_REST_NS = 500_000_000


class LivingMember:
    """One member's process, seen from its parent."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.reports: list[Report] = []
        self._process = process
        self._following = asyncio.get_running_loop().create_task(self._follow())

    @classmethod
    async def start(cls, task: LivingTask, within: Sequence[str] = ()) -> "LivingMember":
        """Start a member, as the last words of a command (such as one that enters a network namespace)."""
        process = await asyncio.create_subprocess_exec(
            *within,
            sys.executable,
            "-m",
            "priocast.study.living_worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(task) + b"\n")
        return cls(task.member, process)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    @property
    def view(self) -> Report | None:
        """The view that the member is in, as far as it has said; None when it was put out since."""
        said = [report for report in self.reports if report.kind in ("view", "stopped")]
        return said[-1] if said and said[-1].kind == "view" else None

    @property
    def last(self) -> Report | None:
        """What it said last."""
        return self.reports[-1] if self.reports else None

    def send_signal(self, number: signal.Signals) -> None:
        """Kill, stop or continue the process."""
        self._process.send_signal(number)

    def finish(self) -> None:
        """Let it broadcast no more."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"finish\n")

    async def leave(self) -> None:
        """Let it leave the group, and wait until it has ended well."""
        assert self._process.stdin is not None and self._process.stderr is not None
        self._process.stdin.close()
        async with asyncio.timeout(_END_SECONDS):
            words = (await self._process.stderr.read()).decode(errors="replace").strip()
            await self._process.wait()
        await self._following
        if self._process.returncode:
            raise GroupClosed(f"member {self.name} did not end well: {words}")

    async def end(self) -> None:
        """Whatever happened, leave no process behind."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._following

    async def _follow(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.reports.append(msgspec.json.decode(line, type=Report))


class LivingGroup:
    """Members by name; a member that is started again takes the place of the one before."""

    def __init__(
        self,
        addresses: dict[str, str],
        *,
        run: str,
        membership: MembershipOptions,
        options: OrderingOptions | None = None,
        order: str = "sequencer-ub",
        rate_per_second: int = 500,
        payload_bytes: int = 64,
        trace: Path | None = None,
        state_directory: Path | None = None,
        within: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        self.members: dict[str, LivingMember] = {}
        self.past: list[LivingMember] = []
        self._addresses = addresses
        self._within = within
        self._task = LivingTask(
            run=run,
            member="",
            listen="",
            peers=[],
            order=order,
            options=options or OrderingOptions(),
            membership=membership,
            rate_per_second=rate_per_second,
            payload_bytes=payload_bytes,
            trace=str(trace) if trace else None,
            state_directory=str(state_directory) if state_directory else None,
        )

    async def __aenter__(self) -> "LivingGroup":
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in (*self.members.values(), *self.past):
            await member.end()

    async def start(self, *names: str) -> None:
        """Start members, or start them again."""
        for name in names:
            if name in self.members:
                self.past.append(self.members[name])
            address = self._addresses[name]
            task = msgspec.structs.replace(
                self._task,
                member=name,
                listen=address,
                peers=[other for other in self._addresses.values() if other != address],
            )
            self.members[name] = await LivingMember.start(task, self._within(name))

    async def wait_view(self, names: Sequence[str], seconds: float, of: Sequence[str] | None = None) -> None:
        """Wait until these members are all in one view that consists of them (or of those in `of`)."""
        wanted = sorted(of or names)

        def agreed() -> bool:
            views = [self.members[name].view for name in names]
            return all(
                view is not None
                and sorted(member.partition("#")[0] for member in view.members) == wanted
                and view.members == views[0].members  # type: ignore[union-attr]  # checked by the first line
                for view in views
            )

        await self.wait(agreed, seconds, f"one view of {', '.join(wanted)} at {', '.join(names)}")

    async def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for something to become true; say what did not."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise DeadlineExceeded(f"after {seconds:g} s there was not {what}: {self.describe()}")
            await asyncio.sleep(_POLL_SECONDS)

    def describe(self) -> str:
        """What each member said last."""
        said = []
        for name, member in self.members.items():
            view = member.view
            of_view = f"view {view.view} of {', '.join(view.members)}" if view else "no view"
            said.append(f"{name}: {'running' if member.is_running else 'ended'}, {of_view}")
        return "; ".join(said)

    async def finish(self, seconds: float, alike: bool = True) -> None:
        """Let the load end, wait until nothing more is delivered anywhere, and let all leave.

        If they are to be `alike`, all members must have come to one state by then.
        """
        living = [member for member in self.members.values() if member.is_running]
        for member in living:
            member.finish()

        def settled() -> bool:
            since = time.monotonic_ns() - _REST_NS
            recent = [
                [report.digest for report in member.reports if report.time_ns > since] for member in living
            ]
            still = all(len(digests) > 1 and len(set(digests)) == 1 for digests in recent)
            return still and (not alike or len({digests[0] for digests in recent}) == 1)

        await self.wait(settled, seconds, "rest, and one state at all members")
        await asyncio.gather(*(member.leave() for member in living))
