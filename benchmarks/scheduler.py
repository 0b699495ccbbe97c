"""What the scheduler alone costs: raw round trips while other processes keep the cores busy."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from priocast.testing.child_process import ChildProcess

_BUSY_LOOP = """
import sys, time
end = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    pass
"""


@contextmanager
def busy_processes(count: int, seconds_max: float = 60.0) -> Iterator[None]:
    """Keep `count` processes computing, for a bounded time."""
    command = [sys.executable, "-c", _BUSY_LOOP, str(seconds_max)]
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(ChildProcess(f"busy-{number}", command))
        yield
