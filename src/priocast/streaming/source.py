"""The source: positions of the total order are the offsets, and any feed of the group has what is at them.

One partition holds a batch, because the order holds within a partition only. A batch that is read again after
any failure has the same rows: what a feed has given once is on its disk, at its position.
"""

from collections.abc import Iterator
from contextlib import closing

import pyarrow
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from priocast.core.errors import InvalidOption, UnavailableFeed
from priocast.log.entries import MessageEntry
from priocast.streaming.options import EARLIEST, LATEST, StreamSource

SCHEMA = (
    "position long, view long, sender string, incarnation long, number long, priority int, payload binary"
)
_ARROW_SCHEMA = pyarrow.schema(
    [
        ("position", pyarrow.int64()),
        ("view", pyarrow.int64()),
        ("sender", pyarrow.string()),
        ("incarnation", pyarrow.int64()),
        ("number", pyarrow.int64()),
        ("priority", pyarrow.int32()),
        ("payload", pyarrow.binary()),
    ]
)
_POSITION = "position"


class PositionRange(InputPartition):
    """The positions from `first` to before `end`."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))
        self.first = first
        self.end = end


def read_range(source: StreamSource, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
    """The messages of a range of positions, as rows; called on an executor."""
    assert isinstance(partition, PositionRange)
    with closing(source.open()) as messages:
        for part in messages.read(partition.first, partition.end):
            yield to_arrow(part)


def to_arrow(messages: list[MessageEntry]) -> pyarrow.RecordBatch:
    """Messages as rows of the schema."""
    columns = zip(
        *(
            (
                each.position,
                each.view,
                each.sender.name,
                each.sender.incarnation,
                each.number,
                each.priority,
                each.payload,
            )
            for each in messages
        ),
        strict=True,
    )
    arrays = [pyarrow.array(values, field.type) for values, field in zip(columns, _ARROW_SCHEMA, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)


def _covered(source: StreamSource) -> tuple[int, int]:
    with closing(source.open()) as messages:
        return messages.widest_range()


def first_position(source: StreamSource, covered: tuple[int, int]) -> int:
    """Where reading starts."""
    if source.start == EARLIEST:
        return covered[0]
    return covered[1] if source.start == LATEST else int(source.start)


def chosen_range(source: StreamSource, covered: tuple[int, int]) -> PositionRange:
    """What a batch query reads. It may be empty; Spark needs one partition nevertheless."""
    first = first_position(source, covered)
    if first > covered[1]:
        raise InvalidOption(
            f"the option start is {first:,}, and the feeds of group {source.group!r} end at {covered[1]:,}"
        )
    end = covered[1] if source.end is None else source.end
    if first > end:
        raise InvalidOption(
            f"the option end is {end:,}, and the range starts after it, at position {first:,} "
            f"(start is {source.start})"
        )
    return PositionRange(first, end)


class OrderedReader(DataSourceReader):
    """`spark.read.format("priocast")`: what the feeds have now."""

    def __init__(self, source: StreamSource) -> None:
        self._source = source

    def partitions(self) -> list[InputPartition]:
        return [chosen_range(self._source, _covered(self._source))]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_range(self._source, partition)


class OrderedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("priocast")`: what the feeds have, as it comes."""

    def __init__(self, source: StreamSource) -> None:
        self._source = source
        self._until: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return {_POSITION: first_position(self._source, _covered(self._source))}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        most = self._source.max_messages_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self._until = _covered(self._source)[1]

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        first = start[_POSITION]
        end = self._until if self._until is not None else _covered(self._source)[1]
        if end < first:
            raise UnavailableFeed(
                f"the query has read up to position {first:,}, and the feeds of group "
                f"{self._source.group!r} end at {end:,}: was the group founded again, or is a feed missing?"
            )
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return {_POSITION: end}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [PositionRange(start[_POSITION], end[_POSITION])]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read_range(self._source, partition)

    def commit(self, end: dict[str, int]) -> None:
        """Feeds trim by size, not by what was read."""

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802 (Spark's name)
        return {_POSITION: _covered(self._source)[1]}
