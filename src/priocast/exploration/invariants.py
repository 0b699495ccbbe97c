"""Invariants inside a member, which cannot be observed from outside.

In the cut form of re-ordering, a rule decides which heads of levels may be consumed. Here the rule is written
as it is specified, one head at a time and without regard to speed. It must allow at most one head, and the
queue must offer that one. So a head waits for nothing but what the rule names: for lower messages only if its
cut names them, and never because one of them has no position yet.

In the lock form, lock sets decide what may not be consumed. Only more urgent messages may lock a message, and
no message may be behind one that is locked by a message less urgent than itself.
"""

from collections.abc import Callable

from priocast.core.guarantees import PRIORITY_ACCOUNTING
from priocast.core.protocol_interface import Protocol
from priocast.exploration.violation import PropertyViolation
from priocast.protocols.reorder.cuts import Reorder
from priocast.protocols.reorder.level_queues import CutInsertion, LevelQueue, LevelQueues
from priocast.protocols.reorder.locks import ReorderLocks


def check_invariants(protocol: Protocol) -> None:
    """Raise the violation of an invariant, if the protocol has any."""
    for kind, check in _CHECKS.items():
        if isinstance(protocol, kind):
            check(protocol)


def _check_levels(protocol: Protocol) -> None:
    assert isinstance(protocol, Reorder)
    levels: LevelQueues = protocol._level_queues
    in_use: dict[int, LevelQueue] = levels._levels
    allowed = [
        head
        for number, level in in_use.items()
        if level.waiting and (head := level.head()) is not None and _may_be_consumed(number, head, in_use)
    ]
    if len(allowed) > 1:
        raise PropertyViolation(
            PRIORITY_ACCOUNTING,
            f"{protocol.me.name} may consume {' and '.join(str(head.batch) for head in allowed)}",
        )
    offered = [found] if (found := levels.consumable()) else []
    if offered != [(head, _count_allowed(head, in_use)) for head in allowed]:
        raise PropertyViolation(PRIORITY_ACCOUNTING, f"{protocol.me.name} does not offer the allowed head")


def _may_be_consumed(number: int, head: CutInsertion, in_use: dict[int, LevelQueue]) -> bool:
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


def _count_allowed(head: CutInsertion, in_use: dict[int, LevelQueue]) -> int:
    """How many of the head's messages the cuts of all higher heads name."""
    assert head.final is not None
    above = [level.head() for number, level in in_use.items() if number > head.level and level.waiting]
    cuts = [higher.cut.get(head.level, (0, 0)) for higher in above if higher is not None]
    counted = [(head.final, head.taken + count) for count in range(1, head.left + 1)]
    return sum(all(each <= cut for cut in cuts) for each in counted)


def _check_locks(protocol: Protocol) -> None:
    assert isinstance(protocol, ReorderLocks)
    seen: set[int] = set()
    for block in protocol._lock_queue.blocks[1:-1]:
        lockers = {level for level, _ in block.locks}
        seen |= lockers
        if block.level in lockers or min(seen, default=block.level) < block.level:
            raise PropertyViolation(
                PRIORITY_ACCOUNTING,
                f"at {protocol.me.name}, {block.segments[0].insertion.batch} waits for a lock of a message "
                "that is not more urgent",
            )


_CHECKS: dict[type[Protocol], Callable[[Protocol], None]] = {
    Reorder: _check_levels,
    ReorderLocks: _check_locks,
}
