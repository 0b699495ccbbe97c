"""`PYTHONPATH=tests:examples python -m tools.crash_campaign`: crashes of durable replicas, and damaged logs.

Power cuts of all members on simulated disks, kills of real processes on a real disk, and every cut and every
flipped bit in the log directory of a member. Everything that was answered must be there, once. The seed
decides what happens; what it meets in the members is up to the machine. Raises an error at the first
violation.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from random import Random, SystemRandom

from rich.console import Console
from rich.progress import Progress

from replication.damaged_directory import judge_all, written_directory
from replication.killed_processes import KilledProcesses, kill_one_by_one
from replication.power_cuts import cut_power

_PAUSE_SECONDS = 0.02


def kill_replicas(count: int, seed: int, progress: Progress) -> int:
    """Kill a replica so often while the others work; return how many commands were answered."""
    task = progress.add_task("kills of a replica", total=count)
    random = Random(seed)  # noqa: S311 - the seed repeats the kills
    with (
        tempfile.TemporaryDirectory() as directory,
        KilledProcesses(Path(directory), _PAUSE_SECONDS) as group,
    ):
        group.start()
        for _ in range(count):
            kill_one_by_one(group, random)
            progress.advance(task)
        group.kill()
        group.start()
        return len(group.answered)


def cut_all_power(count: int, seed: int, progress: Progress) -> int:
    """Cut the power of all members so often; return how many commands were answered."""
    task = progress.add_task("power cuts of all", total=count)
    return asyncio.run(cut_power(count, seed, lambda: progress.advance(task)))


def main() -> None:
    """Run the campaign, and print what was done."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash_campaign", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills of one replica (default: 200)")
    parser.add_argument("--power-cuts", type=int, default=200, help="power cuts of all (default: 200)")
    parser.add_argument("--damage-step", type=int, default=1, help="try every n-th damage (default: 1, all)")
    parser.add_argument("--seed", type=int, help="what happens (default: another one each time)")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else SystemRandom().randrange(1 << 31)
    console = Console()
    console.print(f"seed {seed}")
    with Progress(console=console) as progress:
        for name, count, run in (
            ("power cuts of all members", arguments.power_cuts, cut_all_power),
            ("kills of a replica", arguments.kills, kill_replicas),
        ):
            started = time.monotonic()
            answered = run(count, seed, progress)
            console.print(f"{count} {name}: {answered:,} answers kept, {time.monotonic() - started:.0f} s")
    for consequence, count in sorted(
        judge_all(asyncio.run(written_directory()), arguments.damage_step).items()
    ):
        console.print(f"{consequence}: {count:,}")


if __name__ == "__main__":
    main()
