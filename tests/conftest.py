"""What every suite shares: how Hypothesis searches, fresh examples, `--rewrite`, and one Spark session.

In CI the examples of Hypothesis are fixed, so that a run can be repeated. One bounded part of every run draws
fresh examples (marker `fresh`). Its seed is the date. The summary prints it, `PRIOCAST_FRESH_SEED` repeats
it. `PRIOCAST_FRESH_SECONDS` is how long each of these tests draws.
"""

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRESH_SEED = "PRIOCAST_FRESH_SEED"
FRESH_SECONDS = "PRIOCAST_FRESH_SECONDS"

ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", ANY_MACHINE)
settings.register_profile("ci", ANY_MACHINE, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the expected outputs of the scripts instead of checking them",
    )


def pytest_configure() -> None:
    """Choose the seed once: worker processes inherit it."""
    os.environ.setdefault(FRESH_SEED, f"{datetime.now(UTC):%Y%m%d}")
    os.environ.setdefault(FRESH_SECONDS, "6")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that have a time limit of their own: a long one at the end would run alone."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


def pytest_runtest_teardown() -> None:
    """Undo what a command has configured: other tests read what is logged."""
    logger = logging.getLogger("priocast")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Make fixtures that a module shares once, not in each worker."""
    from support.distribution import SharedFixtureScheduling

    return SharedFixtureScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to repeat the fresh examples, if any were drawn."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    if any("fresh" in report.keywords for report in reports):
        seed, seconds = os.environ[FRESH_SEED], os.environ[FRESH_SECONDS]
        terminalreporter.write_line(
            f"fresh examples: repeat with {FRESH_SEED}={seed} {FRESH_SECONDS}={seconds} pytest -m fresh"
        )


@pytest.fixture(scope="session")
def fresh_seed() -> int:
    """The seed of the fresh examples."""
    return int(os.environ[FRESH_SEED])


@pytest.fixture(scope="session")
def fresh_seconds() -> float:
    """How long a test draws fresh examples."""
    return float(os.environ[FRESH_SECONDS])


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One session for all tests that use Spark in this process: to start one costs more than most of them."""
    from priocast.pipeline.session import spark_session

    with spark_session("local[2]") as session:
        yield session
