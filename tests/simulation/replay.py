"""Shows the rows of a run to new checkers: what is found in a run can be found again in its rows."""

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.view import View
from priocast.core.violation import Violation
from priocast.membership.packets import Ordering
from priocast.simulation.checker_set import trace_checkers
from priocast.simulation.checkers.process_history import RunHistory
from priocast.simulation.checkers.rows import parse_process, view_event
from priocast.simulation.counters import Counters
from priocast.simulation.scenario import Scenario
from priocast.simulation.trace_observer import TraceObserver
from priocast.trace.schema import STOPPED, VIEW
from simulation.rows import Row


def violations_in(
    scenario: Scenario,
    rows: list[Row],
    ordering: OrderingOptions | None = None,
    crashed: tuple[str, ...] = (),
) -> list[Violation]:
    """What the checkers report for these rows; like the simulator, they stop at the first wrong row.

    `ordering` is what they assume about the order. `crashed` are incarnations that do not run at the end.
    """
    options = ordering or scenario.ordering
    observer = TraceObserver(f"seed {scenario.seed}")
    history = RunHistory()
    of_trace = trace_checkers(
        scenario, observer.report, Counters(), history, window=options.window, sees_grants=False
    )
    observer.add([history, *of_trace])
    _install_views(observer, rows, Ordering(scenario.order, options.prioritised, str(options.starvation)))
    for row in rows:
        observer.emit(row)
        if observer.violations:
            return observer.violations
    started = {f"{row.member}#{row.incarnation}" for row in rows}
    stopped = {f"{row.member}#{row.incarnation}" for row in rows if row.event == STOPPED}
    history.idle = started - stopped - set(crashed)
    observer.finish(rows[-1].time_ns)
    return observer.violations


def _install_views(observer: TraceObserver, rows: list[Row], ordering: Ordering) -> None:
    """Members install a view before they notify their application of it."""
    for row in rows:
        if row.event == VIEW:
            view = View(row.view, tuple(map(parse_process, view_event(row).members)))
            observer.installed(ProcessId(row.member, row.incarnation), view, ordering)
