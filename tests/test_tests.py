"""The tests themselves: each can fail, and workers make no shared fixture twice.

A test can fail if it asserts or expects an error, or calls a function of the tests that does.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
CHECKING_CALLS = {"raises", "find", "check"}
"""Of pytest and Hypothesis; what is called `check` or `check_...`, also in the code, raises what is wrong."""
Place = tuple[str, str]
"""A module and a function in it."""


class Function(NamedTuple):
    """Functions of one name in one module: whether they can fail by themselves, and what they call."""

    checks: bool
    calls: set[Place]
    methods: set[str]


def _functions(path: Path) -> dict[Place, Function]:
    module = ".".join(path.relative_to(TESTS).with_suffix("").parts)
    tree = ast.parse(path.read_text())
    imported = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    found: dict[Place, Function] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = list(ast.walk(node))
            called = [each.func for each in inside if isinstance(each, ast.Call)]
            names = {each.id for each in called if isinstance(each, ast.Name)}
            methods = {each.attr for each in called if isinstance(each, ast.Attribute)}
            checks = any(isinstance(each, ast.Assert | ast.Raise) for each in inside)
            others = found.get((module, node.name), Function(True, set(), set()))
            found[module, node.name] = Function(
                others.checks and (checks or any(map(_is_checking, names | methods))),
                others.calls | {imported.get(name, (module, name)) for name in names},
                others.methods | methods,
            )
    return found


def _is_checking(name: str) -> bool:
    return name in CHECKING_CALLS or name.startswith("check_")


def _without_check(functions: dict[Place, Function]) -> list[Place]:
    """The functions that cannot fail. A method counts as a check if all methods of that name are one."""
    unchecked = {place for place, function in functions.items() if not function.checks}
    while True:
        doubtful = {name for _, name in unchecked}
        checking = functions.keys() - unchecked
        checking_methods = {name for _, name in checking} - doubtful
        more = {
            place
            for place in unchecked
            if functions[place].calls & checking or functions[place].methods & checking_methods
        }
        if not more:
            return sorted(unchecked)
        unchecked -= more


CONFTEST = """
import pytest
from support.distribution import SharedFixtureScheduling

@pytest.fixture(scope="session")
def spark():
    with open("session", "a") as file:
        file.write("once ")

def pytest_xdist_make_scheduler(config, log):
    return SharedFixtureScheduling(config, log)
"""
WITH_A_SHARED_FIXTURE = """
import pytest

@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with open("made", "a") as file:
        file.write("once ")

@pytest.mark.parametrize("number", range(8))
def test_that_needs_it(made, number):
    assert number < 8
"""

WITH_SPARK = """
import pytest

@pytest.mark.usefixtures("spark")
def test_that_needs_the_session():
    assert True
"""


def test_a_shared_fixture_is_made_in_one_worker_only(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_shared.py").write_text(WITH_A_SHARED_FIXTURE)
    (tmp_path / "test_single.py").write_text("def test_by_itself(): assert True")
    for number in range(4):
        (tmp_path / f"test_spark_{number}.py").write_text(WITH_SPARK)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "13 passed" in run.stdout, run.stdout + run.stderr
    assert (tmp_path / "made").read_text() == "once "
    assert (tmp_path / "session").read_text() == "once "


def test_every_test_can_fail() -> None:
    functions = {
        place: function for path in TESTS.rglob("*.py") for place, function in _functions(path).items()
    }
    unchecked = [place for place in _without_check(functions) if place[1].startswith("test_")]
    assert unchecked == []
