"""`python -m tools.sqllogictest FILE...`: run files of sqllogictest on three replicas.

    python -m tools.sqllogictest tests/sql/logic/*.test
    python -m tools.sqllogictest --address postgresql://…/a --address postgresql://…/b FILE

Each record is executed by another member, as a transaction of the group. Exits with 1 if a result is not the
expected one, or if the replicas differ. With `--address`, for each replica, the database is PostgreSQL;
otherwise it is SQLite.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from priocast.core.errors import PriocastError
from priocast.sql.engine import Engine
from tools.sqllogictest.records import read_records
from tools.sqllogictest.runner import run_records

_REPLICAS = 3


def main() -> int:
    """Run the files; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.sqllogictest",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--address", action="append", help="a database of PostgreSQL; repeat it")
    arguments = parser.parse_args()
    failed = 0
    for path in arguments.files:
        try:
            records = read_records(path, "postgresql" if arguments.address else "sqlite")
            report = asyncio.run(run_records(records, _engines(arguments.address)))
        except (PriocastError, OSError) as error:
            sys.exit(f"error: {error}")
        failed += bool(report.found)
        counted = f"{report.statements:,} statements, {report.queries:,} queries"
        sys.stdout.write(f"{path}: {counted}, {len(report.found)} failures\n")
        sys.stdout.writelines(f"  {failure}\n" for failure in report.found)
    return 1 if failed else 0


def _engines(addresses: list[str] | None) -> list[Engine]:
    if addresses:
        from priocast.sql.postgres_engine import PostgresEngine

        return [PostgresEngine(address) for address in addresses]
    from priocast.sql.sqlite_engine import SqliteEngine

    return [SqliteEngine() for _ in range(_REPLICAS)]


if __name__ == "__main__":
    sys.exit(main())
