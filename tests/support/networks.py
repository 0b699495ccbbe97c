"""Networks for tests: the same processes over every kind of network, on the loopback address."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from own_network import UnixNetwork
from priocast.core.errors import InvalidAddress, PriocastError
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.fifo_link import FifoLink
from priocast.links.frame import Frame
from priocast.network.address import Address
from priocast.network.interface import Network, Port
from priocast.network.keys import Authority, make_authority, make_member_certificate
from priocast.network.memory import MemoryHub, MemoryNetwork
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from priocast.network.udp import UdpNetwork
from priocast.network.udp_socket import open_multicast_socket
from priocast.testing.addresses import free_addresses
from support.waiting import wait_until

KINDS = ("memory", "tcp", "tls", "udp", "multicast", "certified", "unix")
GROUPS = ("test", "other")


class Recorder:
    """A receiver that records what the network reports."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.roles: dict[str, Role] = {}
        self.received: list[tuple[ProcessId, Frame]] = []
        self.calls = 0
        self.errors: list[PriocastError] = []
        self.alive: set[str] = set()

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        self.reached.append(peer)
        self.roles[peer] = role

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        assert peer.name in self.reached, "a peer is reported as reachable before its frames"
        assert frames
        self.calls += 1
        self.received += [(peer, frame) for frame in frames]

    def hears(self, peer: str) -> bool:
        return peer in self.alive

    def failed(self, error: PriocastError) -> None:
        self.errors.append(error)

    def bodies(self, peer: str | None = None) -> list[bytes]:
        """The received bodies, of all peers or of one."""
        return [frame.body for process, frame in self.received if peer in {None, process.name}]

    async def wait_reaches(self, *peers: str) -> None:
        """Wait until all of these peers are reachable."""
        await wait_until(lambda: set(peers) <= set(self.reached))

    async def wait_body(self, body: bytes) -> None:
        """Wait until this body was received."""
        await wait_until(lambda: body in self.bodies())

    async def wait_received(self, count: int) -> None:
        """Wait until this many frames were received."""
        await wait_until(lambda: len(self.received) >= count)


class LinkEnd(Recorder):
    """One end of a link over the network, as in the runtime: bodies arrive once, in order."""

    def __init__(self, network: Network, me: str, peer: str) -> None:
        super().__init__()
        self.arrived: list[bytes] = []
        self._link = FifoLink(network.link_options, channel=7)
        self._peer = peer
        self._timer: asyncio.TimerHandle | None = None
        self._port: Port | None = None
        self._port = network.open("test", ProcessId(me, 1), self)

    def send(self, body: bytes) -> None:
        """Send a body reliably."""
        self._link.send(body, time.monotonic_ns())
        self._act()

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        super().reachable(peer, role)
        self._link.reconnected(time.monotonic_ns())
        self._act()

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        for frame in frames:
            self.arrived += self._link.receive(frame, time.monotonic_ns())
        self._act()

    def close(self) -> None:
        """Stop sending."""
        if self._timer is not None:
            self._timer.cancel()
        assert self._port is not None
        self._port.close()

    def _act(self) -> None:
        if self._link.frames and self._port is not None:
            frames, self._link.frames = self._link.frames, []
            self._port.send(self._peer, frames)
            self._port.flush()
        if self._link.deadline is not None and self._timer is None:
            seconds = (self._link.deadline - time.monotonic_ns()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(max(0, seconds), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._link.tick(time.monotonic_ns())
        self._act()


def free_address() -> Address:
    """An address that is free for TCP and UDP."""
    return free_addresses(1)[0]


@cache
def carries_multicasts() -> bool:
    """Whether this machine carries multicasts on its loopback interface."""
    multicast, word = Address("239.77.0.1", free_address().port), b"does this arrive?"
    with socket.socket(type=socket.SOCK_DGRAM) as sending:
        sending.bind(("127.0.0.1", 0))
        try:
            with open_multicast_socket(multicast, sending) as receiving:
                receiving.settimeout(1.0)
                sending.sendto(word, multicast)
                return receiving.recv(100) == word
        except (InvalidAddress, OSError):
            return False


class NetworkFactory:
    """Creates networks of one kind, with addresses, keys and certificates for processes by name.

    Each name keeps its address, so that a process can be restarted.
    """

    def __init__(self, kind: str, directory: Path) -> None:
        assert kind in KINDS
        if kind == "multicast" and not carries_multicasts():
            pytest.skip("this machine does not carry multicasts on its loopback interface")
        self.kind = kind
        self.hub = MemoryHub()
        self.keys = {group: secrets.token_bytes(32) for group in GROUPS}
        self.addresses: dict[str, Address] = {}
        self._directory = directory
        self._authority: Authority | None = None
        self._certificates: dict[str, TlsSecurity] = {}
        self.multicast = Address(f"239.77.{secrets.randbelow(255)}.{1 + secrets.randbelow(254)}", 0)

    def address(self, name: str) -> Address:
        """The address that this process listens on."""
        if name not in self.addresses:
            self.addresses[name] = free_address()
        return self.addresses[name]

    @property
    def authority(self) -> Authority:
        """The authority that signs the certificates."""
        if self._authority is None:
            self._authority = make_authority(self._directory)
        return self._authority

    def certificate(self, name: str) -> TlsSecurity:
        """The certificate of this process."""
        if name not in self._certificates:
            made = make_member_certificate(self._directory, self.authority, name, list(GROUPS))
            self._certificates[name] = made
        return self._certificates[name]

    def network(self, name: str, peers: str = "", incarnation: int = 1) -> Network:
        """A network for one process, with these peers configured (one letter each)."""
        addresses = [self.address(peer) for peer in peers]
        match self.kind:
            case "memory":
                return MemoryNetwork(self.hub, name)
            case "tcp":
                return TcpNetwork(name, self.address(name), addresses)
            case "unix":
                return UnixNetwork(self._directory, name)
            case "tls":
                return TcpNetwork(name, self.address(name), addresses, security=self.certificate(name))
            case _:
                return self.datagrams(name, peers, incarnation)

    def datagrams(self, name: str, peers: str = "", incarnation: int = 1) -> UdpNetwork:
        """A network over UDP; with multicast, no peers are configured."""
        addresses = [self.address(peer) for peer in peers]
        multicast = None
        if self.kind == "multicast":
            if not self.multicast.port:
                self.multicast = Address(self.multicast.host, free_address().port)
            addresses, multicast = [], self.multicast
        return UdpNetwork(
            name,
            self.address(name),
            addresses,
            keys=self.keys,
            incarnation=incarnation,
            multicast=multicast,
            security=self.certificate(name) if self.kind == "certified" else None,
        )

    @asynccontextmanager
    async def running(self, names: str) -> AsyncIterator[list[Network]]:
        """Started networks that know each other's addresses; all are closed at the end."""
        networks = [self.network(name, names.replace(name, "")) for name in names]
        async with started(*networks):
            yield networks


@asynccontextmanager
async def started(*networks: Network) -> AsyncIterator[None]:
    """Start networks, and close them at the end."""
    async with AsyncExitStack() as stack:
        for network in networks:
            stack.push_async_callback(network.close)
            await network.start()
        yield


def open_all(networks: list[Network], names: str, group: str = "test") -> list[Recorder]:
    """Open a group on each network, with a recorder behind it."""
    recorders = [Recorder() for _ in networks]
    for network, name, recorder in zip(networks, names, recorders, strict=True):
        network.open(group, ProcessId(name, 1), recorder)
    return recorders
