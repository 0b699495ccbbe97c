"""The code itself: its layers hold, and its habits are kept."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
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
    """Check the contracts for the package below this directory."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", command, "--config", str(CONTRACTS), "--no-cache", "--no-logo"],
        cwd=source,
        env={"PYTHONPATH": str(source), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_layers_hold() -> None:
    checked = _lint_imports(SOURCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


@pytest.mark.parametrize(
    ("module", "violation", "contract"),
    [
        ("core/view.py", "import priocast.links.fifo_link", "Imports point downwards"),
        ("links/fifo_link.py", "import priocast.protocols", "Imports point downwards"),
        ("member.py", "from priocast.trace import recorder", "Imports point downwards"),
        ("unplaced.py", "import priocast.core.view", "Imports point downwards"),
        ("protocols/flow/credit.py", "import time", "Deterministic code"),
        ("links/fifo_link.py", "from random import random", "Deterministic code"),
        ("protocols/sequencer/ub.py", "def now():\n    import asyncio", "Deterministic code"),
        ("member.py", "from os import urandom", "Deterministic code"),
        ("protocols/ring/token_ring.py", "import priocast.protocols.sequencer.ub", "Families of protocols"),
        ("pipeline/session.py", "import priocast.member", "The pipeline knows runs"),
        ("trace/recorder.py", "import pyspark", "Only the pipeline"),
        ("cli/main.py", "import matplotlib.pyplot", "Only the pipeline"),
    ],
)
def test_a_violation_of_the_layers_is_found(
    module: str, violation: str, contract: str, tmp_path: Path
) -> None:
    shutil.copytree(SOURCE / "priocast", tmp_path / "priocast", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "priocast" / module).open("a") as file:
        file.write(f"\n{violation}\n")
    checked = _lint_imports(tmp_path)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    broken = re.findall(r"^(.*) BROKEN", checked.stdout, re.MULTILINE)
    assert [name for name in broken if name.startswith(contract)], broken


def test_importing_priocast_imports_none_of_the_heavy_packages() -> None:
    program = "import priocast, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(imported.stdout.split())
    assert "priocast" in loaded
    assert not loaded & {"pyspark", "pandas", "numpy", "pyarrow", "matplotlib", "rich", "typer"}


def _offenders(pattern: str) -> list[str]:
    """Where in our files the pattern occurs."""
    return [
        f"{path.relative_to(ROOT)}: {found}"
        for path in PYTHON_FILES
        for found in re.findall(pattern, path.read_text())
    ]


def test_a_module_says_what_it_holds() -> None:
    silent = [path for path in PYTHON_FILES if path.read_text() and not ast.get_docstring(_parsed(path))]
    assert not silent


def test_a_file_tells_one_story() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in PYTHON_FILES}
    assert not {path: count for path, count in lines.items() if count > FILE_LINES_MAX}


def test_a_function_fits_a_screen() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in PYTHON_FILES
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX}


def test_nothing_is_left_for_later() -> None:
    assert not _offenders(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")


def test_no_machine_is_built_in() -> None:
    assert not _offenders(r"/(?:home|root|Users)/\w*")


def test_every_rule_that_is_ignored_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    ignored = {*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)}
    for rule in sorted(ignored):
        lines = [line for line in text.splitlines() if f'"{rule}"' in line and "select =" not in line]
        assert lines, rule
        assert all(re.search(r"#\s*\S+", line) for line in lines), f"{rule} is ignored without a reason"
