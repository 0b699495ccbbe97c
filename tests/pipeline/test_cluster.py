"""A cluster on this machine: a campaign on it, a worker that is killed, and processes that are not ours."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

from pipeline.sample_runs import play
from priocast.core.errors import InvalidOption
from priocast.pipeline.cluster import (
    Cluster,
    ClusterFailed,
    ClusterProcess,
    end_cluster,
    find_cluster,
    start_cluster,
)
from priocast.simulation.swarm import run_seed

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(2000)]

CAMPAIGN = """
import os, signal, sys
from priocast.campaign.campaign import run_campaign
from priocast.campaign.plan import Matrix, make_plan
victim = int(sys.argv[3])
def on_seeds_done(done):
    global victim
    if done >= 4 and victim:
        os.kill(victim, signal.SIGKILL)
        victim = 0
result = run_campaign(make_plan(range(24), Matrix()), sys.argv[2], sys.argv[1], ("cell",), on_seeds_done)
print(result.seeds, result.failed, victim)
"""


def test_campaign_and_verification_survive_the_loss_of_a_worker(tmp_path: Path) -> None:
    cluster = start_cluster(tmp_path / "cluster", workers=2, cores=1, memory_mb=1024)
    try:
        with pytest.raises(InvalidOption, match="a cluster runs already"):
            start_cluster(tmp_path / "cluster", workers=1, cores=1, memory_mb=512)
        victim = cluster.processes[-1]
        command = [sys.executable, "-c", CAMPAIGN, cluster.master, str(tmp_path / "out"), str(victim.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.stdout == "24 0 0\n", done.stderr
        assert not victim.is_running
        play(ticks=2).write(tmp_path / "runs")
        command = [sys.executable, "-m", "priocast", "verify", str(tmp_path / "runs"), "--json"]
        verified = subprocess.run(
            [*command, "--master", cluster.master], capture_output=True, text=True, timeout=900, check=False
        )
        assert verified.returncode == 0 and json.loads(verified.stdout)["holds"], verified.stderr
    finally:
        assert end_cluster(tmp_path / "cluster") in (2, 3)
    assert not cluster.running and not list((tmp_path / "cluster").iterdir())
    stored = parquet.read_table(tmp_path / "out" / "results", columns=["seed", "digest"]).to_pylist()
    assert {(row["seed"], row["digest"]) for row in stored} == {
        (seed, run_seed(seed).digest) for seed in range(24)
    }


LOST_CLUSTER = """
import logging, os, signal, sys
from priocast.campaign.campaign import run_campaign
from priocast.campaign.plan import Matrix, make_plan
from priocast.pipeline import executor_watch
logging.basicConfig(format="%(message)s")
executor_watch._WARN_SECONDS, executor_watch._END_SECONDS = 2.0, 6.0
victims = [int(each) for each in sys.argv[3:]]
def on_seeds_done(done):
    while done >= 4 and victims:
        os.kill(victims.pop(), signal.SIGKILL)
try:
    run_campaign(make_plan(range(24), Matrix()), sys.argv[2], sys.argv[1], ("cell",), on_seeds_done)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_a_cluster_that_is_lost_is_named_and_ends_a_campaign_that_can_go_on_later(tmp_path: Path) -> None:
    cluster = start_cluster(tmp_path / "cluster", workers=1, cores=1, memory_mb=1024)
    try:
        victims = [str(process.pid) for process in cluster.processes]
        command = [sys.executable, "-c", LOST_CLUSTER, cluster.master, str(tmp_path / "out"), *victims]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        ended = f"SparkEnded: Spark ended in the middle of its work: {cluster.master} and its executors have"
        assert done.stdout.startswith(f"{ended} been gone for "), (done.stdout, done.stderr)
        assert done.stdout.count("\n") == 1
        assert f"{cluster.master} has given no executor for" in done.stderr
    finally:
        end_cluster(tmp_path / "cluster")


def test_process_that_has_the_id_of_an_ended_one_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:  # noqa: S607
        cluster = Cluster("spark://127.0.0.1:1", (ClusterProcess("master", other.pid, 1),))
        (tmp_path / "cluster.json").write_bytes(msgspec.json.encode(cluster))
        assert end_cluster(tmp_path) == 0
        assert other.poll() is None
        os.kill(other.pid, signal.SIGKILL)


def test_files_of_others_are_neither_replaced_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "worker-1").mkdir()
    precious = [tmp_path / "master.log", tmp_path / "worker-1" / "data.txt"]
    for path in precious:
        path.write_text("precious")
    with pytest.raises(InvalidOption, match="is not empty: what is there is left alone"):
        start_cluster(tmp_path, workers=1, cores=1, memory_mb=512)
    with pytest.raises(InvalidOption, match="no cluster was started"):
        end_cluster(tmp_path)
    assert [path.read_text() for path in precious] == ["precious"] * 2


def test_an_ended_cluster_is_replaced_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that fails leaves its log and what `cluster down` needs; the next one replaces both."""

    def fails(role: str, _program: str, _arguments: list[str], directory: Path) -> ClusterProcess:
        (directory / f"{role}.log").write_text("Error: made up")
        return ClusterProcess(role, os.getpid(), 1)

    monkeypatch.setattr("priocast.pipeline.cluster._start", fails)
    for _ in range(2):
        with pytest.raises(ClusterFailed, match="Error: made up"):
            start_cluster(tmp_path, workers=1, cores=1, memory_mb=512)
        assert {path.name for path in tmp_path.iterdir()} == {"cluster.json", "master.log"}
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(InvalidOption, match=r"notes\.txt was not written by a cluster: it is left alone"):
        start_cluster(tmp_path, workers=1, cores=1, memory_mb=512)
    assert end_cluster(tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_state_file_names_nothing_outside_of_its_directory(tmp_path: Path) -> None:
    cluster = Cluster("spark://127.0.0.1:1", (ClusterProcess("../other", 1, 1),))
    (tmp_path / "cluster.json").write_bytes(msgspec.json.encode(cluster))
    with pytest.raises(InvalidOption, match="was not written by Priocast"):
        end_cluster(tmp_path)


def test_cluster_that_does_not_exist(tmp_path: Path) -> None:
    assert find_cluster(tmp_path) is None
    with pytest.raises(InvalidOption, match="no cluster was started"):
        end_cluster(tmp_path)
    (tmp_path / "cluster.json").write_text("{}")
    with pytest.raises(InvalidOption, match="was not written by Priocast"):
        find_cluster(tmp_path)
