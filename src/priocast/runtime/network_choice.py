"""Chooses a node's network by the parameters of `open_node`, and rejects those that do not go together."""

from pathlib import Path
from typing import get_args

from priocast.core.errors import InvalidInput
from priocast.core.extras import check_installed
from priocast.core.role import Role
from priocast.network.address import Address
from priocast.network.datagram_size import DATAGRAM_BYTES
from priocast.network.discovery import Discovery
from priocast.network.interface import Network
from priocast.network.memory import MemoryHub, MemoryNetwork
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from priocast.runtime.arguments import address_of, addresses_of, check_kind, check_size, discovery_of, keys_of
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.parameters import NodeParameters, Transport

_NETWORK_ATTRIBUTES = ("link_options", "rejections", "start", "open", "close", "unreached")
_TRANSPORTS_OF = {
    "tls": ("tcp", "udp"),
    "advertise": ("tcp", "udp"),
    "keys": ("udp",),
    "multicast": ("udp",),
    "datagram_bytes": ("udp",),
}


def choose_network(
    name: str, role: Role, parameters: NodeParameters, state_directory: Path | None
) -> tuple[Network, int]:
    """The network of a process, not started, and how many processes found its groups by default."""
    hub, network = parameters.get("hub"), parameters.get("network")
    listen, peers, size = parameters.get("listen"), parameters.get("peers"), parameters.get("size")
    check_kind("hub", hub, MemoryHub | None, "a priocast.MemoryHub()")
    tls = "priocast.TlsSecurity(certificate, key, authority)"
    check_kind("tls", parameters.get("tls"), TlsSecurity | None, tls)
    check_size(size)
    discovery = discovery_of(peers)
    others = None if peers is None else [] if discovery is not None else addresses_of(peers)
    founders = (size or 0) if discovery is not None else size if others is None else len(others) + 1
    if founders is None or [listen, hub, network].count(None) != 2:
        raise InvalidInput(
            "give one of these: listen= and peers= (between hosts), hub= and size= (within one event loop), "
            "or network= and size= (a network of your own)"
        )
    _check_transport(parameters)
    if network is not None:
        _check_network(network)
        return network, founders
    if hub is not None:
        return MemoryNetwork(hub, name, role), founders
    assert listen is not None
    address = address_of(listen, any_port=True)
    return _connected(name, role, address, others or [], discovery, parameters, state_directory), founders


def _connected(
    name: str,
    role: Role,
    listen: Address,
    peers: list[Address],
    discovery: Discovery | None,
    parameters: NodeParameters,
    state_directory: Path | None,
) -> Network:
    """The network of a process that reaches others at addresses."""
    if parameters.get("transport", "tcp") == "tcp":
        advertise = parameters.get("advertise")
        return TcpNetwork(
            name,
            listen,
            peers,
            advertise=None if advertise is None else address_of(advertise),
            security=parameters.get("tls"),
            role=role,
            discovery=discovery,
        )
    if discovery is not None:
        raise InvalidInput(
            f"peers is {str(discovery.name)!r}, which needs transport='tcp': list the addresses"
        )
    check_installed("cryptography")  # every datagram is sealed
    from priocast.network.udp import UdpNetwork  # only where it is used: it imports cryptography

    multicast, datagram_bytes = parameters.get("multicast"), parameters.get("datagram_bytes")
    return UdpNetwork(
        name,
        listen,
        peers,
        keys=keys_of(parameters.get("keys")),
        multicast=None if multicast is None else address_of(multicast),
        datagram_bytes=DATAGRAM_BYTES if datagram_bytes is None else datagram_bytes,
        incarnation=Incarnations(state_directory, "node", name).next(),
        role=role,
        security=parameters.get("tls"),
    )


def _check_transport(parameters: NodeParameters) -> None:
    """Reject a parameter that the chosen network would ignore: the caller relies on it."""
    transport = parameters.get("transport", "tcp")
    if transport not in get_args(Transport):
        raise InvalidInput(f"transport must be 'tcp' or 'udp', not {transport!r}")
    for name, transports in _TRANSPORTS_OF.items():
        used = transport if parameters.get("listen") is not None else None
        if parameters.get(name) and used not in transports:
            needed = " or ".join(map(repr, transports))
            raise InvalidInput(f"{name} requires listen= and transport={needed}: omit it, or choose that")


def _check_network(network: Network) -> None:
    missing = [name for name in _NETWORK_ATTRIBUTES if not hasattr(network, name)]
    if missing:
        raise InvalidInput(
            f"network is {network!r}, which has no {', '.join(missing)}: implement "
            "priocast.network.interface.Network"
        )
