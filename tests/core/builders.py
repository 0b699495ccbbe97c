"""Short constructors for the values that the tests of the core use."""

from hypothesis import strategies as st

from priocast.core.identity import ProcessId
from priocast.core.message import Batch, pack

A = ProcessId("a")
B = ProcessId("b")
C = ProcessId("c")
MILLISECOND = 1_000_000

levels = st.integers(0, 255)
payload_lists = st.lists(st.binary(max_size=40), min_size=1, max_size=40)


def numbered(count: int, size: int = 8) -> list[bytes]:
    """Payloads that contain their index."""
    return [index.to_bytes(size, "big") for index in range(count)]


def batch_of(count: int, level: int = 0, first: int = 0, sender: ProcessId = A, size: int = 8) -> Batch:
    """A batch of messages whose payloads contain their index."""
    return pack(sender, level, first, numbered(first + count, size)[first:])
