"""What must hold within a member whatever happened, and cannot be seen from outside.

The cut form of re-ordering says by a rule which heads of levels may be consumed. Here that rule stands as it
is written down, one head at a time and without a thought of speed. It must allow at most one head, and the
queue must offer that one. So no head waits for anything but what the rule names: for lower messages only if
its cut names them, and never because one of them has no place yet.

The lock form says by lock-sets what may not be consumed. Only more urgent messages may lock a message, and
none may be behind one that is locked by what is less urgent than itself.
"""

from collections.abc import Callable

from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.protocol import Protocol
from priocast.exploration.violation import PropertyViolation
from priocast.protocols.reorder.cut_queues import CutJoin, Level, Levels
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.locks import ReorderLocks


def check_invariants(protocol: Protocol) -> None:
    """Raise what is wrong within a member, where there is a way to know."""
    for kind, way in _WAYS.items():
        if isinstance(protocol, kind):
            way(protocol)


def _inspect_levels(protocol: Protocol) -> None:
    assert isinstance(protocol, Reorder)
    levels: Levels = protocol._levels
    in_use: dict[int, Level] = levels._levels
    allowed = [
        head
        for number, level in in_use.items()
        if level.waiting and (head := level.head()) is not None and _may_be_consumed(number, head, in_use)
    ]
    if len(allowed) > 1:
        raise PropertyViolation(
            PRIORITY_ACCOUNTING,
            f"{protocol.me.name} may consume {' and '.join(str(h.batch) for h in allowed)}",
        )
    offered = [found] if (found := levels.consumable()) else []
    if offered != [(head, _count_allowed(head, in_use)) for head in allowed]:
        raise PropertyViolation(PRIORITY_ACCOUNTING, f"{protocol.me.name} is not offered what it may consume")


def _may_be_consumed(number: int, head: CutJoin, in_use: dict[int, Level]) -> bool:
    """The rule: all that the cut names was consumed, and the cuts of all higher heads name this one."""
    assert head.final is not None
    for other, level in in_use.items():
        if other < number and level.consumed < head.cut.get(other, (0, 0)):
            return False
        if other > number and level.waiting:
            above = level.head()
            if above is None or above.cut.get(number, (0, 0)) < (head.final, head.taken + 1):
                return False
    return all(other in in_use for other in head.cut if other < number)


def _count_allowed(head: CutJoin, in_use: dict[int, Level]) -> int:
    """How many of the head's messages the cuts of all higher heads name."""
    assert head.final is not None
    above = [level.head() for number, level in in_use.items() if number > head.level and level.waiting]
    cuts = [higher.cut.get(head.level, (0, 0)) for higher in above if higher is not None]
    places = [(head.final, head.taken + count) for count in range(1, head.left + 1)]
    return sum(all(place <= cut for cut in cuts) for place in places)


def _inspect_locks(protocol: Protocol) -> None:
    assert isinstance(protocol, ReorderLocks)
    met: set[int] = set()
    for element in protocol._queue.elements[1:-1]:
        lockers = {level for level, _ in element.locks}
        met |= lockers
        if element.level in lockers or min(met, default=element.level) < element.level:
            assert element.join is not None
            raise PropertyViolation(
                PRIORITY_ACCOUNTING,
                f"{element.join.batch} waits at {protocol.me.name} for a lock of what is not more urgent",
            )


_WAYS: dict[type[Protocol], Callable[[Protocol], None]] = {
    Reorder: _inspect_levels,
    ReorderLocks: _inspect_locks,
}
