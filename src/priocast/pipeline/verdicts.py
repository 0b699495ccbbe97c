"""Verdicts: every check over every run, in one Spark job, as plain values."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from priocast.pipeline.checks.catalogue import CHECKS
from priocast.pipeline.evidence import Evidence
from priocast.pipeline.sources import Run

EXAMPLES_MAX = 10


@dataclass(frozen=True)
class Violation:
    """One place where a property does not hold."""

    view: int | None
    position: int | None
    messages: tuple[str, ...]
    members: tuple[str, ...]
    detail: str


@dataclass(frozen=True)
class Verdict:
    """What was found about one property in one run; `examples` are its first violations."""

    run: str
    property: str
    says: str
    promised: bool
    examined: int
    examined_what: str
    violations: int
    examples: tuple[Violation, ...]

    @property
    def holds(self) -> bool:
        return self.violations == 0


def judge(evidence: Evidence, runs: Sequence[Run], examples_max: int = EXAMPLES_MAX) -> list[Verdict]:
    """Run all checks over all runs."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in first_of_each(find_all(evidence), examples_max).collect():
        found[row["run"], row["property"]].append(row)
    return [
        Verdict(
            run=run.name,
            property=check.property,
            says=check.says,
            promised=check.promised(run.manifest),
            examined=getattr(evidence.census[run.name], check.examines.replace(" ", "_")),
            examined_what=check.examines,
            violations=rows[0]["total"] if rows else 0,
            examples=tuple(_violation(row) for row in rows),
        )
        for run in runs
        for check in CHECKS
        for rows in [found[run.name, check.property]]
    ]


def find_all(evidence: Evidence) -> DataFrame:
    """The violations of every property as one table."""
    tables = [check.find(evidence).withColumn("property", F.lit(check.property)) for check in CHECKS]
    return reduce(DataFrame.unionByName, tables)


def first_of_each(violations: DataFrame, count_max: int) -> DataFrame:
    """The first violations of each property in each run, with the `total` that there are."""
    of_property = Window.partitionBy("run", "property")
    in_order = of_property.orderBy("view", "position", "messages", "members")
    return (
        violations.withColumn("total", F.count(F.lit(1)).over(of_property))
        .withColumn("place", F.row_number().over(in_order))
        .where(F.col("place") <= count_max)
        .orderBy("run", "property", "place")
    )


def _violation(row: Row) -> Violation:
    return Violation(
        row["view"], row["position"], tuple(row["messages"]), tuple(row["members"]), row["detail"]
    )
