"""The compiled version does what the sources do: it is built from them once, and runs the same tests.

It is built once for each state of the sources (`tools/compiled_tree.py`), in a minute or two.
"""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
from tools.compiled_tree import ROOT, compiled_tree, environment

from priocast.protocols import PROTOCOLS

SEEDS = "0:20"
SEEDS_OF_EACH_ORDER = "20:25"
#: Tests that replace no methods of compiled classes, and inherit from none.
SHARED_TESTS = (
    "tests/links/test_fifo_link.py",
    "tests/runtime/test_group.py",
    "tests/replication/test_objects.py",
    "tests/replication/test_replica.py",
    "tests/replication/test_replicated_state.py",
    "tests/replication/test_sessions.py",
    "tests/replication/test_submissions.py",
    "tests/study/test_step_times.py",
)
_TIMEOUT_SECONDS = 1200

pytestmark = [
    pytest.mark.timeout(2 * _TIMEOUT_SECONDS),
    pytest.mark.skipif(which("cc") is None, reason="there is no C compiler"),
]


def _run(*arguments: str, pure: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        cwd=ROOT,
        env=environment(pure=pure),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("pure", [False, True])
def test_the_environment_chooses_the_compiled_modules_or_their_sources(pure: bool) -> None:
    program = "import priocast.links.fifo_link as link; print(link.__file__)"
    found = Path(_run("-c", program, pure=pure).strip())
    assert found.parent == compiled_tree() / "priocast" / "links"
    assert (found.suffix == ".py") is pure


def _hashes(directory: Path, *options: str, pure: bool) -> str:
    found = directory / f"hashes-{pure}"
    _run("-m", "priocast", "simulate", *options, "--jobs", "1", "--hashes", str(found), pure=pure)
    return found.read_text()


def test_seeds_give_the_same_traces(tmp_path: Path) -> None:
    compiled, sources = (_hashes(tmp_path, "--seeds", SEEDS, pure=pure) for pure in (False, True))
    assert compiled and compiled == sources


@pytest.mark.parametrize("order", PROTOCOLS)
def test_seeds_of_each_order_give_the_same_traces(order: str, tmp_path: Path) -> None:
    options = ("--seeds", SEEDS_OF_EACH_ORDER, "--order", order)
    compiled, sources = (_hashes(tmp_path, *options, pure=pure) for pure in (False, True))
    assert compiled and compiled == sources


def test_every_order_is_compiled() -> None:
    program = (
        "import sys; from priocast.protocols import PROTOCOLS; "
        "print(*(sys.modules[each.__module__].__file__ for each in PROTOCOLS.values()))"
    )
    files = _run("-c", program).split()
    assert len(files) == len(PROTOCOLS) and not [each for each in files if each.endswith(".py")]


def test_the_tests_of_the_sources_pass() -> None:
    assert " passed" in _run("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *SHARED_TESTS)
