"""The panel: the checkers that watch a run, by what it promises."""

from collections.abc import Callable, Iterable, Mapping

from priocast.core.identity import ProcessId
from priocast.core.message import Message
from priocast.member import Member
from priocast.membership.epoch import Epoch
from priocast.simulation.application import ApplicationState
from priocast.simulation.checkers.agreement import Agreement
from priocast.simulation.checkers.checker import Checker, Report
from priocast.simulation.checkers.equal_states import EqualStates
from priocast.simulation.checkers.fifo import FifoAmongEquals
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.checkers.liveness import Liveness
from priocast.simulation.checkers.memory import BoundedMemory
from priocast.simulation.checkers.overtaking import BoundedOvertaking
from priocast.simulation.checkers.priority import Priority
from priocast.simulation.checkers.priority_accounting import PriorityAccounting
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.total_order import TotalOrder
from priocast.simulation.checkers.uniformity import Uniformity
from priocast.simulation.checkers.view_synchrony import ViewSynchrony
from priocast.simulation.checkers.window import BoundedWindow
from priocast.simulation.counters import Counters
from priocast.simulation.process import SimulatedProcess
from priocast.simulation.scenario import Scenario
from priocast.simulation.transition_counts import TransitionCounter
from priocast.simulation.workload import PlannedBroadcast


class CheckerSet:
    """One of each that applies.

    The chronicle comes first, because others read it when the run is over; what makes sense only when
    everybody has come to rest comes after the one who sees to that.
    """

    def __init__(
        self,
        scenario: Scenario,
        report: Report,
        counters: Counters,
        *,
        crashed: set[str],
        lacks: Callable[[], str | None],
        wishes: Callable[[], Iterable[PlannedBroadcast]],
        members: Callable[[], list[Member]],
        states: Callable[[], Mapping[str, ApplicationState]],
    ) -> None:
        membership, workload = scenario.membership, scenario.workload
        all_safe = membership.delivery == "safe"
        self.chronicle = RunHistory()
        self._integrity = Integrity(report)
        self._liveness = Liveness(report, self.chronicle, membership.primary, lacks, wishes, states)
        self._memory = BoundedMemory(report, scenario.ordering, members)
        self._primary = membership.primary
        self._counters = counters
        self._donors: dict[Member, ProcessId] = {}
        self._epochs: dict[Member, Epoch | None] = {}
        self.checkers: list[Checker] = [
            self.chronicle,
            TransitionCounter(counters, crashed),
            self._integrity,
            TotalOrder(report, self.chronicle, strict=all_safe or not membership.primary),
            ViewSynchrony(report, membership.primary),
            FifoAmongEquals(report, membership.primary),
            Priority(report, counters),
            Agreement(report, self.chronicle),
            PriorityAccounting(report, self.chronicle, all_safe=all_safe, joiners_wait=membership.state),
        ]
        if membership.primary:
            self.checkers.append(Uniformity(report, self.chronicle, all_safe))
        passed_over = workload.addressed_percent or workload.client_requests or membership.state
        if scenario.ordering.window is not None and not passed_over:
            self.checkers.append(BoundedWindow(report, scenario.ordering.window))
        if scenario.ordering.overtakes_max is not None:
            self.checkers.append(
                BoundedOvertaking(
                    report,
                    scenario.ordering.overtakes_max,
                    all_safe=all_safe,
                    joiners_wait=membership.state,
                    senders_decide=not scenario.ordering.distributed,
                )
            )
        self.checkers += [self._liveness, self._memory]
        if membership.state:
            self.checkers.append(EqualStates(report, states, self._has_one_history))

    def _has_one_history(self) -> bool:
        """Whether all who are there in the end have come the same way; who merges keeps what it has."""
        return self._primary or "merge" not in self._counters.occurred

    def on_message(
        self, member: Member, message: Message, position: int, state: ApplicationState, now: int
    ) -> None:
        """An application has a message in hand."""
        self._integrity.on_message(member.me, message, position, state, now)
        view = member.stream.view
        if view is not None:
            self._liveness.on_message(member.me, message, view.number)

    def look_at(self, process: SimulatedProcess, now: int) -> None:
        """A process has had a turn."""
        member = process.member
        self._memory.look_at(member, now)
        epoch = self._epochs.get(member)
        if epoch is not member.epoch:
            self._count_retransmissions(epoch)
            self._epochs[member] = member.epoch
        donor = member.state.restoration.donor if member.state.restoration else None
        if donor is not None and self._donors.setdefault(member, donor) != donor:
            self._donors[member] = donor
            self._counters.count("donor replaced")

    def too_late(self, lacks: str, now: int) -> None:
        """The group should be whole by now."""
        self._liveness.violated(lacks, now)

    def finish(self) -> None:
        """Count what was not over yet."""
        for member, epoch in self._epochs.items():
            self._count_retransmissions(epoch)
            if member.rejections.get("earlier incarnation"):
                self._counters.count("earlier incarnation")

    def _count_retransmissions(self, epoch: Epoch | None) -> None:
        times = sum(link.retransmissions for link in epoch.links.values()) if epoch else 0
        if times:
            self._counters.count("retransmission", times)
