"""What the processes of the members use: memory and file descriptors, sampled while they run.

A process is judged if it has lived for long enough: what it used when it had warmed up is compared with what
it uses in the end.
"""

import os
import time
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any, NamedTuple, Self

from tools.viewed_group import ViewedGroup

_INTERVAL_SECONDS = 1.0
_JUDGED_SECONDS = 120.0
_MEGABYTES_MORE_MAX = 10.0
_PART_MORE_MAX = 0.15
_DESCRIPTORS_MORE_MAX = 8
_PAGE_MEGABYTES = os.sysconf("SC_PAGE_SIZE") / 1e6


class Sample(NamedTuple):
    """What one process uses at one time."""

    at: float
    megabytes: float
    descriptors: int


class Growth(NamedTuple):
    """What a process used after it had warmed up, and what it used in the end; both are medians."""

    member: str
    pid: int
    seconds: float
    before: Sample
    after: Sample

    @property
    def violation(self) -> str:
        """What has grown too much; empty if nothing has, or if the process has not lived long enough."""
        if self.seconds < _JUDGED_SECONDS:
            return ""
        more = self.after.megabytes - self.before.megabytes
        if more > _MEGABYTES_MORE_MAX + _PART_MORE_MAX * self.before.megabytes:
            return f"the memory of {self.member} grew by {more:.0f} MB in {self.seconds:.0f} s"
        opened = self.after.descriptors - self.before.descriptors
        if opened > _DESCRIPTORS_MORE_MAX:
            return f"the descriptors of {self.member} grew by {opened} in {self.seconds:.0f} s"
        return ""


class UsageSampler:
    """Samples all members of a group in a thread of its own."""

    def __init__(self, group: ViewedGroup[Any]) -> None:
        self._group = group
        self._samples: dict[tuple[str, int], list[Sample]] = {}
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def last(self, member: str) -> Sample | None:
        """The last sample of a member's current process."""
        samples = self._samples.get((member, self._group.members[member].pid))
        return samples[-1] if samples else None

    def growths(self) -> list[Growth]:
        """What each process used first and last, the one that lived longest first."""
        found = [growth_of(*key, samples) for key, samples in self._samples.items() if len(samples) > 1]
        return sorted(found, key=lambda growth: -growth.seconds)

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_SECONDS):
            for member, process in list(self._group.members.items()):
                sample = sample_of(process.pid)
                if sample is not None:
                    self._samples.setdefault((member, process.pid), []).append(sample)


def sample_of(pid: int) -> Sample | None:
    """What a process uses now; None if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - only their number matters
    except (OSError, IndexError):
        return None
    return Sample(time.monotonic(), pages * _PAGE_MEGABYTES, descriptors) if pages else None


def growth_of(member: str, pid: int, samples: list[Sample]) -> Growth:
    """Compare the second fifth of the samples with the last one."""
    fifth = max(1, len(samples) // 5)
    before, after = samples[fifth : 2 * fifth] or samples[:1], samples[-fifth:]
    return Growth(member, pid, samples[-1].at - samples[0].at, _median(before), _median(after))


def _median(samples: list[Sample]) -> Sample:
    return Sample(
        samples[-1].at,
        median(sample.megabytes for sample in samples),
        round(median(sample.descriptors for sample in samples)),
    )
