"""Which code runs: compiled modules, where an installation has them, or the sources of the same modules.

A compiled wheel has both. `PRIOCAST_PURE=1` in the environment chooses the sources, in this process and in
those that it starts. Then this module is imported before all others.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

PURE = "PRIOCAST_PURE"
_PACKAGE = __name__.partition(".")[0]


class SourceFinder(MetaPathFinder):
    """Finds the sources of this package's modules, also of those that are compiled."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The source of a module of this package; None: it is for others to find."""
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        found = (_sources_in(entry).find_spec(fullname) for entry in path or ())
        return next((spec for spec in found if spec is not None), None)


@cache
def _sources_in(directory: str) -> FileFinder:
    return FileFinder(directory, (SourceFileLoader, SOURCE_SUFFIXES))


def choose_sources() -> None:
    """Import the sources of all modules from now on."""
    sys.meta_path.insert(0, SourceFinder())


def restart_with_sources() -> None:
    """Run this command again, with the sources."""
    arguments = [sys.executable, "-m", _PACKAGE, *sys.argv[1:]]
    os.execve(sys.executable, arguments, {**os.environ, PURE: "1"})  # noqa: S606  # ourselves


def is_compiled(module: ModuleType) -> bool:
    """Whether this module was compiled."""
    return not str(module.__file__).endswith(tuple(SOURCE_SUFFIXES))
