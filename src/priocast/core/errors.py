"""Every error that Priocast raises on purpose. All of them can be imported from `priocast`.

    PriocastError
    ├── InvalidInput                 the caller's mistake; nothing was changed
    │   ├── PriorityOutOfRange
    │   ├── PayloadTooLarge
    │   ├── UnknownProtocol
    │   ├── InvalidOption
    │   ├── InvalidAddress
    │   ├── UnusableKey              a key or certificate is missing, unreadable, or the wrong one
    │   ├── ExtraMissing             a package that only an extra of Priocast installs is not there
    │   └── StatementRejected        SQL that cannot be replicated, or that the database does not understand
    ├── Overloaded                   the queue has no room for a message of this priority now
    ├── NoQuorum                     too few members can be reached to agree on anything
    ├── DeadlineExceeded             a wait timed out; the message says what was missing
    │   └── OutcomeUnknown           a command may have been applied or not; its id says which one to ask for
    ├── CommandFailed                the state machine raised an exception for a command
    ├── TransactionAborted           a constraint or a procedure aborted a transaction, alike at every replica
    │   └── TransactionConflict      what a transaction has read was changed before its place in the order
    ├── DatabaseUnusable             a replica's database failed, or is not the right one; the replica stops
    ├── GroupClosed                  the group was left, or had to stop; the message says why
    ├── PeerFault                    another process sent something that cannot be accepted
    │   ├── ForeignFrame             not a Priocast frame, or a damaged one
    │   ├── FarAhead                 a number that only grows exceeds all that are known here by far
    │   ├── Rejected                 a network or a member rejected what it received, and counts the reason
    │   ├── JoinRejected             a member rejected this process; the message says why
    │   └── LinkOverflow             a peer does not acknowledge what it was sent
    ├── TraceFault                   a run directory that cannot be used
    │   ├── UnreadableTrace
    │   └── ForeignTrace
    ├── LogFault                     a durable log that cannot be used; its member stops
    │   ├── DamagedLog               something in it was changed or is missing
    │   ├── UnusableLog              the disk failed, another process uses it, or it is another member's
    │   └── TrimmedPosition          a position that a reader asks for is not kept any more
    ├── UnavailableFeed              no feed of a group answers, or none has what a reader asks for
    ├── JavaMissing                  Spark found no Java runtime
    └── SparkEnded                   Spark ended in the middle of its work

A defect of Priocast itself is an assertion, never one of these.
"""


class PriocastError(Exception):
    """The root of the tree: catch it to catch everything that Priocast raises on purpose."""


class InvalidInput(PriocastError, ValueError):
    """The caller passed something that cannot be used; nothing was changed."""


class PriorityOutOfRange(InvalidInput):
    """A priority must be an integer from 0 to 255."""


class PayloadTooLarge(InvalidInput):
    """A payload exceeds the limit of 1 MiB."""


class UnknownProtocol(InvalidInput):
    """No protocol of this name is registered."""


class InvalidOption(InvalidInput):
    """An option has a value outside its range."""


class InvalidAddress(InvalidInput):
    """An address is not of the form host:port, or the process cannot listen on it."""


class UnusableKey(InvalidInput):
    """A key or certificate is missing, cannot be read, or is not the right one."""


class ExtraMissing(InvalidInput, ImportError):
    """A package is not installed that Priocast needs only for this; the message says how to install it."""


class StatementRejected(InvalidInput):
    """SQL that cannot be replicated, or that the database does not understand; nothing was changed."""


class Overloaded(PriocastError):
    """The queue has no room for a message of this priority now: wait, or send it later."""


class NoQuorum(PriocastError):
    """No quorum of the group can be reached, so nothing can be agreed on: wait, or send it later."""


class DeadlineExceeded(PriocastError, TimeoutError):
    """A wait timed out."""


class OutcomeUnknown(DeadlineExceeded):
    """A command may have been applied or not, or its result is not known: `command` is its id as text.

    `Replica.settle` tells what became of it.
    """

    def __init__(self, text: str, command: str) -> None:
        super().__init__(text)
        self.command = command


class CommandFailed(PriocastError):
    """The state machine raised an exception for a command, at every replica; `kind` is the exception's name.

    `kind` is empty if the command was not applied, and never will be, because it was settled before.
    """

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class TransactionAborted(PriocastError):
    """A transaction was rolled back, alike at every replica; `constraint` names what it would have violated.

    `constraint` is empty if a procedure aborted the transaction by an exception of its own.
    """

    def __init__(self, text: str, constraint: str = "") -> None:
        super().__init__(text)
        self.constraint = constraint


class TransactionConflict(TransactionAborted):
    """What a transaction has read was changed before its place in the order: execute it again."""


class DatabaseUnusable(PriocastError, OSError):
    """The database of a replica failed, or is not the right one: the replica stops before it differs."""


class GroupClosed(PriocastError):
    """The group was left, or had to stop."""


class PeerFault(PriocastError):
    """Another process sent something that cannot be accepted."""


class ForeignFrame(PeerFault):
    """Not a Priocast frame, or a damaged one."""


class FarAhead(PeerFault):
    """A round, view or position exceeds all that are known here by more than any group can have advanced.

    Its sender need not be at fault: a faulty member may have made it believe the number.
    """


class Rejected(PeerFault):
    """A network or a member rejected what it received, which is counted by its reason.

    `reason` is short and does not vary with the content; `detail` does.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class JoinRejected(PeerFault):
    """A member of the group rejected this process, for example because its options differ."""


class LinkOverflow(PeerFault):
    """A peer does not acknowledge what it was sent, and the buffer for it is full."""


class TraceFault(PriocastError):
    """A run directory cannot be used."""


class UnreadableTrace(TraceFault):
    """A trace is missing, damaged or truncated."""


class ForeignTrace(TraceFault):
    """A trace is of another kind, or of another version of the schema."""


class LogFault(PriocastError):
    """A durable log cannot be used."""


class DamagedLog(LogFault):
    """Something in a log was changed or is missing, and not just the end that was being written."""


class UnusableLog(LogFault):
    """The disk failed, another process uses the log, or it is the log of another member."""


class TrimmedPosition(LogFault):
    """A position that a reader asks for is not kept any more."""


class UnavailableFeed(PriocastError):
    """No feed of a group answers, or none has what a reader asks for."""


class JavaMissing(PriocastError):
    """Spark found no Java runtime."""


class SparkEnded(PriocastError):
    """Spark ended in the middle of its work; the message says how, and where its log is."""
