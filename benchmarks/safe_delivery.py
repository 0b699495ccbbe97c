"""What safe delivery costs: rates and delivery times beside agreed delivery, as ratios within a round.

A safe message is delivered when every member of the view has acknowledged it, which is one hop later, and the
acknowledgements are frames of their own if nothing else is sent.
"""

import statistics

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.delivery import VariantOptions, by_variants, median_of_followers
from benchmarks.members import Load, run_members, slowest
from benchmarks.rates import for_fixed_time
from priocast.runtime.parameters import DeliveryGuarantee

ORDERS = ("sequencer-ub", "token-ring", "causal-history", "agreement-skeen")
RATE_PER_MEMBER = 50
MESSAGES_AT_LOW_LOAD = 100
SECONDS_AT_FULL_LOAD = 2.0
BURST = 4096
_UNBOUNDED = 1 << 40
_AGREED: VariantOptions = {"delivery": "agreed"}
_SAFE: VariantOptions = {"delivery": "safe"}
_GUARANTEES: tuple[DeliveryGuarantee, ...] = ("agreed", "safe")


def safe_delivery_table(members: int, rounds: int, console: Console) -> Table:
    """A row for each of the orders."""
    table = Table(title=f"agreed and safe delivery, {members} members")
    for heading in ("order", "k msg/s agreed", "safe", "ratio", "us agreed", "safe", "ratio"):
        table.add_column(heading, justify="left" if heading == "order" else "right")
    with Progress(console=console, transient=True) as progress:
        for order in progress.track(ORDERS, description="safe delivery"):
            rates = [_rates(order, members) for _ in range(rounds)]
            times = [_times(order, members) for _ in range(rounds)]
            table.add_row(order, *_cells(rates, 1e-3), *_cells(times, 1e6))
    return table


def _rates(order: str, members: int) -> tuple[float, float]:
    load = Load(members, _UNBOUNDED, 64, burst=BURST, window=0, frame_messages=0)
    agreed, safe = (
        slowest(load, for_fixed_time, True, order, SECONDS_AT_FULL_LOAD, guarantee)
        for guarantee in _GUARANTEES
    )
    return agreed, safe


def _times(order: str, members: int) -> tuple[float, float]:
    load = Load(members, MESSAGES_AT_LOW_LOAD, 64, burst=1, window=0, frame_messages=0)
    found = run_members(by_variants, load, order, RATE_PER_MEMBER, _AGREED, _SAFE)
    agreed, safe = (median_of_followers(of_variant) for of_variant in zip(*found, strict=True))
    return agreed, safe


def _cells(measured: list[tuple[float, float]], unit: float) -> list[str]:
    agreed, safe = zip(*measured, strict=True)
    ratio = statistics.median(other / one for one, other in measured)
    return [*(f"{statistics.median(each) * unit:,.0f}" for each in (agreed, safe)), f"{ratio:.2f}"]
