"""What an adaptation policy is, the paper's AP module: it observes who sends, and proposes weights.

The mechanism (`adaptive.py`) calls the policy of its member, one for each view, and does the rest: it numbers
the distributions that policies propose, sends them to all members and changes from one to the next. Whatever
a policy proposes, and if several members propose at once, the order stays total; a poor policy costs time.

A policy sees only what its arguments say: it has no clock (`now` is the driver's time) and no random numbers,
so a simulated run can be repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.protocols.adaptive.slots import scaled

CHANGE_DIVISOR = 4


class AdaptationPolicy(ABC):
    """One member's policy in one view; members are named by their ranks.

    `argument` is what follows the policy's name in the option `adaptation`, after a colon. `check` raises
    InvalidOption if it is not valid: it is called where the option is given.
    """

    NAME: ClassVar[str]
    MEASURES_ROUND_TRIPS: ClassVar[bool] = False

    def __init__(self, me: ProcessId, view: View, argument: str) -> None:
        self.view = view
        self.rank = view.members.index(me)
        self.size = len(view.members)
        self.argument = argument

    @classmethod
    def check(cls, argument: str) -> None:
        """Raise if the argument is not valid; most policies have none."""
        if argument:
            raise InvalidOption(f"adaptation is '{cls.NAME}:{argument}': {cls.NAME} has no argument")

    def on_messages(self, rank: int, count: int, urgency: int, now: int) -> None:  # noqa: B027
        """A packet with `count` messages came from a member; `urgency` is the priority of the first."""

    def on_round_trip(self, rank: int, nanoseconds: int) -> None:  # noqa: B027
        """A member answered; only if the policy `MEASURES_ROUND_TRIPS`."""

    def report(self) -> int:
        """A number that this member's packets carry to the policies of the others; 0: nothing to report."""
        return 0

    def on_report(self, rank: int, report: int) -> None:  # noqa: B027
        """The number that a member reported last."""

    @abstractmethod
    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        """The weights to change to, by rank, from these ones; None if they are good enough.

        It is called once per turn in which messages arrived and all members use the same distribution.
        """


class EqualShares(AdaptationPolicy):
    """No adaptation: every member has one slot in turn, as in a new view."""

    NAME = "equal"

    def proposed(self, weights: Sequence[int], now: int) -> tuple[int, ...] | None:
        return None


def differing(
    counts: Sequence[int], weights: Sequence[int], divisor: int = CHANGE_DIVISOR
) -> tuple[int, ...] | None:
    """Weights by these counts, if the members' shares would change by more than 1 / divisor in sum."""
    wanted = scaled(counts)
    return wanted if differ(wanted, weights, divisor) else None


def differ(new: Sequence[int], old: Sequence[int], divisor: int) -> bool:
    """Whether the members' shares differ by more than 1 / divisor in sum."""
    total, present = sum(new), sum(old)
    moved = sum(abs(one * present - other * total) for one, other in zip(new, old, strict=True))
    return divisor * moved > total * present
