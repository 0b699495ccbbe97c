"""The systems of a comparison: what each needs, what it guarantees, and how it is launched.

Everything runs on the loopback network of this machine, or in network namespaces that a launch makes and
removes (Corosync). Storage is in memory: that of the system, or a directory of `/dev/shm` if there is one, so
that no disk is compared. The first rows are no systems, but what the systems are compared with.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.jgroups_stack import TCP, UDP, write_stack
from benchmarks.peers.load import PeerLoad
from benchmarks.peers.references import measure_floor, measure_round_trip
from benchmarks.peers.servers import etcd_servers, nats_servers, zookeeper_servers
from benchmarks.peers.totem import KNET, UDPU, totem_ring
from priocast.testing.addresses import free_addresses

_CLIENTS = Path(__file__).parent / "clients"
_JGROUPS_JAR = Path("/usr/share/java/jgroups.jar")
_JAVA_OPTIONS = (
    "-Xms256m",
    "-Xmx512m",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


@dataclass(frozen=True)
class Requirement:
    """Something that must be there: how to find out, and the Debian package that has it."""

    package: str
    is_there: Callable[[], bool]


#: Yields the commands of so many members, while their servers run; files of the launch are in the directory.
Launch = Callable[[int, Path], AbstractContextManager[list[list[str]]]]


@dataclass(frozen=True)
class PeerSystem:
    """One row of the table. `launch` yields the commands of the members, while the servers run.

    A system that is far slower than others gets only a `share` of the messages. A row with `measure` measures
    itself: messages per second, and the median delivery time in microseconds.
    """

    name: str
    setup: str
    guarantees: str
    requirements: tuple[Requirement, ...]
    launch: Launch
    share: float = 1.0
    measure: Callable[[PeerLoad], tuple[float | None, float]] | None = None

    def missing(self) -> list[str]:
        """The packages that are missing."""
        return [each.package for each in self.requirements if not each.is_there()]


def program(name: str, package: str) -> Requirement:
    """A program on the search path; daemons may be in a directory that only root has there."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return Requirement(package, lambda: shutil.which(name, path=path) is not None)


def _file(path: str, package: str) -> Requirement:
    return Requirement(package, lambda: Path(path).exists())


def _python_members(module: str, members: int, *extra: str) -> list[list[str]]:
    addresses = [str(address) for address in free_addresses(members)]
    command = [sys.executable, "-m", f"benchmarks.peers.clients.{module}"]
    return [[*command, str(rank), *addresses, *extra] for rank in range(members)]


def _in_process(module: str, *extra: str) -> Launch:
    @contextmanager
    def launch(members: int, _directory: Path) -> Iterator[list[list[str]]]:
        yield _python_members(module, members, *extra)

    return launch


def _with_servers(module: str, servers: Callable[[Path], AbstractContextManager[list[str]]]) -> Launch:
    @contextmanager
    def launch(members: int, directory: Path) -> Iterator[list[list[str]]]:
        with servers(directory) as addresses:
            yield _python_members(module, members, *addresses)

    return launch


def _jgroups(transport: str, *, bundling: bool) -> Launch:
    @contextmanager
    def launch(members: int, directory: Path) -> Iterator[list[list[str]]]:
        source = _CLIENTS / "JGroupsMember.java"
        subprocess.run(
            ["javac", "-nowarn", "-cp", _JGROUPS_JAR, "-d", directory, source],
            check=True,
            capture_output=True,
        )
        addresses = free_addresses(members)
        class_path = f"{directory}:{_JGROUPS_JAR}:/usr/share/java/commons-logging.jar"
        yield [
            [
                *("java", *_JAVA_OPTIONS, "-cp", class_path, "JGroupsMember"),
                *(str(stack), str(rank), str(members)),
            ]
            for rank, stack in enumerate(
                write_stack(directory, rank, addresses, transport=transport, bundling=bundling)
                for rank in range(members)
            )
        ]

    return launch


def _corosync(transport: str) -> Launch:
    @contextmanager
    def launch(members: int, directory: Path) -> Iterator[list[list[str]]]:
        binary = directory / "cpg_member"
        subprocess.run(
            ["cc", "-O2", "-o", binary, _CLIENTS / "cpg_member.c", "-lcpg"], check=True, capture_output=True
        )
        with totem_ring(members, directory, transport) as within:
            yield [[*within[rank], str(binary), str(rank), str(members)] for rank in range(members)]

    return launch


