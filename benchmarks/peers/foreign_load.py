"""The load that other programs put on the machine while a launch is measured.

What a launch uses itself is the processor time of this process and of all that it has started, directly or
not: members, servers, and what these start.
"""

import os
from pathlib import Path
from time import monotonic

from priocast.study.machine_load import busy_seconds, foreign_cores

_PROC = Path("/proc")
#: Behind the name of the program: the parent, and the ticks of the process and of its ended children.
_PARENT, _TICKS = 1, slice(11, 15)


class ForeignLoad:
    """Measures from when it is created."""

    def __init__(self) -> None:
        self._began = self._read()

    @staticmethod
    def _read() -> tuple[float, float, float]:
        return busy_seconds(), own_seconds(), monotonic()

    def cores(self) -> float:
        """How many processors other programs have kept busy since."""
        busy, own, seconds = (now - then for now, then in zip(self._read(), self._began, strict=True))
        return foreign_cores(busy, own, seconds)


def own_seconds() -> float:
    """The processor time of this process and of its descendants so far, also of those that have ended."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        try:
            columns = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(path.parent.name)
        children.setdefault(int(columns[_PARENT]), []).append(process)
        ticks[process] = sum(map(int, columns[_TICKS]))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return sum(ticks.get(process, 0) for process in found) / os.sysconf("SC_CLK_TCK")
