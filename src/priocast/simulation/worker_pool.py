"""Calls of functions in several processes, which end with whoever wants the results."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

Result = TypeVar("Result")


def call_in_processes(calls: Sequence[Callable[[], Result]], processes: int) -> Generator[Result, None, None]:
    """Make all calls, in so many processes, and yield the results as they come."""
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        for future in as_completed(_submit(pool, calls)):
            yield future.result()
        pool.shutdown()
    except BaseException:  # nobody wants the rest
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in active_children():
            worker.terminate()
        raise


def _submit(pool: ProcessPoolExecutor, calls: Sequence[Callable[[], Result]]) -> list[Future[Result]]:
    """Start the workers, with Ctrl-C blocked: it reaches every process of a terminal, and is not for them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return [pool.submit(call) for call in calls]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(call) for call in calls]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: end it when the process that wants its results has ended, however that was."""
    parent = parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
