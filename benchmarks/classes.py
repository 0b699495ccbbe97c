"""Every class of total order, prioritised over plain: throughput under full load, delivery time at low load.

The twins are measured one after the other within a round, and the ratio is taken within the round.
"""

import statistics
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.delivery import by_group
from benchmarks.processes import Load, run_members, slowest
from benchmarks.rates import by_batches
from priocast.protocols import PROTOCOLS

#: So little that no class is saturated by it, not even those with a frame from each member to each other.
RATE_PER_MEMBER = 25
MESSAGES_AT_LOW_LOAD = 100
MESSAGES_AT_FULL_LOAD = {4: 200_000, 8: 50_000}


@dataclass
class Twins:
    """Both twins of one class in a group of one size, round by round."""

    plain: list[float] = field(default_factory=list)
    prioritised: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Prioritised over plain: the median of the rounds."""
        return statistics.median(one / other for one, other in zip(self.prioritised, self.plain, strict=True))


def measure_rates(order: str, members: int, twins: Twins) -> None:
    """One round of messages per second at the slowest member."""
    load = Load(members, MESSAGES_AT_FULL_LOAD[members], 64, burst=512, window=0, frame_messages=0)
    twins.plain.append(slowest(load, by_batches, False, "", order))
    twins.prioritised.append(slowest(load, by_batches, True, "", order))


def measure_delivery(order: str, members: int, twins: Twins) -> None:
    """One round of mean delivery times, in seconds, over all members."""
    load = Load(members, MESSAGES_AT_LOW_LOAD, 64, burst=1, window=0, frame_messages=0)
    for times, prioritised in ((twins.plain, False), (twins.prioritised, True)):
        found = run_members(members, by_group, load, prioritised, order, RATE_PER_MEMBER)
        times.append(statistics.mean(time for of_member in found for time in of_member))


def classes_table(sizes: tuple[int, ...], rounds: int, console: Console) -> Table:
    """A row for each class and size."""
    table = Table(title=f"all classes; delivery times at {RATE_PER_MEMBER} msg/s per member are means")
    headings = ("members", "class", "msg/s, plain", "prioritised", "ratio")
    for heading in (*headings, "delivery, plain", "prioritised", "ratio"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("classes", total=len(sizes) * len(PROTOCOLS) * rounds)
        for members in sizes:
            for order in PROTOCOLS:
                rates, times = Twins(), Twins()
                for _ in range(rounds):
                    measure_rates(order, members, rates)
                    measure_delivery(order, members, times)
                    progress.advance(task)
                table.add_row(
                    str(members),
                    order,
                    *(f"{statistics.median(twin):,.0f}" for twin in (rates.plain, rates.prioritised)),
                    f"{rates.ratio:.2f}",
                    *(f"{statistics.median(twin) * 1e3:.2f} ms" for twin in (times.plain, times.prioritised)),
                    f"{times.ratio:.2f}",
                )
            table.add_section()
    return table
