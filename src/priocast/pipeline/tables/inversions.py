"""Inversions: how many messages of each priority a less urgent one was ordered before while they waited.

A measurement for any run that has an orderer, plain ones too; that a prioritised run keeps its promise is for
the check of Priority, by the same definition.
"""

from dataclasses import dataclass

from priocast.pipeline.checks.priority import inversions
from priocast.pipeline.evidence import Evidence


@dataclass(frozen=True)
class Inversions:
    """How many of the messages of one priority in one run were overtaken by a less urgent one."""

    run: str
    priority: int
    queued: int
    overtaken: int

    @property
    def share(self) -> float:
        return self.overtaken / self.queued


def count_inversions(evidence: Evidence) -> list[Inversions]:
    """The inversions of each run and priority that went through an orderer's queue."""
    if not any(counted.queue_entries for counted in evidence.census):
        return []
    overtaken = {(row["run"], row["priority"]): row["overtaken"] for row in inversions(evidence).collect()}
    return [
        Inversions(
            counted.run,
            counted.priority,
            counted.queue_entries,
            overtaken.get((counted.run, counted.priority), 0),
        )
        for counted in evidence.census
        if counted.queue_entries
    ]
