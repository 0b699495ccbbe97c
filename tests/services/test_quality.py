"""Qualities: how they are made, written and read, and which mistakes are found."""

from collections.abc import Callable

import pytest

from priocast.core.errors import InvalidInput
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    UNRELIABLE,
    Quality,
    at_least,
    at_least_to,
    atomic,
    best_effort,
    best_effort_to,
    delta,
    parse_quality,
)

WRITTEN = {
    "best-effort:2": best_effort(2),
    "best-effort:a,b": best_effort_to("a", "b"),
    "at-least:3": at_least(3),
    "at-least:a": at_least_to("a"),
    "reliable": RELIABLE,
    "causal": CAUSAL,
    "atomic": ATOMIC,
    "atomic:acknowledged": atomic(acknowledged=True),
    "tight": TIGHT,
    "delta:20.5ms": delta(20.5),
    "best-effort:0": UNRELIABLE,
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_quality_is_written_as_it_is_read(text: str) -> None:
    assert parse_quality(text) == WRITTEN[text]
    assert str(WRITTEN[text]) == text


def test_other_ways_to_write_a_quality() -> None:
    assert parse_quality("unreliable") == UNRELIABLE
    assert parse_quality("delta:20") == delta(20)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "total",
        "reliable:3",
        "atomic:2",
        "best-effort",
        "at-least:0",
        "at-least:a b",
        "delta:soon",
        "delta:-1",
    ],
)
def test_a_text_that_is_no_quality_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_quality(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: best_effort(-1),
        lambda: at_least(0),
        lambda: at_least(True),
        lambda: at_least(257),
        best_effort_to,
        lambda: at_least_to("a", ""),
        lambda: delta(0),
        lambda: delta(60_001),
        lambda: delta(float("nan")),
    ],
)
def test_impossible_parameters_are_rejected(make: Callable[[], Quality]) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_names_count_once() -> None:
    assert at_least_to("a", "b", "a") == at_least_to("a", "b")
