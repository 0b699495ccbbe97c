"""Constants by number."""

from collections.abc import Hashable
from typing import Any


class Interner:
    """Numbers for values that never change; equal values of one type have one number."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._numbers: dict[tuple[type, Hashable], int] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, number: int) -> Any:
        return self._values[number]

    def __contains__(self, value: Hashable) -> bool:
        return (type(value), value) in self._numbers

    def number(self, value: Hashable) -> int:
        """The number of a value; a new value gets the next one."""
        number = self._numbers.setdefault((type(value), value), len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number
