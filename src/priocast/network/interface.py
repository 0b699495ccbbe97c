"""The interface between the runtime and a network. It is public: write a network of your own against it.

A network carries frames between processes, which know each other by name. Several groups share one network:
each opens its own port. A network may lose, duplicate and reorder frames: the links above it recover. It must
not alter them, and must not attribute a frame to a process that did not send it.

    runtime                                    network
      │ ── start() ─────────────────────────────▶ │   begins to listen and to look for peers
      │ ── open(group, process, receiver) ──────▶ │   returns the group's port
      │ ◀─ receiver.reachable(peer, role) ─────── │   now for every known peer, later for every new one
      │ ── port.send(peer, frames) … flush() ───▶ │
      │ ◀─ receiver.frames_received(peer, …) ──── │
      │ ── port.close() … close() ──────────────▶ │

All calls are made in the thread of one event loop. `send` and `flush` must not block. A network must not call
a receiver from within `send` or `flush`, and may only call its `reachable` from within `open`.

Pass the network to `priocast.open_node`, `join` or `open_client` as `network=`. `examples/own_network.py` is
a complete one, over Unix sockets.
"""

from collections import Counter
from typing import Protocol, runtime_checkable

from priocast.core.errors import PriocastError
from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.core.role import Role
from priocast.links.frame import RELIABLE_NETWORK, Frame, LinkOptions

__all__ = [
    "RELIABLE_NETWORK",
    "DeclaresProperties",
    "Frame",
    "HasKeys",
    "LinkOptions",
    "Network",
    "NetworkProperties",
    "Port",
    "Receiver",
    "Role",
]

UNALTERED = NetworkProperties(error_detection=True)
"""What every network has: it may lose frames, and does not alter them."""


class Receiver(Protocol):
    """What a network calls back: the group, or the client, behind a port."""

    def reachable(self, peer: str, role: Role = Role.MEMBER) -> None:
        """Frames can be sent to the process `peer`; those sent over an earlier connection may be lost.

        `role` is what the process is in this group. A network that does not know it omits it.
        """

    def frames_received(self, peer: ProcessId, frames: list[Frame], role: Role = Role.MEMBER) -> None:
        """The `frames` arrived from this incarnation of a process, all that were ready.

        `reachable` must have been called with the name of `peer` before. What the `role` may not send is
        rejected.
        """

    def hears(self, peer: str) -> bool:
        """Whether a process named `peer` counts as alive in the group: another one cannot have its name."""

    def failed(self, error: PriocastError) -> None:
        """The network cannot continue: the group stops with this `error`."""


class Port(Protocol):
    """One group's access to the network, for one incarnation of one process."""

    def send(self, peer: str, frames: list[Frame]) -> None:
        """Send `frames` to the process named `peer`, or drop them if it cannot be reached.

        A network may delay them until `flush`, to send them together.
        """

    def flush(self) -> None:
        """A step that sent frames is over: transmit whatever `send` delayed."""

    def close(self) -> None:
        """Accept no more frames for this group. The group may open another port afterwards."""


class Network(Protocol):
    """Carries frames from one process to others.

    `link_options` tells the links how the network behaves: `LinkOptions()` for one that loses frames,
    `RELIABLE_NETWORK` for one that does not. `rejections` counts what was not accepted, by a short reason
    that does not vary with the content.
    """

    link_options: LinkOptions
    rejections: Counter[str]

    async def start(self) -> None:
        """Listen, and look for peers until they are found, and again when they are lost."""

    def open(self, group: str, process: ProcessId, receiver: Receiver) -> Port:
        """Open the port of `group` for `process`; call `receiver.reachable` for every peer known so far."""

    async def close(self) -> None:
        """Transmit what was sent, then stop."""

    def unreached(self) -> list[str]:
        """The configured addresses at which no process has been reached yet, for error messages."""


@runtime_checkable
class HasKeys(Protocol):
    """A network with keys or certificates in files, which can change while it runs."""

    def reload_keys(self) -> None:
        """Read the files again; if one of them is unusable, raise UnusableKey and change nothing."""


@runtime_checkable
class DeclaresProperties(Protocol):
    """A network that says which properties of the abstract network it has, for the qualities of service.

    One that does not say so has error detection: frames are not altered.
    """

    @property
    def properties(self) -> NetworkProperties:
        """What this network guarantees."""


def properties_of(network: Network) -> NetworkProperties:
    """What a network guarantees."""
    return network.properties if isinstance(network, DeclaresProperties) else UNALTERED
