"""The checkers of a run, by what its scenario guarantees."""

from collections.abc import Callable, Iterable, Mapping

from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.member import Member
from priocast.membership.epoch import Epoch
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.agreement import Agreement
from priocast.simulation.checkers.checker import Checker, ReportViolation
from priocast.simulation.checkers.equal_states import EqualStates
from priocast.simulation.checkers.fifo import FifoAmongEquals
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.checkers.liveness import Liveness
from priocast.simulation.checkers.memory import BoundedMemory
from priocast.simulation.checkers.overtaking import BoundedOvertaking
from priocast.simulation.checkers.priority import Priority
from priocast.simulation.checkers.priority_accounting import PriorityAccounting
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.service_history import ServiceHistory
from priocast.simulation.checkers.service_set import service_checkers
from priocast.simulation.checkers.timestamp_order import TimestampOrder
from priocast.simulation.checkers.total_order import TotalOrder
from priocast.simulation.checkers.uniformity import Uniformity
from priocast.simulation.checkers.view_synchrony import ViewSynchrony
from priocast.simulation.checkers.window import BoundedWindow
from priocast.simulation.counters import Counters
from priocast.simulation.faults import MICROSECOND
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.scenario import Scenario
from priocast.simulation.transition_counts import TransitionCounter
from priocast.simulation.workload import PlannedBroadcast


def trace_checkers(
    scenario: Scenario,
    report: ReportViolation,
    counters: Counters,
    history: RunHistory,
    *,
    window: int | None,
    sees_grants: bool,
) -> list[Checker]:
    """The checkers that need only the trace of a run, and the grants if they can be seen."""
    membership, workload, ordering = scenario.membership, scenario.workload, scenario.ordering
    all_safe = membership.delivery == "safe"
    checkers: list[Checker] = [
        Integrity(report),
        TotalOrder(report, history, strict=all_safe or not membership.primary),
        ViewSynchrony(report, membership.primary),
        FifoAmongEquals(report, membership.primary),
        TimestampOrder(report),
        Priority(report, counters),
        Agreement(report, history),
        PriorityAccounting(report, history, all_safe=all_safe, joiners_wait=membership.state),
    ]
    if membership.primary:
        checkers.append(Uniformity(report, history, all_safe))
    skips = workload.addressed_percent or workload.client_requests or membership.state
    checkers.append(BoundedWindow(report, window, counts_deliveries=not skips, sees_grants=sees_grants))
    if ordering.overtakes_max is not None:
        checkers.append(
            BoundedOvertaking(
                report,
                ordering.overtakes_max,
                all_safe=all_safe,
                joiners_wait=membership.state,
                senders_decide=not ordering.distributed,
            )
        )
    return checkers


class CheckerSet:
    """One checker of each kind that applies.

    The history comes first, because others read it when the run is over. Checkers that make sense only in a
    quiescent run come after Liveness, which reports a run that is not.
    """

    def __init__(
        self,
        scenario: Scenario,
        report: ReportViolation,
        counters: Counters,
        *,
        crashed: set[str],
        pending: Callable[[], str | None],
        expected: Callable[[], Iterable[PlannedBroadcast]],
        members: Callable[[], list[Member]],
        states: Callable[[], Mapping[str, ApplicationState]],
    ) -> None:
        membership = scenario.membership
        self.history = RunHistory()
        of_trace = trace_checkers(
            scenario, report, counters, self.history, window=scenario.ordering.window, sees_grants=True
        )
        self._integrity = next(checker for checker in of_trace if isinstance(checker, Integrity))
        self._liveness = Liveness(
            report,
            self.history,
            primary=membership.primary,
            all_safe=membership.delivery == "safe",
            pending=pending,
            expected=expected,
            states=states,
        )
        self._memory = BoundedMemory(report, scenario.ordering, members)
        self._primary = membership.primary
        self._counters = counters
        self._donors: dict[Member, ProcessId] = {}
        self._epochs: dict[Member, Epoch | None] = {}
        self.checkers: list[Checker] = [
            self.history,
            TransitionCounter(counters, crashed),
            *of_trace,
            self._liveness,
            self._memory,
        ]
        if membership.state:
            self.checkers.append(EqualStates(report, states, self._has_one_history))
        if scenario.services.messages:
            services = ServiceHistory()
            precision_ns = scenario.services.precision_us * MICROSECOND
            self.checkers += [services, *service_checkers(report, services, precision_ns)]

    def _has_one_history(self) -> bool:
        """Whether all members at the end have one history; after a merge, each side keeps its state."""
        return self._primary or "merge" not in self._counters.occurred

    def on_message(
        self, member: Member, message: Message, position: int, state: ApplicationState, now: int
    ) -> None:
        """An application is about to consume a message."""
        self._integrity.on_message(member.me, message, position, state, now)
        view = member.stream.view
        if view is not None:
            self._liveness.on_message(member.me, message, view.number)

    def after_turn(self, process: SimulatedProcess, now: int) -> None:
        """A process has had a turn."""
        member = process.member
        self._memory.after_turn(member, now)
        epoch = self._epochs.get(member)
        if epoch is not member.epoch:
            self._count_retransmissions(epoch)
            self._epochs[member] = member.epoch
        donor = member.state.restoration.donor if member.state.restoration else None
        if donor is not None and self._donors.setdefault(member, donor) != donor:
            self._donors[member] = donor
            self._counters.count("donor replaced")

    def view_overdue(self, pending: str, now: int) -> None:
        """The processes should be in one view by now."""
        self._liveness.violated(pending, now)

    def finish(self) -> None:
        """Count what the last epochs have seen."""
        for member, epoch in self._epochs.items():
            self._count_retransmissions(epoch)
            if any(reason.startswith("earlier") for reason in member.rejections):
                self._counters.count("earlier incarnation")

    def _count_retransmissions(self, epoch: Epoch | None) -> None:
        times = sum(link.retransmissions for link in epoch.links.values()) if epoch else 0
        if times:
            self._counters.count("retransmission", times)
