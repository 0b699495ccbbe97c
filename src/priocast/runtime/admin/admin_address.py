"""The address of an admin endpoint."""

from priocast.core.errors import InvalidAddress
from priocast.network.address import Address, is_loopback, parse_address


def check_admin_address(text: str, *, allow_remote: bool, any_port: bool = False) -> Address:
    """Parse the address to listen on; other than loopback it must be allowed explicitly."""
    address = parse_address(text, any_port=any_port)
    if not allow_remote and not is_loopback(address.host):
        raise InvalidAddress(
            f"{text} can be reached from other machines, and the admin endpoint does not authenticate: "
            "listen on 127.0.0.1, or set allow_remote = true under [node.admin] if the network is trusted"
        )
    return address
