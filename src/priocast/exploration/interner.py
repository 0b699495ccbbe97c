"""Constants by number."""

from collections.abc import Hashable
from typing import Any


class Interner:
    """Things that never change, each with a number of its own; equal things of one type are one thing."""

    def __init__(self) -> None:
        self._things: list[Any] = []
        self._numbers: dict[tuple[type, Hashable], int] = {}

    def __len__(self) -> int:
        return len(self._things)

    def __getitem__(self, number: int) -> Any:
        return self._things[number]

    def __contains__(self, thing: Hashable) -> bool:
        return (type(thing), thing) in self._numbers

    def number(self, thing: Hashable) -> int:
        """The number of a thing, which is the next one if it is new."""
        number = self._numbers.setdefault((type(thing), thing), len(self._things))
        if number == len(self._things):
            self._things.append(thing)
        return number
