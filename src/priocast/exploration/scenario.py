"""Scenarios: a small group, and what its members will say. Everything else is left to the exploration."""

from collections.abc import Iterable
from itertools import count

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import BACKGROUND, NAMED_LEVELS, ROUTINE, URGENT, parse_priority
from priocast.core.protocol import OrderingOptions, Protocol
from priocast.protocols import find_protocol

PROCESSES_MAX = 8
MESSAGES_MAX = 16
#: Short names of levels, besides those that are used everywhere.
LEVELS = {"low": BACKGROUND, "middle": ROUTINE, "high": URGENT}


class ScenarioMessage(msgspec.Struct, frozen=True):
    """A message of a scenario: its name, the rank of its sender, and its priority."""

    name: str
    sender: int
    priority: int


class ExplorationScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its messages; each member says its own in the order in which they stand here.

    After an input a member acts at once until nothing is left to do; with `free_turns` each step of its turns
    is a move like any other, so that inputs gather and messages share batches. With `view_ends` the view may
    end at any time for any of the members.
    """

    order: str
    processes: int
    messages: tuple[ScenarioMessage, ...]
    options: OrderingOptions = OrderingOptions()
    free_turns: bool = False
    view_ends: bool = False

    def __post_init__(self) -> None:
        find_protocol(self.order)
        if not 1 <= self.processes <= PROCESSES_MAX:
            raise InvalidOption(f"there are {self.processes} processes: 1 to {PROCESSES_MAX} can be explored")
        if not 1 <= len(self.messages) <= MESSAGES_MAX:
            raise InvalidOption(
                f"there are {len(self.messages)} messages: 1 to {MESSAGES_MAX} can be explored"
            )
        for said in self.messages:
            if not 0 <= said.sender < self.processes:
                raise InvalidOption(
                    f"{said.name} is of {name_of(said.sender)}, and the members are "
                    f"{', '.join(self.members)}: let one of them say it, or have {said.sender + 1} processes"
                )
        self._check_options()

    def _check_options(self) -> None:
        """Refuse what only the orders that re-order queues know of; a layer leaves it to what is below."""
        reorders = find_protocol(self.order.rpartition("/")[2]).PRIORITIES_ACT == "consuming"
        if self.options.distributed and not reorders:
            raise InvalidOption(f"{self.order} has no distributed form: leave it out, or choose reorder")
        if self.options.overtakes_max is not None and not reorders:
            raise InvalidOption(f"{self.order} knows no overtakes_max: leave it out, or choose reorder")

    @property
    def protocol(self) -> type[Protocol]:
        """What is explored."""
        return find_protocol(self.order)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members, by rank."""
        return tuple(map(name_of, range(self.processes)))

    def index_of(self, payload: bytes) -> int:
        """The number of the message with this payload."""
        names = [said.name for said in self.messages]
        return names.index(payload.decode())

    def names(self, messages: Iterable[int]) -> str:
        """The names of these messages, for people."""
        return " ".join(self.messages[message].name for message in messages) or "nothing"

    @property
    def judges_priority(self) -> bool:
        """Whether what was consumed when a message came must decide who goes first."""
        return self.options.prioritised and self.protocol.PRIORITIES_ACT == "consuming"

    def __str__(self) -> str:
        said = " ".join(f"{name_of(each.sender)}:{each.name.partition('-')[0]}" for each in self.messages)
        options = self.options
        flags = [
            word
            for word, holds in (
                ("distributed", options.distributed),
                (f"overtakes at most {options.overtakes_max}", options.overtakes_max is not None),
                ("plain", not options.prioritised),
                ("free turns", self.free_turns),
                ("view ends", self.view_ends),
            )
            if holds
        ]
        return f"{self.order}, {self.processes} processes, {said}{''.join(f', {flag}' for flag in flags)}"


def name_of(rank: int) -> str:
    """The name of the member of this rank."""
    return chr(ord("a") + rank)


def parse_messages(text: str) -> tuple[ScenarioMessage, ...]:
    """Read messages that a person typed: `a:low b:high c:low`, each a member and a level."""
    numbers = count(1)
    return tuple(_parse_message(word, next(numbers)) for word in text.split())


def _parse_message(word: str, number: int) -> ScenarioMessage:
    sender, colon, level = word.partition(":")
    if len(sender) != 1 or not "a" <= sender <= name_of(PROCESSES_MAX - 1) or not colon:
        known = ", ".join([*LEVELS, *NAMED_LEVELS])
        raise InvalidOption(
            f"{word!r} is no message: name a member (a, b, …) and a level ({known}, or 0 to 255), as in a:low"
        )
    priority = LEVELS[level] if level in LEVELS else parse_priority(level)
    return ScenarioMessage(f"{level}-{number}", ord(sender) - ord("a"), priority)
