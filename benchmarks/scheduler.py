"""What the scheduler alone costs: raw round trips while other processes keep the cores busy."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SPAWN = multiprocessing.get_context("spawn")


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@contextmanager
def busy_processes(count: int, seconds_max: float = 60.0) -> Iterator[None]:
    """Keep `count` processes computing, for a bounded time."""
    processes = [_SPAWN.Process(target=_spin, args=(seconds_max,)) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()
