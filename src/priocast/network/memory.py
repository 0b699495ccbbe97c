"""A network within one process: for tests, and for groups whose members share an event loop."""

import asyncio
from collections import Counter

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import RELIABLE_NETWORK, Frame
from priocast.network.interface import Receiver
from priocast.network.ports import OpenPort, Ports
from priocast.network.rejections import Reason, Rejections


class MemoryHub:
    """Where the processes of memory networks meet, by name."""

    def __init__(self) -> None:
        self.networks: dict[str, MemoryNetwork] = {}
        self._cuts: set[tuple[str, str]] = set()

    def cut(self, sender: str, receiver: str) -> None:
        """Lose all that goes this way from now on; what goes the other way arrives."""
        self._cuts.add((sender, receiver))

    def heal(self) -> None:
        """Carry everything again; whoever was cut off is told, as after a lost connection."""
        cuts, self._cuts = self._cuts, set()
        for sender, receiver in sorted(cuts):
            if sender in self.networks and receiver in self.networks:
                self.networks[sender].tell_reachable(receiver)

    def carries(self, sender: str, receiver: str) -> bool:
        """Whether frames go this way."""
        return (sender, receiver) not in self._cuts


class MemoryPort(OpenPort):
    """One group's way into the hub."""

    def __init__(self, network: "MemoryNetwork", group: str, process: ProcessId, receiver: Receiver) -> None:
        super().__init__(group, process, receiver)
        self._network = network

    def send(self, peer: str, frames: list[Frame]) -> None:
        self._network.send(peer, self, frames)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self._network.ports.remove(self)


class MemoryNetwork:
    """Frames are handed over as they are, in the next round of the event loop."""

    link_options = RELIABLE_NETWORK

    def __init__(self, hub: MemoryHub, name: str) -> None:
        self.ports: Ports[MemoryPort] = Ports(name)
        self._hub = hub
        self._name = name
        self._rejections = Rejections(name)
        self.rejections: Counter[str] = self._rejections.counts

    async def start(self) -> None:
        if self._name in self._hub.networks:
            raise InvalidOption(f"{self._name} is on this hub already: give each process its own name")
        others = list(self._hub.networks.values())
        self._hub.networks[self._name] = self
        for other in others:
            other.tell_reachable(self._name)
            self.tell_reachable(other._name)

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> MemoryPort:
        port = MemoryPort(self, group, process, receiver)
        self.ports.add(port)
        if self._started:
            for name in list(self._hub.networks):
                if name != self._name:
                    receiver.reachable(name)
        return port

    async def close(self) -> None:
        if self._started:
            del self._hub.networks[self._name]

    def unreached(self) -> list[str]:
        return []

    def send(self, peer: str, port: MemoryPort, frames: list[Frame]) -> None:
        """Hand frames to a process that is there, if they can get there."""
        other = self._hub.networks.get(peer)
        if other is not None and self._started and self._hub.carries(self._name, peer):
            asyncio.get_running_loop().call_soon(other._take, port.group_hash, port.process, frames)

    def tell_reachable(self, peer: str) -> None:
        """A process has come, or the way to it is open again."""
        for port in self.ports.all():
            port.receiver.reachable(peer)

    @property
    def _started(self) -> bool:
        return self._hub.networks.get(self._name) is self

    def _take(self, group_hash: int, peer: ProcessId, frames: list[Frame]) -> None:
        if not self._started:
            return
        port = self.ports.find(group_hash)
        if port is None:
            if not self.ports.was_open(group_hash):
                self._rejections.note(Reason.UNKNOWN_GROUP, peer=peer.name)
        else:
            port.receiver.frames_received(peer, frames)
