"""What the workers of recorded runs share: the task, and how a member joins."""

from pathlib import Path

from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.runtime.group import Group
from priocast.runtime.node import WithNode, join
from priocast.testing.worker import MemberTask

# All members share one busy machine: a slow member must not be suspected.
_FAILURE_MS = 5_000.0
_SLOW_MS = MembershipOptions(founders=1).slow_ms


class RecordedRunTask(MemberTask, frozen=True, kw_only=True):
    """The task of one member of a run that records its trace."""

    run: str
    order: str
    options: OrderingOptions
    trace: str
    labels: dict[str, str]


def join_run(task: RecordedRunTask, group: str, slow_ms: float = _SLOW_MS) -> WithNode[Group]:
    """Join the group of a run; all members are founders."""
    founders = len(task.peers) + 1
    membership = MembershipOptions(founders=founders, failure_ms=_FAILURE_MS, slow_ms=slow_ms)
    return join(
        group,
        member=task.member,
        listen=task.listen,
        peers=task.peers,
        order=task.order,
        options=task.options,
        prioritised=task.options.prioritised,
        membership=membership,
        incarnation=1,
        trace=Path(task.trace),
        run=task.run,
        labels=task.labels,
    )
