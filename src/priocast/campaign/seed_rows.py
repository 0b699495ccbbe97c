"""One row of the table of results for each seed: its scenario, its verdict, and what happened in it."""

import time
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from priocast.campaign.plan import PlannedSeed
from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.swarm import result_of

RESULT_COLUMNS = StructType(
    [
        StructField("code", StringType()),
        StructField("cell", StringType()),
        StructField("seed", LongType()),
        StructField("order", StringType()),
        StructField("prioritised", BooleanType()),
        StructField("policy", StringType()),
        StructField("delivery", StringType()),
        StructField("members", LongType()),
        StructField("load", LongType()),
        StructField("fault", StringType()),
        StructField("digest", StringType()),
        StructField("violations", ArrayType(StringType())),
        StructField("guarantees", ArrayType(StringType())),
        StructField("broadcasts", LongType()),
        StructField("deliveries", LongType()),
        StructField("frames", LongType()),
        StructField("views", LongType()),
        StructField("settling_ns", LongType()),
        StructField("occurred", MapType(StringType(), LongType())),
        StructField("virtual_ns", LongType()),
        StructField("seconds", DoubleType()),
    ]
)


class SeedRunner(msgspec.Struct, frozen=True):
    """Runs the planned seeds with these numbers; it is sent to the executors."""

    planned: Sequence[PlannedSeed]
    code: str

    def __call__(self, numbers: Iterable[int]) -> Iterator[tuple[object, ...]]:
        for number in numbers:
            yield self._row(self.planned[number])

    def _row(self, planned: PlannedSeed) -> tuple[object, ...]:
        started = time.perf_counter()
        scenario = generate_scenario(planned.seed, planned.choice)
        result = result_of(run_scenario(scenario), started)
        counters = result.counters
        return (
            self.code,
            planned.cell,
            planned.seed,
            scenario.order,
            scenario.ordering.prioritised,
            scenario.membership.policy,
            scenario.membership.delivery,
            len(scenario.members),
            planned.choice.load,
            planned.choice.fault,
            result.digest,
            [str(violation) for violation in result.violations],
            [violation.guarantee for violation in result.violations],
            counters.broadcasts,
            counters.deliveries,
            counters.frames,
            counters.views,
            counters.settling_ns,
            counters.occurred,
            result.virtual_ns,
            result.seconds,
        )
