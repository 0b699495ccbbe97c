"""`python -m tools.soak`: five real members under load, random faults, and a judgement at the end.

Every fault must be followed by one view of all members. At the end all members have the same state, no
process that lived long has grown, and Spark finds every guarantee kept in the traces of all incarnations. The
seed decides which faults happen, and is printed; what they meet in the members is up to the machine. Exits
with 1 if anything was violated, and keeps the traces then.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random, SystemRandom
from statistics import median

from rich.console import Console
from rich.table import Table

from priocast.core.errors import DeadlineExceeded, GroupClosed
from priocast.membership.options import MembershipOptions
from priocast.pipeline.study import verify_runs
from priocast.testing.addresses import free_addresses
from tools.load_group import LoadGroup
from tools.namespaces import namespaces, unavailable
from tools.soak.faults import FAULTS, NAMES, PATIENCE_SECONDS, VETERAN, Fault, FaultyGroup
from tools.soak.usage import UsageSampler

FAILURE_SECONDS = 1.0
_QUIET_SECONDS_MAX = 2.0
_GROWTHS_SHOWN = 5


class Soak:
    """One run: the group, the faults so far with the seconds until the group was whole, and violations."""

    def __init__(self, console: Console, seed: int, directory: Path, rate: int) -> None:
        self.violations: list[str] = []
        self.recoveries: dict[str, list[float]] = {}
        self._console = console
        self._dice = Random(seed)  # noqa: S311 - the seed repeats the faults
        self._directory = directory
        self._rate = rate
        self._last = "", ""

    def run(self, minutes: float) -> None:
        """Inject faults for this time, then let the group finish, and judge it."""
        try:
            with self._group() as (group, faulty):
                with UsageSampler(group) as sampler:
                    self._inject_faults(faulty, sampler, 60 * minutes)
                self._judge_usage(sampler)
                group.finish(PATIENCE_SECONDS)
        except (DeadlineExceeded, GroupClosed) as error:
            self.violations.append(str(error))
        self._console.print(self._table())
        self._verify()

    @contextmanager
    def _group(self) -> Iterator[tuple[LoadGroup, FaultyGroup]]:
        reason = unavailable()
        with ExitStack() as stack:
            network = None if reason else stack.enter_context(namespaces(NAMES))
            if reason:
                self._console.print(f"the network is not cut in this run: {reason}")
            loopback = dict(zip(NAMES, map(str, free_addresses(len(NAMES))), strict=True))
            group = LoadGroup(
                network.addresses if network else loopback,
                run="soak",
                membership=MembershipOptions(
                    founders=len(NAMES), heartbeat_ms=60, failure_ms=1000 * FAILURE_SECONDS, slow_ms=10_000
                ),
                rate_per_second=self._rate,
                report_ms=250,
                trace=self._directory / "soak",
                state_directory=self._directory / "state",
                within=network.within if network else lambda _: (),
            )
            stack.enter_context(group)
            group.start(*NAMES)
            group.wait_view(NAMES, PATIENCE_SECONDS)
            yield group, FaultyGroup(group, network, FAILURE_SECONDS)

    def _inject_faults(self, faulty: FaultyGroup, sampler: UsageSampler, seconds: float) -> None:
        """Inject random faults, one after the other, until the time is up."""
        possible = [fault for fault in FAULTS if faulty.network is not None or not fault.cuts]
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            self._inject(self._dice.choice(possible), faulty)
            self._show(time.monotonic() - began, faulty, sampler)

    def _inject(self, fault: Fault, faulty: FaultyGroup) -> None:
        time.sleep(self._dice.uniform(0, _QUIET_SECONDS_MAX))
        self._last = fault.name, fault.inject(faulty, self._dice)
        healed = time.monotonic()
        faulty.wait_view(NAMES)
        self.recoveries.setdefault(fault.name, []).append(time.monotonic() - healed)

    def _show(self, seconds: float, faulty: FaultyGroup, sampler: UsageSampler) -> None:
        name, what = self._last
        report, used = faulty.group.members[VETERAN].last_report, sampler.last(VETERAN)
        usage = f"{used.megabytes:.0f} MB, {used.descriptors} descriptors" if used else ""
        self._console.print(
            f"{seconds / 60:6.1f} min  {name:<16}{what:<28}whole after {self.recoveries[name][-1]:5.1f} s  "
            f"{report.delivered if report else 0:>9,} delivered  {usage}",
            highlight=False,
        )

    def _judge_usage(self, sampler: UsageSampler) -> None:
        growths = sampler.growths()
        self.violations += [growth.violation for growth in growths if growth.violation]
        table = Table(title="what the processes that lived longest used: warmed up, and in the end")
        for heading in ("member", "lived", "MB", "descriptors"):
            table.add_column(heading, justify="right")
        for growth in growths[:_GROWTHS_SHOWN]:
            before, after = growth.before, growth.after
            table.add_row(
                growth.member,
                f"{growth.seconds:,.0f} s",
                f"{before.megabytes:.1f} - {after.megabytes:.1f}",
                f"{before.descriptors} - {after.descriptors}",
            )
        self._console.print(table)

    def _table(self) -> Table:
        table = Table(title="faults, and the seconds until all members were in one view again")
        for heading in ("fault", "times", "median", "longest"):
            table.add_column(heading, justify="left" if heading == "fault" else "right")
        for name, seconds in sorted(self.recoveries.items()):
            table.add_row(name, str(len(seconds)), f"{median(seconds):.1f}", f"{max(seconds):.1f}")
        return table

    def _verify(self) -> None:
        """Let Spark check every guarantee in the traces of all incarnations."""
        found = verify_runs(self._directory / "soak", "local[2]")
        promised = [verdict for verdict in found.verdicts if verdict.promised]
        self.violations += [f"Spark: {verdict}" for verdict in promised if not verdict.holds]
        delivered = sum(counts.deliveries for counts in found.counts)
        held = sum(verdict.holds for verdict in promised)
        self._console.print(
            f"Spark: {held} of {len(promised)} promised guarantees hold in {delivered:,} deliveries"
        )
        if not delivered:
            self.violations.append("nothing was delivered")


def main() -> int:
    """Run the soak; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long faults happen (default: 60)")
    parser.add_argument("--seed", type=int, help="repeats the faults of another run (default: a new one)")
    parser.add_argument("--rate", type=int, default=20, help="messages per second and member (default: 20)")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else SystemRandom().randrange(1 << 32)
    console = Console(width=140, soft_wrap=True)
    console.print(f"soak of {arguments.minutes:g} minutes with seed {seed}")
    directory = Path(tempfile.mkdtemp(prefix="priocast-soak-"))
    soak = Soak(console, seed, directory, arguments.rate)
    soak.run(arguments.minutes)
    if soak.violations:
        for violation in soak.violations:
            console.print(f"violated: {violation}", markup=False)
        console.print(f"violated with seed {seed}; the traces are in {directory}")
        return 1
    shutil.rmtree(directory)
    console.print("nothing was violated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
