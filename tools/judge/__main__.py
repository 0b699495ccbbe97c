"""`python -m tools.judge`: clients use real replicas under faults, and Spark judges what they saw.

    python -m tools.judge --workload list-append --transactions 100000
    python -m tools.judge --workload bank --engine postgresql --transactions 100000
    python -m tools.judge --history runs/history.edn

Five replicas are killed, restarted, paused, stopped, cut off, and have their clocks changed, while their
clients work. The history is in Elle's form. Exits with 1 if it is not strictly
serialisable, and keeps it then.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from random import SystemRandom

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from priocast.pipeline.serialisability import HistoryVerdict, judge_history
from priocast.testing.postgres_server import postgres_server
from tools.judge.group import JudgedRun, judged_task
from tools.judge.transactions import WORKLOADS
from tools.soak.faults import NAMES

ENGINES = ("object", "sqlite", "postgresql")


def main() -> int:
    """Run the tool; returns the exit code."""
    arguments = _arguments()
    console = Console(width=140, soft_wrap=True)
    if arguments.history:
        return _judge(Path(arguments.history), console)
    seed = arguments.seed if arguments.seed is not None else SystemRandom().randrange(1 << 32)
    executed = f"{arguments.transactions:,} {arguments.workload} transactions"
    console.print(f"{executed} on five replicas ({arguments.engine}) with seed {seed}")
    directory = Path(tempfile.mkdtemp(prefix="priocast-judge-"))
    with postgres_server() if arguments.engine == "postgresql" else nullcontext() as create:
        databases = {name: create(f"replica_{name}") for name in NAMES} if create else None
        history, what = _record(arguments, seed, directory, databases)
    console.print(what)
    if arguments.out:
        shutil.copyfile(history, arguments.out)
    exit_code = _judge(history, console)
    if exit_code:
        console.print(f"violated with seed {seed}; the history is {history}")
    else:
        shutil.rmtree(directory)
    return exit_code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.judge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="list-append")
    parser.add_argument(
        "--transactions", type=int, default=10_000, help="how many, at least (default: 10000)"
    )
    parser.add_argument("--engine", choices=ENGINES, default="object", help="what is replicated")
    parser.add_argument("--clients", type=int, default=4, help="clients of each replica (default: 4)")
    parser.add_argument("--faults", type=int, help="how many faults happen (default: until the end)")
    parser.add_argument("--seed", type=int, help="repeats the faults of another run (default: a new one)")
    parser.add_argument("--stale-reads", action="store_true", help="a fault that the judge must find")
    parser.add_argument("--out", type=Path, help="where to keep the history")
    parser.add_argument("--history", help="judge this history instead of making one")
    return parser.parse_args()


def _record(
    arguments: argparse.Namespace, seed: int, directory: Path, databases: dict[str, str] | None
) -> tuple[Path, str]:
    """Make a history; returns its path, and what happened meanwhile."""
    task = judged_task(
        arguments.workload,
        arguments.clients,
        seed,
        engine=arguments.engine,
        stale_reads=arguments.stale_reads,
    )
    run = JudgedRun(task, directory, databases=databases)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        shown = progress.add_task("transactions", total=arguments.transactions)
        history = run.record(
            arguments.transactions,
            arguments.faults,
            lambda answered: progress.update(shown, completed=min(answered, arguments.transactions)),
        )
    faults = ", ".join(f"{times} x {name}" for name, times in sorted(Counter(run.faults).items()))
    return history, f"recorded in {time.monotonic() - began:.0f} s; faults: {faults or 'none'}"


def _judge(history: Path, console: Console) -> int:
    began = time.monotonic()
    verdict = judge_history(history, "local[2]")
    console.print(f"{_summary(verdict)}, judged in {time.monotonic() - began:.0f} s")
    for found in verdict.examples:
        console.print(
            f"{found.kind} at {found.rank // 2} (process {found.process}): {found.summary}", markup=False
        )
    if not verdict.holds:
        counted = ", ".join(f"{count:,} x {kind}" for kind, count in verdict.anomalies.items())
        console.print(f"not strictly serialisable: {counted}")
    return 0 if verdict.holds else 1


def _summary(verdict: HistoryVerdict) -> str:
    return (
        f"{verdict.transactions:,} transactions ({verdict.answered:,} answered, {verdict.failed:,} rejected, "
        f"{verdict.unknown:,} unknown, {verdict.unknown_executed:,} of those executed), "
        f"{verdict.steps:,} reads and writes: "
        f"{'strictly serialisable' if verdict.holds else 'anomalies'}"
    )


if __name__ == "__main__":
    sys.exit(main())
