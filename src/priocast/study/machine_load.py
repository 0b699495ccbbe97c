"""What a machine is, how busy it is, and how much of that is somebody else's work.

A time that was measured beside other programs says little without their load. The kernel counts the time for
which its processors were busy; what is left without the processes of a measurement is foreign.
"""

import os
import platform
from pathlib import Path

_STAT = Path("/proc/stat")
#: user, nice and system, hard and soft interrupts, time stolen by the host; guests are in user already.
_BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)
_CPUINFO = Path("/proc/cpuinfo")
_STATM = Path("/proc/self/statm")
_RESIDENT_COLUMN = 1


def busy_seconds() -> float:
    """How long the processors of this machine were busy since it started, all together; 0 if unknown."""
    try:
        columns = _STAT.read_text(encoding="ascii").partition("\n")[0].split()[1:]
    except OSError:
        return 0.0
    return sum(int(columns[column]) for column in _BUSY_COLUMNS) / os.sysconf("SC_CLK_TCK")


def resident_bytes() -> int:
    """How much memory of this process is in RAM; 0 if unknown."""
    try:
        columns = _STATM.read_text(encoding="ascii").split()
    except OSError:
        return 0
    return int(columns[_RESIDENT_COLUMN]) * os.sysconf("SC_PAGE_SIZE")


def foreign_cores(busy: float, own: float, seconds: float) -> float:
    """How many processors others kept busy, if of `busy` seconds in this time `own` are the measurement's."""
    return max(0.0, busy - own) / seconds if seconds > 0 else 0.0


def describe_machine() -> str:
    """What this machine is: processors, operating system, Python."""
    system = f"{platform.system()} {platform.release()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} x {_processor_model()}, {system}, {python}"


def _processor_model() -> str:
    try:
        lines = _CPUINFO.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, models), platform.processor() or platform.machine())
