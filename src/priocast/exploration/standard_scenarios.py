"""The standard scenarios: the smallest groups that exercise every rule of a protocol."""

from collections.abc import Iterator

from priocast.core.protocol import OrderingOptions
from priocast.exploration.scenario import ExplorationScenario, parse_messages
from priocast.protocols import find_protocol

#: For every order: processes, messages, `free_turns`, `view_ends`.
_FOR_ALL = (
    (2, "a:low b:high", False, True),
    (2, "a:low b:high b:low", False, False),
    (3, "a:low b:high", False, False),
)
#: For protocols in which queued messages can be overtaken.
_FOR_QUEUES = (
    (2, "a:low b:high", True, True),
    (2, "a:low b:high b:low", False, True),
    (2, "a:low b:middle a:high", False, True),
    (2, "a:low a:low b:high", True, False),
    (2, "a:low b:high b:low a:high", False, False),
    (2, "a:low b:middle b:low a:high", False, False),
    (3, "a:low b:high", False, True),
)
#: Three messages and processes, where the sender decides; with answers to all there are too many states.
_FOR_COORDINATORS = (
    (3, "a:low b:high c:low", False, False),
    (3, "a:high b:low c:high", False, False),
    (3, "a:low b:middle c:high", False, False),
)
_OVERTAKES_MAX = (1, 2)


def standard_scenarios(order: str) -> Iterator[ExplorationScenario]:
    """The scenarios for an order, small ones first."""
    for processes, messages, free_turns, view_ends in _FOR_ALL:
        yield _scenario(order, OrderingOptions(), processes, messages, free_turns, view_ends)
    if find_protocol(order).PRIORITIES_ACT != "consuming":
        return
    for distributed in (False, True):
        options = OrderingOptions(distributed=distributed)
        for processes, messages, free_turns, view_ends in _FOR_QUEUES:
            yield _scenario(order, options, processes, messages, free_turns, view_ends)
    for bound in _OVERTAKES_MAX:
        options = OrderingOptions(overtakes_max=bound)
        yield _scenario(order, options, 2, "a:low b:high b:high", False, True)
    for processes, messages, free_turns, view_ends in _FOR_COORDINATORS:
        yield _scenario(order, OrderingOptions(), processes, messages, free_turns, view_ends)


def _scenario(
    order: str, options: OrderingOptions, processes: int, messages: str, free_turns: bool, view_ends: bool
) -> ExplorationScenario:
    return ExplorationScenario(
        order=order,
        processes=processes,
        messages=parse_messages(messages),
        options=options,
        free_turns=free_turns,
        view_ends=view_ends,
    )
