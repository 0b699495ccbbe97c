"""How a replicated database is opened: `connect`, and the engine of the member that calls it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from priocast.core.errors import InvalidInput, InvalidOption
from priocast.core.extras import extra_missing
from priocast.replication.opening import DurabilityName, open_replica
from priocast.runtime.arguments import path_of
from priocast.runtime.configuration import START_SECONDS
from priocast.runtime.parameters import JoinParameters, check_keywords
from priocast.sql.database import Database
from priocast.sql.database_machine import DatabaseMachine
from priocast.sql.engine import DatabaseIdentity, Engine
from priocast.sql.policy import PriorityPolicy

SQLITE = "sqlite"
_POSTGRES_ADDRESSES = ("postgresql://", "postgres://")


def connect(
    group: str,
    *,
    member: str,
    engine: str | Engine = SQLITE,
    schema: str = "",
    invariants: Mapping[str, str] | None = None,
    priorities: PriorityPolicy | None = None,
    durability: DurabilityName = "memory",
    **parameters: Unpack[JoinParameters],
) -> Database:
    """Open a database that every member of a group has a copy of, as an asynchronous context manager.

    - `group`: the name of the group.
    - `member`: the name of this process, unique in the group.
    - `engine`: `sqlite`; or the address of this member's own database on a server of PostgreSQL,
      `postgresql://HOST/DATABASE`; or an `Engine` of your own. The kind is the same at every member.
    - `schema`: statements that create tables, executed once in the group. See `Database.define`.
    - `invariants`: queries by name that must return no row after any transaction.
    - `priorities`: gives transactions their priorities, where the caller does not; without it, all are
      routine.
    - `durability`: with `disk`, answers wait for the disks of a majority of the founders, and members that
      start again begin with what is on them. The copy is in a file in the `state_directory`.
    - `parameters`: those of `join`, except for `state`. Delivery is always *safe* and the policy *primary*.
      `start_seconds` is also how long to wait until the schema is defined.
    """
    check_keywords(connect, parameters, JoinParameters)
    if priorities is not None and not isinstance(priorities, PriorityPolicy):
        raise InvalidInput(f"priorities must be a PriorityPolicy of priocast.sql, not {priorities!r}")
    directory = path_of("state_directory", parameters.get("state_directory"))
    path = None if durability == "memory" or directory is None else directory / f"{group}.{member}.db"
    machine = DatabaseMachine(_engine_of(engine, path))
    replica = open_replica(group, machine, member=member, durability=durability, **parameters)
    identity = DatabaseIdentity(group, member)
    start_seconds = parameters.get("start_seconds", START_SECONDS)
    policy = priorities or PriorityPolicy()
    return Database(identity, replica, schema, invariants or {}, policy, start_seconds)


def _engine_of(engine: str | Engine, path: Path | None) -> Engine:
    if not isinstance(engine, str):
        return engine
    if engine != SQLITE and not engine.startswith(_POSTGRES_ADDRESSES):
        raise InvalidOption(
            f"engine is {engine!r}: choose 'sqlite', or the address of a database, postgresql://HOST/DATABASE"
        )
    try:
        if engine != SQLITE:
            from priocast.sql.postgres_engine import PostgresEngine

            return PostgresEngine(engine)
        from priocast.sql.sqlite_engine import SqliteEngine

        return SqliteEngine(path)
    except ImportError as error:
        raise extra_missing(error) or error from None
