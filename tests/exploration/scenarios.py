"""Scenarios for tests, in one line each."""

from collections.abc import Callable
from typing import Any

import pytest

from priocast.core.protocol import OrderingOptions
from priocast.exploration import member_states
from priocast.exploration.explorer import Exploration, explore
from priocast.exploration.scenario import ExplorationScenario, parse_messages


def scenario(
    order: str,
    messages: str,
    processes: int = 2,
    free_turns: bool = False,
    view_ends: bool = False,
    **options: Any,
) -> ExplorationScenario:
    """A group of this size that broadcasts these messages."""
    return ExplorationScenario(
        order=order,
        processes=processes,
        messages=parse_messages(messages),
        options=OrderingOptions(**options),
        free_turns=free_turns,
        view_ends=view_ends,
    )


def explored(order: str, messages: str, processes: int = 2, **options: Any) -> Exploration:
    """Explore such a group."""
    return explore(scenario(order, messages, processes, **options))


def assert_holds(order: str, messages: str, processes: int = 2, **options: Any) -> Exploration:
    """Explore such a group, and expect no violation."""
    result = explored(order, messages, processes, **options)
    found = result.counterexample
    assert found is None, "\n".join((str(found.violation), *found.steps))
    assert result.terminal_states > 0
    return result


def counterexample(
    order: str, messages: str, processes: int = 2, **options: Any
) -> tuple[str, tuple[str, ...]]:
    """Explore such a group, and expect a violation: the guarantee, and the steps that lead there."""
    result = explored(order, messages, processes, **options)
    assert result.counterexample is not None, f"no violation in {result.states} states"
    return result.counterexample.violation.guarantee, result.counterexample.steps


def assert_found(
    patch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    guarantees: tuple[str, ...],
    order: str,
    messages: str,
    **options: Any,
) -> None:
    """Expect that a mutant violates one of these guarantees, without the help of invariants."""
    patch.setattr(member_states, "check_invariants", lambda _: None)
    mutate(patch)
    guarantee, steps = counterexample(order, messages, **options)
    assert guarantee in guarantees, steps


def failed_assertion(order: str, messages: str, processes: int = 2, **options: Any) -> str:
    """Explore such a group, and expect that an assertion of a member fails: its text."""
    found = explored(order, messages, processes, **options).counterexample
    assert found is not None
    error = found.violation.__cause__
    assert isinstance(error, AssertionError), repr(found.violation)
    return str(error)
