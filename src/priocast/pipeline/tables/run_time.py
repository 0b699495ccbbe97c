"""The start of a run, by the clock of each process.

If the members' clocks can be compared, it is the first event of all. If not, it is a founder's own first
event. A process that joined later received its first view together with others, and is aligned with them.
"""

from collections.abc import Mapping

from priocast.pipeline.process_history import RecordedProcess, TraceHistory
from priocast.pipeline.sources import StoredRun


def start_times(run: StoredRun, history: TraceHistory) -> dict[str, int]:
    """The time at which the run started, on each process's clock, in ns."""
    processes = history.processes
    if run.has_one_clock:
        first_ns = min((process.first_ns for process in processes.values()), default=0)
        return dict.fromkeys(processes, first_ns)
    started: dict[str, int] = {}
    for process in sorted(processes.values(), key=_first_view):
        started[process.id] = _aligned(process, history, started)
    return started


def is_founder(process: RecordedProcess, history: TraceHistory) -> bool:
    """Whether a process was in the first view; one that received no view counts as a founder."""
    first = min(
        (other.views[0].view.number for other in history.processes.values() if other.views), default=0
    )
    return not process.views or process.views[0].view.number == first


def _aligned(process: RecordedProcess, history: TraceHistory, started: Mapping[str, int]) -> int:
    if is_founder(process, history):
        return process.first_ns
    mine = process.views[0]
    elapsed_ns = [
        event.time_ns - started[other]
        for other in started
        for event in history.processes[other].views
        if event.view == mine.view
    ]
    return mine.time_ns - min(elapsed_ns) if elapsed_ns else process.first_ns


def _first_view(process: RecordedProcess) -> tuple[int, str]:
    return (process.views[0].view.number if process.views else 0, process.id)
