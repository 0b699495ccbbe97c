"""One member of a benchmark, as a process of its own: `python -m benchmarks.worker`, started by `members`."""

from importlib import import_module

from benchmarks.members import BenchmarkReport, BenchmarkTask, MemberContext
from priocast.runtime.gc_freeze import freeze_gc
from priocast.testing.worker import read_line, report, run_worker


async def work(task: BenchmarkTask) -> None:
    """Run the part, report its result, and wait until all members have theirs."""
    freeze_gc()
    module, _, name = task.part.partition(":")
    part = getattr(import_module(module), name)
    result = await part(MemberContext(task), task.load, *task.arguments)
    report(BenchmarkReport(at_barrier=False, result=result))
    await read_line()


if __name__ == "__main__":
    run_worker(BenchmarkTask, work)
