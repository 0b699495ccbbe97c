"""A network within one event loop: for tests, and for groups whose members share a process."""

import asyncio
from collections import Counter

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.role import Role
from priocast.links.frame import RELIABLE_NETWORK, Frame
from priocast.network.interface import UNALTERED, Receiver
from priocast.network.ports import OpenPort, Ports


class MemoryHub:
    """Connects the processes of one event loop, by name. It can simulate network partitions."""

    def __init__(self) -> None:
        self.networks: dict[str, MemoryNetwork] = {}
        self.cuts: set[tuple[str, str]] = set()

    def cut(self, sender: str, receiver: str) -> None:
        """Drop everything from `sender` to `receiver` from now on; the other direction still works."""
        self.cuts.add((sender, receiver))

    def heal(self) -> None:
        """Restore all connections; processes that were cut off are notified, as after a reconnect."""
        cuts, self.cuts = self.cuts, set()
        for sender, receiver in sorted(cuts):
            if sender in self.networks and receiver in self.networks:
                self.networks[sender].notify_reachable(receiver)


class MemoryPort(OpenPort):
    """One group's access to the hub."""

    def __init__(self, network: "MemoryNetwork", group: str, process: ProcessId, receiver: Receiver) -> None:
        super().__init__(group, process, receiver)
        self._network = network

    def send(self, peer: str, frames: list[Frame]) -> None:
        network, name = self._network, self.process.name
        hub = network.hub
        other = hub.networks.get(peer)
        if other is not None and hub.networks.get(name) is network and (name, peer) not in hub.cuts:
            asyncio.get_running_loop().call_soon(
                other.receive, self.group_hash, self.process, frames, network.role
            )

    def flush(self) -> None:
        """Nothing is delayed."""

    def close(self) -> None:
        self._network.ports.remove(self)


class MemoryNetwork:
    """Passes frames on without encoding them, in the next iteration of the event loop.

    `role` is what the process is in all its groups.
    """

    link_options = RELIABLE_NETWORK
    properties = UNALTERED

    def __init__(self, hub: MemoryHub, name: str, role: Role = Role.MEMBER) -> None:
        self.hub = hub
        self.role = role
        self.ports: Ports[MemoryPort] = Ports(name)
        self.rejections: Counter[str] = self.ports.rejections
        self._name = name

    async def start(self) -> None:
        if self._name in self.hub.networks:
            raise InvalidOption(f"{self._name} is already on this hub: give each process its own name")
        others = list(self.hub.networks.values())
        self.hub.networks[self._name] = self
        for other in others:
            other.notify_reachable(self._name)
            self.notify_reachable(other._name)

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> MemoryPort:
        port = MemoryPort(self, group, process, receiver)
        self.ports.add(port)
        if self.hub.networks.get(self._name) is self:
            for name, other in list(self.hub.networks.items()):
                if name != self._name:
                    receiver.reachable(name, other.role)
        return port

    async def close(self) -> None:
        if self.hub.networks.get(self._name) is self:
            del self.hub.networks[self._name]

    def unreached(self) -> list[str]:
        return []

    def notify_reachable(self, peer: str) -> None:
        """A process has started, or the connection to it is restored."""
        role = self.hub.networks[peer].role
        for port in self.ports.all():
            port.receiver.reachable(peer, role)

    def receive(self, group_hash: int, peer: ProcessId, frames: list[Frame], role: Role) -> None:
        """Accept frames, unless the network was closed while they were in flight."""
        if self.hub.networks.get(self._name) is self:
            self.ports.receive(group_hash, peer, frames, role)
