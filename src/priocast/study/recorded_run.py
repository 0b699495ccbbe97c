"""What the workers of recorded runs share: the task, how a member joins, and what a run must not contain."""

from pathlib import Path

import msgspec

from priocast.core.errors import GroupClosed
from priocast.core.events import Event, Evicted, ViewChange
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MembershipOptions
from priocast.runtime.group import Group
from priocast.runtime.node import WithNode, join
from priocast.services.options import ServiceOptions
from priocast.testing.worker import MemberTask

# All members share one busy machine: a slow member must not be suspected.
_FAILURE_MS = 5_000.0
_SLOW_MS = MembershipOptions(founders=1).slow_ms


class RecordedRunTask(MemberTask, frozen=True, kw_only=True):
    """The task of one member of a run that records its trace; nothing is recorded if `trace` is empty.

    `admin` is the address of its live page, if it has one.
    """

    run: str
    order: str
    options: OrderingOptions
    trace: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    admin: str | None = None


def join_run(
    task: RecordedRunTask, group: str, slow_ms: float = _SLOW_MS, services: ServiceOptions | None = None
) -> WithNode[Group]:
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
        services=services,
        trace=Path(task.trace) if task.trace else None,
        run=task.run if task.trace else "",
        labels=task.labels if task.trace else None,
        admin=task.admin,
    )


def check_undisturbed(event: Event) -> None:
    """Raise an error if the view has changed: a run is measured in its first view."""
    if isinstance(event, Evicted) or (isinstance(event, ViewChange) and event.view.number > 1):
        raise GroupClosed(f"the run failed, because the view changed: {event.reason}")
