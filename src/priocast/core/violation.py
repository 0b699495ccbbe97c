"""One record of a broken guarantee, from the check that finds it to the report that shows it.

The simulator's checkers, the model checker and the Spark checks all report this record. A check that must
stop at once raises an exception that carries one. The record says where to look: the run, the view, the
position, and the messages and members involved.
"""

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A guarantee that does not hold in a run.

    `guarantee` is a name from `priocast.core.guarantees`, or a short name for an unexpected error. `summary`
    is one sentence for people to read. `run` names the run ("seed 7", a run's directory). `view` is written
    as `ViewId` writes it ("2@b#1"), `members` as `ProcessId` ("b#1"), `messages` as `MessageId` ("b#1/0/3").
    `details` holds what only some checks know, by name, such as `time_ns`.
    """

    guarantee: str
    summary: str
    run: str = ""
    view: str = ""
    position: int | None = None
    members: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    details: dict[str, str | int] = {}

    def __str__(self) -> str:
        run = f"{self.run}: " if self.run else ""
        view = f" in view {self.view}" if self.view else ""
        position = "" if self.position is None else f" at position {self.position}"
        known = "".join(f"; {name} {_written(value)}" for name, value in self.details.items())
        return f"{run}{self.guarantee} violated{view}{position}: {self.summary}{known}"


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"
