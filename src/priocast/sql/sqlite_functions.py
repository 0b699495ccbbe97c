"""SQLite's functions that read clocks and random numbers, replaced: they ask the transaction's context.

Overriding them in the connection also covers column defaults, triggers and CHECK constraints, without
touching the text of any statement. Times are calculated by SQLite itself, on a second connection whose clock
stands at the time of the transaction: there are many ways to write `now`.
"""

from collections.abc import Callable
from hashlib import blake2b
from itertools import count

import apsw

from priocast.core.errors import StatementRejected
from priocast.sql.engine import SqlValue, TransactionContext

_RANDOM_BYTES = 8
_BLOB_BYTES_MAX = 1_000_000
_TIME_FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff")
_MODIFIERS_OF_THE_MACHINE = ("localtime", "utc")
_MS_BEFORE_1970 = 210_866_760_000_000  # from noon of the first Julian day
_numbers = count()


class OrderedClock(apsw.VFS):
    """An operating system for SQLite whose clock is set by hand."""

    def __init__(self) -> None:
        self.name = f"priocast-{next(_numbers)}"
        self.time_ns = 0
        super().__init__(self.name, "")

    def xCurrentTimeInt64(self) -> int:  # noqa: N802  # SQLite's name
        """The time in milliseconds, as SQLite counts them."""
        return self.time_ns // 1_000_000 + _MS_BEFORE_1970


class OrderedFunctions:
    """The replacements, for one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._seed = 0
        self._drawn = 0
        self._clock = OrderedClock()
        self._calculator = apsw.Connection(":memory:", vfs=self._clock.name)
        define = connection.create_scalar_function
        for name in _TIME_FUNCTIONS:
            define(name, self._time_function(name), -1, deterministic=True)
        for name, source in (("date", "date"), ("time", "time"), ("timestamp", "datetime")):
            define(f"current_{name}", self._time_function(source), 0, deterministic=True)
        define("random", self._random, 0)
        define("randomblob", self._random_blob, 1)

    def begin(self, context: TransactionContext) -> None:
        """A transaction with this context begins."""
        self._clock.time_ns = context.time_ns
        self._seed, self._drawn = context.seed, 0

    def close(self) -> None:
        """Release the connection that times are calculated with."""
        self._calculator.close()
        self._clock.unregister()

    def _time_function(self, name: str) -> Callable[..., SqlValue]:
        def function(*arguments: SqlValue) -> SqlValue:
            given = [_as_sqlite_reads(argument) for argument in arguments]
            for argument in given:
                if isinstance(argument, str) and argument.strip().lower() in _MODIFIERS_OF_THE_MACHINE:
                    raise StatementRejected(
                        f"{name}(…, '{argument}') depends on the time zone of the machine: calculate it "
                        "before and pass it as a parameter"
                    )
            marks = ", ".join("?" * len(given))
            calculated: SqlValue = self._calculator.execute(f"SELECT {name}({marks})", given).get
            return calculated

        return function

    def _bytes(self, size: int) -> bytes:
        """The next bytes of the transaction's random numbers."""
        drawn = bytearray()
        while len(drawn) < size:
            text = f"{self._seed}/{self._drawn}".encode()
            drawn += blake2b(text, digest_size=64).digest()
            self._drawn += 1
        return bytes(drawn[:size])

    def _random(self, *_: SqlValue) -> int:
        return int.from_bytes(self._bytes(_RANDOM_BYTES), signed=True)

    def _random_blob(self, *arguments: SqlValue) -> bytes:
        size = arguments[0] if isinstance(arguments[0], int) else 1
        if size > _BLOB_BYTES_MAX:
            raise StatementRejected(f"randomblob gives at most {_BLOB_BYTES_MAX:,} bytes, not {size:,}")
        return self._bytes(max(size, 1))


def _as_sqlite_reads(argument: SqlValue) -> SqlValue:
    """An argument of a time function as SQLite reads it: bytes are text, which ends at a zero."""
    if isinstance(argument, bytes):
        return argument.partition(b"\0")[0].decode(errors="replace")
    return argument.partition("\0")[0] if isinstance(argument, str) else argument
