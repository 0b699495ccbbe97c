"""How large the datagrams of a process are over UDP.

The default fits into an Ethernet frame, and leaves room for the headers of a tunnel. Larger ones take less
processor time for each byte, if the network carries them whole: frames of 9,000 bytes, or loopback.
"""

from priocast.core.errors import InvalidOption

DATAGRAM_BYTES = 1_400
DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX = 512, 65_507


def check_datagram_bytes(count: int) -> int:
    """Return the number of bytes if UDP has such datagrams; otherwise raise."""
    if type(count) is not int or not DATAGRAM_BYTES_MIN <= count <= DATAGRAM_BYTES_MAX:
        raise InvalidOption(
            f"datagram_bytes must be between {DATAGRAM_BYTES_MIN} and {DATAGRAM_BYTES_MAX}, not {count!r}"
        )
    return count
