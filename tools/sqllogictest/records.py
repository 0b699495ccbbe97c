"""The files of sqllogictest: statements that must succeed or fail, and queries with the expected results.

    statement ok
    CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)

    query IT rowsort
    SELECT id, name FROM t
    ----
    1
    Ann

A record ends with an empty line. `skipif` and `onlyif` before it name an engine; `halt` ends the file.
Results are values, one a line, or their number and MD5 hash. The format is described at
https://www.sqlite.org/sqllogictest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from priocast.core.errors import InvalidInput
from priocast.sql.engine import SqlValue

_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_SORTS = ("nosort", "rowsort", "valuesort")
_IGNORED = ("hash-threshold",)
_NOT_PRINTED = re.compile(r"[^ -~]")


@dataclass(frozen=True)
class LogicRecord:
    """One statement or query of a file; a query has `types`, one letter for each column."""

    line: int
    sql: str
    fails: bool = False
    types: str = ""
    sort: str = "nosort"
    label: str = ""
    expected: tuple[str, ...] = ()

    @property
    def is_query(self) -> bool:
        """Whether results are expected."""
        return bool(self.types)


def read_records(path: Path, engine: str) -> Iterator[LogicRecord]:
    """The records of a file that are for an engine, by name; `InvalidInput` names the line of a wrong one."""
    for line, block in _blocks(path.read_text(encoding="utf-8").splitlines()):
        first, *rest = block
        while first.startswith(("skipif ", "onlyif ")):
            condition, _, name = first.partition(" ")
            if (condition == "skipif") == (name.split()[0] == engine):
                break
            first, *rest = rest or [""]
        else:
            word = first.split()[0] if first.split() else ""
            if word == "halt":
                return
            if word not in _IGNORED:
                yield _record(path, line, first.split(), rest)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The records as lists of lines, without comments, each with the number of its first line."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, block
            block = []


def _record(path: Path, line: int, header: Sequence[str], rest: Sequence[str]) -> LogicRecord:
    match header:
        case ["statement", ("ok" | "error") as outcome, *_]:
            return LogicRecord(line, "\n".join(rest), fails=outcome == "error")
        case ["query", types, *options] if set(types) <= set("TIR"):
            sort = options[0] if options and options[0] in _SORTS else "nosort"
            label = options[-1] if options and options[-1] not in _SORTS else ""
            end = rest.index("----") if "----" in rest else len(rest)
            expected = tuple(rest[end + 1 :])
            return LogicRecord(line, "\n".join(rest[:end]), False, types, sort, label, expected)
    raise InvalidInput(f"{path}:{line}: {' '.join(header)!r} is not a record of sqllogictest")


def result_values(record: LogicRecord, rows: Sequence[Sequence[SqlValue]]) -> list[str]:
    """The values of a result as the format writes them, in the order that the record wants."""
    if any(len(row) != len(record.types) for row in rows):
        return [f"{len(rows[0])} columns instead of {len(record.types)}"]
    written = [[_written(kind, of) for kind, of in zip(record.types, row, strict=True)] for row in rows]
    if record.sort == "rowsort":
        written.sort()
    values = [value for row in written for value in row]
    return sorted(values) if record.sort == "valuesort" else values


def difference(record: LogicRecord, values: Sequence[str]) -> str:
    """How values differ from the expected ones; empty if they do not."""
    hashed = _HASHED.fullmatch(record.expected[0]) if len(record.expected) == 1 else None
    if hashed is not None:
        found = f"{len(values)} values hashing to {hash_of(values)}"
        return "" if found == record.expected[0] else f"{found} instead of {record.expected[0]}"
    if list(record.expected) == list(values):
        return ""
    return f"{' '.join(values) or 'nothing'} instead of {' '.join(record.expected) or 'nothing'}"


def hash_of(values: Sequence[str]) -> str:
    """The hash of values that the format has: a fingerprint, nothing secret."""
    return md5("".join(f"{value}\n" for value in values).encode(), usedforsecurity=False).hexdigest()


def _written(kind: str, value: SqlValue) -> str:
    if value is None:
        return "NULL"
    if kind == "I":
        return str(int(float(value))) if not isinstance(value, int) else str(value)
    if kind == "R":
        return f"{float(value):.3f}"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return _NOT_PRINTED.sub("@", text) if text else "(empty)"
