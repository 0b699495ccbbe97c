"""The cost paper's experiment: what priorities cost in delivery time, processor time and memory.

Every member is a process that broadcasts at a steady rate with random priorities (section 4.2). All deliver
the same sequence; what a member delivers first is a warm-up and is dropped, and all go on sending until the
last member has recorded enough, so that the load is steady to the end (section 4.3). A cell is one group:
an order, plain or prioritised, with a number of members and a rate.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.message import PAYLOAD_BYTES_MAX
from priocast.core.protocol import OrderingOptions
from priocast.protocols import check_order
from priocast.study.cost_worker import NUMBER_BYTES, CostReport, CostTask
from priocast.testing.process_group import WorkerProgram, loopback_members, run_in_agreement

PAPER_ORDERS = ("sequencer-ub", "token-ring", "causal-history")
VARIANTS = {"plain": False, "prioritised": True}
MEMBERS_MAX = 64
RATE_MAX = 10_000
DELIVERIES_MAX = 10_000_000
_WORKER = WorkerProgram("priocast.study.cost_worker", CostReport)
#: The paper's token ring sends one message in each visit of the token (section 4.3).
_OPTIONS_OF: Mapping[str, OrderingOptions] = {"token-ring": OrderingOptions(burst=1)}


class CostPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured. `rates` are messages per second and member."""

    orders: tuple[str, ...] = PAPER_ORDERS
    members: tuple[int, ...] = (4, 8)
    rates: tuple[int, ...] = (10, 40, 60, 80, 100)
    deliveries: int = 32_000
    dropped: int = 3_200
    payload_bytes: int = 64
    seed: int = 1

    def __post_init__(self) -> None:
        for order in self.orders:
            check_order(order, primary=True, policy=OrderingOptions().policy)
        if not self.members or not all(2 <= count <= MEMBERS_MAX for count in self.members):
            raise InvalidOption(f"members is {self.members}: name sizes from 2 to {MEMBERS_MAX}")
        if not self.rates or not all(1 <= rate <= RATE_MAX for rate in self.rates):
            raise InvalidOption(f"rates is {self.rates}: from 1 to {RATE_MAX:,} messages a second")
        if not 1 <= self.deliveries <= DELIVERIES_MAX:
            raise InvalidOption(f"deliveries is {self.deliveries}: from 1 to {DELIVERIES_MAX:,}")
        if not 0 <= self.dropped < self.deliveries:
            raise InvalidOption(f"dropped is {self.dropped}: from 0 to below deliveries, {self.deliveries:,}")
        if not NUMBER_BYTES <= self.payload_bytes <= PAYLOAD_BYTES_MAX:
            raise InvalidOption(
                f"payload_bytes is {self.payload_bytes}: from {NUMBER_BYTES} to {PAYLOAD_BYTES_MAX:,}"
            )

    def cells(self) -> Iterator["CostCell"]:
        """All groups, the shortest runs first; the two variants of an order follow each other."""
        sizes = [(rate, members) for rate in self.rates for members in self.members]
        for rate, members in sorted(sizes, key=lambda size: -size[0] * size[1]):
            for order in self.orders:
                for variant in VARIANTS:
                    yield CostCell(order, variant, members, rate)


class CostCell(msgspec.Struct, frozen=True, order=True):
    """One group that is measured."""

    order: str
    variant: str
    members: int
    rate: int

    @property
    def name(self) -> str:
        """Its name, which its files begin with."""
        return f"{self.order.replace('/', '+')}-{self.variant}-{self.members}-{self.rate}"

    @property
    def options(self) -> OrderingOptions:
        """The options of its order."""
        options = _OPTIONS_OF.get(self.order, OrderingOptions())
        return msgspec.structs.replace(options, prioritised=VARIANTS[self.variant])


def measure_cell(plan: CostPlan, cell: CostCell, on_progress: Callable[[int], None]) -> list[CostReport]:
    """Carry out one run on processes of this machine, over TCP on the loopback network."""
    tasks = [
        CostTask(
            **member,
            run=cell.name,
            order=cell.order,
            options=cell.options,
            rate=cell.rate,
            deliveries=plan.deliveries,
            dropped=plan.dropped,
            payload_bytes=plan.payload_bytes,
            seed=str(plan.seed),
        )
        for member in loopback_members(cell.members)
    ]
    return run_in_agreement(cell.name, _WORKER, tasks, on_progress)
