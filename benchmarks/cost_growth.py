"""How the processor time of a message grows with members, size and load: `python -m benchmarks.cost_growth`.

All members are in one process, without a network and in virtual time (`driven_group.py`), so only what the
members compute counts, and other programs matter little. One thing grows at a time:

- *members*: the time of a message at one member, for a lone message and at full load. In a class where every
  member answers every message, a member handles n frames a message: the time grows with n, and must not grow
  faster. The exponent is the slope between the larger groups on logarithmic scales: 1 is linear. With
  `--instructions` those of the interpreter are counted for a lone message instead, which no load changes.
- *size*: the time in all members of a lone message, as a constant and what a KiB adds.
- *load*: the time in all members, if so many messages of each member are broadcast at once, as what each of
  them takes and what they share.

Every fit is by least squares, on the shortest times of several rounds, in which the values take turns.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.driven_group import DrivenGroup
from benchmarks.instructions import instructions_of
from benchmarks.message_cost import microseconds, settled_group
from benchmarks.version import measured_version
from priocast.protocols import PROTOCOLS

MEMBERS = (2, 4, 8, 16, 32)
SIZES = (64, 1_024, 8_192, 65_536)
LOADS = (1, 8, 64, 512)
FULL_LOAD = 64
#: From this size on a group is large: what does not grow with it hardly counts any more.
LARGE = 8
#: A time that is measured varies by a few percent, and the exponent with it.
EXPONENT_MAX = 1.15
_MEMBERS, _KIB = 4, 1_024
_LONE = 1
_COUNTED_MESSAGES = 3

Costs = dict[int, float]
Rows = Callable[[], list[list[str]]]


def fit_line(times: Mapping[float, float]) -> tuple[float, float]:
    """The constant and the slope of the line that fits best."""
    slope, constant = statistics.linear_regression(list(times), list(times.values()))
    return constant, slope


def exponent(times: Mapping[int, float], smallest: int = LARGE) -> float:
    """How the times grow from this size on: 0 is not at all, 1 linearly, 2 with the square."""
    large = {math.log(size): math.log(time) for size, time in times.items() if size >= smallest}
    return fit_line(large)[1]


def by_members(order: str, burst: int, sizes: Sequence[int], rounds: int) -> Costs:
    """The time of a message at one member, by the number of members."""
    groups = {size: settled_group(size, order) for size in sizes}
    senders = {size: list(group.members) if burst > _LONE else None for size, group in groups.items()}
    cases = {size: partial(microseconds, groups[size], burst, senders=senders[size]) for size in sizes}
    return {size: time / size for size, time in _by_turns(cases, rounds).items()}


def instructions_by_members(order: str, sizes: Sequence[int]) -> Costs:
    """The instructions that one member executes for a lone message, by the number of members."""
    return {size: _lone_instructions(settled_group(size, order)) / size for size in sizes}


def _lone_instructions(group: DrivenGroup) -> float:
    """The instructions in all members; the first message does what is done once."""
    _broadcast_alone(group)
    counts = [instructions_of(partial(_broadcast_alone, group)) for _ in range(_COUNTED_MESSAGES)]
    return statistics.mean(counts)


def _broadcast_alone(group: DrivenGroup) -> None:
    expected = group.deliveries + len(group.members)
    group.broadcast(list(group.members)[1], bytes(64))
    group.run_until(lambda: group.deliveries == expected)


def by_size(order: str, rounds: int) -> Costs:
    """The time of a lone message in all members, by its bytes."""
    group = settled_group(_MEMBERS, order)
    return _by_turns({size: partial(microseconds, group, _LONE, size) for size in SIZES}, rounds)


def by_load(order: str, rounds: int) -> Costs:
    """The time of a message in all members, by how many messages each member broadcasts at once."""
    group = settled_group(_MEMBERS, order)
    everybody = list(group.members)
    return _by_turns({load: partial(microseconds, group, load, senders=everybody) for load in LOADS}, rounds)


def _by_turns(cases: Mapping[int, Callable[[], float]], rounds: int) -> Costs:
    """The shortest time of each case: they take turns, because the speed of a machine changes."""
    times = [{size: case() for size, case in cases.items()} for _ in range(rounds)]
    return {size: min(each[size] for each in times) for size in cases}


def members_table(
    orders: Sequence[str], sizes: Sequence[int], cost: Callable[[str], Costs]
) -> list[list[str]]:
    """A row for each order: what a message costs, the line, and how it grows."""
    headings = ["order", *(f"n = {size}" for size in sizes), "line", "exponent"]
    return [headings, ["---"] * len(headings)] + [_growth_row(order, cost(order)) for order in orders]


def _growth_row(order: str, times: Costs) -> list[str]:
    constant, slope = fit_line({float(size): time for size, time in times.items()})
    grows = exponent(times)
    line = f"{constant:.1f} {slope:+.2f} n"
    verdict = f"{grows:.2f}" if grows <= EXPONENT_MAX else f"**{grows:.2f}**"
    return [f"`{order}`", *(f"{time:.1f}" for time in times.values()), line, verdict]


def size_table(orders: Sequence[str], rounds: int) -> list[list[str]]:
    """A row for each order: the times by size, and what a KiB adds."""
    headings = ["order", *(f"{size:,} B" for size in SIZES), "line"]
    rows = []
    for order in orders:
        times = by_size(order, rounds)
        constant, slope = fit_line({size / _KIB: time for size, time in times.items()})
        row = [f"`{order}`", *(f"{time:.1f}" for time in times.values()), f"{constant:.1f} {slope:+.2f} KiB"]
        rows.append(row)
    return [headings, ["---"] * len(headings), *rows]


def load_table(orders: Sequence[str], rounds: int) -> list[list[str]]:
    """A row for each order: the times by load, and which part of them is shared."""
    headings = ["order", *(f"{load} at once" for load in LOADS), "line"]
    rows = []
    for order in orders:
        times = by_load(order, rounds)
        shared, each = fit_line({float(load): time * load for load, time in times.items()})
        line = f"{each:.2f} {shared:+.0f} / load"
        rows.append([f"`{order}`", *(f"{time:.2f}" for time in times.values()), line])
    return [headings, ["---"] * len(headings), *rows]


def timed_tables(orders: Sequence[str], sizes: Sequence[int], rounds: int) -> dict[str, Rows]:
    """What is measured in processor time, by title."""
    kind = measured_version()

    def by_burst(burst: int) -> list[list[str]]:
        return members_table(orders, sizes, lambda order: by_members(order, burst, sizes, rounds))

    return {
        f"a lone message, us at each member ({kind})": partial(by_burst, _LONE),
        f"{FULL_LOAD} messages of each member at once, us a message at each member ({kind})": partial(
            by_burst, FULL_LOAD
        ),
        f"a lone message, {_MEMBERS} members, us in all ({kind})": partial(size_table, orders, rounds),
        f"{_MEMBERS} members, us a message in all ({kind})": partial(load_table, orders, rounds),
    }


def counted_tables(orders: Sequence[str], sizes: Sequence[int]) -> dict[str, Rows]:
    """What is counted in instructions, by title."""
    cost = partial(instructions_by_members, sizes=sizes)
    title = "a lone message, instructions at each member"
    return {title: partial(members_table, orders, sizes, cost)}


def main() -> None:
    """Measure and print the tables, as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_growth", description=__doc__)
    parser.add_argument("orders", nargs="*", default=list(PROTOCOLS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--members", type=int, nargs="+", default=MEMBERS, help="group sizes (at least two large)"
    )
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions instead of measuring times"
    )
    arguments = parser.parse_args()
    orders, sizes = arguments.orders, arguments.members
    if arguments.instructions:
        tables = counted_tables(orders, sizes)
    else:
        tables = timed_tables(orders, sizes, arguments.rounds)
    for title, rows in tables.items():
        print(f"\n**{title}**\n")
        for row in rows():
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
