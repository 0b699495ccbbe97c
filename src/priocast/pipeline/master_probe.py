"""Whether a Spark master answers at an address: Spark itself would try for a minute, and fail in Java.

The question is a message of Spark's own protocol: the request of a stream that no master has. A master
answers at once that there is none.
"""

import re
import socket
import struct

from priocast.core.errors import InvalidOption

_ANSWER_SECONDS = 4.0
_ANSWER_BYTES_MAX = 4096
_STANDALONE = re.compile(r"spark://(.+)")
#: Types of messages in Spark's `org.apache.spark.network.protocol.Message`.
_STREAM_REQUEST, _STREAM_FAILURE = 6, 8
_STREAM = b"/files/priocast-probe"
#: A frame begins with its length, itself included, and the type of the message.
_HEADER = struct.Struct(">QB")
_TEXT_LENGTH = struct.Struct(">I")


def is_standalone(master: str) -> bool:
    """Whether a master is one of Spark's own clusters."""
    return _STANDALONE.fullmatch(master) is not None


def check_reachable(master: str) -> None:
    """Raise if no master answers at the addresses of a standalone cluster."""
    if master.startswith("sc://"):
        raise InvalidOption(
            f"{master} is a Spark Connect server, and commands need a master: write spark://HOST:PORT"
        )
    match = _STANDALONE.fullmatch(master)
    addresses = match[1].split(",") if match else []
    reasons = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidOption(f"{master!r} is not the URL of a master: write spark://HOST:PORT")
        if reason := _why_not(host, int(port)):
            reasons.append(f"{address}: {reason}")
    if addresses and len(reasons) == len(addresses):
        raise InvalidOption(f"no Spark master can be reached ({'; '.join(reasons)})")


def _why_not(host: str, port: int) -> str:
    """Why there is no master at an address; empty if there is one."""
    try:
        with socket.create_connection((host, port), _ANSWER_SECONDS) as connection:
            text = _TEXT_LENGTH.pack(len(_STREAM)) + _STREAM
            connection.sendall(_HEADER.pack(_HEADER.size + len(text), _STREAM_REQUEST) + text)
            answer = _read(connection, _HEADER.size)
            is_master = len(answer) == _HEADER.size and _HEADER.unpack(answer)[1] == _STREAM_FAILURE
            if is_master:  # a connection that ends with something unread is an error in the master's log
                _read(connection, min(_HEADER.unpack(answer)[0], _ANSWER_BYTES_MAX) - _HEADER.size)
    except TimeoutError:
        return f"no answer within {_ANSWER_SECONDS:.0f} s"
    except (OSError, OverflowError) as error:
        return str(error)
    return "" if is_master else "what listens there is not a Spark master"


def _read(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer if the other side ends the connection."""
    found = b""
    while len(found) < count and (part := connection.recv(count - len(found))):
        found += part
    return found
