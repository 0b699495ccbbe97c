"""Every error that Priocast raises on purpose.

    PriocastError
    ├── InvalidInput                 the caller's fault; nothing was changed
    │   ├── PriorityOutOfRange
    │   ├── PayloadTooLarge
    │   ├── UnknownProtocol
    │   ├── InvalidOption
    │   ├── InvalidAddress
    │   └── UnusableKey              a key or certificate is missing, unreadable, or somebody else's
    ├── Overloaded                   there is no room for a message of this priority now
    ├── DeadlineExceeded             a wait ended without what it waited for; the message says what
    ├── GroupClosed                  the group was left, or had to stop; the message says why
    ├── PeerFault                    what another process sent cannot be accepted
    │   ├── ForeignFrame             not a frame of ours, or a damaged one
    │   ├── Rejected               a network will not deal with what came; it counts the reason
    │   ├── JoinRejected              a peer will not have us in the group; the message says why
    │   ├── PeerRestarted            a member came back as another process
    │   └── LinkOverflow             a peer does not take what it was sent
    ├── TraceFault                   a run directory that cannot be used
    │   ├── UnreadableTrace
    │   └── ForeignTrace
    └── JavaMissing                  Spark has no Java runtime to run on

A fault of our own is an assertion, never one of these.
"""


class PriocastError(Exception):
    """The root of the tree: catch it to catch everything that Priocast raises on purpose."""


class InvalidInput(PriocastError, ValueError):
    """The caller asked for something that cannot be done; nothing was changed."""


class PriorityOutOfRange(InvalidInput):
    """A priority is an integer from 0 to 255."""


class PayloadTooLarge(InvalidInput):
    """A payload is over the group's limit."""


class UnknownProtocol(InvalidInput):
    """No protocol of that name is registered."""


class InvalidOption(InvalidInput):
    """An option has a value that it cannot have."""


class InvalidAddress(InvalidInput):
    """An address is not of the form host:port, or cannot be listened on."""


class UnusableKey(InvalidInput):
    """A key or certificate is missing, cannot be read, or is not the one that is needed."""


class Overloaded(PriocastError):
    """There is no room for a message of this priority now: wait, or send it later."""


class DeadlineExceeded(PriocastError, TimeoutError):
    """A wait ended without what it waited for."""


class GroupClosed(PriocastError):
    """The group was left, or had to stop."""


class PeerFault(PriocastError):
    """What another process sent cannot be accepted."""


class ForeignFrame(PeerFault):
    """Not a frame of ours, or a damaged one."""


class Rejected(PeerFault):
    """A network will not deal with what came; `reason` is short and does not vary with what it was."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class JoinRejected(PeerFault):
    """A peer will not have us in the group."""


class PeerRestarted(PeerFault):
    """A member of a fixed view came back as another process."""


class LinkOverflow(PeerFault):
    """A peer does not take what it was sent, and the buffer for it is full."""


class TraceFault(PriocastError):
    """A run directory that cannot be used."""


class UnreadableTrace(TraceFault):
    """A trace that is missing, damaged or cut off."""


class ForeignTrace(TraceFault):
    """A trace of another kind, or of another version of the schema."""


class JavaMissing(PriocastError):
    """Spark has no Java runtime to run on."""
