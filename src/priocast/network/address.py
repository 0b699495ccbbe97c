"""Addresses in the form `host:port`."""

from contextlib import suppress
from ipaddress import IPv4Address, ip_address
from typing import NamedTuple

from priocast.core.errors import InvalidAddress


class Address(NamedTuple):
    """The host and port that a process listens on."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, any_port: bool = False) -> Address:
    """Parse `host:port`; the host of an IPv6 address is in brackets. Port 0, if allowed, is any free port."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not (0 if any_port else 1) <= int(port) < 65536:
        raise InvalidAddress(f"{text!r} is not an address: write host:port, for example 127.0.0.1:7401")
    return Address(host, int(port))


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine can reach the host."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def check_multicast(address: Address) -> Address:
    """Return the address if it is one that a group can multicast to; otherwise raise."""
    try:
        if IPv4Address(address.host).is_multicast:
            return address
    except ValueError:
        pass
    raise InvalidAddress(
        f"{address} is not a multicast address: choose one between 224.0.0.0 and 239.255.255.255, for "
        f"example 239.1.2.3:{address.port}"
    )