_AGREED = "agreed delivery, FIFO by sender; delivered without waiting for a majority"
_QUORUM = "delivered once a majority of the servers has it"
_JAVA = (program("javac", "openjdk-17-jdk-headless"), _file(str(_JGROUPS_JAR), "libjgroups-java"))
_COROSYNC = (
    program("corosync", "corosync"),
    _file("/usr/include/corosync/cpg.h", "libcpg-dev"),
    program("cc", "gcc"),
    program("ip", "iproute2"),
)
SYSTEMS = (
    PeerSystem(
        "raw round trip",
        "a message to the first member and back, uvloop, TCP; no rate",
        "none",
        (),
        _in_process(""),
        measure=measure_round_trip,
    ),
    PeerSystem(
        "floor",
        "a prioritised sequencer in Python without membership, links, checks and API, TCP; no warm-up",
        "none: no failure is handled",
        (),
        _in_process(""),
        measure=measure_floor,
    ),
    PeerSystem(
        "Priocast, batches",
        "`sequencer-ub`, prioritised, TCP; `broadcast_many` in bursts of 512 of eight levels, `batches()`",
        f"{_AGREED}; order by priority",
        (),
        _in_process("priocast_member", "batches"),
    ),
    PeerSystem(
        "Priocast, batches, multicast",
        "the same over UDP with IP multicast, datagrams of up to 65,507 bytes, encrypted and authenticated",
        f"{_AGREED}; order by priority",
        (),
        _in_process("priocast_member", "multicasts"),
    ),
    PeerSystem(
        "Priocast, one at a time",
        "`sequencer-ub`, prioritised, TCP; `broadcast`, `async for`",
        f"{_AGREED}; order by priority",
        (),
        _in_process("priocast_member", "single"),
    ),
    PeerSystem(
        "JGroups SEQUENCER, bundling, multicast",
        "2.12, UDP multicast, bundles of up to 1 ms (unicasts, too), UNICAST2, credits 200,000",
        _AGREED,
        _JAVA,
        _jgroups(UDP, bundling=True),
    ),
    PeerSystem(
        "JGroups SEQUENCER, bundling",
        "the same over TCP",
        _AGREED,
        _JAVA,
        _jgroups(TCP, bundling=True),
    ),
    PeerSystem(
        "JGroups SEQUENCER",
        "2.12, TCP, no bundling, credits 200,000",
        _AGREED,
        _JAVA,
        _jgroups(TCP, bundling=False),
    ),
    PeerSystem(
        "Corosync CPG",
        "a node in each network namespace, MTU 9000, knet, window 100, 25 messages, no encryption",
        _AGREED,
        _COROSYNC,
        _corosync(KNET),
    ),
    PeerSystem(
        "Corosync CPG, udpu",
        "the same with udpu, packets of 8,982 bytes",
        _AGREED,
        _COROSYNC,
        _corosync(UDPU),
    ),
    PeerSystem(
        "PySyncObj, batches",
        "raft in every member, batches of 10 ms, tick 10 ms, 1,000 commands in flight per member",
        f"{_QUORUM}; log in memory",
        (Requirement("pysyncobj (pip)", lambda: find_spec("pysyncobj") is not None),),
        _in_process("pysyncobj_member", "batches"),
        share=0.1,
    ),
    PeerSystem(
        "PySyncObj",
        "raft in every member, no batches, tick 1 ms, 1,000 commands in flight per member",
        f"{_QUORUM}; log in memory",
        (Requirement("pysyncobj (pip)", lambda: find_spec("pysyncobj") is not None),),
        _in_process("pysyncobj_member", "single"),
        share=0.02,
    ),
    PeerSystem(
        "NATS JetStream",
        "3 servers, stream of 3 replicas in memory, 1,000 publishes in flight per member",
        f"{_QUORUM}; stream in memory",
        (program("nats-server", "nats-server"),),
        _with_servers("nats_member", nats_servers),
        share=0.2,
    ),
    PeerSystem(
        "etcd",
        "3 servers, HTTP gateway, 32 puts in flight per member, a watch at each",
        f"{_QUORUM}, linearisable; log in a directory in memory, flushed",
        (program("etcd", "etcd-server"),),
        _with_servers("etcd_member", etcd_servers),
        share=0.02,
    ),
    PeerSystem(
        "ZooKeeper",
        "3 servers, 1,000 writes in flight per member; msg/s: writes acknowledged to their writers (of the "
        "slowest, times the members), **no delivery to all**",
        f"{_QUORUM}, linearisable writes; log in a directory in memory, not flushed",
        (_file("/usr/share/java/zookeeper.jar", "zookeeper"), program("java", "default-jre-headless")),
        _with_servers("zookeeper_member", zookeeper_servers),
        share=0.05,
    ),
)
