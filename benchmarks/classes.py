"""Every class of total order, prioritised over plain: throughput under full load, delivery time at low load.

Ratios are taken within a round. Delivery times are those of two groups in the same processes, which send
messages alternately. Rates are measured one after the other: every member broadcasts at eight levels in turn,
as fast as flow control allows, in large bursts, where frames are full anyway, and in small ones, where
priorities make batches smaller.
"""

import statistics
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.delivery import by_variants
from benchmarks.members import Load, run_members, slowest
from benchmarks.rates import LEVELS, for_fixed_time
from priocast.protocols import PROTOCOLS

#: Low enough for every class, even those with a frame from each member to each other one.
RATE_PER_MEMBER = 50
MESSAGES_AT_LOW_LOAD = 100
BURSTS = (4096, 512)
SECONDS_AT_FULL_LOAD = 1.5
_UNBOUNDED = 1 << 40


@dataclass
class Variants:
    """Both variants of one class in a group of one size, round by round."""

    plain: list[float] = field(default_factory=list)
    prioritised: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Prioritised over plain: the median of the rounds."""
        return statistics.median(one / other for one, other in zip(self.prioritised, self.plain, strict=True))


def measure_rates(order: str, members: int, burst: int, variants: Variants) -> None:
    """One round of messages per second at the slowest member."""
    load = Load(members, _UNBOUNDED, 64, burst=burst, window=0, frame_messages=0)
    variants.plain.append(slowest(load, for_fixed_time, False, order, SECONDS_AT_FULL_LOAD))
    variants.prioritised.append(slowest(load, for_fixed_time, True, order, SECONDS_AT_FULL_LOAD))


def measure_delivery(order: str, members: int, variants: Variants) -> None:
    """One round of mean delivery times, in seconds, over all members."""
    load = Load(members, MESSAGES_AT_LOW_LOAD, 64, burst=1, window=0, frame_messages=0)
    found = run_members(by_variants, load, order, RATE_PER_MEMBER)
    for times, of_members in zip(
        (variants.plain, variants.prioritised), zip(*found, strict=True), strict=True
    ):
        times.append(statistics.mean(time for of_member in of_members for time in of_member))


@dataclass
class ClassResults:
    """The results of one class in a group of one size: rates by burst, and delivery times."""

    rates: dict[int, Variants] = field(default_factory=lambda: {burst: Variants() for burst in BURSTS})
    times: Variants = field(default_factory=Variants)


def classes_table(sizes: tuple[int, ...], rounds: int, console: Console) -> Table:
    """A row for each class and size."""
    bursts = " and ".join(str(burst // LEVELS) for burst in BURSTS)
    table = Table(
        title=f"all classes, plain and prioritised: thousands of messages per second in bursts of {bursts}; "
        f"mean delivery time at {RATE_PER_MEMBER} messages per second and member"
    )
    table.add_column("n", justify="right")
    table.add_column("class", no_wrap=True)
    for unit in (*("k msg/s" for _ in BURSTS), "ms"):
        for heading in (unit, "prior.", "ratio"):
            table.add_column(heading, justify="right", no_wrap=True)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("classes", total=len(sizes) * len(PROTOCOLS) * rounds)
        for members in sizes:
            for order in PROTOCOLS:
                measured = ClassResults()
                for _ in range(rounds):
                    for burst, rates in measured.rates.items():
                        measure_rates(order, members, burst, rates)
                    measure_delivery(order, members, measured.times)
                    progress.advance(task)
                table.add_row(str(members), order, *_cells(measured))
            table.add_section()
    return table


def _cells(measured: ClassResults) -> list[str]:
    cells = []
    for rates in measured.rates.values():
        cells += [f"{statistics.median(variant) / 1e3:,.0f}" for variant in (rates.plain, rates.prioritised)]
        cells.append(f"{rates.ratio:.2f}")
    times = measured.times
    cells += [f"{statistics.median(variant) * 1e3:.2f}" for variant in (times.plain, times.prioritised)]
    return [*cells, f"{times.ratio:.2f}"]
