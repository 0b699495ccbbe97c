"""How often a run breaks Timestamp order, in plain Python that shares nothing with the check; and damages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random

from priocast.trace.schema import BROADCAST, DELIVERED, MessageRow, TraceRow

Stamp = tuple[int, int, int, int]
MessageName = tuple[str, int, int, int]
_DAMAGES_MAX = 6


def violations_of_stamps(rows: Iterable[TraceRow]) -> int:
    """The number of violations of all four properties."""
    by_process: dict[tuple[str, int], list[MessageRow]] = defaultdict(list)
    for row in _counting(rows):
        by_process[row.member, row.incarnation].append(row)
    return _steps_back(by_process.values()) + _ambiguous(by_process.values()) + _acausal(by_process.values())


def _steps_back(processes: Iterable[list[MessageRow]]) -> int:
    found = 0
    for rows in processes:
        last: Stamp | None = None
        for row in sorted(filter(_is_stamped, rows), key=lambda row: row.step):
            found += last is not None and _stamp(row, 0) <= last
            last = _stamp(row, row.count - 1)
    return found


def _ambiguous(processes: Iterable[list[MessageRow]]) -> int:
    messages_at: dict[tuple[str, Stamp], set[MessageName]] = defaultdict(set)
    stamps_of: dict[tuple[int, str, MessageName], set[Stamp]] = defaultdict(set)
    for row, message, stamp in _deliveries(processes):
        messages_at[row.coordinator, stamp].add(message)
        stamps_of[row.view, row.coordinator, message].add(stamp)
    shared = sum(len(messages) > 1 for messages in messages_at.values())
    return shared + sum(len(stamps) > 1 for stamps in stamps_of.values())


def _acausal(processes: Iterable[list[MessageRow]]) -> int:
    known: dict[MessageName, list[Stamp]] = defaultdict(list)
    for rows in processes:
        last: Stamp | None = None
        for row in sorted(rows, key=lambda row: row.step):
            if _is_stamped(row):
                last = _stamp(row, row.count - 1)
            elif row.event == BROADCAST and last is not None:
                for index in range(row.count):
                    known[_message(row, index)].append(last)
    return len(
        {
            (message, row.view, row.coordinator)
            for row, message, stamp in _deliveries(processes)
            if any(stamp <= before for before in known[message])
        }
    )


def _deliveries(processes: Iterable[list[MessageRow]]) -> Iterator[tuple[MessageRow, MessageName, Stamp]]:
    for rows in processes:
        for row in filter(_is_stamped, rows):
            for index in range(row.count):
                yield row, _message(row, index), _stamp(row, index)


def _counting(rows: Iterable[TraceRow]) -> list[MessageRow]:
    return [row for row in rows if isinstance(row, MessageRow) and row.event in (BROADCAST, DELIVERED)]


def _is_stamped(row: MessageRow) -> bool:
    return row.event == DELIVERED and row.distribution != ""


def _message(row: MessageRow, index: int) -> MessageName:
    return row.sender, row.sender_incarnation, row.level, row.first + index


def _stamp(row: MessageRow, index: int) -> Stamp:
    distribution, rank = row.distribution.split(".")
    return row.view, int(distribution), int(rank), row.stamp_number + index


def with_wrong_stamps(rows: Iterable[TraceRow], random: Random) -> list[TraceRow]:
    """Some rows have another stamp, come at the end, come twice, or are missing."""
    changed = list(rows)
    end = max(row.step for row in changed)
    for number in range(random.randint(1, _DAMAGES_MAX)):
        found = [
            each for each in changed if isinstance(each, MessageRow) and each.event in (BROADCAST, DELIVERED)
        ]
        if not found:
            break
        row, other = random.choice(found), random.choice(found)
        late = row._replace(step=end + 1 + number)
        moved = row._replace(stamp_number=max(0, row.stamp_number + random.choice([-1, 1, -5, 5])))
        same = row._replace(stamp_number=other.stamp_number, distribution=other.distribution)
        stamped = [moved, same] if _is_stamped(row) and _is_stamped(other) else []
        place = changed.index(row)
        changed[place : place + 1] = random.choice([[late], [row, late], [], *([each] for each in stamped)])
    return changed
