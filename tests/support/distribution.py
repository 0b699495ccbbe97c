"""How tests are distributed to worker processes: one by one, but a module with shared fixtures as a whole.

A fixture of module scope is made once in each worker that runs a test of the module. Some take a minute, such
as the verdicts of Spark about a hundred runs. Groups of pytest-xdist (`xdist_group`) would do the same, but
pytest 9.2 ignores the node ids by which xdist 3.8 hands them to its scheduler.
"""

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

_SHARED = 'scope="module"'


class SharedFixtureScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Units of work: modules with a fixture of module scope, and single tests of the others."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if _has_shared_fixture(self.config.rootpath / module) else nodeid


@cache
def _has_shared_fixture(module: Path) -> bool:
    return _SHARED in module.read_text()
