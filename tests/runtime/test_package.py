"""The package as it is installed: it knows its version, and runs as a command."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import priocast


def _python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=240, check=True
    )
    return done.stdout


def test_it_tells_its_version() -> None:
    assert priocast.__version__ == version("priocast")
    with pytest.raises(AttributeError, match="module 'priocast' has no attribute 'nothing'"):
        getattr(priocast, "nothing")  # noqa: B009  # mypy knows that there is none


def test_the_version_is_looked_up_only_when_it_is_asked_for() -> None:
    assert _python("-c", "import priocast; print('__version__' in vars(priocast))") == "False\n"


def test_it_runs_as_a_command() -> None:
    assert "Usage: python -m priocast" in _python("-m", "priocast", "--help")
