"""Rules for the code itself: import contracts, and limits on the size and content of files."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
CONTRACTS = ROOT / ".importlinter"
PYTHON_FILES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "examples", "tools")
    for path in (ROOT / folder).rglob("*.py")
)
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Check the import contracts for the package below this directory."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", command, "--config", str(CONTRACTS), "--no-cache", "--no-logo"],
        cwd=source,
        env={"PYTHONPATH": str(source), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_contracts_hold() -> None:
    checked = _lint_imports(SOURCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


LAYERS = "Imports point downwards"
DRIVERS = "Simulation and exploration use neither"
DETERMINISM = "Deterministic code"
FAMILIES = "Families of protocols"
PIPELINE = "The pipeline knows runs"
SPARK = "Only the pipeline"
UNLISTED = "not_in_any_layer.py"


VIOLATIONS = {
    LAYERS: [
        ("core/view.py", "import priocast.links.fifo_link"),
        ("links/fifo_link.py", "import priocast.protocols"),
        ("member.py", "from priocast.trace import recorder"),
        ("network/address.py", "import priocast.runtime.node"),
        ("runtime/group.py", "import priocast.replication.replica"),
        ("simulation/process.py", "import priocast.exploration"),
        ("exploration/__init__.py", "import priocast.simulation.simulator"),
        (UNLISTED, "import priocast.core.view"),
    ],
    DRIVERS: [
        ("simulation/simulator.py", "import priocast.runtime.driver"),
        ("simulation/process.py", "import priocast.network.codec"),
        ("exploration/__init__.py", "from priocast.network import address"),
        ("member.py", "import priocast.runtime.driver"),
    ],
    DETERMINISM: [
        ("protocols/flow/credit.py", "import time"),
        ("links/fifo_link.py", "from random import random"),
        ("protocols/sequencer/ub.py", "def now():\n    import asyncio"),
        ("member.py", "from os import urandom"),
        ("membership/options.py", "import secrets"),
        ("advice/advisor.py", "from datetime import datetime"),
        ("exploration/__init__.py", "import threading"),
        ("simulation/process.py", "import time"),
        ("simulation/network.py", "import random"),
        ("simulation/checkers/__init__.py", "import socket"),
        ("simulation/simulator.py", "import multiprocessing"),
        ("trace/recorder.py", "import os"),
        ("trace/schema.py", "import time"),
        ("replication/replicated_state.py", "import asyncio"),
        ("log/ordered_log.py", "import os"),
    ],
    FAMILIES: [
        ("protocols/ring/token_ring.py", "import priocast.protocols.sequencer.ub"),
    ],
    PIPELINE: [
        ("pipeline/session.py", "import priocast.member"),
        ("trace/schema.py", "import priocast.protocols"),
    ],
    SPARK: [
        ("protocols/ring/token_ring.py", "import pyspark"),
        ("trace/recorder.py", "import pyspark"),
        ("operations/service.py", "import pandas"),
        ("study/workload.py", "from pyspark.sql import functions"),
        ("cli/main.py", "import matplotlib.pyplot"),
    ],
}


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_violations_of_a_contract_are_found(contract: str, tmp_path: Path) -> None:
    """Each of them by itself: the import that is not allowed is named."""
    shutil.copytree(SOURCE / "priocast", tmp_path / "priocast", ignore=shutil.ignore_patterns("__pycache__"))
    for module, violation in VIOLATIONS[contract]:
        with (tmp_path / "priocast" / module).open("a") as file:
            file.write(f"\n{violation}\n")
    checked = _lint_imports(tmp_path)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    _, _, details = checked.stdout.partition("Broken contracts")
    found = next(text for text in re.split(r"\n(?=\S.*\n-{4,}\n)", details) if text.startswith(contract))
    for module, violation in VIOLATIONS[contract]:
        dotted = "priocast." + module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        named = f"{dotted} -> {_imported(violation)} " if module != UNLISTED else f"- {dotted}\n"
        assert named in found, f"{violation} in {module} is not found"


def _imported(violation: str) -> str:
    """The module that a violation imports; of other packages only the package."""
    (node,) = (
        each for each in ast.walk(ast.parse(violation)) if isinstance(each, ast.Import | ast.ImportFrom)
    )
    module = getattr(node, "module", None)
    name = f"{module}.{node.names[0].name}" if module else node.names[0].name
    return name if name.startswith("priocast.") else name.partition(".")[0]


def test_spark_contract_covers_every_package_but_those_that_run_on_spark() -> None:
    contracts = ConfigParser()
    contracts.read(CONTRACTS)
    covered = contracts["importlinter:contract:spark"]["source_modules"].split()
    found = {
        f"priocast.{path.stem}"
        for path in (SOURCE / "priocast").iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    }
    assert {*covered, "priocast.pipeline", "priocast.campaign", "priocast.streaming"} == found


def test_importing_priocast_loads_no_heavy_package() -> None:
    program = "import priocast, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(imported.stdout.split())
    assert "priocast" in loaded
    assert not loaded & {"pyspark", "pandas", "numpy", "pyarrow", "matplotlib", "rich", "typer"}
    assert not loaded & {"apsw", "psycopg"}, "databases are optional"


def _offenders(pattern: str) -> list[str]:
    """The files and texts in which the pattern occurs."""
    return [
        f"{path.relative_to(ROOT)}: {found}"
        for path in PYTHON_FILES
        for found in re.findall(pattern, path.read_text())
    ]


def test_every_module_has_a_docstring() -> None:
    undocumented = [
        path for path in PYTHON_FILES if path.read_text() and not ast.get_docstring(_parsed(path))
    ]
    assert not undocumented


def test_files_are_short() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in PYTHON_FILES}
    assert not {path: count for path, count in lines.items() if count > FILE_LINES_MAX}


def test_functions_are_short() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in PYTHON_FILES
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX}


def test_no_task_is_left_in_comments() -> None:
    assert not _offenders(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")


def test_no_absolute_home_paths() -> None:
    assert not _offenders(r"/(?:home|root|Users)/\w*")


def test_every_ignored_lint_rule_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    ignored = {*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)}
    for rule in sorted(ignored):
        lines = [line for line in text.splitlines() if f'"{rule}"' in line and "select =" not in line]
        assert lines, rule
        assert all(re.search(r"#\s*\S+", line) for line in lines), f"{rule} is ignored without a reason"
