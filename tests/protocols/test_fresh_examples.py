"""Fresh schedules for every protocol, from the seed of the day and for a bounded time.

Each round draws a few schedules for the next protocol; the seed of a round is the seed of the day plus its
number. A failure names the round's seed and protocol, and is repeated with the seed of the day.
"""

from collections.abc import Callable, Iterator
from itertools import count, cycle
from time import monotonic
from typing import TypeVar

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from priocast.protocols import PROTOCOLS
from protocols.mutants import AGEING, FLUSH, PLAIN, STRICT, Twin
from protocols.schedules import cases, check
from protocols.view_sequences import check_views, view_sequences

TWINS = (STRICT, PLAIN, AGEING, FLUSH)
_EXAMPLES = 5
_SEEDS_PER_DAY = 1_000_000

Example = TypeVar("Example")


def rounds(fresh_seed: int, fresh_seconds: float) -> Iterator[tuple[int, str, Twin]]:
    """A seed, a protocol and a variant for each round, until the time is over."""
    deadline = monotonic() + fresh_seconds
    choices = cycle([(order, twin) for twin in TWINS for order in PROTOCOLS])
    for number, (order, twin) in zip(count(fresh_seed * _SEEDS_PER_DAY), choices, strict=False):
        if monotonic() > deadline:
            return
        yield number, order, twin


def draw(
    examples: st.SearchStrategy[Example], check_example: Callable[[Example], object], round_seed: int
) -> None:
    """Check a few examples, and shrink one that fails."""

    @seed(round_seed)
    @settings(max_examples=_EXAMPLES, derandomize=False, database=None, phases=[Phase.generate, Phase.shrink])
    @given(examples)
    def check_all(example: Example) -> None:
        check_example(example)

    check_all()


@pytest.mark.fresh
def test_guarantees_hold_in_fresh_schedules(fresh_seed: int, fresh_seconds: float) -> None:
    for round_seed, order, twin in rounds(fresh_seed, fresh_seconds):
        try:
            draw(cases(order, *twin), check, round_seed)
        except BaseException as error:
            error.add_note(f"fresh examples: {order}, round {round_seed}")
            raise


@pytest.mark.fresh
def test_guarantees_hold_in_fresh_view_changes(fresh_seed: int, fresh_seconds: float) -> None:
    for round_seed, order, twin in rounds(fresh_seed, fresh_seconds):
        try:
            draw(view_sequences([order], [twin]), check_views, round_seed)
        except BaseException as error:
            error.add_note(f"fresh examples: {order}, round {round_seed}")
            raise


def test_a_seed_determines_the_examples() -> None:
    def drawn(round_seed: int) -> list[object]:
        found: list[object] = []
        draw(cases("sequencer-ub", *STRICT), found.append, round_seed)
        return found

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
