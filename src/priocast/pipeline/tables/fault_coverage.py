"""The coverage of a fault-injection campaign: faults injected, noticed and tolerated, by kind and quality.

A run of a campaign has labels that say which fault was injected into it and how often, and what the simulator
found broken, which also sees payloads. A fault was *noticed* in a run if a receipt says so (several rounds, a
rejection, too few answers), if a process was excluded from a view, or if a member rejected what another one
sent. It was *tolerated* if every promise held, for the simulator and for Spark.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import functions as sf

from priocast.pipeline.sources import StoredRun
from priocast.pipeline.trace_tables import TraceTables
from priocast.pipeline.verdicts import Verdict


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


def fault_coverage(trace: TraceTables, verdicts: Iterable[Verdict]) -> list[FaultCoverage]:
    """The coverage of each kind of fault and quality, in the order of the runs' labels."""
    noticed = _noticed_in_receipts(trace)
    broken: dict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        if verdict.promised and not verdict.holds:
            broken[verdict.run].add(verdict.guarantee)
    cells: dict[tuple[str, str], list[StoredRun]] = defaultdict(list)
    for run in trace.runs:
        labels = run.manifest.labels
        broken[run.name].update(filter(None, labels["broken"].split(", ")))
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


def _noticed_in_receipts(trace: TraceTables) -> set[str]:
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
