"""Why a configured address was not reached, as text for error messages."""

import errno
import socket
import ssl
from collections.abc import Iterable, Mapping

from priocast.core.errors import Rejected
from priocast.network.address import Address
from priocast.network.rejections import Reason
from priocast.network.security import reason_of

ITSELF = "that is this process itself"


def failure_of(error: Exception | None) -> str:
    """Why an attempt to reach a peer failed; None: the connection was closed."""
    if error is None:
        return "it closed the connection"
    if isinstance(error, Rejected):
        return f"it rejected us: {error.detail}" if error.reason == Reason.REJECTED_BY_PEER else str(error)
    if isinstance(error, ssl.SSLError):
        return str(reason_of(error))
    if isinstance(error, socket.gaierror | ValueError):
        return "no such host"
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return "nothing listens there"
    return str(getattr(error, "strerror", None) or error)


def describe_unreached(missing: Iterable[Address], failures: Mapping[Address, str]) -> list[str]:
    """The addresses that were not reached, each with the reason if it is known."""
    return [
        f"{address} ({failures[address]})" if failures.get(address) else str(address) for address in missing
    ]
