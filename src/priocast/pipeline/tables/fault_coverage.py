"""The coverage of a fault-injection campaign: faults injected, noticed and tolerated, by kind and quality.

A run of a campaign has labels that say which fault was injected into it and how often, and what the simulator
found broken, which also sees payloads. A fault was *noticed* in a run if a receipt says so (several rounds, a
rejection, too few answers), if a process was excluded from a view, or if a member rejected what another one
sent. It was *tolerated* if every promise held, for the simulator and for Spark.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql import functions as sf

from priocast.pipeline.service_tables import ServiceTrace
from priocast.pipeline.sources import StoredRun

ALL_QUALITIES = "all"


@dataclass(frozen=True)
class FaultCoverage:
    """One kind of fault in the runs of one quality.

    `assumed`: the quality assumes that such faults happen. `affected` are the runs with any, of `runs`.
    `lost` are the guarantees that did not hold in some of them.
    """

    fault: str
    quality: str
    assumed: bool
    runs: int
    affected: int
    injected: int
    noticed: int
    tolerated: int
    lost: tuple[str, ...]

    @property
    def coverage(self) -> float:
        """The share of the affected runs in which the fault was tolerated."""
        return self.tolerated / self.affected if self.affected else 1.0


def fault_coverage(trace: ServiceTrace, broken_on_spark: Mapping[str, set[str]]) -> list[FaultCoverage]:
    """The coverage of each kind of fault and quality, in the order of the runs' labels.

    `broken_on_spark` are the guarantees that do not hold, by run. If the simulator found a violation, which
    is in the labels, it ended the run there: what Spark misses in it would have come later.
    """
    noticed = _noticed_in_receipts(trace)
    broken: dict[str, set[str]] = {}
    cells: dict[tuple[str, str], list[StoredRun]] = defaultdict(list)
    for run in trace.runs:
        labels = run.manifest.labels
        of_simulator = set(filter(None, labels["broken"].split(", ")))
        broken[run.name] = of_simulator or broken_on_spark.get(run.name, set())
        cells[labels["fault"], labels["quality"]].append(run)
    found = []
    for (fault, quality), runs in sorted(cells.items()):
        affected = [run for run in runs if int(run.manifest.labels["injected"])]
        found.append(
            FaultCoverage(
                fault=fault,
                quality=quality,
                assumed=runs[0].manifest.labels["assumed"] == "yes",
                runs=len(runs),
                affected=len(affected),
                injected=sum(int(run.manifest.labels["injected"]) for run in runs),
                noticed=sum(run.name in noticed or _is_noticed(run) for run in affected),
                tolerated=sum(not broken[run.name] for run in affected),
                lost=tuple(sorted(set().union(*(broken[run.name] for run in affected)))),
            )
        )
    return found


def with_totals(rows: Sequence[FaultCoverage]) -> Iterator[FaultCoverage]:
    """The rows, and before those of each kind of fault one for all its qualities, if there are several."""
    for _, grouped in groupby(rows, key=lambda row: row.fault):
        same = list(grouped)
        if len(same) > 1:
            yield FaultCoverage(
                fault=same[0].fault,
                quality=ALL_QUALITIES,
                assumed=same[0].assumed,
                runs=sum(row.runs for row in same),
                affected=sum(row.affected for row in same),
                injected=sum(row.injected for row in same),
                noticed=sum(row.noticed for row in same),
                tolerated=sum(row.tolerated for row in same),
                lost=tuple(sorted({each for row in same for each in row.lost})),
            )
        yield from same


def _noticed_in_receipts(trace: ServiceTrace) -> set[str]:
    """The runs in which a receipt says that something was lost or rejected."""
    if trace.services is None:
        return set()
    troubled = (sf.col("rounds") > 1) | (sf.size("rejected") > 0) | ~sf.col("accepted")
    rows = trace.services.messages.where(sf.col("finished") & troubled).select("run").distinct().collect()
    return {row["run"] for row in rows}


def _is_noticed(run: StoredRun) -> bool:
    """Whether a process was excluded, or what it sent was rejected."""
    return int(run.manifest.labels["noticed"]) > 0 or any(
        row.failed or row.evicted for row in run.group_events
    )
