"""What is fixed in the runs of all seeds, and not drawn from the seed: the options of `priocast simulate`."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from priocast.core.errors import InvalidOption
from priocast.protocols import find_protocol
from priocast.simulation.counters import FAULT_KINDS, SERVICE_FAULT_KINDS
from priocast.simulation.faults import FaultKind

MEMBERS_MAX = 26
LOAD_PERCENT_MAX = 10_000

Policy = Literal["primary", "partitionable"]
Delivery = Literal["agreed", "safe"]


def _check_bounds(name: str, value: int | None, highest: int) -> None:
    if value is not None and not 1 <= value <= highest:
        raise InvalidOption(f"{name} is {value}: it must be between 1 and {highest}")


class Choice(msgspec.Struct, frozen=True):
    """Options that are fixed and not drawn from the seed; the other options of a run stay the same.

    With a number of `members`, what is drawn for each member is drawn for so many. `load` is in percent of
    the messages and rates that are drawn. With a `fault`, this kind of fault occurs in every run, and no
    other kind. A protocol that does not support partitionable groups makes every group a primary one. With
    `qualities`, the runs are those of `service_generator`: primary groups on a LAN that send with these
    qualities.
    """

    order: str | None = None
    policy: Policy | None = None
    delivery: Delivery | None = None
    members: int | None = None
    load: int | None = None
    fault: FaultKind | None = None
    qualities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.qualities and (self.policy or self.delivery or self.members or self.load or self.fault):
            raise InvalidOption(
                "runs with a quality of service are those of primary groups with agreed delivery, and have "
                "a load and faults of their own: give only the order and the quality"
            )
        _check_bounds("members", self.members, MEMBERS_MAX)
        _check_bounds("load", self.load, LOAD_PERCENT_MAX)
        if self.order is None or find_protocol(self.order).PARTITIONABLE:
            return
        if self.policy == "partitionable":
            raise InvalidOption(
                f"{self.order} does not support partitionable groups: omit the order or the policy"
            )
        msgspec.structs.force_setattr(self, "policy", "primary")

    @property
    def fault_kinds(self) -> tuple[str, ...]:
        """The kinds of faults that its runs can have."""
        return SERVICE_FAULT_KINDS if self.qualities else FAULT_KINDS

    def __str__(self) -> str:
        """As options of `priocast simulate`; empty if nothing is fixed."""
        return " ".join(f"--{name} {value}" for name, value in self._fixed())

    def _fixed(self) -> Iterator[tuple[str, object]]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "qualities":
                yield from (("quality", quality) for quality in value)
            elif value is not None:
                yield name, value


ALL_GENERATED = Choice()


def replay_command(seed: int, options: str) -> str:
    """The command that runs a seed with these options again, and shows all options of the run."""
    return " ".join(filter(None, ("priocast simulate --seeds", str(seed), options, "--show")))
