"""Free addresses on the loopback network."""

import socket
from contextlib import ExitStack
from ipaddress import ip_address
from secrets import randbelow

from priocast.network.address import Address


def free_addresses(count: int) -> list[Address]:
    """Addresses of this machine that are unused, and stay unused until somebody listens on them.

    Every call uses a host of the loopback range of its own: another program may take a port that is free now,
    but only on the hosts that it uses, and outgoing connections use 127.0.0.1.
    """
    host = str(ip_address("127.1.0.1") + randbelow(253 << 16))
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [Address(*each.getsockname()) for each in sockets]
