"""How tests are distributed to worker processes: one by one, but those with shared fixtures together.

A fixture of module or session scope is made once in each worker that runs a test which needs it. Some take a
minute, such as the verdicts of Spark about hundreds of runs. So a module with a fixture of module scope goes
to one worker as a whole, and so do all modules that use the one Spark session. Groups of pytest-xdist
(`xdist_group`) would do the same, but pytest 9.2 ignores the node ids by which xdist 3.8 hands them to its
scheduler.
"""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

_OF_MODULE = 'scope="module"'
_OF_SPARK = re.compile(r'\bspark: SparkSession|usefixtures\("spark"\)|\bverdicts_by_module\b')


class SharedFixtureScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Units of work: the modules that share Spark, modules with a fixture of their own, and single tests."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        source = _source(self.config.rootpath / module)
        if _OF_SPARK.search(source):
            return "spark"
        return module if _OF_MODULE in source else nodeid


@cache
def _source(module: Path) -> str:
    return module.read_text()
