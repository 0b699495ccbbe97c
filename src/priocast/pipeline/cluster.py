"""A Spark cluster on this machine, for trying out: one master and some workers, on the loopback address.

The processes go on when the command that started them ends. A file beside their logs says which they are; a
process is ended only if it is still the one that was started, which its start time shows. The directory of a
cluster has no other files when it starts, so that only its own are ever replaced or removed.
"""

import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Annotated

import msgspec
import pyspark

from priocast.core.errors import InvalidOption, PriocastError
from priocast.pipeline.java import find_java_home

HOST = "127.0.0.1"
_STATE = "cluster.json"
_START_SECONDS = 120.0
_END_SECONDS = 15.0
_POLL_SECONDS = 0.1
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_START_TIME_FIELD = 19  # of /proc/PID/stat, after the name of the program


class ClusterFailed(PriocastError):
    """The processes of a cluster did not start."""


class ClusterProcess(msgspec.Struct, frozen=True):
    """A process of the cluster: its role, its id, and when it was started (in ticks since the boot)."""

    role: Annotated[str, msgspec.Meta(pattern=r"^(master|worker-[0-9]+)$")]
    pid: int
    started: int

    @property
    def is_running(self) -> bool:
        """Whether this process still runs, and its id is not another process's by now."""
        return _start_time(self.pid) == self.started


class Cluster(msgspec.Struct, frozen=True):
    """A cluster that was started: the URL of its master, and its processes."""

    master: str
    processes: tuple[ClusterProcess, ...]

    @property
    def running(self) -> tuple[ClusterProcess, ...]:
        """The processes that still run."""
        return tuple(process for process in self.processes if process.is_running)


def find_cluster(directory: Path) -> Cluster | None:
    """The cluster that was started with this directory and has not been ended."""
    state = directory / _STATE
    try:
        return msgspec.json.decode(state.read_bytes(), type=Cluster)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise InvalidOption(f"{state} was not written by Priocast: choose another directory") from error


def start_cluster(directory: Path, workers: int, cores: int, memory_mb: int) -> Cluster:
    """Start a master and workers, and wait until the workers are registered."""
    _prepare(directory)
    port = _free_port()
    master = f"spark://{HOST}:{port}"
    started: list[ClusterProcess] = []

    def start(role: str, program: str, arguments: list[str]) -> None:
        started.append(_start(role, program, ["--host", HOST, "--webui-port", "0", *arguments], directory))
        _write_state(directory, Cluster(master, tuple(started)))

    try:
        start("master", _MASTER, ["--port", str(port)])
        _await_line(directory / "master.log", "New state: ALIVE", started[-1])
        for number in range(1, workers + 1):
            role = f"worker-{number}"
            resources = ["--cores", str(cores), "--memory", f"{memory_mb}m"]
            start(role, _WORKER, [*resources, "--work-dir", str(directory / role), master])
        for process in started[1:]:
            _await_line(directory / f"{process.role}.log", "Successfully registered", process)
    except BaseException:
        _end(started)
        raise
    return Cluster(master, tuple(started))


def end_cluster(directory: Path) -> int:
    """End the processes that still run, and remove what they left; return how many ran."""
    cluster = find_cluster(directory)
    if cluster is None:
        raise InvalidOption(f"no cluster was started with {directory}: start one with 'priocast cluster up'")
    running = cluster.running
    _end(list(running))
    _remove_files(directory, cluster)
    return len(running)


def _prepare(directory: Path) -> None:
    """Make the directory of a new cluster; raise if it has files that are not an ended cluster's."""
    earlier = find_cluster(directory)
    if earlier is not None:
        if earlier.running:
            raise InvalidOption(
                f"a cluster runs already, at {earlier.master}: end it with 'priocast cluster down'"
            )
        roles = {process.role for process in earlier.processes}
        known = {_STATE, *roles, *(f"{role}.log" for role in roles)}
        if other := sorted(path.name for path in directory.iterdir() if path.name not in known):
            raise InvalidOption(
                f"{directory / other[0]} was not written by a cluster: it is left alone; choose another "
                "directory"
            )
        _remove_files(directory, earlier)
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise InvalidOption(
            f"{directory} is not empty: what is there is left alone; remove it, or choose another directory"
        )


def _remove_files(directory: Path, cluster: Cluster) -> None:
    for process in cluster.processes:
        (directory / f"{process.role}.log").unlink(missing_ok=True)
        shutil.rmtree(directory / process.role, ignore_errors=True)
    (directory / _STATE).unlink()


def _write_state(directory: Path, cluster: Cluster) -> None:
    """Write which processes were started, at once: an interrupted start can be ended, too."""
    part = directory / f"{_STATE}.part"
    part.write_bytes(msgspec.json.encode(cluster))
    part.rename(directory / _STATE)


def _start(role: str, program: str, arguments: list[str], directory: Path) -> ClusterProcess:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "JAVA_HOME": str(find_java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_LOCAL_DIRS": str(directory / role),
    }
    command = [str(home / "bin" / "spark-class"), program, *arguments]
    with (directory / f"{role}.log").open("wb") as log:
        # Not a `subprocess`: those belong to a parent that waits for them, and this one ends first.
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, log.fileno(), descriptor) for descriptor in (1, 2)],
            setsid=True,
        )
    return ClusterProcess(role, pid, _start_time(pid) or 0)


def _await_line(log: Path, text: str, process: ClusterProcess) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        lines = log.read_text(errors="replace")
        if text in lines:
            return
        if not process.is_running:
            reason = next(
                (line for line in reversed(lines.splitlines()) if "rror" in line), "no reason given"
            )
            raise ClusterFailed(f"the {process.role} of the cluster ended: {reason}")
        time.sleep(_POLL_SECONDS)
    raise ClusterFailed(
        f"the {process.role} of the cluster was not ready in {_START_SECONDS:.0f} s: see {log}"
    )


def _end(processes: list[ClusterProcess]) -> None:
    """End workers before their master; whoever does not end in time is killed."""
    for process in reversed(processes):
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _END_SECONDS
    while any(process.is_running for process in processes) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    for process in processes:
        _signal(process, signal.SIGKILL)


def _signal(process: ClusterProcess, number: signal.Signals) -> None:
    if process.is_running:
        os.kill(process.pid, number)


def _start_time(pid: int) -> int | None:
    """When a process was started, in ticks since the boot; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[_START_TIME_FIELD])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
