"""What a database must offer to be replicated: the interface between the SQL layer and one kind of database.

Everything else in this package is written against `Engine`: which statements a transaction consists of, how
it is certified, who is answered. An engine executes statements on one connection, in one thread, and keeps
what the replication needs inside the database. `sqlite_engine.py` is the one for SQLite.

What an engine promises:

- **One transaction at a time**: `begin`, then any number of `execute` and `apply_write_set`, then `commit` or
  `rollback`. No call waits for anybody else, and no lock is held between transactions.
- **Deterministic**: after the same transactions with the same contexts, two databases have the same contents,
  and `execute` has returned the same rows (in any order where the statement does not say which) and the same
  number of changed rows. Clocks and random numbers come from the context of the transaction. A statement
  whose effect could depend on anything else is rejected by name.
- **The position is part of the transaction**: `commit` stores it with the changes, atomically.
- **An error says who is at fault**, and after it only `rollback` is allowed: `StatementRejected`,
  `TransactionAborted` and `PayloadTooLarge` are raised alike at every replica. `DatabaseUnusable` is not: the
  replica stops.

A replica's database is a copy that can be rebuilt: from the state of another replica, or from the log of its
own member. So an engine begins with an empty database at every start, and need not sync anything to its disk.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Protocol

import msgspec

from priocast.core.identity import Name, Number

SqlValue = None | int | float | str | bytes
Parameters = Sequence[SqlValue] | Mapping[str, SqlValue]

NO_POSITION = -1
"""The position of a database in which no transaction has committed."""

RESULT_BYTES_MAX = 512 * 1024
"""How many bytes the rows that a transaction returns may have."""


class DatabaseIdentity(msgspec.Struct, frozen=True):
    """Whose copy a database is: that of one member of one group."""

    group: Name
    member: Name

    def __str__(self) -> str:
        return f"member {self.member} of group {self.group}"


class TransactionContext(msgspec.Struct, frozen=True, gc=False):
    """What a transaction has instead of clocks and random numbers: the same at every replica.

    `time_ns` is in nanoseconds since 1970. All random numbers of the transaction are derived from `seed`.
    """

    time_ns: Number
    seed: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class StatementResult(msgspec.Struct, frozen=True):
    """What a statement returned: its rows, if there are any, and how many rows it changed."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[SqlValue, ...], ...] = ()
    changed: int = 0


class Engine(Protocol):
    """One replica's database. `name` is the kind of database, for example `sqlite`."""

    name: str

    @property
    def position(self) -> int:
        """That of the last transaction that was committed, as it is stored in the database."""

    # From start to stop

    def open(self, identity: DatabaseIdentity) -> None:
        """Begin with an empty database that belongs to `identity`.

        Raises `DatabaseUnusable`, and leaves everything as it is, if there is a database already that was not
        made for this identity, or is of another version.
        """

    def close(self) -> None:
        """Let others use the database; may be called at any time, and more than once."""

    # Statements

    def check(self, sql: str) -> None:
        """Raise `StatementRejected` if a statement must not be part of a transaction.

        A statement that cannot be prepared here, for example because a table does not exist yet, is left to
        `execute`: this database may be behind.
        """

    def query(
        self, sql: str, parameters: Parameters, context: TransactionContext | None = None
    ) -> StatementResult:
        """Execute a statement that only reads, outside of a transaction; one that writes is rejected.

        Without a context, the statement has the clock and the random numbers of this process.
        """

    # Transactions

    def begin(self, context: TransactionContext, *, recording: bool = False) -> None:
        """Begin a transaction; with `recording`, its write-set will be asked for."""

    def execute(self, sql: str, parameters: Parameters) -> StatementResult:
        """Execute one statement of the transaction.

        - `StatementRejected`: it is not allowed, or the database does not understand it.
        - `TransactionAborted`: it violates a constraint, whose name the error has.
        - `PayloadTooLarge`: its rows exceed `RESULT_BYTES_MAX`.
        """

    def write_set(self) -> bytes:
        """The changes of a recorded transaction so far: for each row its key, old values and new values.

        A transaction that has changed nothing gives empty bytes. What cannot be recorded, for example a
        change of the schema, is rejected in a recorded transaction.
        """

    def apply_write_set(self, write_set: bytes) -> None:
        """Make the changes of a write-set, without executing triggers and cascades again.

        Raises `TransactionConflict` if a row is not as the transaction saw it, and `TransactionAborted` if a
        constraint would be violated.
        """

    def commit(self, position: int) -> None:
        """Make the changes and the position permanent; on an error, `rollback` follows.

        Deferred constraints are checked, and, if tables were created or altered, that each can be replicated:
        every table needs a primary key that is never NULL, for example.
        """

    def rollback(self) -> None:
        """Undo the transaction; without one, nothing happens."""

    # The whole database

    def snapshot(self) -> bytes:
        """Everything that transactions depend on; never called within a transaction."""

    def restore(self, data: bytes) -> None:
        """Replace the contents by those of a snapshot; the identity stays.

        Raises `DatabaseUnusable`, and changes nothing, if the snapshot is damaged, or of another kind or
        version of database.
        """

    def dump(self) -> Iterator[str]:
        """The schema and all rows as text, in a fixed order: equal for equal databases."""

    def lower_bounds(self) -> list[tuple[str, str]]:
        """The columns, each with its table, that a CHECK constraint bounds below, like `balance >= 0`."""
