"""What a network rejected: counted by reason, and logged.

The reasons are a fixed vocabulary that does not vary with what was received, so strangers can neither fill
the counter nor choose its text. A flood of rejections must not become a flood of log records: each reason is
logged the first time, then again when its count has at least doubled, and never more than once a second.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

_LOG_INTERVAL_SECONDS = 1.0
_log = logging.getLogger("priocast.network")


class Reason(StrEnum):
    """Why something was rejected."""

    # It cannot be read.
    NOT_PRIOCAST = "not Priocast"
    OTHER_VERSION = "another version of the wire format"
    UNKNOWN_KIND = "unknown kind of frame"
    TOO_LONG = "frame over the limit"
    TRUNCATED = "truncated datagram"
    MALFORMED = "malformed content"
    UNKNOWN_GROUP = "unknown group"

    # A connection does not follow the handshake.
    NOT_INTRODUCED = "sender did not introduce itself"
    TOO_EARLY = "frame before the welcome"
    INTRODUCED_TWICE = "second introduction"
    UNEXPECTED = "unexpected frame"
    TOO_SLOW = "introduction timed out"
    HUNG_UP = "closed before the introduction"
    NOT_DIALLED_BACK = "could not be dialled back"
    REJECTED_BY_PEER = "a peer rejected us"
    INVALID_ADDRESS = "address cannot be used"

    # A process is not who it claims to be.
    OTHER_SENDER = "frame of another sender"
    OWN_NAME = "a peer with our own name"
    NAME_IN_USE = "the name is in use"
    TWO_ADDRESSES = "two addresses of one process"

    # TLS.
    NOT_TLS = "not TLS"
    OLD_TLS = "TLS before 1.3"
    NO_CERTIFICATE = "no certificate"
    UNTRUSTED = "certificate of another authority"
    REVOKED = "revoked certificate"
    OUT_OF_DATE = "certificate out of date"
    OTHER_MEMBER = "certificate of another member"
    OTHER_GROUP = "certificate is not for this group"
    OUR_CERTIFICATE = "a peer rejected our certificate"

    # Sealed datagrams.
    NOT_AUTHENTIC = "not authentic"
    REPLAYED = "replayed datagram"
    REFLECTED = "reflected datagram"
    OTHER_CHALLENGE = "answer to another challenge"
    OTHER_ADDRESS = "greeting from another address"
    OLD_INCARNATION = "old incarnation"
    CONTRADICTORY = "contradictory fragments"
    INCOMPLETE = "incomplete fragments discarded"

    # A limit is reached.
    TOO_MANY_STRANGERS = "too many strangers"
    TOO_MANY_CONNECTIONS = "too many connections"
    TOO_MANY_ADDRESSES = "too many learnt addresses"
    TOO_MANY_PEERS = "too many peers"
    NO_DESCRIPTORS = "no free file descriptors"
    NOT_READING = "a peer does not read"
    NOT_SENT = "could not be sent"


class _Logged(NamedTuple):
    """The last log record of a reason: when, and how many rejections there were."""

    at: float
    rejections: int


class RejectionLog:
    """Counts and logs the rejections of one process; `clock` returns seconds."""

    def __init__(self, member: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._member = member
        self._clock = clock
        self._logged: dict[str, _Logged] = {}

    def record(self, reason: str, detail: str = "", **where: object) -> None:
        """Count a rejection; `where` (peer, address) become fields of the log record."""
        self.counts[reason] += 1
        count, now, logged = self.counts[reason], self._clock(), self._logged.get(reason)
        if logged is not None and (now - logged.at < _LOG_INTERVAL_SECONDS or count < 2 * logged.rejections):
            return
        self._logged[reason] = _Logged(now, count)
        fields = {"member": self._member, "reason": str(reason), "count": count, "detail": detail, **where}
        _log.warning("%s rejected: %s (%d)", self._member, reason, count, extra=fields)


def log_reached(member: str, peer: str, address: str) -> None:
    """Log that a process has reached a peer."""
    fields = {"member": member, "peer": peer, "address": address}
    _log.info("%s reaches %s", member, peer, extra=fields)
