"""What the runtime asks of a network, and what a network tells the runtime.

A network carries frames between processes, which know each other by name. Many groups share one network: each
has a port of its own on it. A network may lose, repeat and reorder frames: the links see to that. It lets
nobody in who cannot prove who he is, where it has been given the means to tell (keys, certificates), and it
counts whom it turned away, by reason.
"""

from collections import Counter
from typing import Protocol

from priocast.core.errors import PriocastError
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame, LinkOptions


class Receiver(Protocol):
    """The group behind a port: told what happens on the network."""

    def reachable(self, peer: str) -> None:
        """Frames can be sent to this process now; those sent over an earlier connection may be lost."""

    def frames_received(self, peer: ProcessId, frames: list[Frame]) -> None:
        """Frames came from this life of a process, all that were ready; never before `reachable`'s name."""

    def failed(self, error: PriocastError) -> None:
        """The network cannot go on."""


class Port(Protocol):
    """One group's way into the network, for one life of one member."""

    def send(self, peer: str, frames: list[Frame]) -> None:
        """Send frames to a process of the group, or lose them."""

    def flush(self) -> None:
        """All that a turn had to send has been handed over: what was held back to be sent together leaves."""

    def close(self) -> None:
        """Take no more frames for this group."""


class Network(Protocol):
    """A way for frames to reach other processes.

    `rejections` counts what was turned away, by a short reason that does not vary with its content.
    """

    link_options: LinkOptions
    rejections: Counter[str]

    async def start(self) -> None:
        """Listen, and look for the peers until they are found, and again when they are lost."""

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> Port:
        """Let a group use the network as this process; tells `receiver` at once whom it can reach."""

    async def close(self) -> None:
        """Send what was handed over, and stop."""
