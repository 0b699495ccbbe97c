"""The options of membership, and what is rejected."""

from typing import Any

import pytest

from membership.builders import MILLISECOND, options
from priocast.core.errors import InvalidOption


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"founders": 0}, "must be between 1 and 256"),
        ({"founders": 257}, "must be between 1 and 256"),
        ({"policy": "anarchy"}, "choose 'primary' or 'partitionable'"),
        ({"delivery": "never"}, "choose 'agreed' or 'safe'"),
        ({"heartbeat_ms": 0}, "must be above 0"),
        ({"heartbeat_ms": 40, "failure_ms": 100}, "at least three times heartbeat_ms"),
        ({"slow_ms": 99}, "at least failure_ms"),
        ({"failure_ms": float("nan")}, "failure_ms is nan: it must be above 0 and finite"),
        ({"slow_ms": float("inf")}, "slow_ms is inf: it must be above 0 and finite"),
        ({"founders": "3"}, "founders is '3': wrong type"),
        ({"rejoin": "no"}, "rejoin is 'no': wrong type"),
    ],
)
def test_options_that_cannot_work_are_rejected_with_the_reason(chosen: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        options(**chosen)


def test_times_are_in_nanoseconds() -> None:
    chosen = options(heartbeat_ms=1.5, failure_ms=50, slow_ms=70)
    assert chosen.heartbeat_ns == 1_500_000
    assert (chosen.failure_ns, chosen.slow_ns) == (50 * MILLISECOND, 70 * MILLISECOND)
    assert chosen.primary and not options(policy="partitionable").primary
