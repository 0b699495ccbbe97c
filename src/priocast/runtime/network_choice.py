"""Chooses a node's network by the parameters of `open_node`, and rejects those that do not go together."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import get_args

from priocast.core.errors import InvalidInput
from priocast.network.interface import Network
from priocast.network.memory import MemoryHub, MemoryNetwork
from priocast.network.security import TlsSecurity
from priocast.network.tcp import TcpNetwork
from priocast.network.udp import UdpNetwork
from priocast.runtime.arguments import address_of, addresses_of, check_kind, check_size, keys_of
from priocast.runtime.incarnations import Incarnations
from priocast.runtime.parameters import Transport

_NETWORK_ATTRIBUTES = ("link_options", "rejections", "start", "open", "close", "unreached")
_TRANSPORTS_OF = {"tls": ("tcp",), "advertise": ("tcp", "udp"), "keys": ("udp",), "multicast": ("udp",)}


def choose_network(
    name: str,
    *,
    listen: str | None,
    peers: Iterable[str] | None,
    transport: Transport,
    advertise: str | None,
    tls: TlsSecurity | None,
    keys: Mapping[str, bytes] | None,
    multicast: str | None,
    hub: MemoryHub | None,
    network: Network | None,
    size: int | None,
    state_directory: Path | None,
) -> tuple[Network, int]:
    """The network of a process, not started, and how many processes found its groups by default."""
    check_kind("hub", hub, MemoryHub | None, "a priocast.MemoryHub()")
    check_kind("tls", tls, TlsSecurity | None, "priocast.TlsSecurity(certificate, key, authority)")
    check_size(size)
    others = None if peers is None else addresses_of(peers)
    founders = size if others is None else len(others) + 1
    if founders is None or [listen, hub, network].count(None) != 2:
        raise InvalidInput(
            "give one of these: listen= and peers= (between hosts), hub= and size= (within one event loop), "
            "or network= and size= (a network of your own)"
        )
    if transport not in get_args(Transport):
        raise InvalidInput(f"transport must be 'tcp' or 'udp', not {transport!r}")
    _check_transport(
        transport if listen is not None else None,
        tls=tls,
        advertise=advertise,
        keys=keys,
        multicast=multicast,
    )
    if network is not None:
        _check_network(network)
        return network, founders
    if hub is not None:
        return MemoryNetwork(hub, name), founders
    assert listen is not None
    address = address_of(listen, any_port=True)
    if transport == "tcp":
        advertised = None if advertise is None else address_of(advertise)
        tcp = TcpNetwork(name, address, others or [], advertise=advertised, security=tls)
        return tcp, founders
    udp = UdpNetwork(
        name,
        address,
        others or [],
        keys=keys_of(keys),
        multicast=None if multicast is None else address_of(multicast),
        incarnation=Incarnations(state_directory, "node", name).next(),
    )
    return udp, founders


def _check_transport(transport: Transport | None, **given: object) -> None:
    """Reject a parameter that the chosen network would ignore: the caller relies on it."""
    for name, value in given.items():
        if value and transport not in _TRANSPORTS_OF[name]:
            transports = " or ".join(map(repr, _TRANSPORTS_OF[name]))
            raise InvalidInput(f"{name} requires listen= and transport={transports}: omit it, or choose that")


def _check_network(network: Network) -> None:
    missing = [name for name in _NETWORK_ATTRIBUTES if not hasattr(network, name)]
    if missing:
        raise InvalidInput(
            f"network is {network!r}, which has no {', '.join(missing)}: implement "
            "priocast.network.interface.Network"
        )
