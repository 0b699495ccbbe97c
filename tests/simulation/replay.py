"""Rows of a run, shown to fresh checkers: what was found in a run can be found again in its rows."""

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.membership.packets import Ordering
from priocast.simulation.checkers.agreement import Agreement
from priocast.simulation.checkers.checker import Checker, Violation
from priocast.simulation.checkers.chronicle import Chronicle
from priocast.simulation.checkers.fifo import Fifo
from priocast.simulation.checkers.integrity import Integrity
from priocast.simulation.checkers.priority import Priority
from priocast.simulation.checkers.priority_accounting import PriorityAccounting
from priocast.simulation.checkers.total_order import TotalOrder
from priocast.simulation.checkers.uniformity import Uniformity
from priocast.simulation.checkers.view_synchrony import ViewSynchrony
from priocast.simulation.checkers.window import Window
from priocast.simulation.counters import Counters
from priocast.simulation.scenario import Scenario
from priocast.simulation.watch import Watch
from priocast.trace.schema import STOPPED, VIEW
from simulation.rows import Row


def findings(
    scenario: Scenario,
    rows: list[Row],
    ordering: OrderingOptions | None = None,
    crashed: tuple[str, ...] = (),
) -> list[Violation]:
    """What the checkers say of these rows; like the simulator, they stop at the first row that is wrong.

    `ordering` is what they believe about the order, `crashed` are lives that are not there in the end.
    """
    options = ordering or scenario.ordering
    membership = scenario.membership
    watch = Watch(scenario.seed)
    chronicle = Chronicle()
    all_safe = membership.delivery == "safe"
    strict = all_safe or not membership.primary
    checkers: list[Checker] = [
        chronicle,
        Integrity(watch.report),
        TotalOrder(watch.report, chronicle, strict),
        ViewSynchrony(watch.report, membership.primary),
        Fifo(watch.report, membership.primary),
        Priority(watch.report, Counters()),
        Agreement(watch.report, chronicle),
        PriorityAccounting(watch.report, chronicle, all_safe=all_safe, joiners_wait=membership.state),
        Uniformity(watch.report, chronicle, all_safe),
    ]
    if options.window is not None:
        checkers.append(Window(watch.report, options.window))
    watch.appoint(checkers)
    _install(watch, rows, Ordering(scenario.order, options.prioritised, str(options.starvation)))
    for row in rows:
        watch.emit(row)
        if watch.violations:
            return watch.violations
    lives = {f"{row.member}#{row.incarnation}" for row in rows}
    stopped = {f"{row.member}#{row.incarnation}" for row in rows if row.event == STOPPED}
    chronicle.at_rest = lives - stopped - set(crashed)
    watch.finish(rows[-1].time_ns)
    return watch.violations


def _install(watch: Watch, rows: list[Row], ordering: Ordering) -> None:
    """Members work in a view before they tell their application of it."""
    for row in rows:
        if row.event == VIEW:
            members = [member.rpartition("#") for member in row.members]
            view = View(row.view, tuple(ProcessId(name, int(life)) for name, _, life in members))
            watch.installed(ProcessId(row.member, row.incarnation), view, ordering)
