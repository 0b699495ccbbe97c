"""The UDP sockets of a process: one to send from and to receive replies, one to receive multicasts."""

import socket
import sys
from typing import Any

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address

_BUFFER_BYTES = 4 * 1024 * 1024


def open_socket(listen: Address) -> socket.socket:
    """Open the socket that a process sends from and listens on."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            *listen, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        opened = _buffered(socket.socket(family, socket.SOCK_DGRAM))
    except OSError as error:
        raise _cannot("listen on", listen, error) from error
    try:
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise _cannot("listen on", listen, error) from error
    return opened


def open_multicast_socket(multicast: Address, sending: socket.socket) -> socket.socket:
    """Open a socket that receives from a multicast address, on the interface that `sending` is bound to.

    `sending` is configured to send there: to the local network only, and to this host as well.
    """
    opened = _buffered(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    try:
        interface = socket.inet_aton(sending.getsockname()[0])
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # On Linux, a socket bound to a multicast address receives nothing else; elsewhere it cannot be.
        opened.bind(multicast if sys.platform == "linux" else ("", multicast.port))
        membership = socket.inet_aton(multicast.host) + interface
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    except OSError as error:
        opened.close()
        raise _cannot("join", multicast, error) from error
    return opened


def is_here(address: tuple[Any, ...], listening: socket.socket) -> bool:
    """Whether an address is that of this socket, which may listen on all addresses of the host."""
    here, port_here = listening.getsockname()[:2]
    if address[1] != port_here:
        return False
    with socket.socket(listening.family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address[0], 0))
        except OSError:
            return False
    return address[0] == here or here in {"0.0.0.0", "::"}  # noqa: S104 - to compare with, not to listen on


def _buffered(opened: socket.socket) -> socket.socket:
    opened.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)  # the system may limit it
    return opened


def _cannot(do: str, address: Address, error: OSError) -> InvalidAddress:
    return InvalidAddress(
        f"cannot {do} {address}: {error.strerror or error}; choose a free port of this host"
    )
