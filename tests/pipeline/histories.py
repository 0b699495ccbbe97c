"""Histories for tests, event by event."""

from pathlib import Path

from priocast.trace.edn import Keyword
from priocast.trace.transaction_history import EventType, HistoryEvent, rank_of

Step = tuple[str, int, object]


class HistoryBuilder:
    """Events in the order of real time; each call adds some."""

    def __init__(self) -> None:
        self.events: list[HistoryEvent] = []

    def invoke(self, process: int, *steps: Step) -> None:
        """A transaction begins: what it will read is not known."""
        self._add("invoke", process, [(kind, key, None if kind == "r" else of) for kind, key, of in steps])

    def ok(self, process: int, *steps: Step, at: int | None = None, after: int | None = None) -> None:
        """It was executed at a position, or read after the command at one."""
        rank = rank_of(at) if at is not None else rank_of(after, after=True) if after is not None else None
        self._add("ok", process, list(steps), rank)

    def run(self, process: int, *steps: Step, at: int | None = None, after: int | None = None) -> None:
        """A transaction while nothing else happens."""
        self.invoke(process, *steps)
        self.ok(process, *steps, at=at, after=after)

    def end(self, kind: EventType, process: int, *steps: Step) -> None:
        """It failed, or nobody knows."""
        self._add(kind, process, list(steps))

    def settled(self, *places: tuple[int, int | None]) -> None:
        """Where those whose outcome was unknown were executed."""
        self.other("info", None, "settled", [list(place) for place in places])

    def other(
        self, kind: EventType, process: int | None, function: str, value: object, rank: int | None = None
    ) -> None:
        """An event of a bank, or of the nemesis."""
        self.events.append(
            HistoryEvent(
                type=kind,
                process=process,
                function=function,
                value=value,
                time_ns=1000 * len(self.events),
                index=len(self.events),
                rank=rank,
            )
        )

    def write(self, path: Path) -> Path:
        """The history as a file."""
        path.write_text("".join(f"{event.to_edn()}\n" for event in self.events))
        return path

    def _add(self, kind: EventType, process: int, steps: list[Step], rank: int | None = None) -> None:
        self.other(kind, process, "txn", [[Keyword(name), key, of] for name, key, of in steps], rank)


def transfer(source: int, target: int, amount: int) -> dict[Keyword, int]:
    """The value of a transfer."""
    return {Keyword("from"): source, Keyword("to"): target, Keyword("amount"): amount}
