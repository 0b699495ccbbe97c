"""The servers of systems that have some: three of each, on loopback, ended with the launch."""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from priocast.network.address import Address
from priocast.testing.addresses import free_addresses
from priocast.testing.child_process import ChildProcess

COUNT = 3
_READY_SECONDS = 60.0
_ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"


@contextmanager
def nats_servers(directory: Path) -> Iterator[list[str]]:
    """Three NATS servers with JetStream; yields their addresses."""
    clients, routes = free_addresses(COUNT), free_addresses(COUNT)
    all_routes = ",".join(f"nats://{address}" for address in routes)
    commands = [
        [
            *(
                "nats-server",
                "-n",
                f"n{index}",
                "-a",
                clients[index].host,
                "-p",
                str(clients[index].port),
                "-js",
            ),
            *("-sd", str(directory / f"nats{index}"), "--cluster_name", "peers"),
            *("--cluster", f"nats://{routes[index]}", "--routes", all_routes),
        ]
        for index in range(COUNT)
    ]
    with _started(commands, clients):
        yield [str(address) for address in clients]


@contextmanager
def etcd_servers(directory: Path) -> Iterator[list[str]]:
    """Three etcd servers; yields their client addresses."""
    clients, peers = free_addresses(COUNT), free_addresses(COUNT)
    cluster = ",".join(f"e{index}=http://{peers[index]}" for index in range(COUNT))
    commands = [
        [
            *("etcd", "--name", f"e{index}", "--data-dir", str(directory / f"etcd{index}")),
            *("--listen-client-urls", f"http://{clients[index]}"),
            *("--advertise-client-urls", f"http://{clients[index]}"),
            *("--listen-peer-urls", f"http://{peers[index]}"),
            *("--initial-advertise-peer-urls", f"http://{peers[index]}"),
            *("--initial-cluster", cluster, "--log-level", "error"),
            *("--heartbeat-interval", "500", "--election-timeout", "5000"),
        ]
        for index in range(COUNT)
    ]
    with _started(commands, clients):
        yield [str(address) for address in clients]


@contextmanager
def zookeeper_servers(directory: Path) -> Iterator[list[str]]:
    """Three ZooKeeper servers; yields their client addresses."""
    clients, others = free_addresses(COUNT), free_addresses(2 * COUNT)
    quorum, election = others[:COUNT], others[COUNT:]
    servers = [f"server.{index + 1}={quorum[index]}:{election[index].port}" for index in range(COUNT)]
    commands = []
    for index in range(COUNT):
        data = directory / f"zookeeper{index}"
        data.mkdir()
        (data / "myid").write_text(f"{index + 1}\n", encoding="ascii")
        lines = [
            *("tickTime=2000", "initLimit=20", "syncLimit=10", f"dataDir={data}", "forceSync=no"),
            *(
                f"clientPortAddress={clients[index].host}",
                f"clientPort={clients[index].port}",
                "admin.enableServer=false",
            ),
            *("globalOutstandingLimit=10000", "maxClientCnxns=0", *servers),
        ]
        configuration = directory / f"zookeeper{index}.cfg"
        configuration.write_text("\n".join(lines) + "\n", encoding="ascii")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        commands.append(
            ["java", "-Xmx512m", "-Dzookeeper.forceSync=no", "-cp", _ZOOKEEPER_JAR, main, str(configuration)]
        )
    with _started(commands, clients):
        yield [str(address) for address in clients]


@contextmanager
def _started(commands: Sequence[list[str]], addresses: Sequence[Address]) -> Iterator[None]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ChildProcess(command[0], command)) for command in commands]
        deadline = time.monotonic() + _READY_SECONDS
        for server, address in zip(servers, addresses, strict=True):
            while not _listens(address):
                if server.has_ended or time.monotonic() > deadline:
                    raise RuntimeError(f"{server.name} does not serve: {server.last_error[:200]}")
                time.sleep(0.1)
        yield


def _listens(address: Address) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address.host, address.port)) == 0
