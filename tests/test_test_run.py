"""The second run of what failed beside others: it helps against bad luck, not against a fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BAD_LUCK = """
from pathlib import Path

def test_{name}():
    seen = Path(__file__).with_suffix(".seen")
    had_bad_luck = not seen.exists()
    seen.touch()
    assert not had_bad_luck
"""


def run_tests(directory: Path, **tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests, each in a file of its own, as `make test` does."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    for name, source in tests.items():
        (directory / f"test_{name}.py").write_text(source.format(name=name))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "tools.test_run", "-n", "2"],
        cwd=directory,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_bad_luck_is_named_and_does_not_fail_the_run(tmp_path: Path) -> None:
    done = run_tests(tmp_path, unlucky=BAD_LUCK, good="def test_good(): pass")
    assert done.returncode == 0, done.stdout
    head, named = done.stdout.split("FAILED BESIDE OTHERS, PASSED ALONE (1), to be explained:")
    assert named.split() == ["test_unlucky.py::test_unlucky"]
    assert "assert not had_bad_luck" in head, "the failure is printed"


def test_a_fault_fails_the_run(tmp_path: Path) -> None:
    done = run_tests(tmp_path, unlucky=BAD_LUCK, wrong="def test_wrong(): assert False")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "PASSED ALONE" not in done.stdout


def test_many_failures_are_no_bad_luck(tmp_path: Path) -> None:
    done = run_tests(tmp_path, **dict.fromkeys(("one", "two", "three", "four"), BAD_LUCK))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "alone" not in done.stdout


def test_tests_that_cannot_be_collected_are_no_bad_luck(tmp_path: Path) -> None:
    done = run_tests(tmp_path, broken="def test_broken(:")
    assert done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "alone" not in done.stdout


def test_a_file_that_cannot_be_collected_fails_the_run_beside_bad_luck(tmp_path: Path) -> None:
    done = run_tests(tmp_path, broken="def test_broken(:", unlucky=BAD_LUCK)
    assert done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "alone" not in done.stdout
