"""The same seed gives the same trace, byte for byte, in any process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from priocast.simulation.scenario_generator import generate_scenario
from priocast.simulation.simulator import run_scenario
from priocast.simulation.swarm import run_swarm

SEEDS = "0:16"
PROGRAM = """
import sys
from pathlib import Path
from priocast.cli.simulate import simulate
simulate(seeds=sys.argv[1], jobs=1, hashes=Path(sys.argv[2]))
"""


def hashes(directory: Path, hash_seed: str) -> list[str]:
    """The hash lines of another process, in which sets and dicts of strings have another layout."""
    file = directory / hash_seed
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", PROGRAM, SEEDS, str(file)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=240)
    return file.read_text().splitlines()


@pytest.mark.processes
def test_two_processes_compute_the_same_hashes(tmp_path: Path) -> None:
    first, second = hashes(tmp_path, "1"), hashes(tmp_path, "4242")
    assert len(first) == 16 and len(set(first)) == 16
    assert first == second


@pytest.mark.processes
def test_workers_compute_the_same_hashes_as_this_process() -> None:
    here = {result.seed: result.digest for result in run_swarm(range(6), jobs=1)}
    there = {result.seed: result.digest for result in run_swarm(range(6), jobs=2)}
    assert here == there


def test_run_depends_on_the_seed_only() -> None:
    assert generate_scenario(7) == generate_scenario(7)
    assert run_scenario(generate_scenario(7)).rows == run_scenario(generate_scenario(7)).rows
    assert run_scenario(generate_scenario(7)).digest != run_scenario(generate_scenario(8)).digest
