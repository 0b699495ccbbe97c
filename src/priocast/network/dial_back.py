"""Which addresses a process dials because somebody who connected named them, and how often.

An introduction names the address at which its sender listens. Whoever can connect can name anything, so that
address is a request, not a fact: unchecked, it lets a stranger make this process connect to any service, and
resolve any name. Without a certificate only a port of the host that the connection comes from is dialled;
with one, any numeric address. Names are never resolved: only the addresses of the configuration are.
"""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

from priocast.network.address import Address

_HOSTS_MAX = 256


def address_to_dial(named: Address, remote: str, *, certified: bool) -> Address | None:
    """The address to dial for a process that connected from the host `remote` and named an address.

    None if it named no port, or an address of another host without a certificate.
    """
    if not named.port:
        return None
    host, remote_host = _numeric(named.host), _numeric(remote)
    if remote_host is None:
        return None
    if host is None or host.is_unspecified or host == remote_host:
        return Address(remote, named.port)
    on_this_machine = host.is_loopback and remote_host.is_loopback
    if on_this_machine or (certified and not host.is_multicast):
        return Address(str(host), named.port)
    return None


def _numeric(host: str) -> IPv4Address | IPv6Address | None:
    """A numeric address, in one form for an IPv4 address in an IPv6 one; None if it is a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


class DialBackRate:
    """Limits how many new addresses of one host are dialled: `burst` at once, then `per_second`."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._hosts: dict[str, tuple[float, float]] = {}

    def admit(self, host: str) -> bool:
        """Whether one more address of this host may be dialled now; if so, it is counted."""
        now = self._clock()
        left, at = self._hosts.pop(host, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_second)
        admitted = left >= 1
        self._hosts[host] = (left - admitted, now)
        if len(self._hosts) > _HOSTS_MAX:
            del self._hosts[next(iter(self._hosts))]
        return admitted
