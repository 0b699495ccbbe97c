"""What every suite shares: how Hypothesis searches, and the option that rewrites expected outputs."""

import os

import pytest
from hypothesis import HealthCheck, settings

ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("local", ANY_MACHINE)
settings.register_profile("ci", ANY_MACHINE, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the outputs of the scripts anew instead of checking them",
    )
