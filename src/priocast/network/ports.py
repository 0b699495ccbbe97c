"""The ports of one process: which groups use its network, and where received frames go.

Every network of Priocast is built on these two classes, and a network of your own can be.
"""

from collections import Counter
from typing import Generic, TypeVar

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.identity import ProcessId, check_name
from priocast.core.role import Role
from priocast.links.frame import Frame
from priocast.network.codec import hash_of
from priocast.network.interface import Receiver
from priocast.network.rejections import Reason, RejectionLog

_CLOSED_KEPT = 64


class OpenPort:
    """A port's group, process and receiver; each network adds `send`, `flush` and `close`.

    `group_hash` represents the group's name in frames.
    """

    def __init__(self, group: str, process: ProcessId, receiver: Receiver) -> None:
        self.group = check_name(group, "group")
        self.group_hash = hash_of(group)
        self.process = process
        self.receiver = receiver


AnyPort = TypeVar("AnyPort", bound=OpenPort)


class Ports(Generic[AnyPort]):
    """The open ports of the process `name`. `rejections` counts what was not accepted, by reason."""

    def __init__(self, name: str, rejection_log: RejectionLog | None = None) -> None:
        self._name = check_name(name, "member")
        self._rejection_log = rejection_log or RejectionLog(name)
        self.rejections: Counter[str] = self._rejection_log.counts
        self._open: dict[int, AnyPort] = {}
        self._closed: dict[int, None] = {}

    def add(self, port: AnyPort) -> None:
        """Register a new `port`; a group has one at a time."""
        if port.process.name != self._name:
            raise InvalidInput(
                f"{port.process} cannot use the network of {self._name}: each process needs its own network"
            )
        if port.group_hash in self._open:
            raise InvalidOption(f"{self._name} already has a port of group {port.group!r}: close it first")
        self._open[port.group_hash] = port

    def remove(self, port: AnyPort) -> None:
        """Close a `port`; closing it again has no effect, even if the group has another port by then."""
        if self._open.get(port.group_hash) is port:
            del self._open[port.group_hash]
            self._closed[port.group_hash] = None
            if len(self._closed) > _CLOSED_KEPT:
                del self._closed[next(iter(self._closed))]

    def find(self, group_hash: int) -> AnyPort | None:
        """The port of the group with this `group_hash`, if it is open."""
        return self._open.get(group_hash)

    def receive(
        self, group_hash: int, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER
    ) -> None:
        """Pass `frames` from `peer`, which has this `role`, to the group with this `group_hash`.

        Frames for a group that was never open here are counted as rejected.
        """
        port = self._open.get(group_hash)
        if port is not None:
            port.receiver.frames_received(peer, frames, role)
        elif group_hash not in self._closed:
            self._rejection_log.record(Reason.UNKNOWN_GROUP, peer=peer.name)

    def hear(self, peer: str) -> bool:
        """Whether a process named `peer` counts as alive in any group."""
        return any(port.receiver.hears(peer) for port in self._open.values())

    def all(self) -> list[AnyPort]:
        """The open ports; ports may be opened and closed while the caller iterates over them."""
        return list(self._open.values())
