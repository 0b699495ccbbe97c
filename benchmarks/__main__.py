"""`python -m benchmarks`: everything, in one run, as ratios.

Each round measures the floor and the group one after the other, and the ratio is taken within the round; the
table shows the median over the rounds. Nothing else should run on the machine.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.classes import classes_table
from benchmarks.delivery import (
    RATE_PER_MEMBER,
    by_bare_sequencer,
    by_echo,
    by_variants,
    median_of_followers,
)
from benchmarks.floor import run_floor
from benchmarks.members import Load, run_members, slowest
from benchmarks.prioritisation import prioritisation_times
from benchmarks.qualities import qualities_tables
from benchmarks.rates import by_batches, one_by_one
from benchmarks.replicated_puts import replicated_puts_table
from benchmarks.safe_delivery import safe_delivery_table
from benchmarks.scheduler import busy_processes
from benchmarks.transactions import transactions_table
from benchmarks.version import measured_version
from benchmarks.view_change import CHANGES, FAILURE_MS, FOUNDERS, measure, spread

FULL_LOADS = (
    Load(4, messages=400_000, payload_bytes=64, burst=4096, window=32768, frame_messages=1024),
    Load(4, messages=60_000, payload_bytes=1024, burst=1024, window=8192, frame_messages=64),
    Load(8, messages=100_000, payload_bytes=64, burst=512, window=4096, frame_messages=1024),
    Load(8, messages=15_000, payload_bytes=1024, burst=512, window=4096, frame_messages=64),
)
ONE_BY_ONE_PART = 4
DELIVERY_LOADS = tuple(
    Load(members, messages=300, payload_bytes=64, burst=1, window=1, frame_messages=1) for members in (4, 8)
)
BATCH_SIZES = (1, 8, 64, 512)
ORDER = "sequencer-ub"
TABLES = (
    "rates",
    "delivery",
    "safe",
    "puts",
    "transactions",
    "classes",
    "qualities",
    "view-change",
    "scheduler",
    "prioritisation",
)


@dataclass
class Series:
    """The rates of one way of working, round by round."""

    name: str
    measure: Callable[[Load], float]
    rates: list[float] = field(default_factory=list)


def all_series(trace: str) -> list[Series]:
    """The floor first; the others are divided by it."""

    def fewer(load: Load) -> Load:
        return replace(load, messages=load.messages // ONE_BY_ONE_PART)

    return [
        Series("floor", lambda load: slowest(load, run_floor)),
        Series("batches, plain", lambda load: slowest(load, by_batches, False, "", ORDER)),
        Series("batches, prioritised", lambda load: slowest(load, by_batches, True, "", ORDER)),
        Series("one by one, plain", lambda load: slowest(fewer(load), one_by_one, False, "")),
        Series("one by one, prioritised", lambda load: slowest(fewer(load), one_by_one, True, "")),
        Series("batches, prioritised, traced", lambda load: slowest(load, by_batches, True, trace, ORDER)),
    ]


def rates_table(loads: tuple[Load, ...], rounds: int, console: Console) -> Table:
    """Rates for every load and way of working."""
    table = Table(title="messages per second delivered at the slowest member, and as a ratio of the floor")
    for heading in ("members", "payload", "mode", "msg/s", "of the floor", "of plain"):
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    with Progress(console=console, transient=True) as progress, tempfile.TemporaryDirectory() as directory:
        task = progress.add_task("rates", total=len(loads) * rounds * len(all_series("")))
        for load in loads:
            series = all_series(f"{directory}/{load.members}-{load.payload_bytes}")
            for _ in range(rounds):
                for each in series:
                    each.rates.append(each.measure(load))
                    progress.advance(task)
            _add_rates(table, load, series)
    return table


def _add_rates(table: Table, load: Load, series: list[Series]) -> None:
    rates = {each.name: each.rates for each in series}
    for name, measured in rates.items():
        counterpart = (
            rates.get(name.replace(", prioritised", ", plain")) if name.endswith("prioritised") else None
        )
        if name.endswith("traced"):
            counterpart = rates["batches, prioritised"]
        table.add_row(
            str(load.members),
            f"{load.payload_bytes} B",
            name,
            f"{statistics.median(measured):,.0f}",
            f"{_ratio(measured, rates['floor']):.2f}",
            f"{_ratio(measured, counterpart):.2f}" if counterpart else "",
        )
    table.add_section()


def _ratio(measured: list[float], base: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(measured, base, strict=True))


def delivery_table(rounds: int) -> Table:
    """Delivery times at 100 messages per second and member, as multiples of two floors."""
    table = Table(title="delivery time at 100 msg/s per member: median over the members that do not sequence")
    for heading in ("members", "mode", "median", "x raw round trip", "x bare sequencer"):
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    for load in DELIVERY_LOADS:
        floors = {"raw round trip": by_echo, "bare sequencer": by_bare_sequencer}
        measured: dict[str, list[float]] = {name: [] for name in (*floors, "plain", "prioritised")}
        for _ in range(rounds):
            for name, floor in floors.items():
                measured[name].append(median_of_followers(run_members(floor, load)))
            of_members = run_members(by_variants, load, ORDER, RATE_PER_MEMBER)
            for name, of_variant in zip(("plain", "prioritised"), zip(*of_members, strict=True), strict=True):
                measured[name].append(median_of_followers(of_variant))
        for name, times in measured.items():
            multiples = [f"{_ratio(times, measured[floor]):.2f}" for floor in floors]
            median = f"{statistics.median(times) * 1e6:,.0f} us"
            table.add_row(str(load.members), name, median, *multiples)
        table.add_section()
    return table


def scheduler_table() -> Table:
    """Raw round trips on an idle machine and on one whose cores are busy."""
    cores = os.cpu_count() or 1
    table = Table(title=f"what the scheduler alone costs: raw round trips on {cores} cores")
    for heading in ("busy processes beside", "median", "p99"):
        table.add_column(heading, justify="right")
    load = Load(2, messages=500, payload_bytes=64, burst=1, window=1, frame_messages=1)
    for busy in (0, 4):
        with busy_processes(busy):
            times = sorted(run_members(by_echo, load)[1])
        median, p99 = statistics.median(times), times[len(times) * 99 // 100]
        table.add_row(str(busy), f"{median * 1e6:,.0f} us", f"{p99 * 1e6:,.0f} us")
    return table


def prioritisation_table() -> Table:
    """What passing through the queue costs a message."""
    table = Table(title="prioritisation time: through the queue, per message")
    for heading in ("batch", "plain", "prioritised", "ratio"):
        table.add_column(heading, justify="right")
    for size, (plain, prioritised) in prioritisation_times(BATCH_SIZES).items():
        table.add_row(f"{size}", f"{plain:,.0f} ns", f"{prioritised:,.0f} ns", f"{prioritised / plain:.2f}")
    return table


def view_change_table(runs: int, console: Console) -> Table:
    """How long a view change takes, and what the group delivers meanwhile."""
    table = Table(
        title=f"view changes, {FOUNDERS} members, failure_ms = {FAILURE_MS:g}: median (from-to), {runs} runs"
    )
    for heading in ("event", "x failure_ms", "ms", "ms under load", "rate after it"):
        table.add_column(heading, justify="left" if heading == "event" else "right")
    with Progress(console=console, transient=True) as progress:
        for change in progress.track(CHANGES, description="view changes"):
            measured = measure(change, runs)
            milliseconds = [
                [1000 * each for each in of] for of in (measured.seconds, measured.seconds_loaded)
            ]
            table.add_row(
                change.name,
                spread(measured.multiples, ".2f"),
                *(spread(values, ",.0f") for values in milliseconds),
                spread(measured.rates, ".2f"),
            )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often to repeat everything (default: 3)")
    parser.add_argument("--quick", action="store_true", help="four members, one round")
    parser.add_argument(
        "--only", choices=TABLES, action="append", help="measure only this (may be given several times)"
    )
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    console = Console(width=110)
    console.print(f"Priocast: {measured_version()}")
    for name in arguments.only or TABLES:
        for table in tables_of(name, rounds, quick=arguments.quick, console=console):
            console.print(table)


def tables_of(name: str, rounds: int, *, quick: bool, console: Console) -> list[Table]:
    """Measure what one name of `TABLES` stands for."""
    measured: dict[str, Callable[[], list[Table]]] = {
        "rates": lambda: [rates_table(FULL_LOADS[:2] if quick else FULL_LOADS, rounds, console)],
        "delivery": lambda: [delivery_table(rounds)],
        "safe": lambda: [safe_delivery_table(4, rounds, console)],
        "puts": lambda: [replicated_puts_table(rounds, console)],
        "transactions": lambda: [transactions_table(rounds, console)],
        "classes": lambda: [classes_table((4,) if quick else (4, 8), rounds, console)],
        "qualities": lambda: qualities_tables(4, rounds, console),
        "view-change": lambda: [view_change_table(2 * rounds, console)],
        "scheduler": lambda: [scheduler_table()],
        "prioritisation": lambda: [prioritisation_table()],
    }
    return measured[name]()


if __name__ == "__main__":
    main()
