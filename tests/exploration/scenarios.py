"""Scenarios for tests, by one line each."""

from typing import Any

from priocast.core.protocol import OrderingOptions
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
    """These messages in a group of so many."""
    return ExplorationScenario(
        order=order,
        processes=processes,
        messages=parse_messages(messages),
        options=OrderingOptions(**options),
        free_turns=free_turns,
        view_ends=view_ends,
    )


def explored(order: str, messages: str, processes: int = 2, **options: Any) -> Exploration:
    """What there is to see in such a group."""
    return explore(scenario(order, messages, processes, **options))


def holds(order: str, messages: str, processes: int = 2, **options: Any) -> Exploration:
    """The same, where nothing may be broken."""
    seen = explored(order, messages, processes, **options)
    assert seen.found is None, "\n".join((str(seen.found.violation), *seen.found.story))
    assert seen.rests > 0
    return seen


def broken(order: str, messages: str, processes: int = 2, **options: Any) -> tuple[str, tuple[str, ...]]:
    """The same, where something must be broken: which guarantee, and the story that leads there."""
    seen = explored(order, messages, processes, **options)
    assert seen.found is not None, f"{seen.states} states, and nothing is wrong"
    return seen.found.violation.guarantee, seen.found.story
