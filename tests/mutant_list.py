"""The list of all mutants, `tests/mutants.md`: which promise, or which test, detects each of them.

A mutant of the code is a function that takes a `MonkeyPatch`. It is listed with the promises of its row in a
table, and with the tests that use it by name. A mutant of a trace, or a class that the simulator runs instead
of the real one, is a row of a table with the guarantee that it breaks.
"""

import inspect
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from priocast.core import guarantees
from priocast.exploration.violation import OWN_FAULT, PEER_FAULT

TESTS = Path(__file__).parent
LIST = TESTS / "mutants.md"
PROMISES = {value for name, value in vars(guarantees).items() if name.isupper() and isinstance(value, str)}
FAULTS = {PEER_FAULT: "no rejection of correct members", OWN_FAULT: "no failed assertion"}
FOLDERS = ("protocols", "exploration", "membership", "services", "sql")
_HEADER = """# Mutants

Generated (`pytest tests/test_mutant_list.py --rewrite`). A mutant is a deliberate fault; the tests must
detect it, by the promise that it breaks. Where no promise is named, the named tests fail with the mutant.

| mutant | where | detected by |
|---|---|---|
"""


def text() -> str:
    """The whole list."""
    rows = [*code_mutants(), *trace_mutants()]
    return _HEADER + "".join(f"| {name} | {where} | {found} |\n" for where, name, found in sorted(rows))


def undetected() -> list[str]:
    """Mutants that no table and no test uses."""
    return [f"{where}: {name}" for where, name, found in code_mutants() if not found]


def code_mutants() -> Iterator[tuple[str, str, str]]:
    """Where each mutant of the code is defined, its name, and what detects it."""
    modules = [*_modules()]
    defined = {
        function: f"{module.__name__.replace('.', '/')}.py"
        for module in modules
        for function in vars(module).values()
        if _is_mutant(function) and function.__module__ == module.__name__
    }
    promises: dict[FunctionType, set[str]] = {function: set() for function in defined}
    tests: dict[FunctionType, set[str]] = {function: set() for function in defined}
    for module in modules:
        for row, test in _rows(module):
            for function in _mutants_in(row):
                if function in promises:
                    promises[function] |= set(_promises_in(row))
                    tests[function] |= {test} if test else set()
        for test, names in _used_names(module):
            for name in names:
                used = getattr(module, name, None)
                if _is_mutant(used) and used in tests:
                    tests[used].add(test)
    for function, where in defined.items():
        found = sorted(promises[function]) or sorted(tests[function])
        yield where, function.__name__.strip("_").replace("_", " "), ", ".join(found)


def trace_mutants() -> Iterator[tuple[str, str, str]]:
    """The same for mutants of recorded runs, and for broken classes that the simulator runs."""
    verdicts = import_module("pipeline.test_verdicts")
    for name, broken in verdicts.BROKEN_BY.items():
        yield "pipeline/test_verdicts.py", name.replace("_", " "), ", ".join(broken)
    for module in ("test_trace_mutants", "test_protocol_mutants"):
        for mutant in import_module(f"simulation.{module}").MUTANTS:
            yield f"simulation/{module}.py", mutant.name, mutant.guarantee


def _modules() -> Iterator[ModuleType]:
    for folder in FOLDERS:
        for path in sorted((TESTS / folder).glob("*.py")):
            source = path.read_text()
            if path.stem not in ("conftest", "trusting") and "MonkeyPatch" in source:
                yield import_module(f"{folder}.{path.stem}")


def _is_mutant(function: object) -> bool:
    if not isinstance(function, FunctionType) or function.__name__.startswith("test_"):
        return False
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if len(names) != 1 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return False
    return inspect.get_annotations(function).get(names[0]) is pytest.MonkeyPatch


def _rows(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """The rows of tables: lists of a module (without a test), and the values of parametrized tests."""
    for value in vars(module).values():
        if isinstance(value, list | tuple) and not isinstance(value, str):
            yield from ((row, "") for row in value)
    for test in _tests(module):
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "parametrize":
                yield from ((row, test.__name__) for row in mark.args[1])


def _tests(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            if isinstance(member, FunctionType) and member.__name__.startswith("test_"):
                yield member


def _used_names(module: ModuleType) -> Iterator[tuple[str, set[str]]]:
    for test in _tests(module):
        yield test.__name__, {*_names(test.__code__)}


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _mutants_in(row: Any) -> Iterator[FunctionType]:
    for part in row if isinstance(row, list | tuple) else (row,):
        function = inspect.unwrap(part) if callable(part) else part
        if _is_mutant(function):
            yield function


def _promises_in(row: Any) -> Iterator[str]:
    for part in row if isinstance(row, list | tuple) else ():
        for each in (part,) if isinstance(part, str) else part if isinstance(part, Collection) else ():
            if each in PROMISES:
                yield each
            elif isinstance(each, str) and each in FAULTS:
                yield FAULTS[each]
