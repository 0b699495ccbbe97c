"""What the tests of the pipeline share: one round of checks for their runs.

What a check costs hardly depends on how many small runs it is given (Integrity: 11.8 s of processor time for
150 runs, 11.2 s for 50), so modules have theirs checked together.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from priocast.pipeline.sources import open_runs
from priocast.pipeline.trace_tables import load_trace
from priocast.pipeline.verdicts import Verdict, judge

_SEPARATOR = "--"


@pytest.fixture(scope="session")
def verdicts_by_module(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Verdict]]:
    """What every check finds in the `runs_to_check` of each module whose tests are run."""
    directory = tmp_path_factory.mktemp("runs")
    modules: dict[Any, None] = dict.fromkeys(getattr(item, "module", None) for item in request.session.items)
    for module in modules:
        for name, run in module.runs_to_check().items() if hasattr(module, "runs_to_check") else ():
            run.named(f"{module.__name__}{_SEPARATOR}{name}").write_whole(directory)
    found: dict[str, list[Verdict]] = defaultdict(list)
    with load_trace(open_runs(spark, directory)) as trace:
        for verdict in judge(trace, examples_max=10_000):
            module_name, _, run_name = verdict.run.partition(_SEPARATOR)
            found[module_name].append(replace(verdict, run=run_name))
    return found
