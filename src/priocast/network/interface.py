"""What the runtime asks of a network, and what a network tells the runtime.

A network carries frames between processes and introduces processes to each other. It may lose, repeat and
reorder frames: the links see to that.
"""

from typing import Protocol

import msgspec

from priocast.core.errors import PriocastError
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame, LinkOptions


class Introduction(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a process says of itself; members of one group must agree on all but `process`."""

    group: str
    process: ProcessId
    size: int
    order: str
    options: str

    def refusal_of(self, other: "Introduction") -> str | None:
        """Why this process will not have the other one in its group, if so."""
        for field, what in (
            ("group", "group"),
            ("size", "number of members"),
            ("order", "protocol"),
            ("options", "options of the order"),
        ):
            ours, theirs = getattr(self, field), getattr(other, field)
            if ours != theirs:
                them, us = other.process.name, self.process.name
                return f"{them} has another {what} than {us}: {theirs!r}, not {ours!r}"
        return None


class Receiver(Protocol):
    """Who is told what happens on a network."""

    def introduced(self, process: ProcessId) -> None:
        """A process of our group says who it is; raises a PeerFault to refuse it."""

    def connected(self, peer: ProcessId) -> None:
        """Frames can be sent to this peer now; what was sent over an earlier connection may be lost."""

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        """Frames came from this peer, all that were ready."""

    def departed(self, peer: ProcessId) -> None:
        """This peer has left, on purpose."""

    def failed(self, error: PriocastError) -> None:
        """The network cannot go on."""


class Network(Protocol):
    """A way for frames to reach the other members."""

    link_options: LinkOptions

    async def start(self, receiver: Receiver) -> None:
        """Listen, and look for the peers until they are found."""

    def open(self) -> None:
        """Hand over frames from now on; until then they wait."""

    def send(self, peer: ProcessId, frames: list[Frame]) -> None:
        """Send frames, or lose them."""

    async def close(self) -> None:
        """Say goodbye to the peers and stop."""
