"""What an exploration looks for."""

from collections.abc import Iterator
from contextlib import contextmanager

from priocast.core.errors import PeerFault

OWN_FAULT = "Our own fault"
PEER_FAULT = "Peer fault"


class PropertyViolation(Exception):
    """A guarantee is broken."""

    def __init__(self, guarantee: str, how: str) -> None:
        super().__init__(f"{guarantee}: {how}")
        self.guarantee = guarantee
        self.how = how


@contextmanager
def faults_found(member: str) -> Iterator[None]:
    """Whatever a protocol raises is a violation: nobody lies, so nobody may be accused, either."""
    try:
        yield
    except PeerFault as fault:
        raise PropertyViolation(PEER_FAULT, f"{member} says: {fault}") from fault
    except PropertyViolation:
        raise
    except Exception as fault:
        raise PropertyViolation(OWN_FAULT, f"{member} fails with {fault!r}") from fault
