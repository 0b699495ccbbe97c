"""When a run began, by the clock of each process.

Where the members' clocks can be compared, that is the first event of all. Where they cannot, it is a
founder's own first event; a process that came later was told of its first view together with others, and is
placed beside them.
"""

from collections.abc import Mapping

from priocast.pipeline.chronicle import Chronicle, Life
from priocast.pipeline.sources import Run


def beginnings(run: Run, chronicle: Chronicle) -> dict[str, int]:
    """The time at which the run began, on each process's clock, in ns."""
    lives = chronicle.lives
    if run.has_one_clock:
        first_ns = min((life.first_ns for life in lives.values()), default=0)
        return dict.fromkeys(lives, first_ns)
    began: dict[str, int] = {}
    for life in sorted(lives.values(), key=_first_view):
        began[life.process] = _beside_others(life, chronicle, began)
    return began


def is_founder(life: Life, chronicle: Chronicle) -> bool:
    """Whether a process was there from the first view on; one that was told of none counts as such."""
    first = min((other.told[0].view.number for other in chronicle.lives.values() if other.told), default=0)
    return not life.told or life.told[0].view.number == first


def _beside_others(life: Life, chronicle: Chronicle, began: Mapping[str, int]) -> int:
    if is_founder(life, chronicle):
        return life.first_ns
    mine = life.told[0]
    after_ns = [
        telling.time_ns - began[process]
        for process in began
        for telling in chronicle.lives[process].told
        if telling.view == mine.view
    ]
    return mine.time_ns - min(after_ns) if after_ns else life.first_ns


def _first_view(life: Life) -> tuple[int, str]:
    return (life.told[0].view.number if life.told else 0, life.process)
