"""Whom and what a network turned away: counted by reason, and told to the log.

The reasons are the whole vocabulary: a reason does not vary with what came, so a stranger can neither fill
the counter nor choose what it says. A flood of strangers must not become a flood of lines either: of each
reason, the first, second, fourth, eighth … is logged, with the count.
"""

import logging
from collections import Counter
from enum import StrEnum

_log = logging.getLogger("priocast.network")


class Reason(StrEnum):
    """Why something was turned away."""

    # What came is not for us to read.
    NOT_PRIOCAST = "not Priocast"
    OTHER_VERSION = "another version of the wire format"
    UNKNOWN_KIND = "unknown kind of frame"
    TOO_LONG = "frame over the limit"
    TRUNCATED = "truncated datagram"
    MALFORMED = "malformed content"
    UNKNOWN_GROUP = "unknown group"

    # A connection did not begin, or go on, as it has to.
    NOT_INTRODUCED = "sender did not introduce itself"
    TOO_EARLY = "frame before the welcome"
    INTRODUCED_TWICE = "second introduction"
    OUT_OF_PLACE = "frame that does not belong here"
    TOO_SLOW = "introduction took too long"
    HUNG_UP = "hung up before the introduction"
    NOT_DIALLED_BACK = "could not be dialled back"
    REFUSED_US = "a peer refused us"

    # Somebody is not who he should be.
    OTHER_SENDER = "frame of another sender"
    OWN_NAME = "a peer with our own name"
    TWO_ADDRESSES = "two addresses of one process"

    # TLS.
    NOT_TLS = "not TLS"
    OLD_TLS = "TLS before 1.3"
    NO_CERTIFICATE = "no certificate"
    UNTRUSTED = "certificate of another authority"
    OUT_OF_DATE = "certificate out of date"
    OTHER_MEMBER = "certificate of another member"
    OTHER_GROUP = "certificate is not for this group"
    OUR_CERTIFICATE = "a peer refused our certificate"

    # Sealed datagrams.
    NOT_AUTHENTIC = "not authentic"
    REPLAYED = "replayed datagram"
    REFLECTED = "reflected datagram"
    OTHER_CHALLENGE = "answer to another challenge"
    OLD_INCARNATION = "old incarnation"
    CONTRADICTORY = "contradictory fragments"
    GIVEN_UP = "fragments given up"

    # There is no room.
    TOO_MANY_STRANGERS = "too many strangers"
    TOO_MANY_CONNECTIONS = "too many connections"
    TOO_MANY_ADDRESSES = "too many learnt addresses"
    TOO_MANY_PEERS = "too many peers"
    NO_DESCRIPTORS = "no free file descriptors"
    NOT_READING = "a peer does not read"
    NOT_SENT = "could not be sent"


class Rejections:
    """Counts and logs on behalf of one process."""

    def __init__(self, member: str) -> None:
        self.counts: Counter[str] = Counter()
        self._member = member

    def note(self, reason: str, detail: str = "", **where: object) -> None:
        """Something was turned away; `where` (peer, address) goes to the log as fields of the record."""
        self.counts[reason] += 1
        count = self.counts[reason]
        if count & (count - 1) == 0:
            fields = {
                "member": self._member,
                "reason": str(reason),
                "count": count,
                "detail": detail,
                **where,
            }
            _log.warning("%s turned away: %s (%d)", self._member, reason, count, extra=fields)

    def note_reached(self, peer: str, address: str) -> None:
        """Whom it did not turn away is worth a word, too."""
        fields = {"member": self._member, "peer": peer, "address": address}
        _log.info("%s reaches %s", self._member, peer, extra=fields)
