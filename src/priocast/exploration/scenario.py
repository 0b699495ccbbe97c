"""Scenarios: a small group, and the messages that its members broadcast. The exploration tries the rest."""

from collections.abc import Iterable
from itertools import count

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.priority import BACKGROUND, NAMED_LEVELS, ROUTINE, URGENT, parse_priority
from priocast.core.protocol import OrderingOptions
from priocast.core.protocol_interface import Protocol
from priocast.protocols import find_protocol

PROCESSES_MAX = 8
MESSAGES_MAX = 16
#: Short names of levels, in addition to the common ones.
LEVELS = {"low": BACKGROUND, "middle": ROUTINE, "high": URGENT}


class ScenarioMessage(msgspec.Struct, frozen=True):
    """A message of a scenario: its name, the rank of its sender, and its priority."""

    name: str
    sender: int
    priority: int


class ExplorationScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its messages; each member broadcasts its own in the given order.

    After an input a member acts at once until nothing is left to do. With `free_turns` each step of its turns
    is an action like any other, so that inputs accumulate and messages share batches. With `view_ends` the
    view ends in every state, for every set of survivors.
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
            raise InvalidOption(f"processes is {self.processes}: it must be from 1 to {PROCESSES_MAX}")
        if not 1 <= len(self.messages) <= MESSAGES_MAX:
            raise InvalidOption(f"there are {len(self.messages)} messages: there must be 1 to {MESSAGES_MAX}")
        for message in self.messages:
            if not 0 <= message.sender < self.processes:
                raise InvalidOption(
                    f"the sender of {message.name} is {name_of(message.sender)}, but the members are "
                    f"{', '.join(self.members)}: choose one of them, or {message.sender + 1} processes"
                )
        self._check_options()

    def _check_options(self) -> None:
        """Reject options that only re-ordering protocols have; a layer passes them to the protocol below."""
        reorders = find_protocol(self.order.rpartition("/")[2]).PRIORITIES_ACT == "consuming"
        if self.options.distributed and not reorders:
            raise InvalidOption(f"{self.order} has no option distributed: omit it, or choose reorder")
        if self.options.overtakes_max is not None and not reorders:
            raise InvalidOption(f"{self.order} has no option overtakes_max: omit it, or choose reorder")

    @property
    def protocol(self) -> type[Protocol]:
        """The protocol that is explored."""
        return find_protocol(self.order)

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members, by rank."""
        return tuple(map(name_of, range(self.processes)))

    def index_of(self, payload: bytes) -> int:
        """The index of the message with this payload."""
        names = [message.name for message in self.messages]
        return names.index(payload.decode())

    def names(self, messages: Iterable[int]) -> str:
        """The names of these messages, as text."""
        return " ".join(self.messages[message].name for message in messages) or "nothing"

    @property
    def checks_priority(self) -> bool:
        """Whether Priority accounting must hold: what was consumed on reception decides which goes first."""
        return self.options.prioritised and self.protocol.PRIORITIES_ACT == "consuming"

    def __str__(self) -> str:
        messages = " ".join(f"{name_of(each.sender)}:{each.name.partition('-')[0]}" for each in self.messages)
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
        return f"{self.order}, {self.processes} processes, {messages}{''.join(f', {flag}' for flag in flags)}"


def name_of(rank: int) -> str:
    """The name of the member of this rank."""
    return chr(ord("a") + rank)


def parse_messages(text: str) -> tuple[ScenarioMessage, ...]:
    """Parse messages as a user types them: `a:low b:high c:low`, each a member and a level."""
    numbers = count(1)
    return tuple(_parse_message(word, next(numbers)) for word in text.split())


def _parse_message(word: str, number: int) -> ScenarioMessage:
    sender, colon, level = word.partition(":")
    if len(sender) != 1 or not "a" <= sender <= name_of(PROCESSES_MAX - 1) or not colon:
        known = ", ".join([*LEVELS, *NAMED_LEVELS])
        raise InvalidOption(
            f"{word!r} is not a message: give a member (a, b, …) and a level ({known}, 0 to 255), as in a:low"
        )
    priority = LEVELS[level] if level in LEVELS else parse_priority(level)
    return ScenarioMessage(f"{level}-{number}", ord(sender) - ord("a"), priority)
