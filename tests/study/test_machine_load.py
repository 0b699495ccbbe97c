"""The load of this machine, as the kernel counts it."""

import platform
import time
from mmap import mmap

from priocast.study.machine_load import busy_seconds, describe_machine, foreign_cores, resident_bytes


def test_own_work_counts_as_busy() -> None:
    busy, until = busy_seconds(), time.process_time() + 0.2
    while time.process_time() < until:
        pass
    assert busy_seconds() - busy >= 0.1, "a tick of the kernel's counters is a hundredth of a second"


def test_memory_that_is_used_is_resident() -> None:
    """Memory of its own: what Python allocates may be memory that was resident before."""
    before = resident_bytes()
    with mmap(-1, 1 << 24) as kept:
        kept.write(bytes(len(kept)))
        assert resident_bytes() - before > len(kept) // 2


def test_what_is_not_ours_is_foreign() -> None:
    assert foreign_cores(busy=9.0, own=5.0, seconds=2.0) == 2.0
    assert foreign_cores(busy=4.9, own=5.0, seconds=2.0) == 0.0, "clocks have a resolution"
    assert foreign_cores(busy=1.0, own=0.0, seconds=0.0) == 0.0


def test_a_machine_is_described() -> None:
    described = describe_machine()
    assert platform.python_version() in described and " x " in described
