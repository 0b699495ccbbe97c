"""What a live run does now: rates, delivery times by priority, inversions and the view, slice by slice."""

from collections import defaultdict, deque

import msgspec

from priocast.pipeline.live.live_rows import BroadcastRow, DeliveredRow, LiveRow, StoppedRow, ViewRow


class PriorityFigures(msgspec.Struct, frozen=True):
    """Messages of one priority that their senders delivered: how long it took, and what came before them.

    `inversions` counts the less urgent messages that the sender delivered while one of these waited.
    """

    priority: int
    count: int
    p50_ms: float
    p99_ms: float
    inversions: int


class LiveFigures(msgspec.Struct, frozen=True):
    """A slice of a run. `rates` are deliveries per second of each process in the slice."""

    run: str
    view: str
    order: str
    members: tuple[str, ...]
    stopped: tuple[str, ...]
    delivered: int
    seconds: float
    rates: dict[str, float]
    priorities: tuple[PriorityFigures, ...]


class _UndeliveredBroadcast(msgspec.Struct, frozen=True):
    """Messages of one broadcast that their sender has not delivered, and what it had delivered before."""

    row: BroadcastRow
    delivered: dict[int, int]


class LiveMeasurement:
    """Adds up the rows of one run; `take_slice` gives what happened since it was last called."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._view: ViewRow | None = None
        self._stopped: set[str] = set()
        self._waiting: defaultdict[object, deque[_UndeliveredBroadcast]] = defaultdict(deque)
        self._delivered: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._total = 0
        self._begin_slice()

    def _begin_slice(self) -> None:
        self._in_slice: defaultdict[str, int] = defaultdict(int)
        self._slice_ns: list[int] = []
        self._took: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._inversions: defaultdict[int, int] = defaultdict(int)

    @property
    def has_ended(self) -> bool:
        """Whether every member of the newest view has stopped."""
        return self._view is not None and self._stopped >= set(self._view.members)

    def take(self, row: LiveRow) -> None:
        """Add a row; rows of one process come in the order of its steps."""
        if isinstance(row, ViewRow):
            if self._view is None or row.view >= self._view.view:
                self._view = row
        elif isinstance(row, StoppedRow):
            self._stopped.add(row.process)
        elif isinstance(row, BroadcastRow):
            self._waiting[row.stream].append(_UndeliveredBroadcast(row, dict(self._delivered[row.process])))
        else:
            self._deliver(row)

    def _deliver(self, row: DeliveredRow) -> None:
        self._in_slice[row.process] += row.count
        self._slice_ns.append(row.time_ns)
        self._total += row.count
        so_far = self._delivered[row.process]
        for priority, count in row.by_priority():
            so_far[priority] += count
        if row.process == row.stream.sender:
            self._match(row, so_far)

    def _match(self, row: DeliveredRow, so_far: dict[int, int]) -> None:
        """Find the broadcasts that were delivered; a batch may be delivered in parts, or in larger ones."""
        waiting = self._waiting[row.stream]
        while waiting and waiting[0].row.last < row.first:
            waiting.popleft()
        for each in waiting:
            first, last = max(row.first, each.row.first), min(row.last, each.row.last)
            if first > last:
                break
            part = row.part(first, last)
            for priority, count in part.by_priority():
                self._took[priority].append((row.time_ns - each.row.time_ns, count))
                before = sum(
                    done - each.delivered.get(other, 0) for other, done in so_far.items() if other < priority
                )
                self._inversions[priority] += before * count

    def take_slice(self) -> LiveFigures:
        """The figures since the last call."""
        seconds = (max(self._slice_ns) - min(self._slice_ns)) / 1e9 if self._slice_ns else 0.0
        priorities = tuple(
            PriorityFigures(
                priority,
                sum(count for _, count in took),
                percentile(took, 0.5) / 1e6,
                percentile(took, 0.99) / 1e6,
                self._inversions[priority],
            )
            for priority, took in sorted(self._took.items(), reverse=True)
        )
        rates = {process: count / seconds for process, count in sorted(self._in_slice.items()) if seconds}
        view = self._view
        figures = LiveFigures(
            run=self._run,
            view=str(view.view) if view else "",
            order=view.order if view else "",
            members=view.members if view else (),
            stopped=tuple(sorted(self._stopped)),
            delivered=self._total,
            seconds=seconds,
            rates=rates,
            priorities=priorities,
        )
        self._begin_slice()
        return figures


def percentile(values: list[tuple[int, int]], share: float) -> int:
    """The least value that this share of all values does not exceed; each has a count."""
    due = share * sum(count for _, count in values)
    for value, count in sorted(values):
        due -= count
        if due <= 0:
            return value
    raise ValueError("there are no values")
