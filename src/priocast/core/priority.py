"""Priorities: integers from 0 to 255, higher is more urgent, in four classes with reserved room.

A *class* is a quarter of the range. Wherever room is limited, a part of it is reserved for the
classes above, so that a flood of routine messages never takes the room of an urgent one.
"""

from priocast.core.errors import PriorityOutOfRange

LOWEST = 0
BACKGROUND = 32
ROUTINE = 96
ELEVATED = 160
URGENT = 224
HIGHEST = 255

NAMED_LEVELS = {
    "lowest": LOWEST,
    "background": BACKGROUND,
    "routine": ROUTINE,
    "elevated": ELEVATED,
    "urgent": URGENT,
    "highest": HIGHEST,
}
CLASS_COUNT = 4
CLASS_SHIFT = 6
_RESERVE_DIVISOR = 16


def check_priority(priority: int) -> int:
    """Return the priority, or raise if it is not valid."""
    if type(priority) is not int or not LOWEST <= priority <= HIGHEST:
        raise PriorityOutOfRange(
            f"priority {priority!r} is not an integer from {LOWEST} to {HIGHEST} "
            f"(named levels: {', '.join(f'{name}={level}' for name, level in NAMED_LEVELS.items())})"
        )
    return priority


def parse_priority(text: str) -> int:
    """Parse a priority as a user writes it: a number or a named level."""
    named = NAMED_LEVELS.get(text.strip().lower())
    if named is not None:
        return named
    try:
        return check_priority(int(text))
    except ValueError:
        raise PriorityOutOfRange(
            f"{text!r} is neither a number from {LOWEST} to {HIGHEST} nor one of {', '.join(NAMED_LEVELS)}"
        ) from None


def class_of(priority: int) -> int:
    """The class of a priority, or of another level: 0 (lowest quarter) to 3 (the most urgent quarter)."""
    return min(priority >> CLASS_SHIFT, CLASS_COUNT - 1)


def limits_by_class(limit: int, reserved: bool = True) -> tuple[int, ...]:
    """How much of a limit each class may use: each leaves a sixteenth for every class above it.

    The most urgent class may use all of it. A limit below 16 is too small for a reserve, and a plain group
    reserves nothing.
    """
    reserve = limit // _RESERVE_DIVISOR if reserved else 0
    return tuple(limit - (CLASS_COUNT - 1 - of_class) * reserve for of_class in range(CLASS_COUNT))
