"""The groups that use a network: what every network keeps of them, whatever it sends over."""

from typing import Generic, TypeVar

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.identity import ProcessId, check_name
from priocast.network.codec import hash_of
from priocast.network.interface import Receiver

_CLOSED_KEPT = 64


class OpenPort:
    """Whose port it is, and who is told; each network adds how it sends."""

    def __init__(self, group: str, process: ProcessId, receiver: Receiver) -> None:
        self.group = check_name(group, "group")
        self.group_hash = hash_of(group)
        self.process = process
        self.receiver = receiver


AnyPort = TypeVar("AnyPort", bound=OpenPort)


class Ports(Generic[AnyPort]):
    """The open ports of one process, by the hash that a group's frames carry."""

    def __init__(self, name: str) -> None:
        self._name = check_name(name, "member")
        self._open: dict[int, AnyPort] = {}
        self._closed: dict[int, None] = {}

    def add(self, port: AnyPort) -> None:
        """Open a port; a group has one at a time."""
        if port.process.name != self._name:
            raise InvalidInput(f"{port.process} cannot use the network of {self._name}: open one of its own")
        if port.group_hash in self._open:
            raise InvalidOption(f"{self._name} has the group {port.group} open already: close it there first")
        self._open[port.group_hash] = port

    def remove(self, port: AnyPort) -> None:
        """Close a port; one that is closed already stays so, whoever has opened the group again."""
        if self._open.get(port.group_hash) is port:
            del self._open[port.group_hash]
            self._closed[port.group_hash] = None
            if len(self._closed) > _CLOSED_KEPT:
                del self._closed[next(iter(self._closed))]

    def find(self, group_hash: int) -> AnyPort | None:
        """The port of a group, if it is open here."""
        return self._open.get(group_hash)

    def was_open(self, group_hash: int) -> bool:
        """Whether the group was open here: what still comes for it is late, and no fault of the sender's."""
        return group_hash in self._closed

    def all(self) -> list[AnyPort]:
        """The open ports, to be told something that may make them open or close others."""
        return list(self._open.values())
