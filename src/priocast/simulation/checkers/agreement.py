"""Agreement: what one member delivers, every member delivers."""

from priocast.core.guarantees import AGREEMENT
from priocast.simulation.checkers.checker import Checker, Key, Report, keys_of, name_of
from priocast.trace.schema import Row


class Agreement(Checker):
    """Counts by how many members each message was delivered."""

    PROPERTY = AGREEMENT

    def __init__(self, report: Report, members: tuple[str, ...]) -> None:
        super().__init__(report)
        self._members = members
        self._delivered_by: dict[Key, list[str]] = {}

    def on_delivered(self, row: Row) -> None:
        for key in keys_of(row):
            self._delivered_by.setdefault(key, []).append(row.member)

    def finish(self, now: int) -> None:
        for key, members in self._delivered_by.items():
            missing = [member for member in self._members if member not in members]
            if missing:
                text = f"{members[0]} delivered {name_of(key)}, {', '.join(missing)} never did"
                self.violated(text, now, messages=[key], members=[members[0], *missing])
                return
