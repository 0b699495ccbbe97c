"""What an exploration looks for: a property that does not hold."""

from collections.abc import Iterator
from contextlib import contextmanager

from priocast.core.errors import PeerFault

#: An assertion or another exception in the protocol's own code.
OWN_FAULT = "Own fault"
#: A member rejects a packet although every member follows the protocol.
PEER_FAULT = "Peer fault"


class PropertyViolation(Exception):
    """A guarantee is broken."""

    def __init__(self, guarantee: str, text: str) -> None:
        super().__init__(f"{guarantee}: {text}")
        self.guarantee = guarantee
        self.text = text


@contextmanager
def faults_as_violations(member: str) -> Iterator[None]:
    """Every exception of a protocol is a violation: all members are correct, so none may be blamed either."""
    try:
        yield
    except PeerFault as fault:
        raise PropertyViolation(PEER_FAULT, f"{member} rejects a packet: {fault}") from fault
    except PropertyViolation:
        raise
    except Exception as fault:
        raise PropertyViolation(OWN_FAULT, f"{member} fails with {fault!r}") from fault
