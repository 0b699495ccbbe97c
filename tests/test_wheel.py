"""The wheel contains what users need: every module is reachable from the public API or the command line."""

import ast
import re
import tomllib
from pathlib import Path

from priocast.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
#: Where users and Spark start: the public API, the command line, the documented Spark functions, the format.
#: The API and the commands are imported by name when they are first used, the bridge by the page of the
#: playground.
ENTRY_POINTS = (
    "priocast",
    "priocast.api",
    "priocast.__main__",
    "priocast.cli.main",
    *(f"priocast.cli.{entry.module}" for entry in COMMANDS.values()),
    "priocast.pipeline",
    "priocast.simulation.playground.bridge",
    "priocast.sql",
    "pyspark_priocast",
)


def modules() -> dict[str, Path]:
    """Every module of the wheel, by name, as the build configuration selects them."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    where = configuration["packages"]["find"]["where"]
    assert where == ["src"]
    found = {}
    for initial in SOURCE.rglob("__init__.py"):
        package = ".".join(initial.parent.relative_to(SOURCE).parts)
        for path in initial.parent.glob("*.py"):
            found[package if path == initial else f"{package}.{path.stem}"] = path
    return found


def used_by(name: str, path: Path, names: set[str]) -> set[str]:
    """The modules that a module imports, at any depth of its code, or starts as processes by their names."""
    tree = ast.parse(path.read_text())
    mentioned: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                mentioned |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0, names=aliases):
                mentioned |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
            case ast.Constant(value=str(text)) if re.fullmatch(r"priocast(\.\w+)+", text):
                mentioned.add(text)
    packages = {module.rpartition(".")[0] for module in mentioned & names}
    return (mentioned | packages | {name.rpartition(".")[0]}) & names


def reachable(paths: dict[str, Path]) -> set[str]:
    seen: set[str] = set()
    pending = [*ENTRY_POINTS]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending += used_by(name, paths[name], set(paths))
    return seen


def test_every_module_of_the_wheel_is_reachable() -> None:
    paths = modules()
    assert sorted(set(paths) - reachable(paths)) == []


def test_no_test_code_is_in_the_wheel() -> None:
    packages = {name.partition(".")[0] for name in modules()}
    assert packages == {"priocast", "pyspark_priocast"}


def test_an_unused_module_is_detected() -> None:
    paths = modules()
    paths["priocast.unused"] = paths["priocast"]
    assert set(paths) - reachable(paths) == {"priocast.unused"}
