"""Every test can fail: it asserts or expects an error, or calls a function of the tests that does."""

import ast
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
CHECKING_CALLS = {"raises", "find"}  # of pytest and Hypothesis
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
                others.checks and (checks or bool((names | methods) & CHECKING_CALLS)),
                others.calls | {imported.get(name, (module, name)) for name in names},
                others.methods | methods,
            )
    return found


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


def test_every_test_can_fail() -> None:
    functions = {
        place: function for path in TESTS.rglob("*.py") for place, function in _functions(path).items()
    }
    unchecked = [place for place in _without_check(functions) if place[1].startswith("test_")]
    assert unchecked == []
