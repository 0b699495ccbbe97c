"""What a campaign runs: every seed in every cell, and a fingerprint of the code that runs it."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from priocast.core.errors import InvalidOption
from priocast.simulation.choice import Choice, Delivery, Policy
from priocast.simulation.faults import FaultKind

#: The packages whose code decides what a seed does.
_SIMULATED = ("core", "links", "membership", "protocols", "services", "simulation", "trace")
_FINGERPRINT_LENGTH = 16
#: What is drawn from the seed, and not fixed.
ANY = "any"


class PlannedSeed(msgspec.Struct, frozen=True):
    """One seed in one cell of a campaign."""

    cell: str
    choice: Choice
    seed: int


class Plan(msgspec.Struct, frozen=True):
    """All seeds of all cells; `code` is the fingerprint of the code that runs them."""

    seeds: range
    cells: dict[str, Choice]
    code: str

    def __len__(self) -> int:
        return len(self.seeds) * len(self.cells)

    def missing(self, done: set[tuple[str, int]]) -> list[PlannedSeed]:
        """What is not in `done` (cell, seed), seed by seed: every cell makes progress at the same pace."""
        return [each for each in self._planned() if (each.cell, each.seed) not in done]

    def _planned(self) -> Iterator[PlannedSeed]:
        for seed in self.seeds:
            for cell, choice in self.cells.items():
                yield PlannedSeed(cell, choice, seed)


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The values of each option of a `Choice`; what has none is drawn from the seed."""

    order: Sequence[str] = ()
    policy: Sequence[Policy] = ()
    delivery: Sequence[Delivery] = ()
    members: Sequence[int] = ()
    load: Sequence[int] = ()
    fault: Sequence[FaultKind] = ()

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every combination of the values."""
        names = self.__struct_fields__
        for values in product(*(getattr(self, name) or (None,) for name in names)):
            yield dict(zip(names, values, strict=True))


def make_plan(seeds: range, matrix: Matrix) -> Plan:
    """One cell for each combination of these options.

    An order that does not support partitionable groups has no partitionable cells, unless nothing else was
    asked for, which is an error.
    """
    cells: dict[str, Choice] = {}
    rejected: InvalidOption | None = None
    for options in matrix.combinations():
        try:
            choice = Choice(**options)
        except InvalidOption as error:
            rejected = error
        else:
            cells[cell_name(choice)] = choice
    if rejected is not None and not cells:
        raise rejected
    return Plan(seeds, cells, fingerprint())


def cell_name(choice: Choice) -> str:
    """The options of `priocast simulate` that fix what this cell fixes; `any` if it fixes nothing."""
    return str(choice) or ANY


def options_of(cell: str) -> str:
    """The options of `priocast simulate` that a cell fixes."""
    return "" if cell == ANY else cell


def fingerprint() -> str:
    """A hash of the code that decides what a seed does: results of different code are not mixed."""
    root = Path(__file__).parent.parent
    files = [root / "member.py"]
    for package in _SIMULATED:
        files += sorted((root / package).rglob("*.py"))
    digest = sha256()
    for path in files:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:_FINGERPRINT_LENGTH]
